// Independent pieces of work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace specsim {

// Calls work(i) for every i < count in any order, on `threads` threads including the caller's (fewer if the system grants no
// more). After an exception each thread finishes its present call. When all threads have ended, the first exception is thrown.
void for_each(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace specsim
