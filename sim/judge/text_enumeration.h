// Theory of drafts that are read out of the text: every text that a sequence can emit is followed.
#pragma once

#include "sim/judge/block_rounds.h"
#include "sim/theory/chosen_trees.h"

namespace specsim::judge {

// Theory of the cell's rounds, whose drafter makes chains: `draft` says which tokens it drafts behind a text.
Coverage follow_text(const spec::Cell& cell, theory::TextDraft draft);
// Tokens of the prompt that the cell's sequences begin with; empty without one.
std::vector<int> prompt_of(const spec::Cell& cell);

}  // namespace specsim::judge
