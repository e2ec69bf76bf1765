// Theory of drafts that are copied from the text: follows every text that a sequence can emit.
#pragma once

#include "sim/experiments/judge/block_rounds.h"
#include "sim/rounds/theory/chosen_trees.h"

namespace specsim::judge {

// The theory of rounds whose drafter makes chains. `draft` returns the tokens that it drafts after a text.
Coverage follow_text(const spec::Cell& cell, theory::TextDraft draft);
// The same for drafters with memory. `draft` returns the paths that it drafts after a text, given the text's earlier lengths.
Coverage follow_history(const spec::Cell& cell, theory::HistoryDraft draft);
// Lists of tokens that the cell's drafter is given; empty if there are none.
std::vector<std::vector<int>> drafter_texts(const spec::Cell& cell, const std::string& key);
// Tokens of the prompt that the cell's sequences begin with; empty if there is none.
std::vector<int> prompt_of(const spec::Cell& cell);

}  // namespace specsim::judge
