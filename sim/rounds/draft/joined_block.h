// A chain whose logits come from one pass over the block. Its tokens are chosen from left to right, each with a bias that depends
// on the previous token (DSpark, DFlash 2) or on all previous ones (Domino).
#pragma once

#include "sim/rounds/draft/tree_drafter.h"

#include <utility>
#include <vector>

namespace specsim::draft {

class JoinedBlock : public TreeDrafter {
 public:
  struct Head {
    double share = 0.5;  // how far the bias moves the logits from those of the context before the block: 0 to 1
    int candidates = 0;  // number of likeliest tokens before the bias that a position chooses from; 0: all
    bool argmax = false;
    bool path = false;  // the bias depends on all earlier tokens of the block
  };
  // `pass_rows`: rows of the one pass.
  JoinedBlock(int draft_length, double pass_rows, const Head& head);
  void join(std::span<const double> before, std::span<double> known) const override;
  // The pass covers the whole block, however much of it is verified.
  [[nodiscard]] BlockWork work(int nodes) const override;

 private:
  Head head_;
  double pass_rows_;
};

}  // namespace specsim::draft
