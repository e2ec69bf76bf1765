#include "sim/foundation/base/check.h"

namespace specsim {

void fail_check(const char* expression, const char* file, int line, const std::string& values) {
  throw InvariantBroken(fmt::format("{}:{}: check failed: {} ({})", file, line, expression, values));
}

}  // namespace specsim
