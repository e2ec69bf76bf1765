#include "sim/lab/llm/thread_team.h"

#include <algorithm>

namespace specsim::llm {

namespace {

template <class T>
void wait_while(const std::atomic<T>& value, T old, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadTeam::ThreadTeam(unsigned threads) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  if (threads == 0) threads = cores;
  if (threads > cores) spins_ = 0;  // spinning would keep other threads from working
  try {
    for (unsigned i = 1; i < threads; ++i) threads_.emplace_back([this, i] { serve(i); });
  } catch (...) {  // the system grants no more
    end();
    throw;
  }
}

ThreadTeam::~ThreadTeam() { end(); }

void ThreadTeam::end() {
  ends_ = true;
  turn_.fetch_add(1, std::memory_order_release);
  turn_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run_part(unsigned index) {
  if (index < parts_) (*work_)(count_ * index / parts_, count_ * (index + 1) / parts_);
}

void ThreadTeam::serve(unsigned index) {
  for (std::uint32_t seen = 0;; ++seen) {
    wait_while(turn_, seen, spins_);
    if (ends_) return;
    run_part(index);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

void ThreadTeam::split(std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& work) {
  if (count == 0) return;
  const std::size_t parts = std::min<std::size_t>(size(), std::max<std::size_t>(1, count / std::max<std::size_t>(1, grain)));
  if (parts == 1) {
    work(0, count);
    return;
  }
  work_ = &work;
  count_ = count;
  parts_ = static_cast<unsigned>(parts);
  running_.store(static_cast<unsigned>(threads_.size()), std::memory_order_relaxed);
  turn_.fetch_add(1, std::memory_order_release);
  turn_.notify_all();
  run_part(0);
  for (unsigned left = running_.load(std::memory_order_acquire); left != 0; left = running_.load(std::memory_order_acquire))
    wait_while(running_, left, spins_);
}

}  // namespace specsim::llm
