#include "sim/rounds/draft/text_match.h"

#include <algorithm>

namespace specsim::draft {

namespace {

class NgramSimple final : public TextDrafter {
 public:
  struct Params {
    int draft_length = 48;
    std::size_t size_n = 12;
  };
  explicit NgramSimple(const Params& params) : TextDrafter(params.draft_length, params.draft_length), size_(params.size_n) {}
  void choose(DrafterInput& input, Memory* /*memory*/, ChosenBlock& block) const override {
    const std::span<const Token> text = input.text();
    const auto most = static_cast<std::size_t>(shape().draft_length);
    // The program's list is the text without its newest token, which is passed separately, and a copy ends with the list.
    if (text.size() <= size_ + most + 2) return;
    const std::size_t listed = text.size() - 1;
    std::size_t found = listed;
    for (std::size_t end = listed - 1; end > size_ && found == listed; --end)  // a match at the very beginning is not used
      if (match_length(text, end, size_) == size_) found = end;
    const std::size_t length = std::min(most, listed - found);
    if (length < size_) return;
    const std::span<const Token> copy = text.subspan(found, length);
    add_paths(block, {std::vector<Token>(copy.begin(), copy.end())});
  }

 private:
  std::size_t size_;
};

}  // namespace

DrafterEntry ngram_simple_drafter() {
  using P = NgramSimple::Params;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "maximum number of tokens copied (spec-ngram-simple-size-m)",
       config::between(1, kMaxDraftLength)},
      {"size_n", &P::size_n, "last tokens to look for (spec-ngram-simple-size-n)", config::between(1, 64)},
  };
  return {{"ngram_simple", "copies what followed the last occurrence of the text's last tokens, if enough follows there",
           "llama.cpp, --spec-type ngram-simple: ggml-org/llama.cpp, common/ngram-map.cpp, commit 6870ab7, pull request 18471",
           fields, "", "draft_length: 3, size_n: 1"},
          [](const config::Arguments& arguments, Diagnostics&) { return std::make_shared<NgramSimple>(fields.read(arguments)); },
          true};
}

}  // namespace specsim::draft
