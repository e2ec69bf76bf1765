#include "sim/foundation/base/index.h"
#include "sim/rounds/draft/length_policy.h"
#include "sim/rounds/draft/shared_rows.h"

#include <algorithm>
#include <memory>

namespace specsim::draft {

namespace {

class AdaptiveVerification final : public LengthPolicy {
 public:
  AdaptiveVerification(const SharedRows& settings, const LengthChoice& choice)
      : own_(settings),
        confidence_(*settings.confidence),
        longest_(choice.longest),
        batch_(choice.batch),
        row_times_(choice.row_times) {}
  [[nodiscard]] int sequences() const override { return batch_; }
  [[nodiscard]] bool shares_rows() const override { return true; }
  [[nodiscard]] Memory start() const override {
    Memory memory;
    memory.length = longest_;
    memory.learnt = AcceptanceFit::start(index_of(longest_), confidence_);
    return memory;
  }

  void share(Memory& memory, std::span<const Chain> chains, std::span<int> verified) const override {
    std::vector<DraftSlot> slots = drafted(memory, chains);
    std::size_t budget = 0;
    const auto time = [&](std::size_t tokens) { return round_time(tokens, chains.size()); };
    switch (own_.budget) {
      case RowBudget::previous:
        budget = best_budget(earlier(memory, chains), static_cast<double>(chains.size()), time);
        remember(memory, chains);
        break;
      case RowBudget::early_stop:
        budget = budget_stopped_early(slots, static_cast<double>(chains.size()), time);
        break;
      case RowBudget::rows:
        budget = own_.fixed_budget(chains.size());
        break;
    }
    std::fill(verified.begin(), verified.end(), 0);
    // Survival never rises along a chain, so the likeliest slots are always a prefix of each chain.
    for (std::size_t i = 0; i < std::min(budget, slots.size()); ++i) ++verified[slots[i].chain];
  }

  void observe_shared(Memory& memory, std::span<const Chain> chains, std::span<const int> verified,
                      std::span<const int> accepted) const override {
    if (confidence_ == Confidence::head) return;
    AcceptanceFit fit = fit_of(memory);
    for (std::size_t i = 0; i < chains.size(); ++i)
      fit.observe(chains[i].forecasts, index_of(verified[i]), index_of(accepted[i]));
    if (++memory.rounds % own_.refit == 0) fit.refit();
  }

 private:
  [[nodiscard]] AcceptanceFit fit_of(Memory& memory) const { return {memory.learnt, index_of(longest_), confidence_}; }
  [[nodiscard]] std::vector<DraftSlot> drafted(Memory& memory, std::span<const Chain> chains) const {
    const AcceptanceFit fit = fit_of(memory);
    std::vector<DraftSlot> slots;
    for (std::size_t i = 0; i < chains.size(); ++i) {
      double survival = 1.0;
      for (std::size_t k = 0; k < chains[i].forecasts.size(); ++k) {
        survival *= fit.chance(chains[i].forecasts, k);
        slots.push_back({survival, k, i});
      }
    }
    sort_slots(slots);
    return slots;
  }
  // The slots of the round before, as estimated then; a sequence without an estimate counts as certain.
  [[nodiscard]] std::vector<DraftSlot> earlier(const Memory& memory, std::span<const Chain> chains) const {
    std::vector<DraftSlot> slots;
    for (std::size_t i = 0; i < chains.size(); ++i) {
      double survival = 1.0;
      for (std::size_t k = 0; k < index_of(longest_); ++k) {
        const std::size_t at = chains[i].number * index_of(longest_) + k;
        survival *= at < memory.earlier.size() ? memory.earlier[at] : 1.0;
        slots.push_back({survival, k, i});
      }
    }
    sort_slots(slots);
    return slots;
  }
  void remember(Memory& memory, std::span<const Chain> chains) const {
    const AcceptanceFit fit = fit_of(memory);
    for (const Chain& chain : chains) {
      const std::size_t first = chain.number * index_of(longest_);
      if (memory.earlier.size() < first + index_of(longest_)) memory.earlier.resize(first + index_of(longest_), 1.0);
      for (std::size_t k = 0; k < chain.forecasts.size(); ++k) {
        double& mean = memory.earlier[first + k];
        mean = own_.smoothed(mean, fit.chance(chain.forecasts, k));
      }
    }
  }

  // Time of a round that verifies this many draft tokens of this many sequences.
  [[nodiscard]] double round_time(std::size_t tokens, std::size_t sequences) const {
    if (tokens == 0) return row_times_.front();
    const auto last = static_cast<double>(row_times_.size() - 1);
    const double at = static_cast<double>(tokens) * last / (static_cast<double>(sequences) * longest_);
    const auto below = static_cast<std::size_t>(std::min(at, last));
    const double share = std::min(at, last) - static_cast<double>(below);
    return share > 0.0 ? row_times_[below] + share * (row_times_[below + 1] - row_times_[below]) : row_times_[below];
  }

  SharedRows own_;
  Confidence confidence_;
  int longest_;
  int batch_;
  std::vector<double> row_times_;
};

}  // namespace

PolicyEntry adaptive_verification_policy() {
  static const config::Fields<SharedRows> fields = shared_rows_fields(Sharer::decoder);
  return {{"adaptive_verification",
           "every sequence drafts the full length, and the batch verifies only the tokens that are most likely to survive",
           "vLLM, enable_adaptive_verification (pull requests 47808, 52228); DeepSeek (DSpark), arXiv 2607.05147", fields},
          [](const config::Arguments& arguments, const LengthChoice& choice, Diagnostics&) -> std::unique_ptr<LengthPolicy> {
            return std::make_unique<AdaptiveVerification>(fields.read(arguments), choice);
          },
          false,
          true};
}

}  // namespace specsim::draft
