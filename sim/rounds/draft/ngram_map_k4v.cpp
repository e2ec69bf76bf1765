#include "sim/rounds/draft/ngram_map.h"

namespace specsim::draft {

DrafterEntry ngram_map_k4v_drafter() {
  struct P {
    int draft_length = 48;
    int size_n = 12;
    int min_hits = 1;
  };
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens of a continuation, the most that are copied (spec-ngram-map-k4v-size-m)",
       config::between(1, kMaxDraftLength)},
      {"size_n", &P::size_n, "last tokens to look for (spec-ngram-map-k4v-size-n)", config::between(1, 64)},
      {"min_hits", &P::min_hits, "rounds that must find the text's end before it is used (spec-ngram-map-k4v-min-hits)",
       config::between(1, 16380)},
  };
  return {{"ngram_map_k4v",
           "like ngram_map_k, but drafts only if one of up to four continuations is much more common than the others",
           "llama.cpp, --spec-type ngram-map-k4v: ggml-org/llama.cpp, common/ngram-map.cpp, common/speculative.cpp, commit "
           "e6ab7c1 (b11118, September 2026); pull requests 18471 and 19253",
           fields, "", "draft_length: 3, size_n: 1"},
          [](const config::Arguments& arguments, Diagnostics&) {
            const P params = fields.read(arguments);
            return std::make_shared<NgramMap>(NgramMapRule{params.draft_length, params.size_n, params.min_hits, true});
          },
          true};
}

}  // namespace specsim::draft
