// Suffix decoding's search: the continuation of the text that promises most tokens.
#pragma once

#include "sim/rounds/draft/drafter.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace specsim::draft {

struct SuffixScores {
  int draft_length = 24;  // tokens at most
  int depth = 24;         // tokens of the end that is looked for and of its continuation together, at most
  double factor = 1.0;    // most tokens drafted: factor x the matched end's length + offset
  double offset = 0.0;
  double least = 0.1;  // share of the places below which a path ends
  std::vector<std::vector<Token>> past;
};

// The commonest of the tokens that followed an end of the text, and how often it did. Of equals it is the one at the head of a
// node's children in Arctic Inference's suffix tree: the first that was seen where each was seen once; a token that is seen again
// passes to the next count, to the front of those that have it if it was at the front of its own, else behind them.
// `nexts`: in the order in which they were written.
struct Followed {
  Token token = 0;
  std::size_t times = 0;
};
std::optional<Followed> commonest_next(std::span<const Token> nexts);

struct Continuation {
  std::vector<Token> path;
  double score = 0.0;  // the sum of the shares along the path: tokens that it promises
};

Continuation suffix_continuation(const Sight& sight, const SuffixScores& own);

}  // namespace specsim::draft
