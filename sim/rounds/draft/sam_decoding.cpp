#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/recycled.h"
#include "sim/rounds/draft/text_match.h"
#include "sim/rounds/draft/tree_config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace specsim::draft {

namespace {

// The first place at which the longest suffix of the text occurs, as the suffix automaton of a sequence reports it. No automaton
// is built: the suffixes that earlier places share with the text give the same answer.
struct FirstPlace {
  std::size_t length = 0;  // length of the shared suffix; 0: none
  std::size_t next = 0;    // place behind it
};

// shared[i]: how many tokens before place i + 1 equal the text's last ones.
std::vector<std::size_t> shared_ends(std::span<const Token> sequence, std::span<const Token> text) {
  std::vector<std::size_t> shared(sequence.size(), 0);
  for (std::size_t end = 1; end <= sequence.size(); ++end) {
    std::size_t length = 0;
    while (length < std::min(end, text.size()) && sequence[end - 1 - length] == text[text.size() - 1 - length]) ++length;
    shared[end - 1] = length;
  }
  return shared;
}

FirstPlace first_of(const std::vector<std::size_t>& shared, std::size_t length) {
  for (std::size_t i = 0; length > 0 && i < shared.size(); ++i)
    if (shared[i] >= length) return {length, i + 1};
  return {};
}

// The program's tree of 60 tokens for recycling (token_recycle.json), level by level: the children of each node.
tokens::Tree sam_recycling_tree() {
  constexpr std::array<int, 54> kChildren = {7, 6, 5, 3, 2, 2, 1, 1, 3, 2, 2, 1, 1, 0, 3, 2, 1, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1,
                                             0, 2, 1, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 1, 0, 1};
  tokens::Tree tree;
  for (std::size_t node = 0; node < kChildren.size(); ++node)
    for (int rank = 0; rank < kChildren[node]; ++rank) tree.add(static_cast<int>(node), rank);
  return tree;
}

class SamDecoding final : public BlockDrafter {
 public:
  struct Params {
    int draft_length = 39;
    int threshold = 5;
    double bias = 5.0;
    std::vector<std::vector<Token>> corpus;
    bool recycles = true;
    int kept = 8;
  };
  explicit SamDecoding(Params params) : params_(std::move(params)) {
    if (params_.recycles) tree_ = sam_recycling_tree();
    shape_.siblings = tokens::Siblings::point_mass;
    shape_.draft_length = std::max(params_.draft_length, tree_.height());
    shape_.nodes = std::max(params_.draft_length, tree_.drafted());
    shape_.target_ranks = params_.recycles ? params_.kept : 0;
    shape_.reads_text = true;
    shape_.looks_past_block = params_.recycles;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }
  [[nodiscard]] std::unique_ptr<Memory> start() const override {
    return params_.recycles ? std::make_unique<RecycledMemory>() : nullptr;
  }

  void choose(DrafterInput& input, Memory* memory, ChosenBlock& block) const override {
    const std::span<const Token> text = input.text();
    if (const std::vector<Token> copy = copied(text); !copy.empty())
      add_paths(block, {copy});
    else if (params_.recycles && !text.empty())
      recycled_tree(tree_, static_cast<RecycledMemory&>(*memory), text.back(), block);
    if (params_.recycles) recycle(input, block, static_cast<RecycledMemory&>(*memory));
  }

  [[nodiscard]] BlockWork work(int nodes) const override { return {{}, 1.0 + nodes}; }

 private:
  // The tokens that followed the longest suffix, in the text or in the corpus; empty if the suffix is too short.
  [[nodiscard]] std::vector<Token> copied(std::span<const Token> text) const {
    if (text.empty()) return {};
    const auto most = static_cast<std::size_t>(params_.draft_length);
    const std::span<const Token> history = text.first(text.size() - 1);  // the newest token is not in the automaton yet
    const std::vector<std::size_t> shared = shared_ends(history, text);
    FirstPlace own = first_of(shared, shared.empty() ? 0 : *std::max_element(shared.begin(), shared.end()));
    FirstPlace other;
    std::span<const Token> document;
    for (const std::vector<Token>& one : params_.corpus) {
      const std::vector<std::size_t> ends = shared_ends(one, text);
      const std::size_t longest = ends.empty() ? 0 : *std::max_element(ends.begin(), ends.end());
      if (longest <= other.length) continue;
      other = first_of(ends, longest);
      document = one;
    }
    const auto length = static_cast<double>(own.length);
    const double biased = static_cast<double>(other.length) - params_.bias;
    if (std::max(length, biased) < static_cast<double>(params_.threshold)) return {};
    if (length < biased) {
      const std::span<const Token> rest = document.subspan(other.next);
      return {rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(std::min(most, rest.size()))};
    }
    // Takes shorter suffixes, which occur earlier, while fewer tokens follow than are drafted.
    while (own.length > 0 && history.size() - own.next <= most) {
      std::size_t shorter = 0;
      for (const std::size_t one : shared)
        if (one < own.length) shorter = std::max(shorter, one);
      if (shorter == 0) break;
      own = first_of(shared, shorter);
    }
    if (own.length == 0) return {};
    const std::span<const Token> rest = history.subspan(own.next);
    return {rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(std::min(most, rest.size()))};
  }

  Shape shape_;
  Params params_;
  tokens::Tree tree_;
};

}  // namespace

DrafterEntry sam_decoding_drafter() {
  using P = SamDecoding::Params;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "maximum number of tokens copied (n_predicts of 40, which counts the text's last token)",
       config::between(1, kMaxDraftLength)},
      {"threshold", &P::threshold, "shortest match that is copied (len_threshold)", config::between(1, 256)},
      {"bias", &P::bias, "tokens by which a match in the corpus must be longer than one in the text (len_bias)",
       config::between(0, 256)},
      {"corpus", &P::corpus, "documents, as tokens, that the static automaton is built of", config::at_least(0),
       config::optional},
      {"otherwise", &P::recycles, "the drafter to use if no match is long enough",
       config::one_of<bool>({{"token_recycling", true}, {"nothing", false}})},
      {"kept", &P::kept, "number of likeliest followers that token_recycling keeps for each token", config::between(1, 64)},
  };
  return {{"sam_decoding",
           "copies what followed the longest earlier match of the text's end, in the text or in a corpus, found by "
           "suffix automata",
           "Hu et al. (SAM Decoding), arXiv 2411.10666; hyx1999/SAM-Decoding, samd/draft.py, samd/sam/dyn_sam.py, "
           "samd/sam/static_sam.py, commit 18c41f0",
           fields, "", "threshold: 1, draft_length: 3"},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            check_tokens(arguments, "corpus", diagnostics);
            return std::make_shared<SamDecoding>(fields.read(arguments));
          }};
}

}  // namespace specsim::draft
