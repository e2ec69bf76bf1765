// The table of a large grid takes time in proportion to its cells.
#include "sim/experiments/judge/rows.h"
#include "tests/support/cells.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <vector>

namespace specsim {

namespace {

// Processor seconds of a table of `n` cells that all draw their own random numbers, the least of three.
double table_seconds(const spec::Cell& cell, const decode::Counts& counts, std::size_t n) {
  std::vector<spec::Cell> cells(n, cell);
  std::vector<judge::Row> rows(n);
  for (std::size_t i = 0; i < n; ++i) {
    cells[i].index = i;
    cells[i].pairing_group = static_cast<std::uint64_t>(i);
    rows[i].cell = &cells[i];
    rows[i].counts = counts;
  }
  double least = 1e300;
  for (int r = 0; r < 3; ++r) {
    const std::clock_t start = std::clock();
    const std::string text = judge::table(rows, true, {});
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    CHECK(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) > n);
  }
  return least;
}

}  // namespace

// A search of all cells for the first that draws the same random numbers made 16 times as many cells take 400 times as long.
TEST_CASE("a table of 32,000 cells takes 16 times as long as one of 2,000", "[perf][tables]") {
  const tests::ReadyCell cell(
      "{experiment: tables, rounds: 1000, pair: {vocab: 4, target: {family: zipf, exponent: 1}, draft: {from: target, transform: "
      "temperature, value: 1.3}}, decode: {drafter: {kind: chain, draft_length: 1}, verifier: token}}");
  const decode::Counts counts = cell.simulator().empty_counts();
  const double few = table_seconds(cell.cell(), counts, 2000);
  const double many = table_seconds(cell.cell(), counts, 32000);
  INFO(many << " s for 32,000 cells, " << few << " s for 2,000");
  CHECK(many < 40.0 * few);
}

}  // namespace specsim
