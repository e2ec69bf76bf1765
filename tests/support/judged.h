// Verdict of `specsim check` on a cell that runs with another rule or drafter than its config names.
#pragma once

#include "sim/experiments/judge/agreement.h"
#include "tests/support/cells.h"

#include <cstdint>
#include <variant>

namespace specsim::tests {

struct Judged {
  judge::Prediction prediction;
  judge::Agreement agreement;
  judge::Verdict verdict = judge::Verdict::no_theory;
};

inline Judged judged_with(const spec::Cell& cell, const verify::BlockRule& rule, std::uint64_t rounds, double level,
                          const draft::BlockDrafter* drafter = nullptr) {
  const judge::DistributionFacts facts = judge::gather_facts(cell, spec::plan_of(cell), nullptr);
  decode::PreparationPlan plan = spec::plan_of(cell);
  std::get<decode::BlockJudging>(plan.judging).rule = &rule;
  if (drafter != nullptr) std::get<decode::BlockJudging>(plan.judging).drafter = drafter;
  const decode::Prepared prepared = decode::prepare(plan, {});
  const decode::Simulator simulator(plan, prepared, spec::draw_key(cell), cell.draft_length(), cell.sequence_rounds);
  decode::Counts counts = simulator.empty_counts();
  for (std::uint64_t i = 0; i * simulator.chunk_size() < rounds; ++i) simulator.run(i, rounds, counts);
  Judged result;
  result.prediction = judge::predict_exact(cell, facts, rounds);
  result.agreement = judge::judge_cell(cell, facts, result.prediction, counts, level);
  result.verdict = judge::decide(cell, result.prediction, result.agreement, result.agreement, level);
  return result;
}

}  // namespace specsim::tests
