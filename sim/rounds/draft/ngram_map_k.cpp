#include "sim/rounds/draft/ngram_map.h"

namespace specsim::draft {

DrafterEntry ngram_map_k_drafter() {
  struct P {
    int draft_length = 48;
    int size_n = 12;
  };
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens copied at most (spec-ngram-map-k-size-m)", config::between(1, kMaxDraftLength)},
      {"size_n", &P::size_n, "last tokens to look for (spec-ngram-map-k-size-n)", config::between(1, 64)},
  };
  return {
      {"ngram_map_k",
       "copies what followed the text's last tokens where a map has them, and never more again than was accepted there",
       "llama.cpp, --spec-type ngram-map-k: ggml-org/llama.cpp, common/ngram-map.cpp, common/speculative.cpp, commit e6ab7c1 "
       "(b11118, September 2026); pull requests 18471 and 19253",
       fields,
       "No draft model. Exactly size_n tokens are looked for: first in a table of 262,144 places, which keeps of the n-grams of "
       "one place the one that came first, then from the end in what the table has not been offered yet. So the prompt's last "
       "place is found, or else the first that was emitted, and is kept from then on; of two n-grams of one place in the table "
       "the "
       "later one is lost. No end is found at the text's very beginning, nor where it begins in the last size_n + draft_length + "
       "1 "
       "tokens of the prompt, nor where at most draft_length tokens and the newest follow it. Nothing is drafted while the text "
       "has "
       "at most 2 size_n + draft_length tokens. Each end remembers how much of its last draft was accepted, and drafts no more "
       "than "
       "that the next time: drafts shrink and do not grow again, and an end of whose draft nothing was accepted is never drafted "
       "behind again. spec-ngram-map-k-min-hits is not a key: the program reads it and does not look at it here. What a slot "
       "keeps "
       "of requests before is left out. "
       "It pays where code is written again: gpt-oss-120b made 446 tokens a second instead of 181 when it translated a script's "
       "comments, with this drafter's forerunner (pull request 18471). Where little is repeated it does not: it lost on "
       "summaries by Qwen3.6-35B-A3B on an RTX 5060 Ti, at 12 % accepted (r/LocalLLaMA, May 2026).",
       "draft_length: 3, size_n: 1"},
      [](const config::Arguments& arguments, Diagnostics&) {
        const P params = fields.read(arguments);
        return std::make_shared<NgramMap>(NgramMapRule{params.draft_length, params.size_n, 0, false});
      },
      true};
}

}  // namespace specsim::draft
