#include "sim/rounds/draft/suffix_scores.h"
#include "sim/rounds/draft/text_match.h"

#include <utility>

namespace specsim::draft {

namespace {

class SuffixDecoding final : public TextDrafter {
 public:
  explicit SuffixDecoding(SuffixScores scores) : TextDrafter(scores.draft_length, scores.draft_length), own_(std::move(scores)) {}
  void choose(DrafterInput& input, Memory* /*memory*/, ChosenBlock& block) const override {
    add_paths(block, {suffix_continuation(input, own_).path});
  }

 private:
  SuffixScores own_;
};

}  // namespace

DrafterEntry suffix_decoding_drafter() {
  using P = SuffixScores;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens at most", config::between(1, kMaxDraftLength)},
      {"max_tree_depth", &P::depth, "longest suffix that is searched for and its draft together, in tokens",
       config::between(2, 256)},
      {"factor", &P::factor, "drafts at most factor times the match's length, plus offset", config::between(0, 64)},
      {"offset", &P::offset, "see factor", config::between(-64, 64)},
      {"least", &P::least, "stops where the path's share of the matches falls below", config::between(0, 1)},
      {"past", &P::past, "responses of earlier requests, as tokens", config::at_least(0), config::optional},
  };
  return {{"suffix_decoding",
           "looks up the current suffix in the text and in past responses, and proposes the most likely "
           "continuation",
           "Oliaro et al. (SuffixDecoding), arXiv 2411.04975, as shipped: snowflakedb/ArcticInference, "
           "csrc/suffix_decoding/suffix_tree.cc, commit 9d46438, arctic_inference/suffix_decoding/cache.py, commit 21fa211; "
           "vLLM, method suffix",
           fields, "", "draft_length: 2"},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            check_tokens(arguments, "past", diagnostics);
            return std::make_shared<SuffixDecoding>(fields.read(arguments));
          },
          true};
}

}  // namespace specsim::draft
