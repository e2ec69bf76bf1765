#include "sim/rounds/draft/text_match.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::draft {

namespace {

class PromptLookup final : public TextDrafter {
 public:
  struct Params {
    int draft_length = 0;
    int max_ngram = 3;
    int min_ngram = 1;
  };
  explicit PromptLookup(const Params& params)
      : TextDrafter(params.draft_length, params.draft_length), longest_(params.max_ngram), shortest_(params.min_ngram) {}
  void choose(DrafterInput& input, Memory* /*memory*/, ChosenBlock& block) const override {
    const std::span<const Token> text = input.text();
    const auto longest = static_cast<std::size_t>(longest_);
    std::size_t longest_found = static_cast<std::size_t>(shortest_) - 1;
    std::size_t found = text.size();
    for (std::size_t end = 1; end < text.size() && longest_found < longest; ++end) {
      const std::size_t length = match_length(text, end, longest);
      if (length <= longest_found) continue;
      longest_found = length;
      found = end;
    }
    const std::size_t last = std::min(found + static_cast<std::size_t>(shape().draft_length), text.size());
    if (found < last)
      add_paths(block, {std::vector<Token>(text.begin() + static_cast<std::ptrdiff_t>(found),
                                           text.begin() + static_cast<std::ptrdiff_t>(last))});
  }

 private:
  int longest_;
  int shortest_;
};

}  // namespace

DrafterEntry prompt_lookup_drafter() {
  using P = PromptLookup::Params;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "maximum number of tokens copied", config::between(1, kMaxDraftLength),
       config::required},
      {"max_ngram", &P::max_ngram, "last tokens to search for, at first", config::between(1, 64)},
      {"min_ngram", &P::min_ngram, "last tokens to search for, at least", config::between(1, 64)},
  };
  return {{"prompt_lookup", "copies what followed an earlier occurrence of the last tokens, in the prompt or the text",
           "Saxena, prompt lookup decoding, 2023; Hugging Face transformers, prompt_lookup_num_tokens", fields},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            const P params = fields.read(arguments);
            if (params.min_ngram > params.max_ngram)
              diagnostics.add(arguments.where("min_ngram"),
                              fmt::format("min_ngram is {} with max_ngram {}, allowed: at most max_ngram", params.min_ngram,
                                          params.max_ngram));
            return std::make_shared<PromptLookup>(params);
          },
          true};
}

}  // namespace specsim::draft
