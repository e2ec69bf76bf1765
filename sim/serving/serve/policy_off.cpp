#include "sim/foundation/base/token.h"
#include "sim/serving/serve/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

class Off final : public ServerPolicy {
 public:
  [[nodiscard]] int draft_length(const BatchState& /*batch*/) override { return 0; }
  [[nodiscard]] int longest() const override { return 0; }
  [[nodiscard]] bool by_requests_alone() const override { return true; }
};

}  // namespace

ServerPolicyEntry off_policy() {
  return {{"off", "nothing is drafted", "", {}, ""}, [](const config::Arguments&, Diagnostics&) -> PolicyMaker {
            return [](const PolicySetting&) { return std::make_unique<Off>(); };
          }};
}

}  // namespace specsim::serve
