#include "sim/foundation/base/sim_time.h"

namespace specsim::detail {

void fail_time(const char* what, double value) {
  fail_check("a time is within 0 .. 2^63 - 1 ps", __FILE__, __LINE__, fmt::format("{} = {}", what, value));
}

}  // namespace specsim::detail
