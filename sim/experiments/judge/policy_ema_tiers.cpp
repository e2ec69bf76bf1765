#include "sim/experiments/judge/cell_theory.h"
#include "sim/experiments/judge/method.h"

#include <algorithm>

namespace specsim::judge {

PolicyTheory ema_tiers_policy_theory() {
  return {{"ema_tiers", "tiers of lengths by a moving average of accepted tokens, for a batch of one", "", {}, ""},
          [](const spec::Cell& cell) {
            const config::Arguments& own = policy_arguments(cell);
            theory::SglangTiers rule;
            rule.tiers = {1, 3, 5, 7};  // the program's tiers for a batch of one
            if (own.has("tiers")) {
              rule.tiers.clear();
              for (const double tier : own.numbers("tiers")) rule.tiers.push_back(static_cast<int>(tier));
            }
            rule.first = rule.tiers[rule.tiers.size() / 2];
            if (own.has("first") && std::count(rule.tiers.begin(), rule.tiers.end(), own.integer("first")) > 0)
              rule.first = static_cast<int>(own.integer("first"));
            rule.weight = own.number("weight");
            rule.warm_up = static_cast<int>(own.integer("warm_up"));
            rule.every = static_cast<int>(own.integer("every"));
            rule.up = own.number("up");
            rule.down = own.has("down") ? own.number("down") : -0.25;
            rule.ceiling = own.number("ceiling");
            return theory::sglang_tiers_rule(rule);
          },
          {},
          true};
}

}  // namespace specsim::judge
