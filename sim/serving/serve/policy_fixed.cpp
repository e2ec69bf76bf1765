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
  Fixed(int length, DisableAbove disable) : length_(length), disable_(disable) {}
  [[nodiscard]] int draft_length(const BatchState& batch) override { return disable_.holds(batch) ? 0 : length_; }
  [[nodiscard]] int longest() const override { return length_; }
  [[nodiscard]] std::vector<int> lengths() const override { return length_ > 0 ? std::vector<int>{length_} : std::vector<int>(); }

 private:
  int length_;
  DisableAbove disable_;
};

}  // namespace

std::vector<config::Parameter> disable_parameters() {
  return {{"disable_above_batch",
           config::Type::integer,
           "4000000000",
           "most requests of a step in which anything is drafted",
           config::between(0, 4e9),
           {}},
          {"disable_above_queue",
           config::Type::integer,
           "4000000000",
           "most waiting requests with which anything is drafted",
           config::between(0, 4e9),
           {}}};
}

DisableAbove read_disable_above(const config::Arguments& arguments) {
  return {static_cast<std::uint32_t>(arguments.integer("disable_above_batch")),
          static_cast<std::uint32_t>(arguments.integer("disable_above_queue"))};
}

PolicyMaker fixed_length(int draft_length) {
  return [draft_length](const PolicySetting&) { return std::make_unique<Fixed>(draft_length, DisableAbove{}); };
}

ServerPolicyEntry fixed_policy() {
  std::vector<config::Parameter> parameters = {
      {"draft_length", config::Type::integer, {}, "tokens that every sequence drafts", config::between(0, kMaxDraftLength), {}}};
  for (config::Parameter& one : disable_parameters()) parameters.push_back(std::move(one));
  return {{"fixed", "the same draft length for every sequence and step", "", std::move(parameters), ""},
          [](const config::Arguments& arguments, Diagnostics&) -> PolicyMaker {
            const auto length = static_cast<int>(arguments.integer("draft_length"));
            return [length, disable = read_disable_above(arguments)](const PolicySetting&) {
              return std::make_unique<Fixed>(length, disable);
            };
          },
          "draft_length"};
}

}  // namespace specsim::serve
