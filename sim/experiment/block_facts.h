// What theory says of rounds in which a rule judges a block: worked out from the laws while they pass by.
#pragma once

#include "sim/experiment/spec.h"
#include "sim/theory/block.h"
#include "sim/theory/length_policies.h"
#include "sim/theory/round_chain.h"
#include "sim/theory/round_law.h"
#include "sim/theory/trees.h"
#include "sim/verify/position_rule.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace specsim::experiment {

struct BlockTheory {
  std::string missing;  // why there is none; empty: there is
  // Of accepted, by stratum (DEFINITIONS: markov, regimes and requests have one for each context) at the round's start; empty:
  // not known, as a policy or the text decide as well.
  std::vector<theory::RoundLaw> laws;
  // So many rounds of one sequence; nullopt: too many to follow. Empty: rounds are independent of each other (requests: those of
  // one type).
  std::function<std::optional<theory::RunMoments>(int rounds)> sequence;
  double mean_error = 0.0;  // of a law's mean: half the width of a bracket, 0 where it is exact
};

// Two ways: rules that walk down a tree of one shape need only the masses of a node's children (any vocabulary); the others get
// all laws and every tree, text or path of contexts enumerated, within limits that `missing` names.
class BlockFacts {
 public:
  explicit BlockFacts(const Cell& cell);

  // The laws of one context at one depth of the block. The law of a token that is emitted there, where the rule is a lossy one of
  // chains and contexts are alike; else empty.
  std::vector<double> add(int context, int depth, const verify::PositionLaws& laws);
  // Once all laws were added.
  [[nodiscard]] BlockTheory answer() const;

 private:
  struct Level {  // of the tree: the nodes of one depth
    int children = 0;
    int laws = 0;  // which depth's
    theory::NodeMoves moves;
  };

  [[nodiscard]] std::string why_not_walked() const;
  [[nodiscard]] std::string why_not_enumerated() const;
  // [rank][token] of the children of a node: accepted; [rank][0] where tokens do not matter.
  [[nodiscard]] std::vector<std::vector<double>> accepted(int children, const verify::PositionLaws& laws) const;
  // What an outcome of these masses by token does to the state.
  void spread(int context, const std::vector<double>& mass, theory::StateMatrix& moves) const;
  [[nodiscard]] theory::RoundKernel walked(int draft_length) const;
  [[nodiscard]] bool is_block() const;
  [[nodiscard]] theory::RoundKernel tree_kernel(const theory::Automaton& own) const;
  [[nodiscard]] theory::RoundKernel enumerated(int draft_length, int context, double& error) const;
  [[nodiscard]] theory::RoundKernel block_kernel(int draft_length, int context, double& error) const;
  [[nodiscard]] theory::Automaton automaton(int context) const;
  [[nodiscard]] theory::StateMatrix transition() const;
  [[nodiscard]] std::optional<theory::LengthRule> length_rule() const;

  const Cell* cell_;
  const families::ContextShape* shape_;
  const draft::BlockDrafter::Shape* drafter_;
  std::string missing_;
  bool walks_ = false;
  bool by_context_ = false;  // each context is a state of its own
  int states_ = 1;           // of the walk
  theory::Tree tree_;
  std::vector<Level> levels_;                             // of the walk
  theory::StateMatrix target_;                            // the target's own token
  std::vector<std::vector<double>> targets_;              // [context], where all laws are kept
  std::vector<std::vector<std::vector<double>>> drafts_;  // [depth][context]
};

}  // namespace specsim::experiment
