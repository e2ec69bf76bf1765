// Drafts out of the text as engines make them, by what each round before left behind: told here from the whole past.
#pragma once

#include "sim/rounds/theory/chosen_trees.h"

#include <vector>

namespace specsim::theory {

// SGLang's NGRAM (trie.cpp). Each round's text but this one's leaves the strings of its last `depth` tokens, from each of them to
// the end; texts of `past` leave those of all their beginnings. A string counts as often as strings were left that begin with it,
// and is as new as the last of these. An end of the text of n tokens is found if it is such a string, and if n is more than what
// the last round emitted (k), the end of n - k tokens was found then; it starts a tree if a longer string begins with it.
struct SglangNgram {
  int nodes = 1;
  int depth = 2;
  int least_breadth = 1;
  int most_breadth = 1;
  bool by_frequency = false;
  std::vector<std::vector<int>> past;
};
[[nodiscard]] HistoryDraft sglang_ngram_draft(const SglangNgram& rule);

// llama.cpp's ngram-simple (ngram-map.cpp): the last stretch of exactly `size` tokens that are the text's last ones, not at its
// beginning; at most draft_length tokens behind it, the text's newest one not among them, and at least `size`.
[[nodiscard]] TextDraft ngram_simple_draft(int draft_length, int size);

// llama.cpp's ngram-mod (ngram-mod.cpp, speculative.cpp): of all n-grams that were read whose polynomial in 6364136223846793005
// is the same modulo 2^22 as that of the last n tokens, the token behind the one that was read last; again behind that.
struct NgramMod {
  int draft_length = 1;
  int n = 1;
  int least = 0;
  std::vector<std::vector<int>> past;
};
[[nodiscard]] HistoryDraft ngram_mod_draft(const NgramMod& rule);

// llama.cpp's ngram-cache (ngram-cache.cpp). Of equals the one that comes first in a table of the standard library.
struct NgramCache {
  int draft_length = 1;
  std::vector<std::vector<int>> statistics;
  std::vector<std::vector<int>> past;
};
[[nodiscard]] HistoryDraft ngram_cache_draft(const NgramCache& rule);

// llama.cpp's ngram-map-k and, with `values`, ngram-map-k4v (ngram-map.cpp). A place is looked at in the first round in which
// draft_length tokens and one more stand behind its n; of those of one hash the first that was looked at is kept for later
// rounds. Counts stand below the 16,380 at which the program's end.
struct NgramMap {
  int draft_length = 1;
  int n = 1;
  int min_hits = 1;
  bool values = false;
};
[[nodiscard]] HistoryDraft ngram_map_draft(const NgramMap& rule);

}  // namespace specsim::theory
