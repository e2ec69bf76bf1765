#include "sim/base/token.h"
#include "sim/serve/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace specsim::serve {

namespace {

class Fixed final : public ServerPolicy {
 public:
  Fixed(int length, std::uint32_t disable_above_batch, std::uint32_t disable_above_queue)
      : length_(length), disable_above_batch_(disable_above_batch), disable_above_queue_(disable_above_queue) {}
  [[nodiscard]] int draft_length(const BatchState& batch) override {
    return batch.requests > disable_above_batch_ || batch.waiting > disable_above_queue_ ? 0 : length_;
  }
  [[nodiscard]] int longest() const override { return length_; }

 private:
  int length_;
  std::uint32_t disable_above_batch_;
  std::uint32_t disable_above_queue_;
};

}  // namespace

ServerPolicyEntry fixed_policy() {
  return {
      {"fixed",
       "the same draft length for every sequence and step",
       "",
       {{"draft_length", config::Type::integer, {}, "tokens that every sequence drafts", config::between(0, kMaxDraftLength), {}},
        {"disable_above_batch",
         config::Type::integer,
         "4000000000",
         "with more requests in a step nothing is drafted",
         config::between(0, 4e9),
         {}},
        {"disable_above_queue",
         config::Type::integer,
         "4000000000",
         "with more requests waiting nothing is drafted",
         config::between(0, 4e9),
         {}}},
       ""},
      [](const config::Arguments& arguments, const PolicySetting&, Diagnostics&) {
        return std::make_unique<Fixed>(static_cast<int>(arguments.integer("draft_length")),
                                       static_cast<std::uint32_t>(arguments.integer("disable_above_batch")),
                                       static_cast<std::uint32_t>(arguments.integer("disable_above_queue")));
      }};
}

}  // namespace specsim::serve
