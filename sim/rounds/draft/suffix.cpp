#include "sim/rounds/draft/suffix_scores.h"
#include "sim/rounds/draft/text_match.h"

#include <algorithm>
#include <optional>

namespace specsim::draft {

namespace {

class Suffix final : public TextDrafter {
 public:
  Suffix(int draft_length, int longest, double factor, double least)
      : TextDrafter(draft_length, draft_length), longest_(longest), factor_(factor), least_(least) {}

  void choose(Sight& sight, Memory* /*memory*/, ChosenBlock& block) const override {
    const std::span<const Token> text = sight.text();
    // Every earlier place that the longest repeated end of the text stands at.
    std::vector<std::size_t> ends;
    std::size_t length = 0;
    for (std::size_t end = 1; end < text.size(); ++end) {
      const std::size_t own = match_length(text, end, static_cast<std::size_t>(longest_));
      if (own > length) ends.clear();
      length = std::max(length, own);
      if (own == length && own > 0) ends.push_back(end);
    }
    const auto most = std::min<std::size_t>(static_cast<std::size_t>(shape().draft_length),
                                            static_cast<std::size_t>(factor_ * static_cast<double>(length)));
    std::vector<Token> path;
    double probability = 1.0;
    while (path.size() < most && !ends.empty()) {
      std::vector<Token> nexts;
      for (const std::size_t end : ends)
        if (end + path.size() < text.size()) nexts.push_back(text[end + path.size()]);
      const std::optional<Followed> best = commonest_next(nexts);
      if (!best) break;
      probability *= static_cast<double>(best->times) / static_cast<double>(ends.size());
      if (probability < least_) break;
      std::erase_if(ends,
                    [&](std::size_t end) { return end + path.size() >= text.size() || text[end + path.size()] != best->token; });
      path.push_back(best->token);
    }
    add_paths(block, {path});
  }

 private:
  int longest_;
  double factor_;
  double least_;
};

}  // namespace

DrafterEntry suffix_drafter() {
  return {
      {"suffix",
       "goes on as the text did after the longest earlier stretch that ends as it does now",
       "Oliaro et al. (SuffixDecoding), arXiv 2411.04975",
       {{"draft_length", config::Type::integer, {}, "tokens at most", config::between(1, kMaxDraftLength), {}},
        {"max_match", config::Type::integer, "16", "length of the end that is looked for, at most", config::between(1, 256), {}},
        {"factor",
         config::Type::number,
         "2",
         "drafts factor times the match's length at most",
         config::Interval{0, 64, true, false},
         {}},
        {"least",
         config::Type::number,
         "0.1",
         "stops where the path's share of the matches falls below",
         config::between(0, 1),
         {}}},
       "No draft model. Of the places where the longest match stands, the commonest next token is followed, then the commonest "
       "after it; the paper leaves open which of equals, here it is suffix_decoding's. A tree of suffixes finds the same places "
       "faster. What Arctic Inference and vLLM ship scores every length of "
       "the end: suffix_decoding. "
       "It pays where text repeats itself, as suffix_decoding does; no measurement that separates the two is "
       "known here, for what was measured is the shipped one. On text that does not repeat itself it drafts "
       "next to nothing, and neither gains nor costs much."},
      [](const config::Arguments& arguments, Diagnostics&) {
        const auto draft_length = static_cast<int>(arguments.integer("draft_length"));
        return std::make_shared<Suffix>(draft_length, static_cast<int>(arguments.integer("max_match")),
                                        arguments.number("factor"), arguments.number("least"));
      },
      true};
}

}  // namespace specsim::draft
