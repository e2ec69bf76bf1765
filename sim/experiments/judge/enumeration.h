// Theory by enumeration, for rounds that take more than the summed probabilities of a node's children (tree_walk.h) to predict:
// all distributions are kept, and every tree, text or path of contexts that there can be is visited, within limits.
#pragma once

#include "sim/experiments/judge/block_rounds.h"
#include "sim/experiments/judge/method.h"
#include "sim/rounds/theory/automaton.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::judge {

constexpr double kMostTokens = 0x1p24;  // probabilities in all pairs of distributions that are kept
constexpr double kMostSteps = 0x1p28;   // steps that a walk may take

class Enumeration : public CellTheory {
 public:
  explicit Enumeration(BlockRounds rounds);
  std::vector<double> see(int context, int depth, const verify::PositionDistributions& distributions) final;
  void sorted_by(int context, const theory::TokenClasses& classes) final {
    if (context == 0) classes_ = classes;
  }
  void finish() final { answer_ = work_out(); }
  // Where there is one context, and no policy: rounds are alike and independent of each other.
  [[nodiscard]] std::optional<theory::TokenMoments> tokens_of_round() const final {
    const bool alike = rounds_.shape->contexts == 1 && !rounds_.by_context && !has_policy(*rounds_.cell);
    return alike ? tokens_by_class(automaton(0), classes_) : std::nullopt;
  }
  [[nodiscard]] RoundTheory answer(const spec::Cell& /*cell*/) const final { return answer_; }

 protected:
  [[nodiscard]] virtual RoundTheory work_out() const = 0;
  // What one round of these distributions emits, by class; nothing of lossless rules, and where it is not worked out.
  [[nodiscard]] virtual std::optional<theory::TokenMoments> tokens_by_class(const theory::Automaton& /*own*/,
                                                                            const theory::TokenClasses& /*classes*/) const {
    return std::nullopt;
  }

  [[nodiscard]] const BlockRounds& rounds() const { return rounds_; }
  // The automaton of all contexts or, with `context` >= 0, of that one as if there were no other.
  [[nodiscard]] theory::Automaton automaton(int context) const;
  // How contexts follow one another where they move whatever the tokens are; empty where they do not.
  [[nodiscard]] theory::StateMatrix transition() const;

 private:
  BlockRounds rounds_;
  std::vector<std::vector<double>> targets_;              // [context]
  std::vector<std::vector<std::vector<double>>> drafts_;  // [depth][context]
  theory::TokenClasses classes_;                          // the first context's
  RoundTheory answer_;
};

// Enumerations in which the drafted tokens form a tree: what they have in common.
class TreeEnumeration : public Enumeration {
 public:
  using Enumeration::Enumeration;

 protected:
  [[nodiscard]] RoundTheory work_out() const final;
  // A round of `own` distributions, whose states go by the tokens.
  [[nodiscard]] virtual theory::RoundKernel tree_kernel(const theory::Automaton& own) const = 0;
  // A round of contexts that go by tokens or not at all, or one that looks no further than it accepts; `error` grows to the
  // largest error of a distribution's mean.
  [[nodiscard]] virtual theory::RoundKernel round_kernel(int draft_length, int context, double& error) const;
  // Whether a round depends on contexts beyond the tokens that it accepts, as one that looks at all its positions does.
  [[nodiscard]] virtual bool looks_ahead() const { return !rounds().drafter->from_root; }
};

// Why no enumeration can take on these rounds, such as too many probabilities to keep; "" where nothing stands against it.
std::string why_not_kept(const BlockRounds& rounds);
// How many contexts a round can start from or, where they move by themselves and a round looks ahead, how many sequences of
// contexts it can meet; and why those are too many to keep what follows each, "" where they are not.
double paths_of(const BlockRounds& rounds);
std::string why_not_windows(const BlockRounds& rounds);
// How many steps a walk over all trees of a round takes, and the message that these are too many; "" where they are not.
double steps_of(const BlockRounds& rounds);
std::string too_many_steps(const BlockRounds& rounds, double steps);

}  // namespace specsim::judge
