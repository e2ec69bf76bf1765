// Threads that wait for the next piece of one computation. A model's pass hands over hundreds of pieces per second, so the
// threads spin for a moment before they sleep.
#pragma once

#include <boost/core/noncopyable.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace specsim::llm {

class ThreadTeam : boost::noncopyable {
 public:
  // `threads` in all, including the caller. 0: one per core. Throws std::system_error if the system does not provide that many.
  explicit ThreadTeam(unsigned threads);
  ~ThreadTeam();

  [[nodiscard]] unsigned size() const { return static_cast<unsigned>(threads_.size()) + 1; }
  // Calls work(first, last) on disjoint ranges that cover [0, count), one per thread, and waits for all of them. A thread is not
  // woken for fewer than `grain` items. `work` must not throw.
  void split(std::size_t count, std::size_t grain, const std::function<void(std::size_t first, std::size_t last)>& work);

 private:
  void end();
  void serve(unsigned index);
  void run_part(unsigned index);

  // About twenty microseconds: longer than the gap between two pieces of a pass, shorter than going to sleep and waking.
  int spins_ = 4000;
  std::vector<std::thread> threads_;
  const std::function<void(std::size_t, std::size_t)>* work_ = nullptr;
  std::size_t count_ = 0;
  unsigned parts_ = 1;
  std::atomic<std::uint32_t> turn_{0};
  std::atomic<unsigned> running_{0};
  std::atomic<bool> ends_{false};
};

}  // namespace specsim::llm
