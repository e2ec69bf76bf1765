// Theory of drafts that are read out of the text: every text that a sequence can emit is followed.
#pragma once

#include "sim/experiments/judge/block_rounds.h"
#include "sim/rounds/theory/chosen_trees.h"

namespace specsim::judge {

// Theory of the cell's rounds, whose drafter makes chains: `draft` says which tokens it drafts behind a text.
Coverage follow_text(const spec::Cell& cell, theory::TextDraft draft);
// The same of drafters that remember: `draft` says which paths it drafts behind a text and the lengths that it had.
Coverage follow_history(const spec::Cell& cell, theory::HistoryDraft draft);
// Lists of tokens that the cell's drafter is given; empty where it is given none.
std::vector<std::vector<int>> drafter_texts(const spec::Cell& cell, const std::string& key);
// Tokens of the prompt that the cell's sequences begin with; empty without one.
std::vector<int> prompt_of(const spec::Cell& cell);

}  // namespace specsim::judge
