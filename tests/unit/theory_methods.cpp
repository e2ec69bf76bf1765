// Published tokens per round of the field's methods against theory, where the inputs are not inferred from the figure itself.
// results/methods/theory.csv is this table; the hidden case [.methods] of this program writes it.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/whole_file.h"
#include "sim/theory/block.h"
#include "sim/theory/trees.h"

using namespace specsim::theory;

namespace {

constexpr auto path = "results/methods/theory.csv";

struct Row {
  std::string method;
  std::string source;
  std::string setting;
  std::optional<double> published;  // tokens per round
  Bracket theory;
  std::string note;
};

// Accuracies beyond the published top 5 of a head: none, or at most the fifth's.
RankAcceptance medusa_heads(const std::vector<std::vector<double>>& cumulative, bool rest) {
  RankAcceptance heads = rank_acceptance(cumulative);
  if (rest) {
    for (std::vector<double>& row : heads) row.resize(10, row.back());
  }
  return heads;
}

// mc_sim_7b_63 of the Medusa repository: how many children the node at each path has; siblings take the first ranks.
Tree medusa_tree() {
  Tree tree;
  const auto grow = [&](int under, int children) {
    std::vector<int> nodes;
    for (int rank = 0; rank < children; ++rank) nodes.push_back(tree.add(under, rank));
    return nodes;
  };
  const std::vector<int> first = grow(0, 10);
  const std::vector<int> under_first[] = {grow(first[0], 10), grow(first[1], 7), grow(first[2], 3), grow(first[3], 2),
                                          grow(first[4], 1),  grow(first[5], 1), grow(first[6], 1), grow(first[7], 1),
                                          grow(first[8], 1),  grow(first[9], 1)};
  const std::vector<int> deepest = grow(under_first[0][0], 10);
  const int third[] = {3, 2, 1, 1, 1, 1, 1};  // under the ranks 1 to 7 of the first node
  for (std::size_t i = 0; i < std::size(third); ++i) grow(under_first[0][i + 1], third[i]);
  grow(under_first[1][0], 2);
  grow(under_first[2][0], 1);
  grow(deepest[0], 2);
  return tree;
}

std::vector<Row> rows() {
  std::vector<Row> table;
  const std::string medusa_source =
      "FasterDecoding/Medusa assets/medusa_acc.csv, medusa_choices.py; measured at temperature 0 on MT-bench";
  const std::string medusa_note =
      "independent heads; low: ranks 6 to 10 never right, high: as often as rank 5; the training log's accuracies, measured on "
      "another text";
  const std::vector<std::vector<double>> heads_7b = {{0.5604, 0.6717, 0.7271, 0.7599, 0.7799},
                                                     {0.3164, 0.4236, 0.4851, 0.5282, 0.5625},
                                                     {0.2010, 0.2879, 0.3475, 0.3834, 0.4169},
                                                     {0.1474, 0.2250, 0.2737, 0.3109, 0.3397}};
  const std::vector<std::vector<double>> heads_33b = {{0.6046, 0.7162, 0.7649, 0.7983, 0.8223},
                                                      {0.3558, 0.4690, 0.5287, 0.5692, 0.5961},
                                                      {0.2246, 0.3197, 0.3785, 0.4210, 0.4462},
                                                      {0.1596, 0.2488, 0.3073, 0.3480, 0.3755}};
  const Tree tree = medusa_tree();
  for (const auto& [model, heads, published] :
       {std::tuple{"Vicuna-7b", &heads_7b, 2.565}, std::tuple{"Vicuna-33b", &heads_33b, 2.514}}) {
    table.push_back({"medusa_tree",
                     medusa_source,
                     fmt::format("{}, mc_sim_7b_63 (63 nodes)", model),
                     published,
                     {tree_tokens(tree, medusa_heads(*heads, false)), tree_tokens(tree, medusa_heads(*heads, true))},
                     medusa_note});
  }
  struct Eagle {
    const char* setting;
    std::vector<double> alphas;
    std::optional<double> published;
  };
  for (const Eagle& eagle : {Eagle{"Vicuna-7B, temperature 0", {0.79, 0.74, 0.72, 0.73, 0.67}, 3.20},
                             Eagle{"LLaMA2-Chat-7B, temperature 0", {0.76, 0.69, 0.67, 0.68, 0.68}, 3.00},
                             Eagle{"LLaMA2-Chat-70B, temperature 0", {0.75, 0.69, 0.65, 0.64, 0.64}, 3.12},
                             Eagle{"Vicuna-7B, temperature 1", {0.71, 0.68, 0.66, 0.66, 0.65}, {}},
                             Eagle{"LLaMA2-Chat-7B, temperature 1", {0.71, 0.66, 0.66, 0.66, 0.64}, {}},
                             Eagle{"LLaMA2-Chat-70B, temperature 1", {0.73, 0.67, 0.64, 0.66, 0.65}, {}}}) {
    const double tokens = tokens_per_round(eagle.alphas);
    table.push_back({"eagle_chain",
                     "arXiv 2401.15077, tables 2 and 5, MT-bench",
                     eagle.setting,
                     eagle.published,
                     {tokens, tokens},
                     "product of n-alpha, 5 drafts"});
  }
  const WeightedPair widest = widest_block_pair(0.722);
  for (const auto& [length, published] : {std::pair{4, 2.99}, std::pair{6, 3.43}, std::pair{8, 3.70}}) {
    table.push_back(
        {"block",
         "arXiv 2403.10444, averages over tasks by draft length",
         fmt::format("draft length {}", length),
         published,
         {tokens_per_round(0.722, length), block_law(block_context({&widest, 1}), length).mean_emitted()},
         "low: the token rule at its alpha of .722 (from the token rows); high: the widest gain that a fixed pair of this "
         "overlap allows"});
  }
  const std::vector<double> sequoia = {0.7732, 0.1039, 0.0402, 0.0206, 0.0128, 0.0081, 0.0064, 0.0043, 0.0035, 0.0026, 0.0025,
                                       0.0021, 0.0016, 0.0014, 0.001,  0.001,  0.001,  0.0007, 0.0007, 0.0006, 0.0007, 0.0006,
                                       0.0004, 0.0004, 0.0005, 0.0006, 0.0004, 0.0003, 0.0002, 0.0004, 0.0001};
  const auto programme = sequoia_programme(sequoia, 128, 10);
  for (const std::size_t size : {16U, 64U, 128U}) {
    const double tokens = programme[10][size];
    table.push_back({"sequoia_tree",
                     "arXiv 2402.12374, appendix E",
                     fmt::format("Llama3-70B by Llama3-8B, CNN, {} nodes, depth 10", size),
                     {},
                     {tokens, tokens},
                     "best tree for the published acceptance vector; no measured figure is given with it"});
  }
  return table;
}

std::string verdict(const Row& row) {
  if (!row.published) return "";
  if (*row.published > row.theory.high) return fmt::format("{:.1f} % above", 100.0 * (*row.published / row.theory.high - 1.0));
  if (*row.published < row.theory.low) return fmt::format("{:.1f} % below", 100.0 * (1.0 - *row.published / row.theory.low));
  return "inside";
}

std::string text() {
  std::string csv = "method,source,setting,published_tokens_per_round,theory_low,theory_high,verdict,note\n";
  for (const Row& row : rows()) {
    csv += fmt::format("{},\"{}\",\"{}\",{},{:.6f},{:.6f},{},\"{}\"\n", row.method, row.source, row.setting,
                       row.published ? fmt::format("{:g}", *row.published) : "", row.theory.low, row.theory.high, verdict(row),
                       row.note);
  }
  return csv;
}

}  // namespace

TEST_CASE("Medusa's 63-node tree has the published shape", "[theory][trees][published]") {
  const Tree tree = medusa_tree();
  CHECK(tree.size() == 64);
  std::vector<int> levels(5, 0);
  for (const int depth : tree.depths()) ++levels[static_cast<std::size_t>(depth)];
  CHECK(levels == std::vector<int>{1, 10, 28, 23, 2});
}

TEST_CASE("results/methods/theory.csv is current", "[theory][published]") { CHECK(specsim::read_whole_file(path) == text()); }

TEST_CASE("writes results/methods/theory.csv", "[.methods]") { specsim::write_whole_file(path, text()); }
