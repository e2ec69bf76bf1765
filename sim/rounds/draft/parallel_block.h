// A chain whose positions are all guessed at once, from the text before the block.
#pragma once

#include "sim/rounds/draft/tree_drafter.h"

#include <vector>

namespace specsim::draft {

class ParallelBlock : public TreeDrafter {
 public:
  // Input of the guesses: the text's tokens, read by a separate model, or the target's state at the end of the text.
  enum class From { text, target_state };
  // Each token is the argmax of the draft's distribution for its depth. There are `passes` draft passes, one after the other,
  // each over `more_rows` rows in addition to the drafted tokens.
  ParallelBlock(int draft_length, double more_rows, int passes, From from)
      : TreeDrafter(path_of(draft_length), tokens::Siblings::point_mass), more_rows_(more_rows), passes_(passes) {
    shape_.from_root = true;
    shape_.on_target_state = from == From::target_state;
  }
  [[nodiscard]] BlockWork work(int nodes) const override {
    if (nodes == 0) return {{}, 1.0};
    return {std::vector<double>(static_cast<std::size_t>(passes_), nodes + more_rows_), 1.0 + nodes};
  }

 private:
  double more_rows_;
  int passes_;
};

}  // namespace specsim::draft
