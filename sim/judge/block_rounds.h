// What the two ways of working out rounds of blocks share: the round's shape, and from kernels of rounds to what is told of them.
#pragma once

#include "sim/judge/block_facts.h"
#include "sim/theory/length_policies.h"
#include "sim/theory/round_chain.h"
#include "sim/theory/tree_enumeration.h"
#include "sim/theory/trees.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace specsim::judge {

struct BlockRounds {
  explicit BlockRounds(const spec::Cell& of_cell);

  const spec::Cell* cell;
  const families::ContextShape* shape;
  const draft::BlockDrafter::Shape* drafter;
  bool by_context;  // each context is a state of its own
  int states;       // of a walk
  theory::Tree tree;
  std::vector<int> ranks;  // [depth]: of the children of a node there, at most

  // Where the next context is sure, given this one and the token: what it is.
  [[nodiscard]] bool sure_next() const {
    return shape->kind == families::ContextShape::Kind::markov || shape->kind == families::ContextShape::Kind::trace;
  }
  [[nodiscard]] int next(int context, int token) const;
  // Traversal of a chain is block verification.
  [[nodiscard]] bool is_block() const;
  // Distribution of the first round's context.
  [[nodiscard]] std::vector<double> start() const;
  // Kernels of rounds of so many drafts.
  [[nodiscard]] BlockTheory theory_of(const std::function<theory::RoundKernel(int draft_length)>& kernel) const;
};

theory::TreeSampling sampling_of(tokens::Siblings siblings);
theory::RoundKernel kernel_of(const theory::RoundDistribution& distribution);
theory::RoundDistribution mean_of(const std::vector<theory::RoundDistribution>& distributions);

// Why a way cannot be gone, "" where it can; and the way.
std::string why_not_walked(const BlockRounds& rounds);
std::unique_ptr<BlockFacts> walked_facts(BlockRounds rounds);
std::string why_not_enumerated(const BlockRounds& rounds);
std::unique_ptr<BlockFacts> enumerated_facts(BlockRounds rounds);

}  // namespace specsim::judge
