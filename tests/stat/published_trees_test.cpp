// Published trees with published acceptance by rank, simulated. The context is the node of the tree at the end of the accepted
// path. Its target has the published mass on each rank's token, and tokens outside the tree lead back to the root.
// results/methods/trees.csv is this table; the hidden case [.methods] of this program writes it.
#include "tests/support/published_trees.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/math/simplex.h"
#include "tests/exact/exact_cells.h"
#include "tests/support/best_trees.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace specsim::tests::published_trees_test {

namespace {

constexpr auto kPath = "results/methods/trees.csv";
constexpr std::uint64_t kRounds = 1'000'000;

struct Published {
  std::string method;
  std::string setting;
  std::string figure;  // published tokens per round; may be empty
  std::string drafter;
  theory::RankAcceptance acceptance;
};

std::string paths_of(const theory::TreeShape& tree) {
  std::string paths;
  for (int node = 1; node < tree.size(); ++node) {
    std::string path;
    for (int up = node; up > 0; up = tree.parent[static_cast<std::size_t>(up)])
      path = fmt::format("{}{}{}", tree.rank[static_cast<std::size_t>(up)], path.empty() ? "" : ", ", path);
    paths += fmt::format("{}[{}]", paths.empty() ? "" : ", ", path);
  }
  return paths;
}

std::vector<Published> published_trees() {
  std::vector<Published> all;
  const std::string medusa = fmt::format("{{kind: tree_static, paths: [{}], siblings: top_k}}", paths_of(medusa_tree()));
  for (const bool rest : {false, true}) {
    const std::string of = rest ? "ranks 6 to 10 as often as rank 5" : "ranks 6 to 10 never";
    all.push_back(
        {"medusa_tree", "Vicuna-7b, mc_sim_7b_63 (63 nodes); " + of, "2.565", medusa, medusa_heads(medusa_heads_7b, rest)});
    all.push_back(
        {"medusa_tree", "Vicuna-33b, mc_sim_7b_63 (63 nodes); " + of, "2.514", medusa, medusa_heads(medusa_heads_33b, rest)});
  }
  for (const int budget : {15, 63, 127})
    all.push_back({"sequoia_tree",
                   fmt::format("Llama3-70B by Llama3-8B, CNN, {} nodes, depth 10", budget + 1),
                   "",
                   fmt::format("{{kind: tree_sequoia, budget: {}, depth: 10, acceptance: [{}], siblings: top_k}}", budget,
                               fmt::join(sequoia_vector, ", ")),
                   {sequoia_vector}});
  return all;
}

theory::TreeShape tree_of(const Published& published, spec::Cell& cell, std::size_t ranks) {
  const Distribution even(ranks + 1, 1.0 / static_cast<double>(ranks + 1));
  cell = cell_of(explicit_pair(even, even), "{process: fixed}", published.drafter, "tree_point_mass");
  theory::TreeShape tree;
  const std::vector<tokens::Tree::Node>& nodes = cell.block()->drafter->tree()->nodes;
  for (auto node = nodes.begin() + 1; node != nodes.end(); ++node) tree.add(node->parent, node->rank);
  return tree;
}

struct Simulated {
  double theory = 0.0;
  double tokens = 0.0;
  double error = 0.0;
};

// `wrong`: the heads are asked one level too deep, which the test must detect.
Simulated simulate(const Published& published, bool wrong = false) {
  const theory::RankAcceptance& acceptance = published.acceptance;
  std::size_t ranks = 0;
  for (const std::vector<double>& row : acceptance) ranks = std::max({ranks, row.size(), std::size_t{10}});
  spec::Cell cell;
  const theory::TreeShape tree = tree_of(published, cell, ranks);
  const std::vector<int> depths = tree.depths();
  std::vector<Distribution> targets;
  std::vector<std::vector<std::uint32_t>> next;
  Distribution draft;  // less likely rank by rank; the token that represents all others comes last
  for (std::size_t r = 0; r <= ranks; ++r) draft.push_back(static_cast<double>(ranks + 1 - r));
  math::normalise(draft);
  for (int node = 0; node < tree.size(); ++node) {
    const std::size_t depth = static_cast<std::size_t>(depths[static_cast<std::size_t>(node)]) + (wrong ? 1 : 0);
    const std::vector<double>& row = acceptance[std::min(depth, acceptance.size() - 1)];
    Distribution target(row);
    target.resize(ranks, 0.0);
    double rest = 1.0;
    for (const double share : row) rest -= share;
    target.push_back(std::max(rest, 0.0));
    targets.push_back(std::move(target));
    next.emplace_back(ranks + 1, 0);
  }
  for (int node = 1; node < tree.size(); ++node)
    next[static_cast<std::size_t>(tree.parent[static_cast<std::size_t>(node)])]
        [static_cast<std::size_t>(tree.rank[static_cast<std::size_t>(node)])] = static_cast<std::uint32_t>(node);
  cell.contexts = listed_cell(targets, std::vector<Distribution>(targets.size(), draft), next, 1, "token").contexts;
  const decode::PreparationPlan plan = spec::plan_of(cell);
  const decode::Prepared prepared = decode::prepare(plan, {});
  const decode::Simulator simulator(plan, prepared, spec::draw_key(cell), cell.draft_length(), cell.sequence_rounds);
  decode::Counts counts = simulator.empty_counts();
  for (std::uint64_t i = 0; i * simulator.chunk_size() < kRounds; ++i) simulator.run(i, kRounds, counts);
  double square = 0.0;
  const double mean = static_cast<double>(counts.emitted) / static_cast<double>(counts.rounds);
  for (int j = 0; j <= cell.draft_length(); ++j) {
    std::uint64_t of_length = 0;
    for (int s = 0; s < prepared.strata; ++s)
      of_length += counts.accepted_distribution[static_cast<std::size_t>(s * (cell.draft_length() + 1) + j)];
    square += static_cast<double>(of_length) / static_cast<double>(counts.rounds) * (j + 1 - mean) * (j + 1 - mean);
  }
  return {theory::tree_tokens(tree, acceptance), mean, std::sqrt(square / static_cast<double>(counts.rounds))};
}

std::string row_of(const Published& published, const Simulated& simulated) {
  return fmt::format("{},\"{}\",{},{:.6f},{:.6f},{:.6f}\n", published.method, published.setting, published.figure,
                     simulated.theory, simulated.tokens, simulated.error);
}

constexpr auto kHeader = "method,setting,published_tokens_per_round,theory,simulated,simulated_se\n";

}  // namespace

TEST_CASE("published trees come out as the product of their acceptances, and results/methods/trees.csv is current") {
  std::string table = kHeader;
  for (const Published& published : published_trees()) {
    INFO(published.setting);
    const Simulated simulated = simulate(published);
    table += row_of(published, simulated);
    CHECK(std::abs(simulated.tokens - simulated.theory) < 4.5 * simulated.error);
    if (published.acceptance.size() == 1) continue;
    const Simulated wrong = simulate(published, true);
    CHECK(std::abs(wrong.tokens - wrong.theory) > 20.0 * wrong.error);
  }
  CHECK(read_whole_file(kPath) == table);
}

TEST_CASE("writes results/methods/trees.csv", "[.methods]") {
  std::string table = kHeader;
  for (const Published& published : published_trees()) table += row_of(published, simulate(published));
  write_whole_file(kPath, table);
}

}  // namespace specsim::tests::published_trees_test
