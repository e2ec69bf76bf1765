// Drafts from the text as engines make them from the memory of earlier rounds. Here they are computed from the whole past.
#pragma once

#include "sim/rounds/theory/chosen_trees.h"

#include <vector>

namespace specsim::theory {

// SGLang's NGRAM (trie.cpp). The text of each earlier round adds the strings that begin in its last `depth` tokens and reach to
// its end. Texts of `past` add those of all their prefixes. The count of a string is the number of added strings that begin with
// it, and its age is that of the newest of these. A suffix of the text with n tokens is found if it is such a string and, if n is
// more than the number k of tokens that the last round emitted, the suffix of n - k tokens was found then. It starts a tree if a
// longer string begins with it.
struct SglangNgram {
  int nodes = 1;
  int depth = 2;
  int least_breadth = 1;
  int most_breadth = 1;
  bool by_frequency = false;
  std::vector<std::vector<int>> past;
};
[[nodiscard]] HistoryDraft sglang_ngram_draft(const SglangNgram& rule);

// llama.cpp's ngram-simple (ngram-map.cpp). Finds the last earlier occurrence of the text's last `size` tokens that is not at its
// beginning, and copies at most draft_length tokens after it. The text's newest token is not copied, and at least `size` tokens
// must follow.
[[nodiscard]] TextDraft ngram_simple_draft(int draft_length, int size);

// llama.cpp's ngram-mod (ngram-mod.cpp, speculative.cpp). Each n-gram is hashed by a polynomial in 6364136223846793005 modulo
// 2^22. The draft token is the one that followed the n-gram read last among those with the same hash as the last n tokens; this
// repeats after the drafted token.
struct NgramMod {
  int draft_length = 1;
  int n = 1;
  int least = 0;
  std::vector<std::vector<int>> past;
};
[[nodiscard]] HistoryDraft ngram_mod_draft(const NgramMod& rule);

// llama.cpp's ngram-cache (ngram-cache.cpp). Ties go to the first in the order of a standard library table.
struct NgramCache {
  int draft_length = 1;
  std::vector<std::vector<int>> statistics;
  std::vector<std::vector<int>> past;
};
[[nodiscard]] HistoryDraft ngram_cache_draft(const NgramCache& rule);

// llama.cpp's ngram-map-k and, with `values`, ngram-map-k4v (ngram-map.cpp). A place is looked at in the first round in which at
// least draft_length + 1 tokens follow its n-gram. Of the places with one hash, the first that was looked at is kept for later
// rounds. Counts stay below 16,380, where the program's counters saturate.
struct NgramMap {
  int draft_length = 1;
  int n = 1;
  int min_hits = 1;
  bool values = false;
};
[[nodiscard]] HistoryDraft ngram_map_draft(const NgramMap& rule);

}  // namespace specsim::theory
