#include "sim/foundation/base/parallel.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace specsim::parallel_test {

TEST_CASE("every piece of work is done once, whatever the threads") {
  for (const unsigned threads : {0U, 1U, 3U, 40U}) {
    std::vector<std::atomic<int>> calls(17);
    for_each(calls.size(), threads, [&](std::size_t i) { ++calls[i]; });
    for (const std::atomic<int>& count : calls) CHECK(count == 1);
  }
  for_each(0, 3, [](std::size_t) { FAIL("no work"); });
}

TEST_CASE("an exception of one task is rethrown, and ends the others") {
  for (const unsigned threads : {1U, 4U}) {
    std::atomic<int> calls{0};
    const auto work = [&](std::size_t i) {
      ++calls;
      if (i == 2) throw std::runtime_error("from a thread");
      if (i > 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    // Half of it takes the other threads seconds, so that the throwing thread gets a turn meanwhile even on a busy machine.
    constexpr std::size_t kWork = 100000;
    CHECK_THROWS_WITH(for_each(kWork, threads, work), "from a thread");
    CHECK(calls < static_cast<int>(kWork / 2));  // mutant: the other threads continue to the end
  }
}

}  // namespace specsim::parallel_test
