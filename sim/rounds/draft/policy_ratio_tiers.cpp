#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/length_policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::draft {

namespace {

class RatioTiers final : public LengthPolicy {
 public:
  RatioTiers(std::vector<int> tiers, double weight, double up, double down)
      : tiers_(std::move(tiers)), weight_(weight), up_(up), down_(down) {}
  [[nodiscard]] Memory start() const override {
    Memory memory;
    begin(memory, tiers_[tiers_.size() / 2]);
    return memory;
  }
  void observe(Memory& memory, int drafted, int accepted) const override {
    if (drafted == 0) return;
    memory.value += weight_ * (static_cast<double>(accepted) / drafted - memory.value);
    auto tier = std::lower_bound(tiers_.begin(), tiers_.end(), memory.length);
    if (memory.value > up_ && tier + 1 != tiers_.end())
      begin(memory, *(tier + 1));
    else if (memory.value < down_ && tier != tiers_.begin())
      begin(memory, *(tier - 1));
  }

 private:
  void begin(Memory& memory, int tier) const {
    memory.value = 0.5 * (up_ + down_);
    memory.length = tier;
  }

  std::vector<int> tiers_;
  double weight_;
  double up_;
  double down_;
};

}  // namespace

PolicyEntry ratio_tiers_policy() {
  return {{"ratio_tiers",
           "each sequence steps between a few draft lengths as its moving average of accepted / drafted leaves a band",
           "",
           {{"tiers", config::Type::number_list, {}, "draft lengths, increasing", config::between(1, kMaxDraftLength), {}},
            {"weight",
             config::Type::number,
             "0.2",
             "weight of the newest round in the average",
             config::Interval{0, 1, true, false},
             {}},
            {"up", config::Type::number, "0.8", "above it a tier up", config::between(0, 1), {}},
            {"down", config::Type::number, "0.4", "below it a tier down", config::between(0, 1), {}}},
           "A sequence starts in the middle tier, and the average in the middle of the band, to which every step returns it: the "
           "band is the hysteresis. What SGLang ships is ema_tiers. "
           "It is in no paper or server that is known here, and nobody has measured it. Simulated, it does not "
           "pay: 1 % below the best fixed length at batch 1, 23 % below at 32, which waits for its longest chain "
           "(results/method_claims/adaptive)."},
          [](const config::Arguments& arguments, const LengthChoice& choice,
             Diagnostics& diagnostics) -> std::unique_ptr<LengthPolicy> {
            std::vector<int> tiers;
            for (const double tier : arguments.numbers("tiers")) {
              if (tier != static_cast<int>(tier) || tier > choice.longest || (!tiers.empty() && tier <= tiers.back())) {
                diagnostics.add(arguments.where("tiers"),
                                fmt::format("tiers has {}, allowed: increasing integers in [1, {}], the drafter's draft_length",
                                            tier, choice.longest));
                return nullptr;
              }
              tiers.push_back(static_cast<int>(tier));
            }
            if (tiers.empty() || arguments.number("down") >= arguments.number("up")) {
              diagnostics.add(arguments.where(), tiers.empty() ? "tiers is empty, allowed: at least one draft length"
                                                               : "down is not below up, allowed: down below up");
              return nullptr;
            }
            return std::make_unique<RatioTiers>(std::move(tiers), arguments.number("weight"), arguments.number("up"),
                                                arguments.number("down"));
          }};
}

}  // namespace specsim::draft
