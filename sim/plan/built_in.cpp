#include "sim/plan/built_in.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace specsim::plan {

namespace {

using spec::MethodValues;
using spec::PartValues;

spec::RooflineValues default_cost() {
  return {config::scalar(kDefaultHardware, {}), spec::ModelValues::named(kDefaultTarget), spec::ModelValues::named(kDefaultDraft),
          std::nullopt};
}

MethodValues chain(std::int64_t draft_length, const std::string& verifier) {
  return {{"chain", {{"draft_length", draft_length}}}, PartValues{verifier, {}}};
}

// Two children below the root and below each of its children, then chains: 14 tokens, 4 deep.
MethodValues fixed_tree(const std::string& verifier) {
  return {{"tree_static", {{"branching", std::vector<double>{2, 2, 1, 1}}}}, PartValues{verifier, {}}};
}

MethodValues without_replacement(MethodValues method) {
  method.drafter.settings.emplace_back("siblings", std::string("without_replacement"));
  return method;
}

// Sequoia's tree of `budget` tokens for `acceptance`, the chance that the child of each rank is the one accepted.
MethodValues best_tree(std::int64_t budget, const std::vector<double>& acceptance) {
  return without_replacement({{"tree_sequoia", {{"budget", budget}, {"depth", std::int64_t{4}}, {"acceptance", acceptance}}},
                              PartValues{"without_replacement", {}}});
}

// The draft's likeliest tokens, chosen and not drawn (EAGLE-2).
MethodValues likeliest_tokens(std::int64_t depth, std::int64_t width, std::int64_t nodes) {
  return {{"tree_dynamic", {{"depth", depth}, {"width", width}, {"nodes", nodes}}}, PartValues{"tree_point_mass", {}}};
}

// Six significant digits, as a person would write the number.
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

spec::ExperimentValues methods_to_compare(double alpha) {
  // Ranks beyond the first share what is left in a row that falls by .4; this only says what tree to build.
  std::vector<double> acceptance = {six_digits(alpha)};
  for (double share = 0.4; acceptance.size() < 4; share *= 0.4) acceptance.push_back(six_digits(share * (1.0 - alpha)));
  spec::ExperimentValues values;
  values.name = "compare";
  values.rounds = 200000;
  values.pair = {4000, {"normal_logits", {{"sigma", 5.0}}}, {"overlap", {{"value", alpha}}}, true};
  values.context = PartValues{"iid", {{"pool", std::int64_t{32}}}};
  values.method = chain(4, "token");
  values.cost = default_cost();
  values.context_length = kDefaultContext;
  values.methods = {chain(2, "token"),         chain(4, "token"),         chain(6, "token"),
                    chain(4, "block"),         chain(6, "block"),         fixed_tree("multi_draft_recursive"),
                    fixed_tree("kseq"),        fixed_tree("traversal"),   without_replacement(fixed_tree("without_replacement")),
                    best_tree(16, acceptance), best_tree(64, acceptance), likeliest_tokens(4, 4, 16)};
  values.batches = {1, 8, 32};
  return values;
}

}  // namespace specsim::plan
