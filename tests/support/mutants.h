// Wrong verifiers and wrong loops, one mistake each, and the figure that must show it. A test must not let any of them pass.
#pragma once

#include "sim/experiments/audit/audit.h"
#include "sim/experiments/spec/spec.h"
#include "sim/foundation/base/check.h"
#include "sim/rounds/decode/simulator.h"
#include "sim/rounds/decode/staged_rounds.h"
#include "sim/rounds/verify/position_rule.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace specsim::tests {

// ---- rules ------------------------------------------------------------------------------------------------------------

// The token verifier, to be broken in one place.
class TokenLikeRule : public verify::PositionRule {
 public:
  [[nodiscard]] verify::Odds odds(const verify::PositionDistributions& distributions, Token x) const override {
    return {distributions.target[x], distributions.drafted[x]};
  }
  void rejected(const verify::PositionDistributions& distributions, std::span<double> weights) const override {
    for (std::size_t x = 0; x < weights.size(); ++x)
      weights[x] = std::max(distributions.target[x] - distributions.drafted[x], 0.0);
  }
};

// Emits (1 - leak) target + leak draft, and accepts as often as the correct rule: leak 1 is the draft's own distribution.
class LeakRule final : public TokenLikeRule {
 public:
  explicit LeakRule(double leak) : leak_(leak) {}
  void rejected(const verify::PositionDistributions& distributions, std::span<double> weights) const override {
    for (std::size_t x = 0; x < weights.size(); ++x) {
      const double difference = distributions.target[x] - distributions.drafted[x];
      weights[x] = difference > 0.0 ? (1.0 - leak_) * difference : -leak_ * difference;
    }
  }

 private:
  double leak_;
};

class AbsoluteResidualRule final : public TokenLikeRule {
 public:
  void rejected(const verify::PositionDistributions& distributions, std::span<double> weights) const override {
    for (std::size_t x = 0; x < weights.size(); ++x) weights[x] = std::abs(distributions.target[x] - distributions.drafted[x]);
  }
};

class ResampleTargetRule final : public TokenLikeRule {
 public:
  void rejected(const verify::PositionDistributions& distributions, std::span<double> weights) const override {
    bonus(distributions.target, weights);
  }
};

class InvertedRatioRule final : public TokenLikeRule {
 public:
  [[nodiscard]] verify::Odds odds(const verify::PositionDistributions& distributions, Token x) const override {
    return {distributions.drafted[x], distributions.target[x]};
  }
};

// A scan over a residual that was not divided by its sum: the missing mass goes to the last token. Equivalent to the correct rule
// if the last token is the only one with a residual, as in the first known pair.
class UnnormalisedResidualRule final : public TokenLikeRule {
 public:
  void rejected(const verify::PositionDistributions& distributions, std::span<double> weights) const override {
    TokenLikeRule::rejected(distributions, weights);
    weights.back() += std::max(1.0 - std::accumulate(weights.begin(), weights.end(), 0.0), 0.0);
  }
};

// bonus() receives only the target's distribution, so this rule remembers the draft's distribution from the previous call.
class BonusFromDraftRule final : public TokenLikeRule {
 public:
  void rejected(const verify::PositionDistributions& distributions, std::span<double> weights) const override {
    TokenLikeRule::rejected(distributions, weights);
    drafted_.assign(distributions.drafted.begin(), distributions.drafted.end());
  }
  void bonus(std::span<const double> target, std::span<double> weights) const override {
    SPECSIM_CHECK(drafted_.size() == target.size(), "{} tokens", drafted_.size());
    std::copy(drafted_.begin(), drafted_.end(), weights.begin());
  }

 private:
  mutable std::vector<double> drafted_;
};

// ---- loops ------------------------------------------------------------------------------------------------------------

struct BonusDropped : decode::ShippedBehaviour {
  static bool emits_bonus() { return false; }
};
struct OneShort : decode::ShippedBehaviour {
  static std::uint32_t drafted(std::uint32_t draft_length) { return draft_length > 0 ? draft_length - 1 : 0; }
};
struct OneTooMany : decode::ShippedBehaviour {
  static std::uint32_t drafted(std::uint32_t draft_length) { return draft_length + 1; }
};
struct GoesOnAfterRejection : decode::ShippedBehaviour {
  static bool goes_on(bool) { return true; }
};
struct AcceptsTies : decode::ShippedBehaviour {
  static bool accepts(std::uint64_t bits, std::uint64_t threshold) { return (bits >> 11) <= threshold; }
};

// The loop with another behaviour; a sink is optional.
template <class Behaviour>
audit::RoundLoop loop_of() {
  return [](const decode::RoundSetup& setup, const decode::ChunkPlan& chunk, decode::BitSource& random_bits,
            decode::Counts& counts, decode::RoundSink* sink) {
    if (sink != nullptr)
      decode::run_staged<Behaviour, true, true>(setup, chunk, random_bits, counts, sink);
    else
      decode::run_staged<Behaviour, true, false>(setup, chunk, random_bits, counts, nullptr);
  };
}

// ---- the list -----------------------------------------------------------------------------------------------------------

enum class Figure {
  output_distribution,    // distribution of the first token
  accepted_distribution,  // distribution of accepted tokens in a round
  emitted_distribution,   // distribution of the number of tokens that a round emits
  joint_distribution,     // joint distribution of the first draft_length + 1 tokens
  scripted,               // no distribution: single values of the random bits only
};

struct Mutant {
  std::string name;
  std::function<std::unique_ptr<verify::PositionRule>()> rule;
  audit::RoundLoop loop;      // empty: the shipped one
  Figure caught_by;           // must show it for the second known pair at draft_length 2
  std::vector<Figure> moves;  // all figures that it moves there; the others are blind
};

inline const std::vector<Mutant>& mutants() {
  using F = Figure;
  const auto token = [] { return std::make_unique<TokenLikeRule>(); };
  static const std::vector<Mutant> list = {
      {"emits the draft distribution",
       [] { return std::make_unique<LeakRule>(1.0); },
       {},
       F::output_distribution,
       {F::output_distribution, F::joint_distribution}},
      {"leaks 1 % of the draft distribution",
       [] { return std::make_unique<LeakRule>(0.01); },
       {},
       F::output_distribution,
       {F::output_distribution, F::joint_distribution}},
      {"residual from abs(target - draft)",
       [] { return std::make_unique<AbsoluteResidualRule>(); },
       {},
       F::output_distribution,
       {F::output_distribution, F::joint_distribution}},
      {"resamples from the target",
       [] { return std::make_unique<ResampleTargetRule>(); },
       {},
       F::output_distribution,
       {F::output_distribution, F::joint_distribution}},
      {"accept ratio inverted",
       [] { return std::make_unique<InvertedRatioRule>(); },
       {},
       F::output_distribution,
       {F::output_distribution, F::accepted_distribution, F::emitted_distribution, F::joint_distribution}},
      {"residual not renormalised",
       [] { return std::make_unique<UnnormalisedResidualRule>(); },
       {},
       F::output_distribution,
       {F::output_distribution, F::joint_distribution}},
      {"bonus token from the draft",
       [] { return std::make_unique<BonusFromDraftRule>(); },
       {},
       F::joint_distribution,
       {F::joint_distribution}},
      {"bonus token dropped", token, loop_of<BonusDropped>(), F::emitted_distribution, {F::emitted_distribution}},
      {"draft_length one short",
       token,
       loop_of<OneShort>(),
       F::accepted_distribution,
       {F::accepted_distribution, F::emitted_distribution}},
      {"draft_length one too many", token, loop_of<OneTooMany>(), F::emitted_distribution, {F::emitted_distribution}},
      {"goes on after a rejection",
       token,
       loop_of<GoesOnAfterRejection>(),
       F::accepted_distribution,
       {F::output_distribution, F::accepted_distribution, F::emitted_distribution, F::joint_distribution}},
      {"accepts ties: u * draft <= target", token, loop_of<AcceptsTies>(), F::scripted, {}},
  };
  return list;
}

// `rounds` rounds of a cell with the mutant: same distributions, same addressed words as Simulator::run.
inline decode::Counts run_mutant(const spec::Cell& cell, const Mutant& mutant, std::uint64_t rounds) {
  const std::unique_ptr<verify::PositionRule> rule = mutant.rule();
  const decode::PreparationPlan plan = spec::plan_with_rule(cell, *rule);
  const decode::Prepared prepared = decode::prepare(plan, {});
  SPECSIM_CHECK(prepared.tables.has_value(), "cell {} has no tables", cell.index);
  const rng::Key key = spec::draw_key(cell);
  const decode::Simulator simulator(plan, prepared, key, cell.draft_length(), cell.sequence_rounds);
  decode::Counts counts = simulator.empty_counts();
  const std::uint64_t size = simulator.chunk_size();
  const decode::RoundSetup setup{.tables = &*prepared.tables,
                                 .process = cell.contexts->process.get(),
                                 .key = key,
                                 .draft_length = static_cast<std::uint32_t>(cell.draft_length()),
                                 .matches = rule->matches(),
                                 .classes = prepared.class_count,
                                 .bin_of_class = prepared.bin_of_class.data(),
                                 .stratum = prepared.stratum.empty() ? nullptr : prepared.stratum.data()};
  for (std::uint64_t i = 0; i * size < rounds; ++i) {
    if (!mutant.loop) {
      simulator.run(i, rounds, counts);
    } else {
      decode::PhiloxBits random_bits(key);
      mutant.loop(setup, {i * decode::kLanes, std::min(size, rounds - i * size), cell.sequence_rounds}, random_bits, counts,
                  nullptr);
    }
  }
  return counts;
}

}  // namespace specsim::tests
