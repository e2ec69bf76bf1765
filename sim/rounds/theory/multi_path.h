// Rules for several drafts of a position, or of a path. They couple the drafts with the target by an order of tokens or around
// one token.
#pragma once

#include "sim/rounds/theory/automaton.h"
#include "sim/rounds/theory/round_chain.h"

#include <span>
#include <vector>

namespace specsim::theory {

// Greedy multi-path block verification (Thomas and Pal 2026, arXiv 2602.16961). Of `paths` independent drafts of draft_length
// tokens, the last one in lexicographic order is judged as a block, with tokens in rising order of target / draft (ties: the
// lower id first). P(the last path is at most some path) is P(one path is at most that)^paths, which gives the last path's
// distribution. The block rule's round follows as in block.h. Walks all vocab^draft_length paths.
[[nodiscard]] RoundKernel multi_path_kernel(const Automaton& distributions, int paths, int draft_length);

// SpecHub (Sun et al. 2024, arXiv 2411.05289): two drafts around the draft's likeliest token `hub` (the lowest id among equals).
// They are (x, hub) with draft(x), and (hub, x) with draft(hub) draft(x) / (1 - draft(hub)). The target's mass is handed out in
// this order: the x of (x, hub), the x of (hub, x), the hub of (hub, x), the hub of (x, hub). [rank][token]: P(the draft of that
// rank is accepted and is the token). One draft is judged by the token rule; there is one draft if the hub has probability 1.
[[nodiscard]] std::vector<std::vector<double>> hub_accepted(std::span<const double> target, std::span<const double> draft,
                                                            int drafts);

}  // namespace specsim::theory
