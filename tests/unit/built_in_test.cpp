// Experiments made of typed values: the same cells as those of their printed config.
#include "sim/answers/plan/built_in.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/config/value.h"
#include "tests/support/cells.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>

namespace specsim::built_in_test {

namespace {

spec::Experiment made(const spec::ExperimentValues& values) {
  Diagnostics diagnostics;
  spec::Experiment experiment = spec::make_experiment(values, "made", {}, diagnostics);
  diagnostics.throw_if_any();
  return experiment;
}

// The experiment that is read from its printed config.
spec::Experiment read_back(const spec::ExperimentValues& values) {
  Diagnostics diagnostics;
  spec::Experiment experiment = spec::read_experiment_text(made(values).config.file, "printed", {}, diagnostics);
  diagnostics.throw_if_any();
  return experiment;
}

void check_same(const spec::ExperimentValues& values) {
  const spec::Experiment a = made(values);
  const spec::Experiment b = read_back(values);
  CHECK(a.name == b.name);
  CHECK(a.axes == b.axes);
  REQUIRE(a.cells.size() == b.cells.size());
  for (std::size_t i = 0; i < a.cells.size(); ++i) {
    const spec::Cell& x = a.cells[i];
    const spec::Cell& y = b.cells[i];
    CAPTURE(x.method_text);
    CHECK(x.axes == y.axes);
    CHECK(x.rounds == y.rounds);
    CHECK(x.method_text == y.method_text);
    CHECK(x.pairing_group == y.pairing_group);
    CHECK(x.preparation_key == y.preparation_key);
    CHECK(x.simulation_key == y.simulation_key);
    CHECK(x.drafted_nodes() == y.drafted_nodes());
    CHECK(x.round_time(0.5).total() == y.round_time(0.5).total());
  }
}

}  // namespace

TEST_CASE("the built-in experiments read back from their printed configs are the same cells") {
  check_same(plan::planning_experiment());
  for (const double temperature : {0.0, 0.6, 1.0}) check_same(plan::methods_to_compare(0.7, temperature));
  spec::ExperimentValues values = plan::methods_to_compare(1.0 / 3.0, 1.0);
  values.cost = {"ratio", {{"cost_ratio", 0.05}}};
  check_same(values);
  values.cost = {"roofline", {{"hardware", "l40s"}, {"target", "llama-2-7b"}, {"draft", "none"}}};
  values.batches = {3};
  values.context_lengths = {100, 2000};
  check_same(values);
  const spec::Experiment experiment = made(values);
  CHECK(experiment.axes == std::vector<std::string>{"decode", "workload.batch", "workload.context_length"});
  CHECK(experiment.cells.size() == 15 * 1 * 2);
  CHECK(experiment.cells.back().workload.context == 2000.0);
}

TEST_CASE("the draft of the built-in methods is accepted as often as was asked for", "[stat]") {
  CHECK(plan::noise_of_draft(0.7356) == Approx(1.2));
  CHECK(plan::noise_of_draft(0.69) == Approx(1.461).margin(0.005));
  for (const double alpha : {0.05, 0.3, 0.5, 0.7, 0.9, 0.99}) {
    spec::ExperimentValues values = plan::methods_to_compare(alpha, 1.0);
    values.methods = {};
    values.batches = {};
    values.context = spec::PartValues{"iid", {{"pool", std::int64_t{2048}}}};
    const tests::ReadyCell ready(made(values).cells.at(0));
    const judge::Prediction prediction = judge::predict_exact(ready.cell(), ready.facts(), ready.cell().work());
    REQUIRE(prediction.known);
    // From 2,048 contexts, whose alphas differ by some .3. Mutant: the draft at the next knot's noise.
    CHECK(prediction.alpha == Approx(alpha).margin(0.03));
  }
}

TEST_CASE("settings keep their type: a text that reads as a number stays a text, a number its last digit") {
  spec::ExperimentValues values = plan::methods_to_compare(0.7, 1.0);
  values.pair.draft.settings.at(0).second = 0.1 + 0.2;
  values.name = "10";
  const spec::ConfigText text = made(values).config;
  CHECK(text.sections.at("experiment") == "\"10\"");
  Diagnostics none;
  const config::Value config = config::parse_text(text.line, "printed", none);
  const config::Value* alpha = config::find_path(config, "pair.draft.value");
  REQUIRE(alpha != nullptr);
  CHECK(config::as_number(*alpha) == std::optional(0.1 + 0.2));
}

TEST_CASE("mistakes in typed values are reported like those of a config, at the name of the experiment") {
  spec::ExperimentValues values = plan::planning_experiment();
  values.method.drafter.settings = {{"draft_length", std::int64_t{65}}};
  Diagnostics diagnostics;
  spec::make_experiment(values, "the built-in plan", {}, diagnostics);
  REQUIRE(diagnostics.list().size() == 1);
  CHECK(to_string(diagnostics.list()[0].where) == "the built-in plan");
  CHECK(diagnostics.list()[0].message.find("draft_length is 65, allowed: an integer in [0, 64]") != std::string::npos);
}

}  // namespace specsim::built_in_test
