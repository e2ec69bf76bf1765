// Theory of drafts that are read out of the text: every text that a sequence can emit is followed.
#pragma once

#include "sim/judge/block_rounds.h"
#include "sim/theory/chosen_trees.h"

namespace specsim::judge {

// Chains, chosen by `draft`.
Coverage follow_text(const spec::Cell& cell, theory::TextDraft draft);
// The prompt.
std::vector<int> prompt_of(const spec::Cell& cell);

}  // namespace specsim::judge
