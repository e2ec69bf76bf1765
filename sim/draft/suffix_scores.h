// Suffix decoding's search: the continuation of the text that promises most tokens.
#pragma once

#include "sim/draft/drafter.h"

#include <vector>

namespace specsim::draft {

struct SuffixScores {
  int draft_length = 0;  // tokens at most
  int depth = 0;         // tokens of the end that is looked for and of its continuation together, at most
  double factor = 0.0;   // tokens at most, by the end's length, and `offset` more
  double offset = 0.0;
  double least = 0.0;  // share of the places below which a path ends
  std::vector<std::vector<Token>> past;
};

struct Continuation {
  std::vector<Token> path;
  double score = 0.0;  // the sum of the shares along the path: tokens that it promises
};

Continuation suffix_continuation(const Sight& sight, const SuffixScores& own);

}  // namespace specsim::draft
