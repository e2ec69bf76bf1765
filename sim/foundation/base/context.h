// State of one piece of work, such as a command. Several may run in one process at a time, each on its own threads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <typeindex>

namespace specsim {

class Context {
 public:
  // The context's state of this type, created on first use. Its address is fixed for the context's lifetime.
  template <class State>
  State& of() {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<void>& state = states_[typeid(State)];
    if (state == nullptr) state = std::make_shared<State>();
    return *static_cast<State*>(state.get());
  }

 private:
  std::mutex mutex_;
  std::map<std::type_index, std::shared_ptr<void>> states_;
};

// The context of this thread: the process's own, unless a WithContext replaces it.
Context& context();

// While this object lives, its thread works for this context, which must outlive it. for_each() (parallel.h) sets the context in
// its threads too; code that starts threads by other means must do so itself.
class WithContext {
 public:
  explicit WithContext(Context& context);
  WithContext(const WithContext&) = delete;
  WithContext& operator=(const WithContext&) = delete;
  ~WithContext();

 private:
  Context* before_;
};

}  // namespace specsim
