#include "sim/rounds/draft/suffix_scores.h"
#include "sim/rounds/draft/text_match.h"

#include <utility>

namespace specsim::draft {

namespace {

class SuffixDecoding final : public TextDrafter {
 public:
  explicit SuffixDecoding(SuffixScores scores) : TextDrafter(scores.draft_length, scores.draft_length), own_(std::move(scores)) {}
  void choose(Sight& sight, Memory* /*memory*/, ChosenBlock& block) const override {
    add_paths(block, {suffix_continuation(sight, own_).path});
  }

 private:
  SuffixScores own_;
};

}  // namespace

DrafterEntry suffix_decoding_drafter() {
  using P = SuffixScores;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens at most", config::between(1, kMaxDraftLength)},
      {"max_tree_depth", &P::depth, "length of the end that is looked for and of the draft together, at most",
       config::between(2, 256)},
      {"factor", &P::factor, "drafts factor times the match's length, and offset, at most", config::between(0, 64)},
      {"offset", &P::offset, "see factor", config::between(-64, 64)},
      {"least", &P::least, "stops where the path's share of the matches falls below", config::between(0, 1)},
      {"past", &P::past, "responses of earlier requests, as tokens", config::at_least(0), config::optional},
  };
  return {
      {"suffix_decoding", "goes on as the text, or past responses, did after the end whose continuation promises most tokens",
       "Oliaro et al. (SuffixDecoding), arXiv 2411.04975, as shipped: snowflakedb/ArcticInference, "
       "csrc/suffix_decoding/suffix_tree.cc, "
       "commit 9d46438, arctic_inference/suffix_decoding/cache.py, commit 21fa211; vLLM, method suffix",
       fields,
       "No draft model. Each length of the text's end is tried: of the places where it stands, the end itself among them, "
       "the commonest next token is followed, then the commonest after it (of equals the first that was seen where each was seen "
       "once, else the one at the head of the tree's list of children, which goes by when counts were reached); a token's share "
       "is the part of the places that "
       "lead to it, and the end whose draft has the largest sum of shares wins, the longest of equals. Once in prompt and "
       "text, once in what was emitted together with past responses, which wins if it scores more. The rule that goes by the "
       "longest match alone is suffix. The defaults are vLLM's (suffix_decoding_max_tree_depth, and as many tokens); Arctic "
       "Inference's own plugin has max_tree_depth 64 (suffix_cache_max_depth) and draft_length 16. "
       "It pays where requests resemble each other: its authors report up to 5.3 times plain decoding in "
       "agents' work, at best 2.8 times EAGLE-2 and 3 and 1.9 times Token Recycling; under vLLM on an H200 "
       "it was ahead of n-gram lookup in nearly every cell of Spec-Bench and Blazedit (vLLM pull request "
       "25784). On open text it gains little; Arctic Inference's issue 204 says that looking up costs in "
       "large batches.",
       "draft_length: 2"},
      [](const config::Arguments& arguments, Diagnostics& diagnostics) {
        check_tokens(arguments, "past", diagnostics);
        return std::make_shared<SuffixDecoding>(fields.read(arguments));
      },
      true};
}

}  // namespace specsim::draft
