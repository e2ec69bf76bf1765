// A chain whose logits come of one pass over the block, and whose tokens are taken from left to right, each with a bias by the one
// taken before it (DSpark, DFlash 2) or by all of them (Domino).
#pragma once

#include "sim/rounds/draft/tree_drafter.h"

#include <utility>
#include <vector>

namespace specsim::draft {

class JoinedBlock : public TreeDrafter {
 public:
  struct Head {
    double share = 0.5;  // of the way that the bias takes the logits, from those of the context before the block
    int candidates = 0;  // likeliest tokens before the bias that a position chooses from; 0: all
    bool argmax = false;
    bool path = false;  // it sees all tokens of the block before it
  };
  // `pass_rows`: of the one pass.
  JoinedBlock(int draft_length, double pass_rows, const Head& head);
  void join(std::span<const double> before, std::span<double> known) const override;
  // The pass goes over the whole block, whatever of it is verified.
  [[nodiscard]] Work work(int nodes) const override;

 private:
  Head head_;
  double pass_rows_;
};

}  // namespace specsim::draft
