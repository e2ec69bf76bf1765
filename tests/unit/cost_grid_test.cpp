// Latencies of 5,000 deployments, drawn at random from the built-in GPUs, models and engines with types, parallelism and choices
// of kernels, compared with those of tests/data/latency_grid.csv, so that nothing changes by accident. The times are those of
// commit ce26f51e, before the latency model became a list of operations. kernel_error and shared_variance differ in 134 rows,
// because the error is now that of the kernel that computes the operation. Since then vLLM's and SGLang's 4-bit kernels (Marlin)
// count as their own, if only another engine's were measured, and a model description's separate types of attention are used.
// Then the engines vllm and sglang got prompt_time and verified_us_per_row, PCIe links their own latency, and the errors of all
// rows follow the new prior. Then products of the MI300X and MI325X, and the borrowed calibrations of H100 boards and the A100 of
// 40 GB; then the error of host time, which grows with it. `specsim_tests_unit "[.remake_grid]"` rewrites the file after an
// intended change.
#include "sim/foundation/base/text_file.h"
#include "tests/support/costs.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace specsim::cost_grid_test {

using namespace specsim::cost;
using specsim::tests::make_cost;
using specsim::tests::near;

namespace {

constexpr std::size_t kFigures = 11;

// The figures of a row, in the order of the file's columns. `pick` is the batch, context and draft length.
std::array<double, kFigures> figures_of(const CostModel& model, unsigned pick) {
  constexpr std::array<double, 9> kBatches = {1, 2, 5, 8, 17, 32, 64, 130, 256};
  constexpr std::array<double, 7> kContexts = {0, 100, 900, 2048, 5000, 16000, 60000};
  const double batch = kBatches[pick % 9];
  const double context = kContexts[(pick / 9) % 7];
  const double rows = 2.0 + (pick / 63) % 8;
  const PassTime verify = model.pass(Role::target, {batch, rows, context, rows});
  const Segment prompts{1, 256, context, 256 * (context + 128.5)};
  const Segment decoding{batch, batch, batch * (context + 1), batch * (context + 2)};
  const auto memory = model.memory_budget({8, 2048}, 5, Kept::both);
  return {model.pass(Role::target, {batch, 1, context, 1}).total(),
          verify.total(),
          verify.kv,
          verify.weights,
          model.pass(Role::target, {1, 700, context, 1}).total(),
          model.mixed_pass(Role::target, prompts, decoding, batch + 1, {}).total(),
          model.draft_pass({batch, context}, 0, 1.0).total(),
          model.kernel_error(Role::target, {8, 5, 2048, 5}),
          model.shared_variance(Role::target, {8, 5, 2048, 5}),
          model.relative_error(Role::target, {batch, rows, context, rows}),
          memory ? memory->needed_bytes() : 0.0};
}

}  // namespace

TEST_CASE("the file of latencies is rewritten", "[.remake_grid]") {
  std::istringstream lines(read_text_file("tests/data/latency_grid.csv"));
  std::string line;
  std::getline(lines, line);
  std::string text = line + "\n";
  while (std::getline(lines, line)) {
    const std::size_t end = line.find('"', 1);
    const std::string deployment = line.substr(1, end - 1);
    const std::string pick = line.substr(end + 2, line.find(',', end + 2) - end - 2);
    text += fmt::format("\"{}\",{}", deployment, pick);
    for (const double figure : figures_of(*make_cost("roofline", deployment), static_cast<unsigned>(std::stoul(pick))))
      text += fmt::format(",{:.12g}", figure);
    text += "\n";
  }
  std::ofstream("tests/data/latency_grid.csv") << text;
}

// Mutant: any change of a constant, a rule or a connection in the latency model.
TEST_CASE("latencies of 5,000 deployments are what they were", "[cost][grid]") {
  std::istringstream lines(read_text_file("tests/data/latency_grid.csv"));
  std::string line;
  std::getline(lines, line);
  int rows = 0;
  int wrong = 0;
  while (std::getline(lines, line)) {
    ++rows;
    const std::size_t end = line.find('"', 1);
    const std::string deployment = line.substr(1, end - 1);
    std::istringstream fields(line.substr(end + 2));
    std::string field;
    std::getline(fields, field, ',');
    const auto found = figures_of(*make_cost("roofline", deployment), static_cast<unsigned>(std::stoul(field)));
    for (std::size_t i = 0; i < kFigures; ++i) {
      std::getline(fields, field, ',');
      const double expected = std::stod(field);
      if (near(found[i], expected, 1e-9)) continue;
      if (++wrong > 10) continue;
      INFO(deployment << ", figure " << i << " of the row");
      CHECK(found[i] == expected);
    }
  }
  CHECK(rows == 5000);
  CHECK(wrong == 0);
}

}  // namespace specsim::cost_grid_test
