#include "sim/rounds/draft/drafter.h"

namespace specsim::draft {

// To add a drafter, add one line here and one file in this folder.
#define SPECSIM_DRAFTERS(X) \
  X(chain)                  \
  X(tree_static)            \
  X(tree_sequoia)           \
  X(tree_ranked)            \
  X(tree_dynamic)           \
  X(medusa)                 \
  X(eagle)                  \
  X(early_exit)             \
  X(parallel)               \
  X(lookahead)              \
  X(prompt_lookup)          \
  X(suffix)                 \
  X(suffix_decoding)        \
  X(mtp)                    \
  X(eagle3)                 \
  X(pard)                   \
  X(dflash)                 \
  X(dspark)                 \
  X(dflash2)                \
  X(domino)                 \
  X(ddtree)                 \
  X(caddtree)               \
  X(jetspec)                \
  X(hybrid)                 \
  X(rest)                   \
  X(opt_tree)               \
  X(spec_exec)              \
  X(dyspec)                 \
  X(token_recycling)        \
  X(sam_decoding)           \
  X(hydra)                  \
  X(redrafter)              \
  X(cs_drafting)            \
  X(sglang_ngram)           \
  X(ngram_simple)           \
  X(ngram_mod)              \
  X(ngram_cache)            \
  X(ngram_map_k)            \
  X(ngram_map_k4v)          \
  X(saguaro)                \
  X(in_turn)

#define SPECSIM_DECLARE(name) DrafterEntry name##_drafter();
SPECSIM_DRAFTERS(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE

config::Registry<DrafterEntry>& drafters() {
#define SPECSIM_ENTRY(name) name##_drafter(),
  static config::Registry<DrafterEntry> registry("drafter", {SPECSIM_DRAFTERS(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

}  // namespace specsim::draft
