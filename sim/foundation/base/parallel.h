// Independent pieces of work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace specsim {

// Calls work(i) for every i < count on `threads` threads in all, the caller's among them (fewer where the system grants no more),
// in any order. Once one throws each thread ends with the call that it is at, and the first exception comes out when all threads
// have ended.
void for_each(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace specsim
