// Checks the proposals of block drafters on real models round by round. The expected proposals are recomputed from the drafters'
// descriptions with one distribution of one whole text at a time: no tree, no cache. A verifier forgives every draft, so a wrong
// one shows nowhere else.
#include "sim/foundation/base/wide.h"
#include "sim/lab/llm/block_proposer.h"
#include "sim/lab/llm/decoder.h"
#include "tests/llm/proposal_mutants.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>

namespace specsim::proposals_test {

using namespace specsim::tests;

namespace {

// A block as the paths to its nodes, and the distribution that each node's children were drawn from.
struct Drafted {
  std::vector<Path> paths = {{}};                    // [node], in the block's order
  std::map<int, std::vector<double>> distributions;  // by node, for nodes whose children were drawn

  bool operator==(const Drafted&) const = default;
};

Drafted drafted(const llm::Proposal& proposal, std::size_t vocab) {
  Drafted block;
  for (std::size_t node = 1; node < proposal.tree.nodes.size(); ++node) {
    const int parent = proposal.tree.nodes[node].parent;
    block.paths.push_back(block.paths.at(static_cast<std::size_t>(parent)));
    block.paths.back().push_back(proposal.tokens.at(node - 1));
    if (proposal.siblings == tokens::Siblings::point_mass) continue;
    const auto row = proposal.drafted.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(parent) * vocab);
    block.distributions.try_emplace(parent, row, row + static_cast<std::ptrdiff_t>(vocab));
  }
  return block;
}

Path joined(std::span<const Token> text, std::span<const Token> path) {
  Path whole(text.begin(), text.end());
  whole.insert(whole.end(), path.begin(), path.end());
  return whole;
}

// Tokens with positive probability, the likeliest first; ties: the lower token.
std::vector<Token> by_rank(const std::vector<double>& distribution) {
  std::vector<Token> tokens;
  for (Token token = 0; token < distribution.size(); ++token)
    if (distribution[token] > 0.0) tokens.push_back(token);
  std::stable_sort(tokens.begin(), tokens.end(), [&](Token a, Token b) { return distribution[a] > distribution[b]; });
  return tokens;
}

// Paths with common prefixes, breadth first.
Drafted merged(const std::vector<Path>& paths) {
  Drafted block;
  for (std::size_t node = 0; node < block.paths.size(); ++node) {
    const Path above = block.paths[node];
    for (const Path& path : paths) {
      if (path.size() <= above.size() || !std::equal(above.begin(), above.end(), path.begin())) continue;
      const Path child(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(above.size()) + 1);
      if (std::find(block.paths.begin(), block.paths.end(), child) == block.paths.end()) block.paths.push_back(child);
    }
  }
  return block;
}

// The expected draft of a round that begins with this text.
using Expected = std::function<Drafted(std::span<const Token> text, std::uint32_t round)>;
// The uniform that draws a node of a tree.
using Uniform = std::function<double(const tokens::Tree& tree, int node, std::uint32_t round)>;

const rng::Key kKey = rng::make_key(5, rng::hash_text("proposals"));
constexpr std::uint64_t kId = 3;

double uniform_at(int node, std::uint32_t round) {
  return rng::to_unit(llm::bits_at(kKey, rng::Purpose::draft_accept, static_cast<std::uint32_t>(node - 1), round, kId).first);
}
double own_uniform(const tokens::Tree& /*tree*/, int node, std::uint32_t round) { return uniform_at(node, round); }
double eldests_uniform(const tokens::Tree& tree, int node, std::uint32_t round) {
  return uniform_at(node - tree.nodes[static_cast<std::size_t>(node)].rank, round);
}

// A tree of a given shape: every node is drafted independently.
Expected of_shape(const draft::BlockDrafter& block, Remembered& draft, const Uniform& uniform = own_uniform) {
  return [&block, &draft, uniform](std::span<const Token> text, std::uint32_t round) {
    const tokens::Tree& tree = *block.tree();
    Drafted expected;
    std::vector<int> own = {0};  // [node of the tree]: node of the block, -1: no token remained
    for (int node = 1; node <= tree.drafted(); ++node) {
      const tokens::Tree::Node& shape = tree.nodes[static_cast<std::size_t>(node)];
      own.push_back(-1);
      const int parent = own[static_cast<std::size_t>(shape.parent)];
      if (parent < 0) continue;
      const Path above = expected.paths[static_cast<std::size_t>(parent)];
      const std::vector<double>& distribution = draft.distribution_of(joined(text, above));
      std::optional<Token> token;
      if (block.shape().siblings == tokens::Siblings::point_mass) {
        const std::vector<Token> ranks = by_rank(distribution);
        if (static_cast<std::size_t>(shape.rank) < ranks.size()) token = ranks[static_cast<std::size_t>(shape.rank)];
      } else {
        std::vector<double> left = distribution;
        if (block.shape().siblings == tokens::Siblings::without_replacement)
          for (const Path& elder : expected.paths)
            if (elder.size() == above.size() + 1 && std::equal(above.begin(), above.end(), elder.begin()))
              left[elder.back()] = 0.0;
        double target = uniform(tree, node, round) * std::accumulate(left.begin(), left.end(), 0.0);
        for (Token x = 0; x < left.size() && target >= 0.0; ++x) {
          if (left[x] > 0.0) token = x;
          target -= left[x];
        }
        if (token) expected.distributions.try_emplace(parent, distribution);
      }
      if (!token) continue;
      own.back() = static_cast<int>(expected.paths.size());
      expected.paths.push_back(joined(above, {{*token}}));
    }
    return expected;
  };
}

// The likeliest of all paths that begin with the likeliest ones.
Expected dynamic(std::size_t depth, std::size_t width, std::size_t nodes, Remembered& draft) {
  struct Candidate {
    Path path;
    double probability = 1.0;
    std::size_t place = 0;  // breadth first
  };
  return [depth, width, nodes, &draft](std::span<const Token> text, std::uint32_t /*round*/) {
    const auto keep_likeliest = [](std::vector<Candidate>& list, std::size_t most) {
      std::stable_sort(list.begin(), list.end(),
                       [](const Candidate& a, const Candidate& b) { return a.probability > b.probability; });
      list.resize(std::min(most, list.size()));
      std::sort(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) { return a.place < b.place; });
    };
    std::vector<Candidate> all;
    std::vector<Candidate> level = {Candidate()};
    for (std::size_t l = 0; l < depth; ++l) {
      keep_likeliest(level, width);
      std::vector<Candidate> below;
      for (const Candidate& above : level) {
        const std::vector<double>& distribution = draft.distribution_of(joined(text, above.path));
        std::vector<Token> ranks = by_rank(distribution);
        ranks.resize(std::min(width, ranks.size()));
        for (const Token token : ranks)
          below.push_back({joined(above.path, {{token}}), above.probability * distribution[token], all.size() + below.size()});
      }
      all.insert(all.end(), below.begin(), below.end());
      level = std::move(below);
    }
    keep_likeliest(all, nodes);
    Drafted expected;
    for (const Candidate& one : all) expected.paths.push_back(one.path);
    return expected;
  };
}

// n-grams of the text and of a Jacobi window that moves on by one column a round.
Expected lookahead(std::size_t window, std::size_t ngram, std::size_t guesses, Remembered& target) {
  struct State {
    std::size_t read = 0;
    std::vector<Path> pool;                 // the newest last; each once
    std::vector<std::deque<Token>> levels;  // guesses; levels[l][i] was made for the place l + i after the text's last token
  };
  const auto state = std::make_shared<State>();
  return [=, &target](std::span<const Token> text, std::uint32_t /*round*/) {
    const auto learn = [&](const Path& one) {
      state->pool.erase(std::remove(state->pool.begin(), state->pool.end(), one), state->pool.end());
      state->pool.push_back(one);
    };
    for (; state->read < text.size(); ++state->read)
      if (state->read + 1 >= ngram) {
        const std::span<const Token> one = text.subspan(state->read + 1 - ngram, ngram);
        learn({one.begin(), one.end()});
      }
    std::vector<std::deque<Token>>& levels = state->levels;
    if (window > 0 && levels.empty()) {
      std::deque<Token>& first = levels.emplace_back(1, text.back());  // column 0 is the text's last token, whatever was guessed
      for (std::uint32_t i = 0; i < window + ngram - 3; ++i)
        first.push_back(text[scale_bits(llm::bits_at(kKey, rng::Purpose::window, 0, i, kId).first, text.size())]);
    }
    const bool full = window == 0 || levels.size() == ngram - 1;
    Drafted expected;
    if (full) {
      std::vector<Path> tails;
      for (auto one = state->pool.rbegin(); one != state->pool.rend() && tails.size() < guesses; ++one)
        if (one->front() == text.back()) tails.emplace_back(one->begin() + 1, one->end());
      expected = merged(tails);
    }
    if (window == 0) return expected;
    levels[0][0] = text.back();
    std::deque<Token> next;
    for (std::size_t column = 0; column < levels[0].size(); ++column) {
      Path seen(levels[0].begin() + 1, levels[0].begin() + static_cast<std::ptrdiff_t>(column) + 1);
      for (std::size_t l = 1; l < levels.size(); ++l) seen.push_back(levels[l][column]);
      next.push_back(by_rank(target.distribution_of(joined(text, seen))).front());
    }
    if (full)
      for (std::size_t column = 0; column < next.size(); ++column) {
        Path one;
        for (const std::deque<Token>& level : levels) one.push_back(level[column]);
        one.push_back(next[column]);
        learn(one);
      }
    levels.push_back(next);
    if (full) {
      levels.erase(levels.begin());
    } else {
      for (std::deque<Token>& level : levels) level.pop_front();
    }
    return expected;
  };
}

// Up to `draft_length` tokens after the first occurrence of the text's last three, two or one tokens.
Expected copied(std::size_t draft_length) {
  return [draft_length](std::span<const Token> text, std::uint32_t /*round*/) {
    for (std::size_t last = 3; last > 0; --last) {
      const auto found = std::search(text.begin(), text.end() - 1, text.end() - static_cast<std::ptrdiff_t>(last), text.end());
      if (found == text.end() - 1) continue;
      const auto from = found + static_cast<std::ptrdiff_t>(last);
      return merged({Path(from, from + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(draft_length), text.end() - from))});
    }
    return Drafted();
  };
}

// The most common continuation after all earlier occurrences of the longest suffix, as long as a tenth of them share it; among
// equals, the first that Arctic Inference's tree lists.
Expected commonest(std::size_t draft_length) {
  return [draft_length](std::span<const Token> text, std::uint32_t /*round*/) {
    for (std::size_t length = 16; length > 0; --length) {
      std::vector<Path> ways;
      for (std::size_t end = length; end < text.size(); ++end)
        if (std::equal(text.end() - static_cast<std::ptrdiff_t>(length), text.end(),
                       text.begin() + static_cast<std::ptrdiff_t>(end - length)))
          ways.emplace_back(text.begin() + static_cast<std::ptrdiff_t>(end), text.end());
      if (ways.empty()) continue;
      Path path;
      while (path.size() < std::min(draft_length, 2 * length)) {
        std::vector<std::pair<Token, int>> seen;  // descending; ties in the order of the program's list of siblings
        for (const Path& way : ways) {
          if (way.size() <= path.size() || !std::equal(path.begin(), path.end(), way.begin())) continue;
          auto own = std::find_if(seen.begin(), seen.end(), [&](const auto& one) { return one.first == way[path.size()]; });
          if (own == seen.end()) own = seen.insert(own, {way[path.size()], 0});
          const int before = own == seen.begin() ? std::numeric_limits<int>::max() : std::prev(own)->second;
          const int times = ++own->second;
          if (times == 1 || before > times) continue;
          std::rotate(std::find_if(seen.begin(), own, [&](const auto& one) { return one.second == before; }), own, own + 1);
        }
        if (seen.empty() || seen.front().second < 0.1 * static_cast<double>(ways.size())) break;
        path.push_back(seen.front().first);
      }
      return merged({path});
    }
    return Drafted();
  };
}

// ---- mistakes -----------------------------------------------------------------------------------------------------------

// ---- the comparison -------------------------------------------------------------------------------------------------------

struct Agreement {
  int rounds = 0;  // up to the first one with another draft
  int nodes = 0;   // drafted in them
};

Agreement agreement(llm::DistributionSource& target, llm::Proposer& drafter, const verify::BlockRule& rule, int draft_length,
                    const std::vector<Token>& prompt, int rounds, const Expected& expected) {
  llm::Decoder decoder(target, &drafter, rule, draft_length, kKey);
  decoder.start({{prompt, kId}});
  Agreement found;
  for (; found.rounds < rounds; ++found.rounds) {
    const std::vector<Token> text = decoder.texts()[0].tokens;
    decoder.round();
    const Drafted block = drafted(decoder.proposals()[0], target.vocab());
    if (block != expected(text, static_cast<std::uint32_t>(found.rounds))) break;
    found.nodes += static_cast<int>(block.paths.size()) - 1;
  }
  return found;
}

// The models with their sampling settings, running and remembered.
struct Distributions {
  Distributions(const tests::Pair& pair, const math::Sampling& sampling, const math::Sampling& draft_sampling)
      : target(*pair.target_model, sampling, 1),
        draft(*pair.draft_model, draft_sampling, 1),
        target_again(*pair.target_model, sampling, 1),
        draft_again(*pair.draft_model, draft_sampling, 1) {}
  llm::ModelDistributions target;
  llm::ModelDistributions draft;
  llm::ModelDistributions target_again;
  llm::ModelDistributions draft_again;
  Remembered target_path{target_again, {.afresh = true}};
  Remembered draft_path{draft_again, {.afresh = true}};
};

}  // namespace

TEST_CASE("trees hold the draft's own tokens and distributions, path by path", "[llm][blocks]") {
  constexpr int kRounds = 12;
  const tests::Pair pair;
  const std::vector<Token> prompt = tests::repeating(tests::held_out(pair.target_weights->config)[0].tokens);
  std::map<std::pair<std::string, std::string>, int> rejected;  // [parameters, mistake]: number of temperatures that detect it
  for (const double temperature : {0.0, 1.0}) {
    Distributions own(pair, {.temperature = temperature}, {.temperature = temperature});
    Distributions few(pair, {.temperature = temperature}, {.temperature = 1.0, .top_k = 2});
    Distributions ranking(pair, {.temperature = temperature}, {.temperature = 1.0});
    struct Case {
      const char* kind;
      const char* parameters;
      const char* verifier;
      Distributions& distributions;
    };
    for (const Case& one :
         {Case{"tree_static", "{branching: [3, 2, 1]}", "multi_draft_recursive", own},
          {"tree_static", "{branching: [3, 2, 1], siblings: without_replacement}", "without_replacement", own},
          {"tree_static", "{branching: [3, 2, 1], siblings: without_replacement}", "without_replacement", few},  // 2 tokens
          {"tree_static", "{branching: [3, 2, 1], siblings: top_k}", "tree_point_mass", ranking},
          {"tree_static", "{paths: [[0], [2], [0, 1], [2, 0], [0, 1, 0], [2, 0, 1]], siblings: top_k}", "tree_point_mass", own},
          {"tree_sequoia", "{budget: 8, depth: 4, acceptance: [0.6, 0.2, 0.1]}", "multi_draft_recursive", own},
          {"tree_dynamic", "{depth: 4, width: 3, nodes: 10}", "tree_point_mass", ranking}}) {
      CAPTURE(temperature, one.kind, one.parameters);
      const BlockMethod method = tests::block_method(one.kind, one.parameters, one.verifier);
      const draft::BlockDrafter& block = *method.drafter;
      const auto compare = [&](llm::Proposer& drafter, const Expected& expected) {
        return agreement(one.distributions.target, drafter, *method.rule, block.shape().draft_length, prompt, kRounds, expected);
      };
      const Expected right = block.tree() != nullptr ? of_shape(block, one.distributions.draft_path)
                                                     : dynamic(4, 3, 10, one.distributions.draft_path);
      llm::BlockProposer drafter(block, one.distributions.target, &one.distributions.draft);
      const Agreement found = compare(drafter, right);
      CHECK(found.rounds == kRounds);
      CHECK(found.nodes >= kRounds);

      const auto mistaken = [&](const std::string& mistake, const Agreement& until) {
        rejected[{one.parameters, mistake}] += until.rounds < kRounds ? 1 : 0;
      };
      for (const auto& [lie, mistake] : kLies) {
        Liar draft(one.distributions.draft_path, lie);
        llm::BlockProposer lied_to(block, one.distributions.target, &draft);
        if (lie == Lie::none)
          CHECK(compare(lied_to, right).rounds == kRounds);
        else
          mistaken(mistake, compare(lied_to, right));
      }
      if (block.shape().siblings == tokens::Siblings::point_mass) continue;
      OtherWords other(drafter);
      mistaken("words of the next round", compare(other, right));
      mistaken("siblings share a word", compare(drafter, of_shape(block, one.distributions.draft_path, eldests_uniform)));
    }
  }
  CHECK(rejected.size() == 6 * (kLies.size() - 1) + 3 * 2);
  for (const auto& [which, temperatures] : rejected) {
    CAPTURE(which.first, which.second);
    CHECK(temperatures > 0);
  }
}

TEST_CASE("drafters that search the text draft as described", "[llm][blocks]") {
  constexpr int kRounds = 14;
  const tests::Pair pair;
  const std::vector<Token> prompt = tests::repeating(tests::held_out(pair.target_weights->config)[5].tokens);
  std::map<std::string, int> rejected;  // [mistake]: number of temperatures that detect it
  for (const double temperature : {0.0, 1.0}) {
    Distributions distributions(pair, {.temperature = temperature, .top_k = 2}, {});
    struct Case {
      const char* kind;
      const char* parameters;
      std::function<Expected()> expected;
    };
    for (const Case& one :
         {Case{"lookahead", "{window: 4, ngram: 4, guesses: 3}", [&] { return lookahead(4, 4, 3, distributions.target_path); }},
          {"lookahead", "{window: 0, ngram: 3, guesses: 3}", [&] { return lookahead(0, 3, 3, distributions.target_path); }},
          {"prompt_lookup", "{draft_length: 4}", [] { return copied(4); }},
          {"suffix", "{draft_length: 4}", [] { return commonest(4); }}}) {
      CAPTURE(temperature, one.kind, one.parameters);
      const BlockMethod method = tests::block_method(one.kind, one.parameters, "tree_point_mass");
      const auto compare = [&](llm::DistributionSource& target, const draft::BlockDrafter& block) {
        llm::BlockProposer drafter(block, target, nullptr);
        return agreement(target, drafter, *method.rule, block.shape().draft_length, prompt, kRounds, one.expected());
      };
      const Agreement found = compare(distributions.target, *method.drafter);
      CHECK(found.rounds == kRounds);
      CHECK(found.nodes >= kRounds / 2);
      if (std::string_view(one.parameters).find("window: 4") == std::string_view::npos) continue;

      const auto mistaken = [&](const std::string& mistake, const Agreement& until) {
        rejected[mistake] += until.rounds < kRounds ? 1 : 0;
      };
      mistaken("guesses of an older pool", compare(distributions.target, OlderPool(*method.drafter)));
      for (const auto& [lie, mistake] : kLies) {
        Liar window(distributions.target_path, lie);
        if (lie == Lie::none)
          CHECK(compare(window, *method.drafter).rounds == kRounds);
        else
          mistaken(mistake, compare(window, *method.drafter));
      }
    }
  }
  CHECK(rejected.size() == kLies.size());
  for (const auto& [mistake, temperatures] : rejected) {
    CAPTURE(mistake);
    CHECK(temperatures > 0);
  }
}

}  // namespace specsim::proposals_test
