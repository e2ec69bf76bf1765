#include "sim/rounds/draft/ngram_map.h"

namespace specsim::draft {

DrafterEntry ngram_map_k_drafter() {
  struct P {
    int draft_length = 48;
    int size_n = 12;
  };
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "maximum number of tokens copied (spec-ngram-map-k-size-m)",
       config::between(1, kMaxDraftLength)},
      {"size_n", &P::size_n, "last tokens to look for (spec-ngram-map-k-size-n)", config::between(1, 64)},
  };
  return {
      {"ngram_map_k", "copies what followed the last tokens if a map finds them, and never more than was accepted there before",
       "llama.cpp, --spec-type ngram-map-k: ggml-org/llama.cpp, common/ngram-map.cpp, common/speculative.cpp, commit e6ab7c1 "
       "(b11118, September 2026); pull requests 18471 and 19253",
       fields, "", "draft_length: 3, size_n: 1"},
      [](const config::Arguments& arguments, Diagnostics&) {
        const P params = fields.read(arguments);
        return std::make_shared<NgramMap>(NgramMapRule{params.draft_length, params.size_n, 0, false});
      },
      true};
}

}  // namespace specsim::draft
