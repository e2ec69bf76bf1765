#include "sim/rounds/draft/length_policy.h"

namespace specsim::draft {

namespace {

class Oracle final : public LengthPolicy {
 public:
  explicit Oracle(int longest) : longest_(longest) {}
  [[nodiscard]] Memory start() const override { return {.length = longest_}; }
  [[nodiscard]] bool foresees() const override { return true; }

 private:
  int longest_;
};

}  // namespace

PolicyEntry oracle_policy() {
  return {{"oracle",
           "drafts as many tokens as will be accepted, which nobody can know: what perfect foresight would give",
           "",
           {},
           "Rounds go as without a policy, and emit the same tokens; only those drafts are paid for that are accepted. A bound "
           "at batch 1, of policies with the same longest draft. In a batch it is none: a round lasts as long as its longest "
           "draft, so that lengths that differ between sequences can lose against one fixed length, and drafting what will be "
           "accepted is not what pays most. "
           "Simulated, it is 42 % above the best fixed length at batch 1 where easy and hard stretches "
           "alternate, and 7 % below it at batch 32 (docs/results/time_and_methods.md): the room that policies "
           "have."},
          [](const config::Arguments&, const LengthChoice& choice, Diagnostics&) -> std::unique_ptr<LengthPolicy> {
            return std::make_unique<Oracle>(choice.longest);
          }};
}

}  // namespace specsim::draft
