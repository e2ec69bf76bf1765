// Trees from the distributions that a block drafter gives for all positions at once, independently of the tokens at other
// positions.
#pragma once

#include "sim/rounds/draft/drafter.h"

#include <vector>

namespace specsim::draft {

// The likeliest paths by the product of their tokens' probabilities, best node first: a node's probability is its parent's times
// its token's at its depth. The distribution at a position is the mean over the draft model's own continuations of the text. It
// is made mostly for the likeliest continuation, and is wrong after another token.
class MarginalTree final : public BlockDrafter {
 public:
  struct Budget {
    int nodes = 1;  // at most
    int width = 0;  // number of likeliest tokens per position that paths may use; 0: all
    // True: the best node gets all its children at once, and the budget may end among them. False: nodes are added one by one,
    // best first.
    bool families = false;
    // If row_time is above 0, nodes are added as long as they raise the expected tokens per time: 1 + the sum of the nodes'
    // probabilities, over 1 + draft_time + row_time times their number. Times are in target passes over one token.
    double draft_time = 0.0;
    double row_time = 0.0;
  };
  // `positions`: number of positions of the block after the text's last token.
  MarginalTree(int positions, int passes, const Budget& budget);
  [[nodiscard]] const Shape& shape() const override { return shape_; }
  void choose(DrafterInput& input, Memory* memory, ChosenBlock& block) const override;
  [[nodiscard]] BlockWork work(int nodes) const override;

 private:
  // [position]: its likeliest tokens, in decreasing order; ties: the lower token first.
  [[nodiscard]] std::vector<std::vector<Ranked>> marginals(DrafterInput& input) const;
  void grow_families(const std::vector<std::vector<Ranked>>& positions, ChosenBlock& block) const;

  Shape shape_;
  int positions_;
  int passes_;
  Budget budget_;
};

}  // namespace specsim::draft
