#include "sim/draft/text_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace specsim::draft {

namespace {

// One occurrence of the end that is looked for.
struct Occurrence {
  const Token* begin = nullptr;  // its first token
  const Token* next = nullptr;   // the token behind it
  std::span<const Token> in;
};

struct Continuation {
  std::vector<Token> path;
  double score = 0.0;
};

class SuffixDecoding final : public TextDrafter {
 public:
  struct Settings {
    int depth = 0;
    double factor = 0.0;
    double offset = 0.0;
    double least = 0.0;
    std::vector<std::vector<Token>> past;
  };
  SuffixDecoding(int draft_length, Settings settings) : TextDrafter(draft_length, draft_length), own_(std::move(settings)) {}

  void choose(Sight& sight, Memory* /*memory*/, ChosenBlock& block) const override {
    const std::span<const Token> text = sight.text();
    const std::span<const Token> pattern = text.last(std::min(text.size(), static_cast<std::size_t>(own_.depth)));
    Continuation best = best_of({text}, pattern);
    std::vector<std::span<const Token>> responses(own_.past.begin(), own_.past.end());
    responses.push_back(text.subspan(std::min(sight.prompt_tokens(), text.size())));
    Continuation global = best_of(responses, pattern);
    if (global.score > best.score) best = std::move(global);
    add_paths(block, {best.path});
  }

 private:
  // The continuation of the highest score over all lengths of the pattern's end, the longest of equals.
  [[nodiscard]] Continuation best_of(const std::vector<std::span<const Token>>& corpus, std::span<const Token> pattern) const {
    Continuation best;
    std::vector<Occurrence> all;
    for (std::size_t length = 1; length < pattern.size(); ++length) {
      const Token first = pattern[pattern.size() - length];
      if (length == 1) {
        for (const std::span<const Token> in : corpus)
          for (const Token& token : in)
            if (token == first) all.push_back({&token, &token + 1, in});
      } else {
        std::erase_if(all, [&](const Occurrence& one) { return one.begin == one.in.data() || *(one.begin - 1) != first; });
        for (Occurrence& one : all) --one.begin;
      }
      if (all.empty()) break;
      const double wanted = std::floor(static_cast<double>(length) * own_.factor + own_.offset + 1e-6);
      // The tree is as deep as what is looked for and what follows it together.
      const double most = std::min({wanted, static_cast<double>(shape().draft_length), own_.depth - static_cast<double>(length)});
      Continuation own = follow(all, most);
      if (own.score >= best.score) best = std::move(own);
    }
    return best;
  }

  // The commonest next token, and the commonest after it, the lower of equals; the score is the sum of the paths' shares.
  [[nodiscard]] Continuation follow(std::vector<Occurrence> all, double most) const {
    Continuation result;
    double share = 1.0;
    while (static_cast<double>(result.path.size()) < most) {
      std::map<Token, std::size_t> counts;
      for (const Occurrence& one : all)
        if (one.next != one.in.data() + one.in.size()) ++counts[*one.next];
      if (counts.empty()) break;
      const auto commonest =
          std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      share *= static_cast<double>(commonest->second) / static_cast<double>(all.size());
      if (share < own_.least) break;
      const Token token = commonest->first;
      std::erase_if(all, [&](const Occurrence& one) { return one.next == one.in.data() + one.in.size() || *one.next != token; });
      for (Occurrence& one : all) ++one.next;
      result.path.push_back(token);
      result.score += share;
    }
    return result;
  }

  Settings own_;
};

}  // namespace

DrafterEntry suffix_decoding_drafter() {
  return {{"suffix_decoding",
           "goes on as the text, or past responses, did after the end whose continuation promises most tokens",
           "Oliaro et al. (SuffixDecoding), arXiv 2411.04975, as shipped: snowflakedb/ArcticInference, "
           "csrc/suffix_decoding/suffix_tree.cc, "
           "commit 0a11e6a, arctic_inference/suffix_decoding/cache.py, commit 21fa211; vLLM, method suffix",
           {{"draft_length", config::Type::integer, "24", "tokens at most", config::between(1, kMaxDraftLength), {}},
            {"max_tree_depth",
             config::Type::integer,
             "24",
             "length of the end that is looked for and of the draft together, at most",
             config::between(2, 256),
             {}},
            {"factor",
             config::Type::number,
             "1",
             "drafts factor times the match's length, and offset, at most",
             config::between(0, 64),
             {}},
            {"offset", config::Type::number, "0", "see factor", config::between(-64, 64), {}},
            {"least",
             config::Type::number,
             "0.1",
             "stops where the path's share of the matches falls below",
             config::between(0, 1),
             {}},
            {"past", config::Type::number_table, "", "responses of earlier requests, as tokens", config::at_least(0), {}}},
           "No draft model. Each length of the text's end is tried: of the places where it stands, the end itself among them, "
           "the commonest next token is followed, then the commonest after it; a token's share is the part of the places that "
           "lead to it, and the end whose draft has the largest sum of shares wins, the longest of equals. Once in prompt and "
           "text, once in what was emitted together with past responses, which wins if it scores more. The rule that goes by the "
           "longest match alone is suffix.",
           "draft_length: 2"},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            const auto draft_length = static_cast<int>(arguments.integer("draft_length"));
            SuffixDecoding::Settings settings{static_cast<int>(arguments.integer("max_tree_depth")),
                                              arguments.number("factor"),
                                              arguments.number("offset"),
                                              arguments.number("least"),
                                              {}};
            if (arguments.has("past"))
              for (const std::vector<double>& response : arguments.table("past")) {
                std::vector<Token>& own = settings.past.emplace_back();
                for (const double token : response) {
                  if (token != std::floor(token) || token >= kMaxVocab)
                    diagnostics.add(arguments.where("past"),
                                    fmt::format("past has token {:g}, allowed: whole numbers below {}", token, kMaxVocab));
                  else
                    own.push_back(static_cast<Token>(token));
                }
              }
            return Draft{{draft_length, false}, std::make_shared<SuffixDecoding>(draft_length, std::move(settings))};
          },
          true};
}

}  // namespace specsim::draft
