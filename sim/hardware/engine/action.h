// An event's action: a small callable stored inside the event, never on the heap.
//
// Accepts any trivially copyable callable of at most kBytes bytes that takes no arguments: a lambda that captures a few pointers
// and numbers. A larger callable does not compile; keep its state in an object and capture a pointer to it.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace specsim::engine {

class Action {
 public:
  static constexpr std::size_t kBytes = 40;

  Action() = default;  // does nothing: test with operator bool before a call

  template <class F, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, Action>>>
  Action(F callable) {  // NOLINT(google-explicit-constructor): a lambda is an action
    set(callable);
  }

  // Becomes this callable, written in place.
  template <class F>
  void set(const F& callable) {
    if constexpr (std::is_same_v<F, Action>) {
      *this = callable;
    } else {
      static_assert(sizeof(F) <= kBytes && alignof(F) <= alignof(void*), "an action captures at most kBytes bytes");
      static_assert(std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F>,
                    "an action is copied as bytes: capture pointers and numbers");
      call_ = [](const void* storage) {
        F copy = *std::launder(static_cast<const F*>(storage));
        copy();
      };
      ::new (static_cast<void*>(storage_)) F(callable);
    }
  }

  explicit operator bool() const { return call_ != nullptr; }
  // Calls a copy on the stack, because the action itself may be overwritten meanwhile.
  void operator()() const { call_(storage_); }

 private:
  void (*call_)(const void*) = nullptr;
  alignas(void*) std::byte storage_[kBytes];
};

static_assert(std::is_trivially_copyable_v<Action> && sizeof(Action) == 40 + sizeof(void*));

}  // namespace specsim::engine
