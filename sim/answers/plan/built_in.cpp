#include "sim/answers/plan/built_in.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace specsim::plan {

namespace {

using spec::MethodValues;
using spec::PartValues;

PartValues default_cost() {
  return {"roofline", {{"hardware", kDefaultHardware}, {"target", kDefaultTarget}, {"draft", kDefaultDraft}}};
}

MethodValues chain(std::int64_t draft_length, const std::string& verifier) {
  return {{"chain", {{"draft_length", draft_length}}}, PartValues{verifier, {}}};
}

// Two children below the root and below each of its children, then chains: 14 tokens, 4 deep.
MethodValues fixed_tree(const std::string& verifier) {
  return {{"tree_static", {{"branching", std::vector<double>{2, 2, 1, 1}}}}, PartValues{verifier, {}}};
}

MethodValues likeliest(MethodValues method) {
  method.drafter.settings.emplace_back("siblings", std::string("top_k"));
  return method;
}

// Chains of the draft's likeliest tokens, the default of servers.
MethodValues argmax_chain(std::int64_t draft_length) {
  MethodValues method = chain(draft_length, "token");
  method.drafter.settings.emplace_back("selection", std::string("argmax"));
  return method;
}

MethodValues without_replacement(MethodValues method) {
  method.drafter.settings.emplace_back("siblings", std::string("without_replacement"));
  return method;
}

// Sequoia's tree of `budget` tokens for `acceptance`, the probability that the child of each rank is the accepted one.
MethodValues best_tree(std::int64_t budget, const std::vector<double>& acceptance, const std::string& verifier) {
  return {{"tree_sequoia", {{"budget", budget}, {"depth", std::int64_t{4}}, {"acceptance", acceptance}}},
          PartValues{verifier, {}}};
}

// The draft's likeliest tokens, not drawn ones (EAGLE-2).
MethodValues likeliest_tokens(std::int64_t depth, std::int64_t width, std::int64_t nodes) {
  return {{"tree_dynamic", {{"depth", depth}, {"width", width}, {"nodes", nodes}}}, PartValues{"tree_point_mass", {}}};
}

// The same with the tree of EAGLE-2's program, whose size is best for a single sequence.
MethodValues shipped_tree() { return {{"tree_dynamic", {}}, PartValues{"tree_point_mass", {}}}; }

// The sizes of the trees that are offered for a table. A small table is offered whole: [[0.3, 0.28]] has only one tree, of two
// siblings.
std::vector<std::int64_t> sizes_of_trees(const std::vector<std::vector<double>>& acceptance) {
  double level = 1.0;
  double nodes = 0.0;  // nodes of the whole table's tree
  for (const std::vector<double>& row : acceptance) nodes += level *= static_cast<double>(row.size());
  std::vector<std::int64_t> sizes = {2, 3, 4, 8, 16, 24, 32, 48, 63};
  sizes.erase(std::upper_bound(sizes.begin(), sizes.end(), nodes,
                               [](double all, std::int64_t size) { return all < static_cast<double>(size); }),
              sizes.end());
  if (!sizes.empty() && nodes < 63.0 && static_cast<double>(sizes.back()) != nodes)
    sizes.push_back(static_cast<std::int64_t>(nodes));
  return sizes;
}

MethodValues tree_of_table(const std::vector<std::vector<double>>& acceptance, std::int64_t nodes) {
  return likeliest({{"tree_ranked", {{"acceptance", acceptance}, {"nodes", nodes}}}, PartValues{"tree_point_mass", {}}});
}

MethodValues shallow_tree(const std::vector<std::vector<double>>& acceptance, std::int64_t nodes, std::int64_t depth) {
  return likeliest(
      {{"tree_ranked", {{"acceptance", acceptance}, {"nodes", nodes}, {"depth", depth}}}, PartValues{"tree_point_mass", {}}});
}

// Rounds to six significant digits.
double six_digits(double x) { return config::as_number(fmt::format("{:.6g}", x)).value_or(x); }

}  // namespace

spec::ExperimentValues planning_experiment() {
  spec::ExperimentValues values;
  values.name = "plan";
  values.pair = {2, {"uniform", {}}, {"uniform", {}}, false};
  values.method = {{"chain", {{"draft_length", std::int64_t{1}}}}, std::nullopt};
  values.cost = default_cost();
  values.context_length = kDefaultContext;
  return values;
}

double noise_of_draft(double alpha) {
  // Noise, and the mean overlap of target and draft over 6,000 contexts; standard errors of at most .005.
  struct Knot {
    double noise;
    double alpha;
  };
  static constexpr std::array kKnots = {
      Knot{0, 1},        Knot{0.05, 0.9876}, Knot{0.1, 0.9753}, Knot{0.2, 0.9508}, Knot{0.3, 0.9266}, Knot{0.45, 0.8912},
      Knot{0.6, 0.8575}, Knot{0.8, 0.8144},  Knot{1, 0.7738},   Knot{1.2, 0.7356}, Knot{1.4, 0.6998}, Knot{1.7, 0.6516},
      Knot{2, 0.6085},   Knot{2.5, 0.5454},  Knot{3, 0.4923},   Knot{4, 0.4059},   Knot{5, 0.3398},   Knot{6.5, 0.2651},
      Knot{8, 0.211},    Knot{10, 0.1636},   Knot{13, 0.1171},  Knot{17, 0.0799},  Knot{22, 0.0533},  Knot{30, 0.0319},
      Knot{40, 0.0209},  Knot{60, 0.0096}};
  const auto* const next =
      std::find_if(kKnots.begin() + 1, kKnots.end() - 1, [&](const Knot& knot) { return knot.alpha <= alpha; });
  const Knot& above = *(next - 1);
  const double share = (above.alpha - alpha) / (above.alpha - next->alpha);
  return above.noise + share * (next->noise - above.noise);
}

spec::ExperimentValues methods_to_compare(double alpha, double temperature) {
  // Ranks after the first share the remaining probability, in a row that falls by a factor of .4. This only determines which
  // tree to build.
  std::vector<double> acceptance = {six_digits(alpha)};
  for (double share = 0.4; acceptance.size() < 4; share *= 0.4) acceptance.push_back(six_digits(share * (1.0 - alpha)));
  spec::ExperimentValues values;
  values.name = "compare";
  values.rounds = 200000;
  values.pair = {kComparedVocab,
                 {"normal_logits", {{"sigma", kComparedSigma}, {"spread", kComparedSigmaSpread}}},
                 {"logit_noise", {{"value", six_digits(noise_of_draft(alpha))}, {"spread", kComparedNoiseSpread}}},
                 true};
  values.context = PartValues{"iid", {{"pool", std::int64_t{256}}}};
  values.cost = default_cost();
  values.context_length = kDefaultContext;
  values.batches = {1, 8, 32};
  if (temperature == 0.0) {
    // The draft ranks its tokens by its own distribution, as EAGLE-2 does, and not by its distribution at temperature 0.
    values.pair.target_temperature = 0.0;
    values.method = argmax_chain(4);
    values.methods = {argmax_chain(2),
                      argmax_chain(4),
                      argmax_chain(6),
                      likeliest(fixed_tree("tree_point_mass")),
                      likeliest(best_tree(16, acceptance, "tree_point_mass")),
                      likeliest(best_tree(64, acceptance, "tree_point_mass")),
                      likeliest_tokens(4, 4, 16),
                      shipped_tree()};
    return values;
  }
  if (temperature != 1.0) values.pair.target_temperature = values.pair.draft_temperature = temperature;
  values.method = chain(4, "token");
  values.methods = {chain(2, "token"),
                    chain(4, "token"),
                    chain(6, "token"),
                    argmax_chain(2),
                    argmax_chain(4),
                    chain(4, "block"),
                    chain(6, "block"),
                    fixed_tree("multi_draft_recursive"),
                    fixed_tree("kseq"),
                    fixed_tree("traversal"),
                    without_replacement(fixed_tree("without_replacement")),
                    without_replacement(best_tree(16, acceptance, "without_replacement")),
                    without_replacement(best_tree(64, acceptance, "without_replacement")),
                    likeliest_tokens(4, 4, 16),
                    shipped_tree()};
  return values;
}

spec::ExperimentValues methods_on_table(const std::vector<std::vector<double>>& acceptance, bool one_pass, bool drawn) {
  std::size_t ranks = 0;
  for (const std::vector<double>& row : acceptance) ranks = std::max(ranks, row.size());
  spec::ExperimentValues values;
  values.name = "compare";
  values.rounds = 200000;
  values.pair = {static_cast<std::int64_t>(ranks) + 1, {"uniform", {}}, {"uniform", {}}, false};  // not used
  values.context = PartValues{"acceptance_table", {{"acceptance", acceptance}}};
  if (drawn) values.context->settings.emplace_back("selection", std::string("sampled"));
  values.cost = default_cost();
  values.context_length = kDefaultContext;
  values.batches = {1, 8, 32};
  const auto chain_of = [&](std::size_t length) {
    const auto tokens = static_cast<std::int64_t>(length);
    return one_pass ? MethodValues{{"parallel", {{"draft_length", tokens}}}, PartValues{"tree_point_mass", {}}}
           : drawn  ? chain(tokens, "token")
                    : argmax_chain(tokens);
  };
  values.method = chain_of(1);
  for (const std::size_t length : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 24, 31, 48, 63})
    if (length <= acceptance.size()) values.methods.push_back(chain_of(length));
  if (ranks > 1 && !one_pass)
    for (const std::int64_t budget : sizes_of_trees(acceptance)) values.methods.push_back(tree_of_table(acceptance, budget));
  return values;
}

std::vector<spec::MethodValues> shallow_trees(const std::vector<std::vector<double>>& acceptance) {
  std::vector<spec::MethodValues> trees;
  std::vector<std::vector<double>> rows;
  for (std::size_t depth = 1; depth < acceptance.size(); ++depth) {
    rows.push_back(acceptance[depth - 1]);
    if (std::all_of(rows.begin(), rows.end(), [](const std::vector<double>& row) { return row.size() == 1; }))
      continue;  // chains
    for (const std::int64_t budget : sizes_of_trees(rows))
      trees.push_back(shallow_tree(acceptance, budget, static_cast<std::int64_t>(depth)));
  }
  return trees;
}

}  // namespace specsim::plan
