#include "sim/foundation/base/parallel.h"

#include "sim/foundation/base/context.h"
#include "sim/foundation/base/standard_library.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <vector>

namespace specsim {

void for_each(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  Context& mine = context();
  const auto serve = [&] {
    const WithContext same(mine);
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (failure == nullptr) failure = std::current_exception();
    }
  };
  {
    std::vector<JoiningThread> others;
    try {
      for (std::size_t i = 1; i < threads && i < count; ++i) others.emplace_back(serve);
    } catch (const std::system_error&) {
      // The threads that did start do the work.
    }
    serve();
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace specsim
