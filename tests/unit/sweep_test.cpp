// Sweeps: axes, the grid of cells, and which cells draw the same numbers.
#include "sim/experiments/spec/sweep.h"
#include "sim/experiments/spec/spec.h"
#include "tests/support/cells.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace specsim::sweep_test {

using spec::Axis;

namespace {

using Texts = std::vector<std::string>;

std::vector<Axis> axes_of(const std::string& yaml) {
  Diagnostics diagnostics;
  const config::Value sweep = config::parse_text(yaml, "test", diagnostics);
  diagnostics.throw_if_any();
  std::vector<Axis> axes = spec::read_sweep(sweep, diagnostics);
  diagnostics.throw_if_any();
  return axes;
}

// The values of the first path of the only axis.
Texts values_of(const std::string& yaml) {
  const std::vector<Axis> axes = axes_of("{x: " + yaml + "}");
  REQUIRE(axes.size() == 1);
  REQUIRE(axes[0].paths == Texts{"x"});
  Texts texts;
  for (const auto& point : axes[0].points) texts.push_back(point.at(0).text);
  return texts;
}

std::string refusal(const std::string& yaml) {
  try {
    static_cast<void>(axes_of(yaml));
  } catch (const BadInput& bad) {
    return bad.what();
  }
  return "";
}

std::string yaml_of(const std::string& sweep) {
  return "{experiment: sweep, rounds: 1000, pair: {vocab: 8, target: {family: zipf, exponent: 1}, draft: {from: target, "
         "transform: temperature, value: 2}}, "
         "decode: {drafter: {kind: chain, draft_length: 3}}" +
         (sweep.empty() ? "" : ", sweep: " + sweep) + "}";
}

std::vector<spec::Cell> cells_of(const std::string& sweep) { return tests::experiment_of(yaml_of(sweep)).cells; }

std::string mistakes(const std::string& sweep) {
  try {
    static_cast<void>(cells_of(sweep));
  } catch (const BadInput& bad) {
    return bad.what();
  }
  return "";
}

Texts labels(const std::vector<spec::Cell>& cells) {
  Texts texts;
  for (const spec::Cell& cell : cells) {
    std::string text;
    for (const auto& [path, value] : cell.axes) text += (text.empty() ? "" : " ") + value;
    texts.push_back(text);
  }
  return texts;
}

}  // namespace

TEST_CASE("an axis is a list of anything", "[sweep]") {
  CHECK(values_of("[1, 2.50, abc]") == Texts{"1", "2.50", "abc"});
  const std::vector<Axis> axes = axes_of("{pair.target: [{family: uniform}, {family: zipf, exponent: 1}], b: [true]}");
  REQUIRE(axes.size() == 2);
  CHECK(axes[0].paths == Texts{"pair.target"});
  CHECK(axes[0].points.size() == 2);
  CHECK(axes[0].points[1][0].find("exponent")->text == "1");
  CHECK(axes[1].paths == Texts{"b"});
}

TEST_CASE("ranges by step", "[sweep]") {
  CHECK(values_of("{from: 1, to: 5, step: 1}") == Texts{"1", "2", "3", "4", "5"});
  CHECK(values_of("{from: 1, to: 5.9, step: 2}") == Texts{"1", "3", "5"});
  CHECK(values_of("{from: 1, to: 1, step: 7}") == Texts{"1"});
  CHECK(values_of("{from: 0, to: 1, step: 0.1}") ==
        Texts{"0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"});
  CHECK(values_of("{from: 0.1, to: 0.7, step: 0.2}") == Texts{"0.1", "0.3", "0.5", "0.7"});
  CHECK(values_of("{from: 0.05, to: 0.35, step: 0.05}") == Texts{"0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.35"});
  CHECK(values_of("{from: -1, to: 1, step: 0.5}") == Texts{"-1", "-0.5", "0", "0.5", "1"});
  CHECK(values_of("{from: 0, to: 1, step: 0.3}") == Texts{"0", "0.3", "0.6", "0.9"});
  // Each end is reached although the quotient is rounded; sums of steps show no rounding.
  for (int n = 1; n <= 300; ++n) {
    const Texts values = values_of(fmt::format("{{from: 0, to: {}, step: 0.01}}", fmt::format("{:.2f}", n / 100.0)));
    REQUIRE(values.size() == static_cast<std::size_t>(n) + 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      REQUIRE(values[i].size() <= 4);
      REQUIRE(std::stod(values[i]) == std::stod(fmt::format("{:.2f}", static_cast<double>(i) / 100.0)));
    }
  }
}

TEST_CASE("ranges by count", "[sweep]") {
  CHECK(values_of("{from: 1, to: 5, count: 5}") == Texts{"1", "2", "3", "4", "5"});
  CHECK(values_of("{from: 0, to: 1, count: 2}") == Texts{"0", "1"});
  CHECK(values_of("{from: 0.2, to: 0.9, count: 8}") == Texts{"0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"});
  CHECK(values_of("{from: 3, to: 3, count: 1}") == Texts{"3"});
  CHECK(values_of("{from: 0, to: 1, count: 4}") == Texts{"0", "0.333333333333333", "0.666666666666667", "1"});
}

TEST_CASE("ranges on a log scale", "[sweep]") {
  CHECK(values_of("{from: 1, to: 1000, count: 4, scale: log}") == Texts{"1", "10", "100", "1000"});
  CHECK(values_of("{from: 1, to: 1000, step: 10, scale: log}") == Texts{"1", "10", "100", "1000"});
  CHECK(values_of("{from: 2, to: 64, step: 2, scale: log}") == Texts{"2", "4", "8", "16", "32", "64"});
  CHECK(values_of("{from: 2, to: 100, step: 2, scale: log}") == Texts{"2", "4", "8", "16", "32", "64"});
  CHECK(values_of("{from: 0.001, to: 1, count: 4, scale: log}") == Texts{"0.001", "0.01", "0.1", "1"});
  CHECK(values_of("{from: 1, to: 131072, step: 2, scale: log}").size() == 18);
  CHECK(values_of("{from: 1, to: 10, count: 4, scale: log}") == Texts{"1", "2.15443469003188", "4.64158883361278", "10"});
}

TEST_CASE("what a range refuses", "[sweep]") {
  CHECK(refusal("{x: {from: 1, to: 2}}").find("neither step nor count") != std::string::npos);
  CHECK(refusal("{x: {from: 1, to: 2, step: 1, count: 2}}").find("both step and count") != std::string::npos);
  CHECK(refusal("{x: {from: 2, to: 1, step: 1}}").find("from <= to") != std::string::npos);
  CHECK(refusal("{x: {from: 0, to: 1, count: 3, scale: log}}").find("from above 0") != std::string::npos);
  CHECK(refusal("{x: {from: 1, to: 2, step: 0.5, scale: log}}").find("above 1") != std::string::npos);
  CHECK_FALSE(refusal("{x: {from: 1, to: 2, step: 0}}").empty());
  CHECK_FALSE(refusal("{x: {from: 1, to: 2, step: -1}}").empty());
  CHECK_FALSE(refusal("{x: {from: 1, to: 2, count: 1}}").empty());
  CHECK_FALSE(refusal("{x: {from: 1, to: 2, count: 0}}").empty());
  CHECK_FALSE(refusal("{x: {from: 1, to: 2, count: 2.5}}").empty());
  CHECK_FALSE(refusal("{x: {to: 2, count: 2}}").empty());
  CHECK_FALSE(refusal("{x: {from: 1, to: 2, count: 2, scale: cubic}}").empty());
  CHECK_FALSE(refusal("{x: {from: 0, to: 1, step: 1e-9}}").empty());
  CHECK_FALSE(refusal("{x: {from: -1e308, to: 1e308, count: 3}}").empty());
  CHECK(refusal("{x: 5}").find("axis x is 5") != std::string::npos);
  CHECK_FALSE(refusal("{x: []}").empty());
  CHECK_FALSE(refusal("{}").empty());
  CHECK_FALSE(refusal("[1, 2]").empty());
}

TEST_CASE("zipped axes advance together", "[sweep]") {
  const std::vector<Axis> axes = axes_of("{zip: {a: [1, 2, 3], b.c: {from: 10, to: 30, step: 10}}, d: [7, 8]}");
  REQUIRE(axes.size() == 2);
  CHECK(axes[0].paths == Texts{"a", "b.c"});
  REQUIRE(axes[0].points.size() == 3);
  CHECK(axes[0].points[1][0].text == "2");
  CHECK(axes[0].points[1][1].text == "20");
  CHECK(axes[1].paths == Texts{"d"});
  // A list of zips: one axis each.
  const std::vector<Axis> two = axes_of("{zip: [{a: [1, 2], b: [3, 4]}, {c: [5, 6, 7], d: [8, 9, 10]}]}");
  REQUIRE(two.size() == 2);
  CHECK(two[0].points.size() == 2);
  CHECK(two[1].points.size() == 3);
  CHECK(refusal("{zip: {a: [1, 2], b: [3]}}").find("axis b has 1 values, allowed: 2, as a has") != std::string::npos);
  CHECK_FALSE(refusal("{zip: 5}").empty());
  CHECK_FALSE(refusal("{zip: {}}").empty());
  CHECK_FALSE(refusal("{zip: []}").empty());
}

TEST_CASE("paths that clash are refused", "[sweep]") {
  CHECK(refusal("{zip: {a: [1], b: [2]}, b: [3]}").find("axis b is swept twice") != std::string::npos);
  CHECK(refusal("{a.b: [1], a: [2]}").find("axis a would replace") != std::string::npos);
  CHECK(refusal("{a: [2], a.b: [1]}").empty());
  CHECK(refusal("{ab: [1], a: [2]}").empty());
  CHECK_FALSE(refusal("{sweep.x: [1]}").empty());
  CHECK_FALSE(refusal("{experiment: [a, b]}").empty());
  CHECK_FALSE(refusal("{a: {from: 1, to: 1000, step: 1}, b: {from: 1, to: 1000, step: 1}}").empty());  // a million cells
}

TEST_CASE("the grid: the last axis is the fastest", "[sweep]") {
  const auto cells =
      cells_of("{pair.vocab: [8, 16], decode.drafter.draft_length: [1, 2, 3], zip: {seed: [5, 6], rounds: [100, 200]}}");
  REQUIRE(cells.size() == 12);
  CHECK(labels(cells) == Texts{"8 1 5 100", "8 1 6 200", "8 2 5 100", "8 2 6 200", "8 3 5 100", "8 3 6 200", "16 1 5 100",
                               "16 1 6 200", "16 2 5 100", "16 2 6 200", "16 3 5 100", "16 3 6 200"});
  for (std::size_t i = 0; i < cells.size(); ++i) CHECK(cells[i].index == i);
  // The values have arrived.
  CHECK(cells[7].vocab == 16);
  CHECK(cells[7].draft_length() == 1);
  CHECK(cells[7].seed == 6);
  CHECK(cells[7].rounds == 200);
  const Texts paths = {"pair.vocab", "decode.drafter.draft_length", "seed", "rounds"};
  CHECK(tests::experiment_of(
            yaml_of("{pair.vocab: [8, 16], decode.drafter.draft_length: [1, 2, 3], zip: {seed: [5, 6], rounds: [100, 200]}}"))
            .axes == paths);
  // No sweep: one cell.
  const auto one = cells_of("");
  REQUIRE(one.size() == 1);
  CHECK(one[0].axes.empty());
}

TEST_CASE("axes set the keys that they name, create missing sections, and replace whole ones", "[sweep]") {
  const auto sampling = cells_of("{pair.target_sampling.top_k: [1, 3]}");
  REQUIRE(sampling.size() == 2);
  std::vector<double> target(8);
  for (std::size_t i = 0; i < 2; ++i) {
    sampling[i].contexts->pairs.at(0).draw_target({{1, 2}, 0}, target);
    std::size_t kept = 0;
    for (const double mass : target) kept += mass > 0.0 ? 1 : 0;
    CHECK(kept == (i == 0 ? 1 : 3));
  }
  // A whole context, with a setting below it set after it.
  const auto contexts = cells_of("{context: [{process: fixed}, {process: iid, pool: 4}], context.sequence_rounds: [3, 5]}");
  REQUIRE(contexts.size() == 4);
  CHECK(contexts[3].sequence_rounds == 5);
  CHECK(contexts[3].contexts->process->shape().contexts == 4);
  CHECK(contexts[0].contexts->process->shape().kind == families::ContextShape::Kind::fixed);
  // Maps as values are labelled in flow style.
  CHECK(contexts[2].axes[0].second == "{process: iid, pool: 4}");
  // A list item by its number.
  const auto types = tests::experiment_of(
      "{experiment: sweep, rounds: 1000, pair: {vocab: 2, target: {family: explicit, probabilities: [.5, .5]}, draft: {family: "
      "uniform}}, "
      "context: {process: requests, request_tokens: 5, types: [{weight: 1}, {weight: 1}]}, decode: {drafter: {kind: chain, "
      "draft_length: 3}}, "
      "sweep: {context.types.1.weight: [1, 3]}}");
  CHECK(types.cells.at(1).contexts->process->shape().start == std::vector<double>{0.25, 0.75});
  CHECK(types.cells.at(0).contexts->process->shape().start == std::vector<double>{0.5, 0.5});
}

TEST_CASE("mistakes in any cell are found before the start", "[sweep]") {
  CHECK(mistakes("{pair.vocab: [8, 1]}").find("vocab") != std::string::npos);
  CHECK_FALSE(mistakes("{decode.drafter.draft_length: [1, 65]}").empty());
  CHECK_FALSE(mistakes("{pair.target.exponent: [1, -1]}").empty());
  CHECK_FALSE(mistakes("{pair.target.exponnent: [1]}").empty());
  CHECK_FALSE(mistakes("{pair.vocab.x: [1]}").empty());
  CHECK_FALSE(mistakes("{decode.verifier: [token, tokens]}").empty());
  CHECK_FALSE(mistakes("{decode.verifier: [token, greedy]}").empty());  // a target that is not one-hot
  CHECK(mistakes("{pair.draft: [{from: target, transform: overlap, value: .9}, {from: target, transform: overlap, value: .01}]}")
            .find("allowed: in [") != std::string::npos);
  CHECK(mistakes("{decode.verifier: [token, sample_match]}").empty());
}

TEST_CASE("cells that differ only in decode or cost draw the same numbers, others do not", "[sweep]") {
  const auto groups = [](const std::string& sweep) {
    std::set<std::uint64_t> distinct;
    const auto cells = cells_of(sweep);
    for (const spec::Cell& cell : cells) distinct.insert(cell.pairing_group);
    return std::pair{distinct.size(), cells.size()};
  };
  using Groups = std::pair<std::size_t, std::size_t>;
  CHECK(groups("{decode.drafter.draft_length: [0, 1, 8], decode.verifier: [token, sample_match], cost: [{model: ratio, "
               "cost_ratio: .1}, {model: ratio, cost_ratio: .2}]}") == Groups{1, 12});
  CHECK(groups("{decode.drafter: [{kind: chain, draft_length: 2}, {kind: chain, draft_length: 2, selection: argmax}]}") ==
        Groups{1, 2});
  CHECK(groups("{theory: [{name: exact}, {name: none}], rounds: [10, 20]}") == Groups{1, 4});
  CHECK(groups("{pair.vocab: [8, 9, 10]}") == Groups{3, 3});
  CHECK(groups("{pair.target.exponent: [1, 2]}") == Groups{2, 2});
  CHECK(groups("{pair.draft.value: [2, 3], decode.drafter.draft_length: [1, 2]}") == Groups{2, 4});
  CHECK(groups("{pair.target_sampling: [{top_k: 3}, {top_k: 4}]}") == Groups{2, 2});
  CHECK(groups("{context: [{process: fixed}, {process: iid, pool: 4}, {process: iid, pool: 5}]}") == Groups{3, 3});
  // Spelling does not matter: the numbers 2, 2.0 and 2e0 are one, and so is the order of keys.
  CHECK(groups("{pair.draft.value: [2, 2.0, 2e0]}") == Groups{1, 3});
  CHECK(groups("{pair.target: [{family: zipf, exponent: 1, offset: 2}, {offset: 2, exponent: 1, family: zipf}]}") ==
        Groups{1, 2});
  // The seed enters the key, not the group.
  const auto seeds = cells_of("{seed: [1, 2]}");
  CHECK(seeds[0].pairing_group == seeds[1].pairing_group);
  CHECK(rng::make_key(seeds[0].seed, seeds[0].pairing_group).low != rng::make_key(seeds[1].seed, seeds[1].pairing_group).low);
}

TEST_CASE("prepared tables are shared if distributions, rule and seed are the same", "[sweep]") {
  const auto keys = [](const std::string& sweep) {
    std::set<std::string> distinct;
    for (const spec::Cell& cell : cells_of(sweep)) distinct.insert(cell.preparation_key);
    return distinct.size();
  };
  CHECK(keys("{decode.drafter.draft_length: [0, 1, 8], cost: [{model: ratio, cost_ratio: .1}, {model: ratio, cost_ratio: .2}], "
             "rounds: [5, 6]}") == 1);
  CHECK(keys("{decode.verifier: [token, sample_match]}") == 2);
  CHECK(keys("{decode.drafter: [{kind: chain, draft_length: 2}, {kind: chain, draft_length: 2, selection: argmax}]}") == 2);
  CHECK(keys("{seed: [1, 2]}") == 2);
  CHECK(keys("{pair.vocab: [8, 9]}") == 2);
}

}  // namespace specsim::sweep_test
