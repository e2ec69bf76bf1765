// The effects of length policies.
#include "sim/experiments/judge/cell_theory.h"
#include "sim/experiments/judge/method.h"

#include <algorithm>

namespace specsim::judge {

namespace {

// `lengths` receives a cell and its policy's arguments.
PolicyTheory chooses(const char* name, const char* summary,
                     theory::LengthRule (*lengths)(const spec::Cell& cell, const config::Arguments& own), bool alone = false) {
  return {{name, summary, "", {}, ""},
          [lengths](const spec::Cell& cell) { return lengths(cell, policy_arguments(cell)); },
          {},
          alone};
}

PolicyTheory goodput_theory(const char* name, bool alone) {
  return chooses(
      name, "the length with the most expected tokens per time, by a moving average of the rounds' alpha",
      [](const spec::Cell& cell, const config::Arguments& own) {
        const std::span<const double> times = policy_times(cell);
        return theory::goodput_rule(own.number("first_alpha"), own.number("weight"), static_cast<int>(own.integer("probe")),
                                    {times.begin(), times.end()});
      },
      alone);
}

std::vector<int> own_tiers(const config::Arguments& own) {
  std::vector<int> tiers;
  for (const double tier : own.numbers("tiers")) tiers.push_back(static_cast<int>(tier));
  return tiers;
}

}  // namespace

PolicyTheory additive_policy_theory() {
  return chooses("additive", "more tokens after full acceptance, else fewer",
                 [](const spec::Cell& cell, const config::Arguments& own) {
                   return theory::additive_rule(static_cast<int>(own.integer("first")), static_cast<int>(own.integer("up")),
                                                static_cast<int>(own.integer("down")), draft_length(cell));
                 });
}

PolicyTheory table_policy_theory() {
  return chooses(
      "table", "the same length in every round, by the size of the batch",
      [](const spec::Cell& cell, const config::Arguments& own) {
        int length = 0;
        for (const std::vector<double>& range : own.table("table"))
          if (range[0] <= batch(cell)) length = static_cast<int>(range[2]);
        return theory::LengthRule{{0.0, length, 0}, [](const theory::LengthMemory& memory, int, int) { return memory; }};
      });
}

PolicyTheory ema_tiers_policy_theory() {
  return chooses(
      "ema_tiers", "tiers of lengths by a moving average of accepted tokens, for a batch of one",
      [](const spec::Cell&, const config::Arguments& own) {
        theory::SglangTiers rule;
        rule.tiers = {1, 3, 5, 7};  // the program's tiers for a batch of one
        if (own.has("tiers")) rule.tiers = own_tiers(own);
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
      true);
}

PolicyTheory ratio_tiers_policy_theory() {
  return chooses("ratio_tiers", "tiers of lengths by a moving average of accepted / drafted",
                 [](const spec::Cell&, const config::Arguments& own) {
                   return theory::ratio_tiers_rule(own_tiers(own), own.number("weight"), own.number("up"), own.number("down"));
                 });
}

PolicyTheory goodput_policy_theory() { return goodput_theory("goodput", true); }

PolicyTheory goodput_per_sequence_policy_theory() { return goodput_theory("goodput_per_sequence", false); }

PolicyTheory confidence_policy_theory() {
  return {{"confidence", "drafting stops after a token that the draft considers unlikely", "", {}, ""},
          {},
          [](const config::Arguments& own, double probability, double /*entropy*/) { return probability < own.number("least"); }};
}

PolicyTheory entropy_policy_theory() {
  return {{"entropy", "drafting stops after a token drawn from a distribution with high entropy", "", {}, ""},
          {},
          [](const config::Arguments& own, double /*probability*/, double entropy) { return entropy > own.number("most"); }};
}

PolicyTheory oracle_policy_theory() { return {{"oracle", "rounds go as without a policy", "", {}, ""}, {}, {}}; }

}  // namespace specsim::judge
