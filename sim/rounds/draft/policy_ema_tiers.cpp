#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/length_policy.h"
#include "sim/rounds/draft/tiers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace specsim::draft {

namespace {

class EmaTiers final : public LengthPolicy {
 public:
  struct Params {
    std::vector<int> tiers;  // empty: chosen by the batch
    int first = -1;          // if it is not a tier: the middle one
    double weight = 0.2;
    int warm_up = 10;
    int every = 5;
    double up = 0.0;
    std::optional<double> down;  // by the batch
    double ceiling = 0.0;
  };
  EmaTiers(Params params, int sequences) : params_(std::move(params)), sequences_(sequences) {}
  [[nodiscard]] int sequences() const override { return sequences_; }
  [[nodiscard]] Memory start() const override {
    Memory memory;
    const bool listed = std::find(params_.tiers.begin(), params_.tiers.end(), params_.first) != params_.tiers.end();
    memory.length = listed ? params_.first : params_.tiers[params_.tiers.size() / 2];
    memory.value = memory.length - 1.0;
    return memory;
  }
  void observe(Memory& memory, int drafted, int accepted) const override { observe_batch(memory, drafted, {&accepted, 1}); }
  void observe_batch(Memory& memory, int drafted, std::span<const int> accepted) const override {
    if (drafted > 0) {
      const double mean = std::accumulate(accepted.begin(), accepted.end(), 0.0) / static_cast<double>(accepted.size());
      memory.value = (1.0 - params_.weight) * memory.value + params_.weight * mean;
    }
    ++memory.rounds;
    if (memory.rounds > params_.warm_up && (memory.rounds - params_.warm_up) % params_.every == 0) move(memory);
  }

 private:
  void move(Memory& memory) const {
    const std::vector<int>& tiers = params_.tiers;
    const auto begun = static_cast<std::size_t>(std::lower_bound(tiers.begin(), tiers.end(), memory.length) - tiers.begin());
    std::size_t tier = begun;
    if (tiers[tier] == 0) {  // nothing was drafted: the next tier is a trial, since the average holds no evidence
      tier = std::min(tier + 1, tiers.size() - 1);
      if (tiers[tier] > 0 && memory.value < 0.0) memory.value = tiers[tier] - 1.0;
      memory.length = tiers[tier];
      return;
    }
    // An average below .5 leads to no drafts, as if from one draft.
    while (tier > 0 && memory.value <= std::max(tiers[tier - 1], 1) - 0.5 + *params_.down) --tier;
    if (tier == begun)
      while (tier + 1 < tiers.size() && memory.value > tiers[tier] - 0.5 + params_.up) ++tier;
    if (params_.ceiling > 0.0 && tier <= begun) {  // does not limit a step up
      const double most = std::max(1.0, std::ceil(memory.value * params_.ceiling));
      while (tier > 0 && tiers[tier] > most) --tier;
    }
    memory.length = tiers[tier];
  }

  Params params_;
  int sequences_;
};

constexpr double kDown = -0.25;  // down_hysteresis, if a configuration does not set it

struct BatchDefault {
  int batch = 1;  // the smallest batch that it applies to
  std::vector<int> tiers;
  double down = 0.0;
};

const BatchDefault& default_of(int batch) {
  static const std::vector<BatchDefault> defaults = {
      {1, {1, 3, 5, 7}, kDown}, {8, {0, 1, 3}, 0.0}, {32, {0, 1}, 0.0}, {64, {0}, 0.0}};
  const BatchDefault* best = &defaults.front();
  for (const BatchDefault& own : defaults)
    if (own.batch <= batch) best = &own;
  return *best;
}

}  // namespace

PolicyEntry ema_tiers_policy() {
  using P = EmaTiers::Params;
  static const config::Fields<P> fields = {
      {"tiers", &P::tiers,
       "draft lengths, increasing, 0 for none; default: [1, 3, 5, 7] from batch 1 on, [0, 1, 3] from 8, [0, 1] from 32, [0] "
       "from 64",
       config::between(0, kMaxDraftLength), config::optional},
      {"first", &P::first, "first draft length, --speculative-num-steps of SGLang; if left out or not a tier: the middle tier",
       config::between(0, kMaxDraftLength), config::optional},
      {"weight", &P::weight, "weight of the newest round in the average", config::above(0, 1)},
      {"warm_up", &P::warm_up, "rounds before the average is looked at", config::between(0, 1e6)},
      {"every", &P::every, "rounds between decisions; the first decision comes this many rounds after warm_up",
       config::between(1, 1e6)},
      {"up", &P::up, "added to the threshold for a longer draft", config::between(-64, 64)},
      {"down", &P::down,
       "added to the threshold for a shorter draft; default: -0.25, but 0 from batch 8 on if tiers are left out too",
       config::between(-64, 64)},
      {"ceiling", &P::ceiling, "factor of the average that limits the draft length, except after a step up; 0: no limit",
       config::at_least(0)},
  };
  return {{"ema_tiers", "one draft length for the batch, chosen from a few tiers by a moving average of accepted tokens",
           "SGLang, sgl-project/sglang, python/sglang/srt/speculative/adaptive_spec_params.py (strategy ema), commit 015c872",
           fields, "", "tiers: [0, 1]"},
          [](const config::Arguments& arguments, const LengthChoice& choice,
             Diagnostics& diagnostics) -> std::unique_ptr<LengthPolicy> {
            P params = fields.read(arguments);
            const BatchDefault& usual = default_of(choice.batch);
            if (!arguments.has("tiers")) {
              params.tiers = usual.tiers;
              if (params.tiers.back() > choice.longest) {
                diagnostics.add(
                    arguments.where(),
                    fmt::format("the tiers at batch {} are [{}], the drafter's draft_length is {}; allowed: a draft_length of "
                                "at least {}, or tiers",
                                choice.batch, fmt::join(params.tiers, ", "), choice.longest, params.tiers.back()));
                return nullptr;
              }
            } else if (!check_tiers(arguments, 0, choice.longest, diagnostics)) {
              return nullptr;
            } else if (params.tiers.empty()) {
              diagnostics.add(arguments.where("tiers"), "tiers is empty, allowed: at least one draft length");
              return nullptr;
            }
            if (!params.down) params.down = arguments.has("tiers") ? kDown : usual.down;
            return std::make_unique<EmaTiers>(std::move(params), choice.batch);
          }};
}

}  // namespace specsim::draft
