// Theory by enumeration, for rounds that the summed probabilities of a node's children (tree_walk.h) do not determine. All
// distributions are kept. Every possible tree, text or path of contexts is visited, within limits.
#pragma once

#include "sim/experiments/judge/block_rounds.h"
#include "sim/experiments/judge/method.h"
#include "sim/rounds/theory/automaton.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::judge {

constexpr double kMostTokens = 0x1p24;  // probabilities in all kept pairs of distributions
constexpr double kMostSteps = 0x1p28;   // largest number of steps of a walk

class Enumeration : public CellTheory {
 public:
  explicit Enumeration(BlockRounds rounds);
  std::vector<double> see(int context, int depth, const verify::PositionDistributions& distributions) final;
  void sorted_by(int context, const theory::TokenClasses& classes) final {
    if (context == 0) classes_ = classes;
  }
  void finish() final { answer_ = work_out(); }
  // Only with one context and no policy, when rounds are identically distributed and independent.
  [[nodiscard]] std::optional<theory::TokenMoments> tokens_of_round() const final {
    const bool alike = rounds_.shape->contexts == 1 && !rounds_.by_context && !has_policy(*rounds_.cell);
    return alike ? tokens_by_class(automaton(0), classes_) : std::nullopt;
  }
  [[nodiscard]] RoundTheory answer(const spec::Cell& /*cell*/) const final { return answer_; }

 protected:
  [[nodiscard]] virtual RoundTheory work_out() const = 0;
  // The classes of the tokens that one round with these distributions emits; nothing for lossless rules, and where no formula is
  // implemented.
  [[nodiscard]] virtual std::optional<theory::TokenMoments> tokens_by_class(const theory::Automaton& /*own*/,
                                                                            const theory::TokenClasses& /*classes*/) const {
    return std::nullopt;
  }

  [[nodiscard]] const BlockRounds& rounds() const { return rounds_; }
  // The automaton of all contexts; with `context` >= 0, of that context as if there were no other.
  [[nodiscard]] theory::Automaton automaton(int context) const;
  // The transition matrix of contexts that move independently of the tokens; empty if they do not move.
  [[nodiscard]] theory::StateMatrix transition() const;

 private:
  BlockRounds rounds_;
  std::vector<std::vector<double>> targets_;              // [context]
  std::vector<std::vector<std::vector<double>>> drafts_;  // [depth][context]
  theory::TokenClasses classes_;                          // those of the first context
  RoundTheory answer_;
};

// Common parts of enumerations in which the drafted tokens form a tree.
class TreeEnumeration : public Enumeration {
 public:
  using Enumeration::Enumeration;

 protected:
  [[nodiscard]] RoundTheory work_out() const final;
  // A round with `own` distributions, whose states depend on the tokens.
  [[nodiscard]] virtual theory::RoundKernel tree_kernel(const theory::Automaton& own) const = 0;
  // A round whose contexts follow the tokens or do not move, or one that looks no further than it accepts. `error` is raised to
  // the largest error of a distribution's mean.
  [[nodiscard]] virtual theory::RoundKernel round_kernel(int draft_length, int context, double& error) const;
  // Whether a round depends on contexts beyond its accepted tokens, because it looks at all its positions.
  [[nodiscard]] virtual bool looks_ahead() const { return !rounds().drafter->from_root; }
};

// Why no enumeration can handle these rounds, such as too many probabilities to keep; "" if one can.
std::string why_not_kept(const BlockRounds& rounds);
// The number of contexts that a round can start from. If contexts move by themselves and a round looks ahead: the number of
// sequences of contexts that it can meet. And the message that these are too many to keep what follows each; "" if they are not.
double paths_of(const BlockRounds& rounds);
std::string why_not_windows(const BlockRounds& rounds);
// The number of steps of a walk over all trees of a round, and the message that these are too many; "" if they are not.
double steps_of(const BlockRounds& rounds);
std::string too_many_steps(const BlockRounds& rounds, double steps);

}  // namespace specsim::judge
