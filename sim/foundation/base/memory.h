// How much memory there is.
#pragma once

#include <cstddef>

namespace specsim {

// Bytes that this machine, and the container that it may be, can still give out.
std::size_t available_memory();

}  // namespace specsim
