#include "sim/rounds/draft/text_match.h"
#include "sim/rounds/draft/tree_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <queue>
#include <utility>

namespace specsim::draft {

namespace {

// The inserted strings of tokens and their prefixes.
class Trie {
 public:
  using Place = std::uint32_t;  // a string; 0: the empty one, or none
  struct Node {
    Token token = 0;
    std::uint32_t times = 0;
    std::vector<Place> children;  // the one inserted last comes first
  };

  explicit Trie(std::size_t depth) : depth_(depth) {}
  [[nodiscard]] std::size_t depth() const { return depth_; }
  [[nodiscard]] const Node& at(Place place) const { return nodes_[place]; }

  [[nodiscard]] Place child(Place place, Token token) const {
    for (const Place one : nodes_[place].children)
      if (nodes_[one].token == token) return one;
    return 0;
  }

  // Inserts the strings that begin in the last `depth` tokens of the text and reach to its end.
  void insert(std::span<const Token> text) {
    const std::span<const Token> window = text.last(std::min(text.size(), depth_));
    for (std::size_t from = 0; from < window.size(); ++from) {
      Place place = 0;
      for (const Token token : window.subspan(from)) place = insert(place, token);
    }
  }

 private:
  Place insert(Place place, Token token) {
    Place own = child(place, token);
    if (own == 0) {
      own = static_cast<Place>(nodes_.size());
      nodes_.push_back({token, 0, {}});
      nodes_[place].children.push_back(own);
    }
    std::vector<Place>& siblings = nodes_[place].children;
    const auto found = std::find(siblings.begin(), siblings.end(), own);
    std::rotate(siblings.begin(), found, found + 1);
    ++nodes_[own].times;
    return own;
  }

  std::size_t depth_;
  std::vector<Node> nodes_ = std::vector<Node>(1);
};

struct TrieMemory final : BlockDrafter::Memory {
  explicit TrieMemory(Trie of_past) : trie(std::move(of_past)) {}
  [[nodiscard]] std::unique_ptr<Memory> copy() const override { return std::make_unique<TrieMemory>(*this); }
  Trie trie;
  std::vector<Trie::Place> ends;  // [length - 1]: the text's last tokens in the trie; 0: not in it
  std::size_t length = 0;         // tokens of the text that `ends` belongs to; 0: none yet
};

// The draft tokens, in the order in which they were found.
class Found {
 public:
  explicit Found(int most) : most_(most) {}
  [[nodiscard]] bool full() const { return static_cast<int>(nodes_.size()) > most_; }
  // The child node of a token after another; created if it does not exist.
  int add(int parent, Token token) {
    for (const int child : nodes_[static_cast<std::size_t>(parent)].children)
      if (nodes_[static_cast<std::size_t>(child)].path.back() == token) return child;
    Node own{nodes_[static_cast<std::size_t>(parent)].path, {}};
    own.path.push_back(token);
    const auto index = static_cast<int>(nodes_.size());
    nodes_[static_cast<std::size_t>(parent)].children.push_back(index);
    nodes_.push_back(std::move(own));
    return index;
  }
  [[nodiscard]] std::vector<std::vector<Token>> paths() const {
    std::vector<std::vector<Token>> all;
    for (const Node& node : nodes_) all.push_back(node.path);
    return all;
  }

 private:
  struct Node {
    std::vector<Token> path;
    std::vector<int> children;
  };
  int most_;
  std::vector<Node> nodes_ = std::vector<Node>(1);
};

class SglangNgram final : public TextDrafter {
 public:
  struct Params {
    int nodes = 11;
    int max_trie_depth = 18;
    int min_bfs_breadth = 1;
    int max_bfs_breadth = 10;
    bool by_frequency = false;
    std::vector<std::vector<Token>> past;
  };
  explicit SglangNgram(const Params& params)
      : TextDrafter(std::min(params.nodes, params.max_trie_depth - 1), params.nodes),
        params_(params),
        past_(static_cast<std::size_t>(params.max_trie_depth)) {
    shape_.branches = true;
    for (const std::vector<Token>& text : params_.past)
      for (std::size_t end = 1; end <= text.size(); ++end) past_.insert(std::span(text).first(end));
  }

  [[nodiscard]] std::unique_ptr<Memory> start() const override { return std::make_unique<TrieMemory>(past_); }

  void choose(DrafterInput& input, Memory* memory, ChosenBlock& block) const override {
    auto& kept = static_cast<TrieMemory&>(*memory);
    const std::span<const Token> text = input.text();
    if (text.empty()) return;
    // The tokens of a round enter the trie while the next round is verified.
    if (kept.length > 0 && kept.length <= text.size()) {
      kept.trie.insert(text.first(kept.length));
      advance(kept, text.subspan(kept.length));
    } else {
      find(kept, text);
    }
    kept.length = text.size();
    Found found(params_.nodes);
    for (std::size_t length = kept.ends.size(); length > 0 && !found.full(); --length) {
      const Trie::Place end = kept.ends[length - 1];
      if (end == 0 || kept.trie.at(end).children.empty()) continue;
      if (params_.by_frequency)
        commonest(kept.trie, end, found);
      else
        newest(kept.trie, end, static_cast<int>(length), found);
    }
    add_paths(block, found.paths());
  }

  // Every round verifies the same number of rows, however many tokens were found.
  [[nodiscard]] BlockWork work(int /*nodes*/) const override { return {{}, 1.0 + params_.nodes}; }

 private:
  static void find(TrieMemory& kept, std::span<const Token> text) {
    kept.ends.assign(std::min(text.size(), kept.trie.depth()), 0);
    for (std::size_t length = 1; length <= kept.ends.size(); ++length) {
      Trie::Place place = 0;
      for (const Token token : text.last(length))
        if ((place = kept.trie.child(place, token)) == 0) break;
      kept.ends[length - 1] = place;
    }
  }

  // Updates the suffixes after `emitted` more tokens. A suffix that was not in the trie before is not searched for again.
  static void advance(TrieMemory& kept, std::span<const Token> emitted) {
    for (const Token token : emitted) {
      std::vector<Trie::Place> longer(std::min(kept.ends.size() + 1, kept.trie.depth()), 0);
      longer[0] = kept.trie.child(0, token);
      for (std::size_t length = 1; length < longer.size(); ++length)
        if (kept.ends[length - 1] != 0) longer[length] = kept.trie.child(kept.ends[length - 1], token);
      kept.ends = std::move(longer);
    }
  }

  // Level by level, takes the children of each string that were inserted last. It takes fewer for a longer suffix and a deeper
  // level.
  void newest(const Trie& trie, Trie::Place end, int length, Found& found) const {
    const int longest = params_.max_trie_depth - 1;
    const double step = static_cast<double>(params_.max_bfs_breadth - params_.min_bfs_breadth) / longest;
    struct Open {
      int node;
      double breadth;
      Trie::Place place;
    };
    std::deque<Open> open = {{0, (longest - length) * step + params_.min_bfs_breadth, end}};
    while (!open.empty() && !found.full()) {
      const Open one = open.front();
      open.pop_front();
      int left = std::max(1, static_cast<int>(one.breadth));
      for (const Trie::Place child : trie.at(one.place).children) {
        if (left-- == 0 || found.full()) break;
        open.push_back({found.add(one.node, trie.at(child).token), one.breadth - step, child});
      }
    }
  }

  // Takes the likeliest string first, by the shares of the most common children; ties follow the order of the standard library's
  // heap.
  void commonest(const Trie& trie, Trie::Place end, Found& found) const {
    struct Open {
      int node;
      Trie::Place place;
      double share;
    };
    const auto less = [](const Open& a, const Open& b) { return a.share < b.share; };
    std::priority_queue<Open, std::vector<Open>, decltype(less)> open(less);
    const auto add_children = [&](int node, Trie::Place place, double share) {
      std::vector<Trie::Place> children = trie.at(place).children;
      std::sort(children.begin(), children.end(), [&](Trie::Place a, Trie::Place b) {
        return trie.at(a).times != trie.at(b).times ? trie.at(a).times > trie.at(b).times : trie.at(a).token < trie.at(b).token;
      });
      if (children.size() > static_cast<std::size_t>(params_.max_bfs_breadth))
        children.resize(static_cast<std::size_t>(params_.max_bfs_breadth));
      double all = 0.0;
      for (const Trie::Place child : children) all += trie.at(child).times;
      for (const Trie::Place child : children) open.push({node, child, trie.at(child).times / all * share});
    };
    add_children(0, end, 1.0);
    while (!open.empty() && !found.full()) {
      const Open one = open.top();
      open.pop();
      add_children(found.add(one.node, trie.at(one.place).token), one.place, one.share);
    }
  }

  Params params_;
  Trie past_;
};

}  // namespace

DrafterEntry sglang_ngram_drafter() {
  using P = SglangNgram::Params;
  static const config::Fields<P> fields = {
      {"nodes", &P::nodes, "maximum number of tokens drafted: speculative-num-draft-tokens without the text's last one",
       config::between(1, kMaxNodes)},
      {"max_trie_depth", &P::max_trie_depth,
       "last tokens of the text that are added to the trie after each round; also the longest string in it",
       config::between(2, kMaxDraftLength)},
      {"min_bfs_breadth", &P::min_bfs_breadth, "BFS: children of a string after the longest match",
       config::between(1, kMaxNodes)},
      {"max_bfs_breadth", &P::max_bfs_breadth,
       "BFS: children of a string after an empty match, linear in between; PROB: children of each string",
       config::between(1, kMaxNodes)},
      {"match_type", &P::by_frequency, "BFS: level by level, the newest insertions; PROB: the most frequent insertions",
       config::one_of<bool>({{"BFS", false}, {"PROB", true}})},
      {"past", &P::past, "texts of earlier requests, as tokens: all requests share one trie", config::at_least(0),
       config::optional},
  };
  return {{"sglang_ngram", "drafts a tree from a trie of recently emitted tokens",
           "SGLang, --speculative-algorithm NGRAM: sgl-project/sglang, kernels/jit/csrc/ngram_corpus/trie.cpp, commit 2e932a8, "
           "ngram.cpp, commit 0520a2c, srt/speculative/ngram_worker.py as of pull request 17260; by the trie of Zhao et al. "
           "(Lookahead), arXiv 2312.12728",
           fields, "", "nodes: 4, max_trie_depth: 4"},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            check_tokens(arguments, "past", diagnostics);
            const P params = fields.read(arguments);
            if (params.min_bfs_breadth > params.max_bfs_breadth)
              diagnostics.add(arguments.where("min_bfs_breadth"),
                              fmt::format("min_bfs_breadth is {} with max_bfs_breadth {}, allowed: at most max_bfs_breadth",
                                          params.min_bfs_breadth, params.max_bfs_breadth));
            return std::make_shared<SglangNgram>(params);
          },
          true};
}

}  // namespace specsim::draft
