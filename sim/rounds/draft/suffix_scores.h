// The search of suffix decoding: the continuation of the text with the highest expected number of tokens.
#pragma once

#include "sim/rounds/draft/drafter.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace specsim::draft {

struct SuffixScores {
  int draft_length = 24;  // tokens at most
  int depth = 24;         // most tokens of the suffix and its continuation together
  double factor = 1.0;    // most tokens drafted: factor x the suffix's length + offset
  double offset = 0.0;
  double least = 0.1;  // share of the places below which a path ends
  std::vector<std::vector<Token>> past;
};

// The most common of the tokens that followed a suffix of the text, and its count. Ties go to the head of a node's children in
// Arctic Inference's suffix tree. That is the first token seen if each was seen once. A token that is seen again moves to the
// next count: to the front of that count's tokens if it was at the front of its own, otherwise to their end. `nexts`: in the
// order of the text.
struct NextToken {
  Token token = 0;
  std::size_t times = 0;
};
std::optional<NextToken> commonest_next(std::span<const Token> nexts);

struct Continuation {
  std::vector<Token> path;
  double score = 0.0;  // the sum of the shares along the path: its expected tokens
};

Continuation suffix_continuation(const DrafterInput& input, const SuffixScores& own);

}  // namespace specsim::draft
