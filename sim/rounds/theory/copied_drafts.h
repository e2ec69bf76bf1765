// Drafts that are copied from where the text's end stood first.
#pragma once

#include "sim/rounds/theory/chosen_trees.h"

#include <vector>

namespace specsim::theory {

// SAM Decoding (Hu et al. 2024, arXiv 2411.10666) without a second method: the longest end of the text that stands in the text
// without its last token, at its first place, if it has at least `threshold` tokens; or one of a document that is longer by more
// than `bias`. Of the text's own ends a shorter one where no more than draft_length tokens follow the longer one's first place,
// the shortest if that is so of all.
struct SamDraft {
  int draft_length = 1;
  int threshold = 1;
  double bias = 0.0;
  std::vector<std::vector<int>> corpus;
};
[[nodiscard]] TextDraft sam_draft(const SamDraft& rule);

}  // namespace specsim::theory
