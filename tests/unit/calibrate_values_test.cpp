// A calibration's returned values equal the values in its files: the cost table, the trace. Also tests the text on the errors of
// a validation.
#include "sim/foundation/config/arguments.h"
#include "sim/hardware/latency/table.h"
#include "sim/lab/calibrate/validation.h"
#include "tests/support/temporary_file.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace specsim::calibrate_values_test {

using tests::TemporaryFile;

namespace {

std::unique_ptr<cost::CostModel> table_of_file(const std::string& path) {
  const cost::CostEntry& entry = *cost::cost_models().find("table");
  Diagnostics diagnostics;
  const config::Value section = config::parse_text(fmt::format("{{file: {}}}", path), "test", diagnostics);
  const config::Arguments arguments = config::read_arguments(section, entry.info.parameters, {}, "test", diagnostics);
  std::unique_ptr<cost::CostModel> model = entry.make(arguments, diagnostics);
  diagnostics.throw_if_any();
  return model;
}

const std::vector<cost::MeasuredPass> kPasses = {{"target", 1, 1, 10, 8.25},      {"target", 3, 1, 10, 9.5},
                                                 {"target", 1, 1, 90, 8.75},      {"target", 3, 1, 90, 10.5},
                                                 {"draft", 1, 1, 10, 0.25},       {"draft", 1, 1, 90, 0.375},
                                                 {"draft_first", 1, 1, 10, 0.5},  {"draft_first", 2, 1, 10, 0.625},
                                                 {"draft_first", 1, 1, 90, 0.75}, {"draft_first", 2, 1, 90, 0.875}};

}  // namespace

TEST_CASE("a cost model of passes at hand is the one of their table") {
  std::string text = "model,tokens,batch,context,ms\n";
  for (const cost::MeasuredPass& p : kPasses)
    text += fmt::format("{},{},{},{},{}\n", p.model, p.tokens, p.batch, p.context, p.ms);
  const TemporaryFile file(text);
  const auto read = table_of_file(file.path());
  const auto at_hand = cost::cost_of_passes(kPasses, "passes");
  for (const double context : {10.0, 33.0, 90.0}) {
    const cost::Pass pass{1, 2, context, 2};
    CHECK(at_hand->pass(cost::Role::target, pass).total() == read->pass(cost::Role::target, pass).total());
    for (const int index : {0, 1})
      CHECK(at_hand->draft_pass({1, context - index}, index, index == 0 ? 0.5 : 0.0).total() ==
            read->draft_pass({1, context - index}, index, index == 0 ? 0.5 : 0.0).total());
  }
  CHECK(at_hand->pass(cost::Role::target, {1, 1, 10, 1}).total() == Approx(8.25e-3));

  const auto without = [](const std::string& model, double tokens, double context) {
    std::vector<cost::MeasuredPass> passes;
    for (const cost::MeasuredPass& p : kPasses)
      if (!(p.model == model && (tokens == 0.0 || p.tokens == tokens) && (context == 0.0 || p.context == context)))
        passes.push_back(p);
    return passes;
  };
  CHECK_THROWS_WITH(cost::cost_of_passes(without("draft", 0.0, 0.0), "what was timed"),
                    Catch::Contains("what was timed: no draft pass in the table"));
  CHECK_THROWS_AS(cost::cost_of_passes(without("target", 3.0, 90.0), "what was timed"), BadInput);  // a hole
}

TEST_CASE("acceptance of overlaps at hand is the one of their trace") {
  const std::vector<std::vector<double>> overlaps = {{0.5, 1.0, 0.25, 0.75, 1.0, 0.5}, {1.0, 1.0, 1.0},
                                                     {0.125, 0.5, 0.5, 1.0},           {0.75, 0.75},
                                                     {0.25, 1.0, 0.5, 0.5, 0.5},       {1.0, 0.5, 0.25}};
  std::string lines;
  for (const std::vector<double>& request : overlaps)
    lines += fmt::format("{{\"request\": 0, \"overlap\": [{}]}}\n", fmt::join(request, ", "));
  const TemporaryFile file(lines);
  const plan::AcceptanceCurve read = plan::trace_acceptance(file.path(), 4);
  std::vector<std::vector<double>> with_empty = overlaps;
  with_empty.emplace_back();  // a request without positions
  for (const auto& values : {overlaps, with_empty}) {
    const plan::AcceptanceCurve curve = plan::overlap_acceptance(values, "prompts", 4);
    CHECK(curve.tokens_per_round == read.tokens_per_round);
    CHECK(curve.full_rate == read.full_rate);
    CHECK(curve.parts == read.parts);
    CHECK(curve.measured == read.measured);
  }
  // A mutant: one overlap is changed.
  std::vector<std::vector<double>> other = overlaps;
  other[0][0] = 0.75;
  CHECK(plan::overlap_acceptance(other, "prompts", 4).tokens_per_round != read.tokens_per_round);
  CHECK_THROWS_WITH(plan::overlap_acceptance({{}, {}}, "prompts", 4),
                    Catch::Contains("prompts: no request with a judged position"));
}

TEST_CASE("errors of a validation: their size and their sign") {
  calibrate::Errors errors;
  CHECK(errors.text() == "median error -, worst -");
  CHECK(errors.bias_text() == "-");
  for (const double error : {0.02, -0.01, 0.05, std::nan(""), static_cast<double>(INFINITY)}) errors.add(error);
  CHECK(errors.text() == "median error 2.00 %, worst 5.00 %");
  CHECK(errors.bias_text() == "+2.00 % on average, 2 of 3 too large");
}

}  // namespace specsim::calibrate_values_test
