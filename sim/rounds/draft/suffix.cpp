#include "sim/rounds/draft/suffix_scores.h"
#include "sim/rounds/draft/text_match.h"

#include <algorithm>
#include <optional>

namespace specsim::draft {

namespace {

class Suffix final : public TextDrafter {
 public:
  struct Params {
    int draft_length = 0;
    std::size_t max_match = 16;
    double factor = 2.0;
    double least = 0.1;
  };
  explicit Suffix(const Params& params) : TextDrafter(params.draft_length, params.draft_length), params_(params) {}

  void choose(DrafterInput& input, Memory* /*memory*/, ChosenBlock& block) const override {
    const std::span<const Token> text = input.text();
    // Every earlier place at which the longest repeated suffix of the text ends.
    std::vector<std::size_t> ends;
    std::size_t length = 0;
    for (std::size_t end = 1; end < text.size(); ++end) {
      const std::size_t own = match_length(text, end, params_.max_match);
      if (own > length) ends.clear();
      length = std::max(length, own);
      if (own == length && own > 0) ends.push_back(end);
    }
    const auto most = std::min<std::size_t>(static_cast<std::size_t>(shape().draft_length),
                                            static_cast<std::size_t>(params_.factor * static_cast<double>(length)));
    std::vector<Token> path;
    double probability = 1.0;
    while (path.size() < most && !ends.empty()) {
      std::vector<Token> nexts;
      for (const std::size_t end : ends)
        if (end + path.size() < text.size()) nexts.push_back(text[end + path.size()]);
      const std::optional<NextToken> best = commonest_next(nexts);
      if (!best) break;
      probability *= static_cast<double>(best->times) / static_cast<double>(ends.size());
      if (probability < params_.least) break;
      std::erase_if(ends,
                    [&](std::size_t end) { return end + path.size() >= text.size() || text[end + path.size()] != best->token; });
      path.push_back(best->token);
    }
    add_paths(block, {path});
  }

 private:
  Params params_;
};

}  // namespace

DrafterEntry suffix_drafter() {
  using P = Suffix::Params;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens at most", config::between(1, kMaxDraftLength), config::required},
      {"max_match", &P::max_match, "longest suffix of the text that is searched for, in tokens", config::between(1, 256)},
      {"factor", &P::factor, "drafts at most factor times the match's length", config::above(0, 64)},
      {"least", &P::least, "stops where the path's share of the matches falls below", config::between(0, 1)},
  };
  return {{"suffix", "continues the text as it continued after the longest earlier match of its suffix",
           "Oliaro et al. (SuffixDecoding), arXiv 2411.04975", fields},
          [](const config::Arguments& arguments, Diagnostics&) { return std::make_shared<Suffix>(fields.read(arguments)); },
          true};
}

}  // namespace specsim::draft
