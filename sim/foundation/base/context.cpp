#include "sim/foundation/base/context.h"

#include <utility>

namespace specsim {

namespace {

thread_local Context* current = nullptr;  // of the process

}  // namespace

Context& context() {
  static Context of_process;
  return current == nullptr ? of_process : *current;
}

WithContext::WithContext(Context& context) : before_(std::exchange(current, &context)) {}
WithContext::~WithContext() { current = before_; }

}  // namespace specsim
