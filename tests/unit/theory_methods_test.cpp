// Published tokens per round of the field's methods compared with theory, if the inputs are not inferred from the same figure.
// results/methods/theory.csv is this table; the hidden case [.methods] of this program writes it.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/foundation/base/whole_file.h"
#include "tests/support/best_trees.h"
#include "tests/support/block_bounds.h"
#include "tests/support/published_trees.h"

namespace specsim::theory_methods_test {

using namespace specsim::theory;
using namespace specsim::tests;

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

std::vector<Row> rows() {
  std::vector<Row> table;
  const std::string medusa_source =
      "FasterDecoding/Medusa assets/medusa_acc.csv, medusa_choices.py; measured at temperature 0 on MT-bench";
  const std::string medusa_note =
      "independent heads; low: ranks 6 to 10 never right, high: as often as rank 5; the training log's accuracies, measured on "
      "another text";
  const TreeShape tree = medusa_tree();
  for (const auto& [model, heads, published] :
       {std::tuple{"Vicuna-7b", &medusa_heads_7b, 2.565}, std::tuple{"Vicuna-33b", &medusa_heads_33b, 2.514}}) {
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
         {tokens_per_round(0.722, length), block_distribution(block_context({&widest, 1}), length).mean_emitted()},
         "low: the token rule at its alpha of .722 (from the token rows); high: the widest gain that a fixed pair of this "
         "overlap allows"});
  }
  const auto programme = sequoia_programme(sequoia_vector, 128, 10);
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
  const TreeShape tree = medusa_tree();
  CHECK(tree.size() == 64);
  std::vector<int> levels(5, 0);
  for (const int depth : tree.depths()) ++levels[static_cast<std::size_t>(depth)];
  CHECK(levels == std::vector<int>{1, 10, 28, 23, 2});
}

TEST_CASE("results/methods/theory.csv is current", "[theory][published]") { CHECK(specsim::read_whole_file(path) == text()); }

TEST_CASE("writes results/methods/theory.csv", "[.methods]") { specsim::write_whole_file(path, text()); }

}  // namespace specsim::theory_methods_test
