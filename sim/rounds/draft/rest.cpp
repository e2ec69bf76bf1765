#include "sim/rounds/draft/text_match.h"
#include "sim/rounds/draft/tree_config.h"

#include <algorithm>
#include <map>
#include <utility>

namespace specsim::draft {

namespace {

class Rest final : public TextDrafter {
 public:
  struct Params {
    std::vector<std::vector<Token>> datastore;
    std::size_t longest = 16;
    std::size_t shortest = 2;
    int draft_length = 10;
    int nodes = 64;
  };
  explicit Rest(Params params) : TextDrafter(params.draft_length, params.nodes), params_(std::move(params)) {}

  void choose(DrafterInput& input, Memory* /*memory*/, ChosenBlock& block) const override {
    const std::span<const Token> text = input.text();
    for (std::size_t length = std::min(params_.longest, text.size()); length >= params_.shortest; --length) {
      std::map<std::vector<Token>, std::size_t> counts;  // how often each prefix follows the text's last `length` tokens
      if (!count(text.last(length), counts)) continue;
      std::vector<std::pair<std::size_t, std::vector<Token>>> beginnings;
      for (const auto& [tokens, times] : counts) beginnings.emplace_back(times, tokens);
      // No prefix is more common than its own prefixes, so the first n of them form a tree.
      std::stable_sort(beginnings.begin(), beginnings.end(), [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : a.second.size() < b.second.size();
      });
      if (beginnings.size() > static_cast<std::size_t>(shape().nodes)) beginnings.resize(static_cast<std::size_t>(shape().nodes));
      std::vector<std::vector<Token>> paths;
      for (auto& [times, tokens] : beginnings) paths.push_back(std::move(tokens));
      return add_paths(block, paths);
    }
  }

 private:
  // False if the pattern occurs nowhere.
  bool count(std::span<const Token> pattern, std::map<std::vector<Token>, std::size_t>& counts) const {
    bool found = false;
    for (const std::vector<Token>& document : params_.datastore) {
      for (auto at = document.begin();; ++at) {
        at = std::search(at, document.end(), pattern.begin(), pattern.end());
        if (at == document.end()) break;
        found = true;
        std::vector<Token> beginning;
        for (auto next = at + static_cast<std::ptrdiff_t>(pattern.size());
             next != document.end() && beginning.size() < static_cast<std::size_t>(shape().draft_length); ++next) {
          beginning.push_back(*next);
          ++counts[beginning];
        }
      }
    }
    return found;
  }

  Params params_;
};

}  // namespace

DrafterEntry rest_drafter() {
  using P = Rest::Params;
  static const config::Fields<P> fields = {
      {"datastore", &P::datastore, "documents, as tokens: texts similar to those that are decoded", config::at_least(0),
       config::required},
      {"longest", &P::longest, "tokens of the longest suffix of the text that is searched for", config::between(1, 256)},
      {"shortest", &P::shortest, "tokens of the shortest one; if it is not found, nothing is drafted", config::between(1, 256)},
      {"draft_length", &P::draft_length, "maximum number of tokens of a path", config::between(1, kMaxDraftLength)},
      {"nodes", &P::nodes, "maximum number of continuations that are drafted", config::between(1, kMaxNodes)},
  };
  return {{"rest",
           "REST retrieves from a datastore what followed the longest suffix of the text, and drafts the most common ones as a "
           "tree",
           "He et al. (REST), arXiv 2311.08252; FasterDecoding/REST, DraftRetriever/src/lib.rs (search), commit 05f57b0", fields,
           "", "datastore: [[0, 1, 0, 2, 1, 0, 0, 1, 0, 2]], shortest: 1"},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            check_tokens(arguments, "datastore", diagnostics);
            return std::make_shared<Rest>(fields.read(arguments));
          }};
}

}  // namespace specsim::draft
