// Rounds in which a rule judges a whole block of drafted tokens: their shape, and the theory that follows from the kernel of one
// round. The kernel is the joint distribution of what a round accepts and of the state that it ends in.
#pragma once

#include "sim/experiments/judge/cell_theory.h"
#include "sim/rounds/theory/round_chain.h"
#include "sim/rounds/theory/tree_enumeration.h"
#include "sim/rounds/theory/trees.h"

#include <functional>
#include <string>
#include <vector>

namespace specsim::judge {

struct BlockRounds {
  explicit BlockRounds(const spec::Cell& of_cell);

  const spec::Cell* cell;
  const families::ContextShape* shape;
  const draft::BlockDrafter::Shape* drafter;
  const PolicyTheory* lengths = nullptr;  // theory of a policy that decides by earlier acceptance; else nullptr
  const PolicyTheory* stops = nullptr;    // theory of a policy that looks at the draft; else nullptr
  bool by_context;                        // each context is a separate state
  int states;                             // states of a walk
  theory::TreeShape tree;                 // only the root if the drafter chooses its block
  std::vector<int> ranks;                 // [depth]: the highest number of ranks among the children of a node there

  // Whether context and token determine the next context, and which one it is.
  [[nodiscard]] bool next_context_known() const {
    return shape->kind == families::ContextShape::Kind::markov || shape->kind == families::ContextShape::Kind::trace;
  }
  [[nodiscard]] int next(int context, int token) const;
  [[nodiscard]] bool is_chain() const { return tree.size() == tree.depth() + 1; }
  // Whether each position is drafted from the context before the block, as by Medusa's heads, and the later contexts differ.
  // Fresh distributions have 0 contexts.
  [[nodiscard]] bool guesses_ahead() const {
    return drafter->from_root && (shape->contexts > 1 || (shape->contexts == 0 && tree.depth() > 1));
  }
  // Whether contexts move independently of the emitted tokens, so that the text does not reveal them.
  [[nodiscard]] bool hidden() const;
  // Distribution of the first round's context.
  [[nodiscard]] std::vector<double> start() const;
  // Why theory cannot cover rounds of this kind, whatever their kernels are; "" if it can.
  [[nodiscard]] std::string why_not() const;
  // The theory of rounds whose kernels `kernel` returns, given a draft length in tokens.
  [[nodiscard]] RoundTheory theory_of(const std::function<theory::RoundKernel(int draft_length)>& kernel) const;
};

theory::TreeSampling sampling_of(tokens::Siblings siblings);
theory::RoundKernel kernel_of(const theory::RoundDistribution& distribution);
theory::RoundDistribution mean_of(const std::vector<theory::RoundDistribution>& distributions);

}  // namespace specsim::judge
