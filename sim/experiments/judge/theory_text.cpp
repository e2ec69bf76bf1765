// Drafts that are copied from the text.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/text_enumeration.h"
#include "sim/rounds/theory/engine_drafts.h"

namespace specsim::judge {

namespace {

// The theory of the drafter of this name. `cover` receives a cell and its drafter's arguments.
TheoryEntry copied(const char* name, const char* copies, const char* source,
                   Coverage (*cover)(const spec::Cell& cell, const config::Arguments& own)) {
  return {{name, std::string(copies) + ", over every text", source, {}, ""},
          {"tree_point_mass", "greedy_tree"},
          {name},
          [cover](const spec::Cell& cell) { return cover(cell, drafter_arguments(cell)); }};
}

int whole(const config::Arguments& own, const char* key) { return static_cast<int>(own.integer(key)); }

}  // namespace

TheoryEntry prompt_lookup_theory() {
  return copied("prompt_lookup", "the tokens after the first occurrence of the text's last tokens",
                "Saxena, prompt lookup decoding, 2023", [](const spec::Cell& cell, const config::Arguments& own) {
                  return follow_text(
                      cell, theory::prompt_lookup_draft(draft_length(cell), whole(own, "max_ngram"), whole(own, "min_ngram")));
                });
}

TheoryEntry suffix_theory() {
  return copied("suffix", "the most frequent continuation of the text's longest repeated suffix",
                "Oliaro et al., arXiv 2411.04975", [](const spec::Cell& cell, const config::Arguments& own) {
                  return follow_text(cell, theory::suffix_draft(draft_length(cell), whole(own, "max_match"), own.number("factor"),
                                                                own.number("least")));
                });
}

TheoryEntry suffix_decoding_theory() {
  return copied("suffix_decoding", "the continuation with the most expected tokens over all lengths of the text's suffix",
                "Oliaro et al., arXiv 2411.04975", [](const spec::Cell& cell, const config::Arguments& own) {
                  return follow_text(cell, theory::suffix_scores_draft({.draft_length = draft_length(cell),
                                                                        .depth = whole(own, "max_tree_depth"),
                                                                        .factor = own.number("factor"),
                                                                        .offset = own.number("offset"),
                                                                        .least = own.number("least"),
                                                                        .prompt = prompt_of(cell).size(),
                                                                        .past = drafter_texts(cell, "past")}));
                });
}

TheoryEntry sam_decoding_theory() {
  return copied("sam_decoding", "the tokens after the first occurrence of the text's longest repeated suffix",
                "Hu et al. (SAM Decoding), arXiv 2411.10666",
                [](const spec::Cell& cell, const config::Arguments& own) -> Coverage {
                  if (own.text("otherwise") != "nothing")
                    return {nullptr,
                            "the drafter reuses the target's predictions for earlier tokens, and theory covers only copies "
                            "(otherwise: nothing)"};
                  return follow_text(cell, theory::sam_draft({whole(own, "draft_length"), whole(own, "threshold"),
                                                              own.number("bias"), drafter_texts(cell, "corpus")}));
                });
}

// Drafters of inference engines.

TheoryEntry sglang_ngram_theory() {
  return copied("sglang_ngram", "a tree of continuations of the text's suffixes, from a trie of its last tokens",
                "SGLang, kernels/jit/csrc/ngram_corpus/trie.cpp", [](const spec::Cell& cell, const config::Arguments& own) {
                  return follow_history(
                      cell, theory::sglang_ngram_draft({whole(own, "nodes"), whole(own, "max_trie_depth"),
                                                        whole(own, "min_bfs_breadth"), whole(own, "max_bfs_breadth"),
                                                        own.text("match_type") == "PROB", drafter_texts(cell, "past")}));
                });
}

TheoryEntry ngram_simple_theory() {
  return copied("ngram_simple", "the tokens after the last earlier occurrence of the text's last tokens",
                "llama.cpp, common/ngram-map.cpp", [](const spec::Cell& cell, const config::Arguments& own) {
                  return follow_text(cell, theory::ngram_simple_draft(draft_length(cell), whole(own, "size_n")));
                });
}

TheoryEntry ngram_mod_theory() {
  return copied("ngram_mod", "the continuation that a hash table stores for the text's last tokens",
                "llama.cpp, common/ngram-mod.cpp", [](const spec::Cell& cell, const config::Arguments& own) {
                  return follow_history(cell, theory::ngram_mod_draft({draft_length(cell), whole(own, "n_match"),
                                                                       whole(own, "n_min"), drafter_texts(cell, "past")}));
                });
}

TheoryEntry ngram_cache_theory() {
  return copied("ngram_cache", "the continuation that followed the text's last tokens often and consistently enough",
                "llama.cpp, common/ngram-cache.cpp", [](const spec::Cell& cell, const config::Arguments&) {
                  return follow_history(cell, theory::ngram_cache_draft({draft_length(cell), drafter_texts(cell, "statistics"),
                                                                         drafter_texts(cell, "past")}));
                });
}

TheoryEntry ngram_map_k_theory() {
  return copied("ngram_map_k",
                "the tokens after an earlier occurrence of the text's last tokens in a map, as many as were accepted before",
                "llama.cpp, common/ngram-map.cpp", [](const spec::Cell& cell, const config::Arguments& own) {
                  return follow_history(cell, theory::ngram_map_draft({draft_length(cell), whole(own, "size_n"), 0, false}));
                });
}

TheoryEntry ngram_map_k4v_theory() {
  return copied("ngram_map_k4v",
                "the most frequent continuation of the text's last tokens, as many tokens as were accepted before",
                "llama.cpp, common/ngram-map.cpp", [](const spec::Cell& cell, const config::Arguments& own) {
                  return follow_history(
                      cell, theory::ngram_map_draft({draft_length(cell), whole(own, "size_n"), whole(own, "min_hits"), true}));
                });
}

}  // namespace specsim::judge
