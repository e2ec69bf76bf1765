#include "sim/foundation/base/token.h"
#include "sim/serving/serve/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

class Fixed final : public ServerPolicy {
 public:
  struct Params {
    int draft_length = 0;
    DisableAbove disable;
  };
  explicit Fixed(const Params& params) : params_(params) {}
  [[nodiscard]] int draft_length(const BatchState& batch) override {
    return params_.disable.holds(batch) ? 0 : params_.draft_length;
  }
  [[nodiscard]] int longest() const override { return params_.draft_length; }
  [[nodiscard]] bool by_requests_alone() const override { return true; }
  [[nodiscard]] std::vector<int> lengths() const override {
    return params_.draft_length > 0 ? std::vector<int>{params_.draft_length} : std::vector<int>();
  }

 private:
  Params params_;
};

}  // namespace

const config::Fields<DisableAbove>& disable_fields() {
  using P = DisableAbove;
  static const config::Fields<P> fields = {
      {"disable_above_batch", &P::batch, "maximum number of requests of a step in which anything is drafted",
       config::between(0, 4e9)},
      {"disable_above_queue", &P::queue, "maximum number of waiting requests with which anything is drafted",
       config::between(0, 4e9)},
  };
  return fields;
}

PolicyMaker fixed_length(int draft_length) {
  return [draft_length](const PolicySetting&) { return std::make_unique<Fixed>(Fixed::Params{draft_length, {}}); };
}

ServerPolicyEntry fixed_policy() {
  using P = Fixed::Params;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens that every sequence drafts", config::between(0, kMaxDraftLength),
       config::required},
      {&P::disable, disable_fields()},
  };
  return {{"fixed", "the same draft length for every sequence and step", "", fields, ""},
          [](const config::Arguments& arguments, Diagnostics&) -> PolicyMaker {
            return [params = fields.read(arguments)](const PolicySetting&) { return std::make_unique<Fixed>(params); };
          },
          "draft_length"};
}

}  // namespace specsim::serve
