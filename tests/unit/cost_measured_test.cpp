// The built-in roofline compared with measured passes (tests/data/pass_times.csv): goals, and every exception with its value.
#include "sim/foundation/base/whole_file.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace specsim::cost_measured_test {

using namespace specsim::cost;
using specsim::tests::make_cost;

namespace {

struct Row {
  std::string gpu, model, tp, work;
  double tokens = 0, ms = 0;
  bool in_fit = false;
};

std::vector<Row> measured() {
  std::vector<Row> rows;
  std::istringstream lines(read_whole_file("tests/data/pass_times.csv"));
  bool header = true;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (header) {
      REQUIRE(line == "gpu,model,tp,tokens,ms,least_ms_beyond,work,in_fit,source");
      header = false;
      continue;
    }
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string part; std::getline(parts, part, ',');) cells.push_back(part);
    REQUIRE(cells.size() == 9);
    rows.push_back({cells[0], cells[1], cells[2], cells[6], std::stod(cells[3]), std::stod(cells[4]), cells[7] == "1"});
  }
  REQUIRE(rows.size() == 1614);
  return rows;
}

double predicted_ms(const Row& row) {
  static std::map<std::string, std::unique_ptr<CostModel>> models;
  std::unique_ptr<CostModel>& model = models[row.gpu + row.model + row.tp];
  if (model == nullptr)
    model = make_cost("roofline",
                      fmt::format("{{hardware: {}, target: {{preset: {}, tensor_parallel: {}}}, draft: llama-68m, engine: bare}}",
                                  row.gpu, row.model, row.tp));
  const bool whole = row.work == "pass";  // with norms and activations, and the LM head over at most 256 rows
  const PassTime time = model->pass(Role::target, {1, row.tokens, 0, whole ? std::min(row.tokens, 256.0) : 0.0});
  return 1e3 * (time.weights + time.compute + (whole ? time.launch : 0.0));
}

struct Errors {
  double mean = 0, worst = 0;
  int rows = 0;
};

// Percent, of times or of their ratios to one token.
Errors errors(const std::vector<Row>& rows, double most_tokens, bool ratio) {
  std::map<std::string, double> base;
  for (const Row& row : rows)
    if (row.tokens == 1) base[row.model + row.tp + row.work] = predicted_ms(row) / row.ms;
  Errors e;
  for (const Row& row : rows) {
    if (row.tokens > most_tokens || (ratio && row.tokens == 1)) continue;
    const double error = 100 * std::abs(predicted_ms(row) / row.ms / (ratio ? base.at(row.model + row.tp + row.work) : 1.0) - 1);
    e.mean += error;
    e.worst = std::max(e.worst, error);
    ++e.rows;
  }
  REQUIRE(e.rows > 0);
  e.mean /= e.rows;
  return e;
}

std::vector<Row> of(const std::string& gpu, const std::vector<std::pair<std::string, std::string>>& sets,
                    const std::string& work) {
  std::vector<Row> rows;
  for (const Row& row : measured())
    for (const auto& [model, tp] : sets)
      if (row.gpu == gpu && row.model == model && row.tp == tp && row.work == work) rows.push_back(row);
  REQUIRE(!rows.empty());
  return rows;
}

void holds(const std::vector<Row>& rows, double most_tokens, double mean, double worst) {
  for (const bool ratio : {false, true}) {
    const Errors e = errors(rows, most_tokens, ratio);
    INFO(rows.front().gpu << " to " << most_tokens << " tokens, " << (ratio ? "ratio" : "ms") << ": mean " << e.mean << ", worst "
                          << e.worst);
    CHECK(e.mean <= mean);
    CHECK(e.worst <= worst);
  }
}

}  // namespace

TEST_CASE("measured verification passes: A100 and RTX 4090 within the goals", "[cost][measured]") {
  const auto a100 = of("a100-80gb-sxm",
                       {{"llama-2-7b", "1"},
                        {"llama-2-70b", "4"},
                        {"llama-2-70b", "8"},
                        {"llama-3-8b", "1"},
                        {"llama-3-70b", "4"},
                        {"llama-3-70b", "8"}},
                       "products");
  CHECK(a100.size() == 120);
  const auto rtx4090 = of("rtx-4090", {{"llama-3.1-8b", "1"}}, "pass");
  CHECK(rtx4090.size() == 18);
  for (const auto& rows : {a100, rtx4090}) {
    holds(rows, 128, 3, 10);
    holds(rows, 512, 5, 17);
  }
  // The model that no fit saw, separately.
  holds(of("a100-80gb-sxm", {{"llama-3-8b", "1"}}, "products"), 128, 3, 10);
  holds(of("a100-80gb-sxm", {{"llama-3-8b", "1"}}, "products"), 512, 5, 17);
}

// The H100's library takes 65 us for qkv of Llama-2-7B at 72 to 96 tokens and 41 us at 112 to 128: up to 96 rows its tiles have
// 64, so that they come in two rows of tiles. Without most_small_rows of its calibration the goals are missed, by 12.6 % at 72.
TEST_CASE("measured verification passes: H100 within the goals", "[cost][measured]") {
  const auto h100 = of("h100-sxm", {{"llama-2-7b", "1"}}, "products");
  CHECK(h100.size() == 20);
  holds(h100, 128, 3, 10);
  holds(h100, 512, 5, 17);
}

// Sets beyond the summary rows: the errors of the built-in parameters, so that a change for the worse is noticed.
TEST_CASE("measured passes of all shapes, seen by the fit or not", "[cost][measured]") {
  struct Reach {
    const char* gpu;
    bool in_fit;
    double ms_128, ratio_128, ms_512, ratio_512;
  };
  for (const Reach& reach : {Reach{"a100-80gb-sxm", true, 2.2, 2.2, 2.6, 2.8},
                             {"a100-80gb-sxm", false, 3.2, 3.1, 3.6, 3.6},
                             {"h100-sxm", true, 3.1, 4.8, 3.4, 5.3},
                             {"h100-sxm", false, 3.3, 3.9, 4.1, 4.6},
                             {"rtx-4090", true, 1.4, 2.2, 2.0, 2.5},
                             {"rtx-4090", false, 1.4, 2.1, 2.4, 3.1}}) {
    std::vector<Row> rows;
    for (const Row& row : measured())
      if (row.gpu == reach.gpu && row.in_fit == reach.in_fit && row.work == "products" && row.model != "llama-3-70b")
        rows.push_back(row);
    if (rows.front().gpu == "rtx-4090" && !reach.in_fit) {  // ratios need the one-token row, wherever it is
      for (const Row& row : measured())
        if (row.gpu == reach.gpu && row.work == "products" && row.tokens == 1 && row.in_fit) rows.push_back(row);
    }
    INFO(reach.gpu << (reach.in_fit ? ", seen" : ", unseen"));
    CHECK(errors(rows, 128, false).mean < reach.ms_128);
    CHECK(errors(rows, 128, true).mean < reach.ratio_128);
    CHECK(errors(rows, 512, false).mean < reach.ms_512);
    CHECK(errors(rows, 512, true).mean < reach.ratio_512);
  }
}

}  // namespace specsim::cost_measured_test
