// Available memory.
#pragma once

#include <cstddef>

namespace specsim {

// Bytes that this machine, and the container if the program runs in one, can still provide.
std::size_t available_memory();

}  // namespace specsim
