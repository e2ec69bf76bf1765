#include "sim/rounds/draft/length_policy.h"

namespace specsim::draft {

namespace {

class Oracle final : public LengthPolicy {
 public:
  explicit Oracle(int longest) : longest_(longest) {}
  [[nodiscard]] Memory start() const override { return {.length = longest_}; }
  [[nodiscard]] bool uses_forecasts() const override { return true; }

 private:
  int longest_;
};

}  // namespace

PolicyEntry oracle_policy() {
  return {{"oracle", "drafts exactly as many tokens as will be accepted", "", {}},
          [](const config::Arguments&, const LengthChoice& choice, Diagnostics&) -> std::unique_ptr<LengthPolicy> {
            return std::make_unique<Oracle>(choice.longest);
          }};
}

}  // namespace specsim::draft
