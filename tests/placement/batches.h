// Batches for the placement tests: cost models that expose mistakes, accepted counts given or simulated, and statistical
// judgement.
//
// Budget: 1e-5 false alarms for all statistical checks of this folder together, if every seed were redrawn; Sidak over
// kStatisticalChecks of them, which `passes` counts. Each check has a named mutant that it must reject.
#pragma once

#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/placement/placement.h"
#include "tests/support/cells.h"
#include "tests/support/tails.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace specsim::tests {

// A pass costs a fixed time, and more per token of the batch and per cached token. Microseconds.
struct Line {
  double fixed = 0.0;
  double per_token = 0.0;
  double per_kv_token = 0.0;
};

class LineCost final : public cost::CostModel {
 public:
  LineCost(Line target, Line draft, double round = 0.0, bool forgets_catch_up = false, double link = 0.0)
      : target_(target), draft_(draft), round_(round), forgets_catch_up_(forgets_catch_up), link_(link) {}
  [[nodiscard]] cost::PassTime pass(cost::Role role, const cost::Pass& pass) const override {
    const Line& line = role == cost::Role::target ? target_ : draft_;
    cost::PassTime time;
    time.weights = 1e-6 * line.fixed;
    time.compute = 1e-6 * line.per_token * pass.batch * pass.tokens;
    time.kv = 1e-6 * line.per_kv_token * pass.batch * pass.context;
    return time;
  }
  [[nodiscard]] cost::PassTime draft_pass(const cost::Workload& workload, int index, double extra) const override {
    return CostModel::draft_pass(workload, index, forgets_catch_up_ ? 0.0 : extra);
  }
  [[nodiscard]] double round_overhead(double) const override { return 1e-6 * round_; }
  [[nodiscard]] double link_seconds(double, double) const override { return 1e-6 * link_; }

 private:
  Line target_;
  Line draft_;
  double round_;
  bool forgets_catch_up_;
  double link_;
};

inline std::unique_ptr<placement::Placement> make_placement(const std::string& yaml) {
  Diagnostics diagnostics;
  const config::Value section = config::parse_text(yaml, "test", diagnostics);
  const placement::PlacementEntry* entry = placement::placements().find(section.find("kind")->text, {}, diagnostics);
  diagnostics.throw_if_any();
  auto result =
      entry->make(config::read_arguments(section, entry->info.parameters, {"kind"}, "placement", diagnostics), diagnostics);
  diagnostics.throw_if_any();
  return result;
}

// Every sequence's accepted counts from the exact simulator, enough for `tokens` tokens in rounds.
inline placement::AcceptedCounts simulated(double alpha, int draft_length, decode::Bonus bonus, std::size_t sequences,
                                           std::uint64_t tokens, std::uint64_t seed) {
  const ReadyCell cell(fmt::format(
      "{{experiment: batches, seed: {}, pair: {{vocab: 50, target: {{family: zipf, exponent: 1}}, "
      "draft: {{from: target, transform: overlap, value: {}}}}}, decode: {{drafter: {{kind: chain, draft_length: {}}}}}}}",
      seed, alpha, draft_length));
  return placement::record_accepted({cell.preparation(), &cell.prepared(), cell.draw_key(), draft_length}, bonus, sequences,
                                    tokens);
}

// Sequences first .. first + count.
inline placement::AcceptedCounts part_of(const placement::AcceptedCounts& all, std::size_t first, std::size_t count) {
  placement::AcceptedCounts part;
  part.draft_length = all.draft_length;
  part.bonus = all.bonus;
  const auto begin = all.of_sequence.begin() + static_cast<std::ptrdiff_t>(first);
  part.of_sequence.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
  return part;
}

inline placement::Result simulate(const std::string& kind, const cost::CostModel& cost, const placement::AcceptedCounts& accepted,
                                  std::uint64_t output_tokens, bool shrink = true, std::uint64_t prompt_tokens = 100,
                                  int vocab = 50, engine::Timeline* timeline = nullptr) {
  placement::Generation generation;
  generation.cost = &cost;
  generation.accepted = &accepted;
  generation.prompt_tokens = prompt_tokens;
  generation.output_tokens.assign(accepted.of_sequence.size(), output_tokens);
  generation.vocab = vocab;
  generation.shrink = shrink;
  static std::map<std::string, std::unique_ptr<placement::Placement>> made;
  std::unique_ptr<placement::Placement>& placement = made[kind];
  if (placement == nullptr) placement = make_placement(kind);
  return placement->simulate(generation, timeline);
}

// Counts the rounds of each sequence of a batch without the simulator: rounds until it has `tokens`.
inline std::vector<std::uint64_t> rounds_of(const placement::AcceptedCounts& accepted, std::uint64_t tokens) {
  std::vector<std::uint64_t> rounds;
  for (const auto& own : accepted.of_sequence) {
    std::uint64_t have = 0;
    std::uint64_t r = 0;
    while (have < tokens) {
      const int a = own.at(r++);
      const bool no_more = a == accepted.draft_length && accepted.bonus == decode::Bonus::none;
      have += static_cast<std::uint64_t>(a) + (no_more ? 0 : 1);
    }
    rounds.push_back(r);
  }
  return rounds;
}

constexpr int kStatisticalChecks = 18;
inline double level() { return -std::expm1(std::log1p(-1e-5) / kStatisticalChecks); }

struct Estimate {
  double mean = 0.0;
  double standard_error = 0.0;
  double p_value = 0.0;
};

// Independent values, Student's t.
inline Estimate judge(const std::vector<double>& values, double claim) {
  const auto n = static_cast<double>(values.size());
  double sum = 0.0;
  for (const double v : values) sum += v;
  const double mean = sum / n;
  double squares = 0.0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double error = std::sqrt(squares / (n - 1.0) / n);
  return {mean, error, student_t_p((mean - claim) / error, n - 1.0)};
}

inline void passes(const char* what, const std::vector<double>& values, double claim) {
  static int checks = 0;
  REQUIRE(++checks <= kStatisticalChecks);
  const Estimate e = judge(values, claim);
  INFO(what << ": claimed " << claim << ", found " << e.mean << " +- " << e.standard_error << ", p " << e.p_value);
  CHECK(e.p_value > level());
  CHECK(e.standard_error < 0.02 * claim);  // or the check has little power
}

inline void rejects(const char* mutant, const std::vector<double>& values, double claim) {
  const Estimate e = judge(values, claim);
  INFO(mutant << ": claimed " << claim << ", found " << e.mean << " +- " << e.standard_error << ", p " << e.p_value);
  CHECK(e.p_value < level());
}

}  // namespace specsim::tests
