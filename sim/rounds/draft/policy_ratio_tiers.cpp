#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/length_policy.h"
#include "sim/rounds/draft/tiers.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::draft {

namespace {

class RatioTiers final : public LengthPolicy {
 public:
  struct Params {
    std::vector<int> tiers;
    double weight = 0.2;
    double up = 0.8;
    double down = 0.4;
  };
  explicit RatioTiers(Params params) : params_(std::move(params)) {}
  [[nodiscard]] Memory start() const override {
    Memory memory;
    begin(memory, params_.tiers[params_.tiers.size() / 2]);
    return memory;
  }
  void observe(Memory& memory, int drafted, int accepted) const override {
    if (drafted == 0) return;
    memory.value += params_.weight * (static_cast<double>(accepted) / drafted - memory.value);
    auto tier = std::lower_bound(params_.tiers.begin(), params_.tiers.end(), memory.length);
    if (memory.value > params_.up && tier + 1 != params_.tiers.end())
      begin(memory, *(tier + 1));
    else if (memory.value < params_.down && tier != params_.tiers.begin())
      begin(memory, *(tier - 1));
  }

 private:
  void begin(Memory& memory, int tier) const {
    memory.value = 0.5 * (params_.up + params_.down);
    memory.length = tier;
  }

  Params params_;
};

}  // namespace

PolicyEntry ratio_tiers_policy() {
  using P = RatioTiers::Params;
  static const config::Fields<P> fields = {
      {"tiers", &P::tiers, "draft lengths, increasing", config::between(1, kMaxDraftLength), config::required},
      {"weight", &P::weight, "weight of the newest round in the average", config::above(0, 1)},
      {"up", &P::up, "average above which the length rises by a tier", config::between(0, 1)},
      {"down", &P::down, "average below which the length falls by a tier", config::between(0, 1)},
  };
  return {{"ratio_tiers", "each sequence steps between a few draft lengths when its average of accepted / drafted leaves a band",
           "", fields},
          [](const config::Arguments& arguments, const LengthChoice& choice,
             Diagnostics& diagnostics) -> std::unique_ptr<LengthPolicy> {
            const P params = fields.read(arguments);
            if (!check_tiers(arguments, 1, choice.longest, diagnostics)) return nullptr;
            if (params.tiers.empty() || params.down >= params.up) {
              diagnostics.add(arguments.where(), params.tiers.empty() ? "tiers is empty, allowed: at least one draft length"
                                                                      : "down must be below up, allowed: down below up");
              return nullptr;
            }
            return std::make_unique<RatioTiers>(params);
          }};
}

}  // namespace specsim::draft
