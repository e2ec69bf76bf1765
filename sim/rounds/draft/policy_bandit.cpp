#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/length_policy.h"

#include <algorithm>
#include <array>

namespace specsim::draft {

namespace {

class Bandit final : public LengthPolicy {
 public:
  struct Params {
    int arms = 4;
  };
  Bandit(int arms, std::vector<double> round_times, int sequences)
      : arms_(static_cast<std::size_t>(arms)), round_times_(std::move(round_times)), sequences_(sequences) {}
  [[nodiscard]] int sequences() const override { return sequences_; }
  [[nodiscard]] std::unique_ptr<LengthPolicy> with_round_times(const std::vector<double>& round_times) const override {
    return std::make_unique<Bandit>(static_cast<int>(arms_), round_times, sequences_);
  }
  // `judged` holds the mean tokens per time of each length from 1 on, followed by the number of rounds of each length.
  [[nodiscard]] Memory start() const override {
    Memory memory{.length = 1, .rounds = 1};
    memory.judged.resize(2 * arms_, {0.0, false});
    return memory;
  }
  void observe(Memory& memory, int drafted, int accepted) const override { observe_batch(memory, drafted, std::array{accepted}); }
  void observe_batch(Memory& memory, int drafted, std::span<const int> accepted) const override {
    double tokens = 0.0;
    for (const int own : accepted) tokens += own + 1.0;
    if (drafted >= 1 && static_cast<std::size_t>(drafted) <= arms_) {
      const std::size_t arm = static_cast<std::size_t>(drafted) - 1;
      double& mean = memory.judged[arm].first;
      double& rounds = memory.judged[arms_ + arm].first;
      mean = (mean * rounds + tokens / round_times_[static_cast<std::size_t>(drafted)]) / (rounds + 1.0);
      rounds += 1.0;
    }
    ++memory.rounds;
    const int arms = static_cast<int>(arms_);
    if (memory.rounds < 2 * arms) {
      memory.length = (memory.rounds - 1) % arms + 1;
    } else {
      const auto last = memory.judged.begin() + static_cast<std::ptrdiff_t>(arms_);
      memory.length = static_cast<int>(std::max_element(memory.judged.begin(), last) - memory.judged.begin()) + 1;
    }
  }

 private:
  std::size_t arms_;
  std::vector<double> round_times_;
  int sequences_;
};

}  // namespace

PolicyEntry bandit_policy() {
  using P = Bandit::Params;
  static const config::Fields<P> fields = {
      {"arms", &P::arms, "lengths that are tried: 1 to this number, at most draft_length", config::between(1, kMaxDraftLength)},
  };
  return {{"bandit", "tries each draft length in turn, then uses the one with the most tokens per time",
           "Hou et al. (BanditSpec), arXiv 2505.15141; sail-sg/BanditSpec, generate_utils.py (ucb_length_spec_generate), commit "
           "a30f56d",
           fields},
          [](const config::Arguments& arguments, const LengthChoice& choice, Diagnostics&) -> std::unique_ptr<LengthPolicy> {
            const int arms = std::clamp(fields.read(arguments).arms, 1, std::max(choice.longest, 1));
            return std::make_unique<Bandit>(arms, choice.round_times, choice.batch);
          },
          true};
}

}  // namespace specsim::draft
