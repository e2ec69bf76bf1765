#include "sim/rounds/draft/length_policy.h"

#include <algorithm>
#include <limits>

namespace specsim::draft {

namespace {

// The threshold of least waste: a rejected token that passes costs a quarter, an accepted one that is stopped costs three
// quarters; ties go to the largest threshold. `judged` has both kinds.
double least_waste(std::vector<std::pair<double, bool>> judged) {
  std::sort(judged.begin(), judged.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto accepted =
      static_cast<double>(std::count_if(judged.begin(), judged.end(), [](const auto& one) { return one.second; }));
  const double rejected = static_cast<double>(judged.size()) - accepted;
  double least = std::numeric_limits<double>::infinity();
  double best = 0.0;
  double right = 0.0;  // accepted tokens at or above the threshold
  double wrong = 0.0;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    (judged[i].second ? right : wrong) += 1.0;
    if (i + 1 < judged.size() && judged[i + 1].first == judged[i].first) continue;
    const double cost = wrong / rejected + 3.0 * (1.0 - right / accepted);
    if (cost < least) {
      least = cost;
      best = judged[i].first;
    }
  }
  return best;
}

class ConfidenceRoc final : public LengthPolicy {
 public:
  struct Params {
    double first = 0.4;
    bool every_round = false;
  };
  ConfidenceRoc(const Params& params, int longest) : params_(params), longest_(longest) {}
  [[nodiscard]] Memory start() const override { return {.length = longest_, .threshold = params_.first}; }
  [[nodiscard]] bool goes_on(const Memory& memory, double probability, double /*entropy*/) const override {
    return probability >= memory.threshold;
  }
  [[nodiscard]] bool looks() const override { return true; }
  [[nodiscard]] bool remembers_tokens() const override { return params_.every_round; }
  void observe_tokens(Memory& memory, std::span<const double> probabilities, int accepted) const override {
    if (memory.threshold == 0.0 || !params_.every_round) return;
    // Tokens after the first rejected one were not judged.
    const std::size_t judged = std::min(probabilities.size(), static_cast<std::size_t>(accepted) + 1);
    for (std::size_t i = 0; i < judged; ++i) memory.judged.emplace_back(probabilities[i], i < static_cast<std::size_t>(accepted));
    constexpr std::size_t kFewest = 5;
    const auto has = [&](bool kind) {
      return std::any_of(memory.judged.begin(), memory.judged.end(), [&](const auto& one) { return one.second == kind; });
    };
    if (memory.judged.size() > kFewest && has(true) && has(false)) memory.threshold = least_waste(memory.judged);
  }

 private:
  Params params_;
  int longest_;
};

}  // namespace

PolicyEntry confidence_roc_policy() {
  using P = ConfidenceRoc::Params;
  static const config::Fields<P> fields = {
      {"first", &P::first, "threshold of a sequence's first rounds; 0: drafting never stops", config::between(0, 1)},
      {"takes_hold", &P::every_round,
       "when a new threshold applies: next_request, as shipped (a sequence keeps its first one); next_round, as intended",
       config::one_of<bool>({{"next_request", false}, {"next_round", true}})},
  };
  return {{"confidence_roc", "a confidence threshold that transformers meant to learn from what was accepted",
           "Hugging Face transformers, assistant_confidence_threshold with scikit-learn installed: "
           "src/transformers/generation/candidate_generator.py (update_candidate_strategy), commit 02dba31",
           fields},
          [](const config::Arguments& arguments, const LengthChoice& choice, Diagnostics&) -> std::unique_ptr<LengthPolicy> {
            return std::make_unique<ConfidenceRoc>(fields.read(arguments), choice.longest);
          }};
}

}  // namespace specsim::draft
