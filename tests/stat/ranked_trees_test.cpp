// Trees of the draft's likeliest tokens, with samplings of the draft that leave fewer tokens than the tree has places, compared
// with a tree that this file builds independently.
#include "sim/experiments/judge/prediction.h"
#include "tests/support/cells.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace specsim::ranked_trees_test {

namespace {

constexpr std::uint64_t kRounds = 400'000;
constexpr int kVocab = 50;
constexpr double kExponent = 1.2;

// The target's probabilities, likeliest first; the draft is the same distribution.
std::vector<double> zipf() {
  std::vector<double> law;
  double sum = 0.0;
  for (int rank = 1; rank <= kVocab; ++rank) {
    law.push_back(std::pow(rank, -kExponent));
    sum += law.back();
  }
  for (double& mass : law) mass /= sum;
  return law;
}

std::vector<double> sharpened(std::vector<double> law, double temperature) {
  double sum = 0.0;
  for (double& mass : law) {
    if (temperature > 0.0)
      mass = std::pow(mass, 1.0 / temperature);
    else
      mass = mass == law.front() ? 1.0 : 0.0;
    sum += mass;
  }
  for (double& mass : law) mass /= sum;
  return law;
}

// Tokens per round of `branching` over the tokens that the draft proposes, at each node the likeliest of them.
double fixed_tree(const std::vector<double>& target, const std::vector<int>& branching, int proposed) {
  double tokens = 1.0;
  double reached = 1.0;
  for (const int children : branching) {
    double right = 0.0;
    for (int rank = 0; rank < std::min(children, proposed); ++rank) right += target[static_cast<std::size_t>(rank)];
    tokens += reached *= right;
  }
  return tokens;
}

// Tokens per round of EAGLE-2's tree: `width` nodes on each of `depth` levels are extended by the likeliest tokens, and the
// `nodes` likeliest of all by `ranking` are kept.
double grown_tree(const std::vector<double>& target, const std::vector<double>& ranking, std::size_t depth, std::size_t width,
                  std::size_t nodes) {
  struct Node {
    double rank;
    double reached;
  };
  const auto by_rank = [](const Node& a, const Node& b) { return a.rank > b.rank; };
  std::vector<Node> all;
  std::vector<Node> level = {{1.0, 1.0}};
  for (std::size_t d = 0; d < depth; ++d) {
    std::vector<Node> children;
    for (const Node& node : level) {
      for (std::size_t token = 0; token < width && ranking[token] > 0.0; ++token)
        children.push_back({node.rank * ranking[token], node.reached * target[token]});
    }
    std::stable_sort(children.begin(), children.end(), by_rank);
    all.insert(all.end(), children.begin(), children.end());
    children.resize(std::min(children.size(), width));
    level = std::move(children);
  }
  std::stable_sort(all.begin(), all.end(), by_rank);
  double tokens = 1.0;
  for (std::size_t i = 0; i < std::min(nodes, all.size()); ++i) tokens += all[i].reached;
  return tokens;
}

struct Found {
  double theory = 0.0;
  double simulated = 0.0;
  double error = 0.0;
};

Found found(const std::string& drafter, double temperature) {
  const tests::ReadyCell ready(fmt::format(
      "{{experiment: ranked_trees, seed: 20260118, rounds: {}, pair: {{vocab: {}, target: {{family: zipf, exponent: {}}}, draft: "
      "{{from: target, transform: temperature, value: 1}}, draft_sampling: {{temperature: {}}}}}, context: {{process: fixed}}, "
      "decode: {{drafter: {}, verifier: tree_point_mass}}}}",
      kRounds, kVocab, kExponent, temperature, drafter));
  const judge::Prediction theory = judge::predict_exact(ready.cell(), ready.facts(), kRounds);
  const decode::Simulator simulator = ready.simulator();
  decode::Counts counts = simulator.empty_counts();
  for (std::uint64_t i = 0; i * simulator.chunk_size() < kRounds; ++i) simulator.run(i, kRounds, counts);
  return {theory.tokens_per_round, static_cast<double>(counts.emitted) / static_cast<double>(counts.rounds),
          theory.tokens_per_round_error};
}

}  // namespace

TEST_CASE("a tree of the likeliest tokens has no more of them than the draft proposes") {
  const std::vector<double> target = zipf();
  const double full = fixed_tree(target, {4, 2, 1}, kVocab);
  const double chain = fixed_tree(target, {4, 2, 1}, 1);
  // A draft of temperature 0 proposes one token. If places were filled up with other tokens, the result would be that of
  // temperature 1.
  CHECK(std::abs(full - 1.894) < 0.001);
  CHECK(std::abs(chain - 1.421) < 0.0005);
  for (const auto& [temperature, tokens] : {std::pair{1.0, full}, std::pair{0.6, full}, std::pair{0.0, chain}}) {
    INFO("draft_sampling.temperature " << temperature);
    const Found tree = found("{kind: tree_static, branching: [4, 2, 1], siblings: top_k}", temperature);
    CHECK(std::abs(tree.theory - tokens) < 1e-12);
    CHECK(std::abs(tree.simulated - tokens) < 4.5 * tree.error);
    CHECK(std::abs(full - chain) > 20.0 * tree.error);
  }
}

TEST_CASE("a dynamic tree ranks by the draft at temperature 1, as EAGLE's program does, whatever the draft's sampling is") {
  const std::vector<double> target = zipf();
  const double tokens = grown_tree(target, target, 6, 10, 59);
  for (const double temperature : {1.0, 0.6, 0.0}) {
    INFO("draft_sampling.temperature " << temperature);
    const Found tree = found("{kind: tree_dynamic}", temperature);
    CHECK(std::abs(tree.theory - tokens) < 1e-12);
    CHECK(std::abs(tree.simulated - tokens) < 4.5 * tree.error);
    // A tree ranked by the draft's sampling distribution would be detected.
    const double sampled = grown_tree(target, sharpened(target, temperature), 6, 10, 59);
    if (temperature < 1.0) CHECK(tokens - sampled > 20.0 * tree.error);
  }
}

}  // namespace specsim::ranked_trees_test
