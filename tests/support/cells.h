// Cells from YAML text, for tests.
#pragma once

#include "sim/experiments/judge/prediction.h"
#include "sim/experiments/spec/spec.h"
#include "sim/foundation/config/value.h"
#include "sim/rounds/decode/simulator.h"

#include <string>
#include <utility>

namespace specsim::tests {

// Reads an experiment; throws BadInput with all mistakes.
inline spec::Experiment experiment_of(const std::string& yaml) {
  Diagnostics diagnostics;
  config::Value config = config::parse_text(yaml, "test", diagnostics);
  diagnostics.throw_if_any();
  spec::Experiment result = spec::read_experiment(std::move(config), "test", {}, diagnostics);
  diagnostics.throw_if_any();
  return result;
}

// A cell ready to simulate, prepared as by the runner; `rule` replaces the config's verifier.
class ReadyCell {
 public:
  explicit ReadyCell(spec::Cell cell) : cell_(std::move(cell)), plan_(spec::plan_of(cell_)) {
    facts_ = judge::gather_facts(cell_, plan_, &prepared_);
  }
  ReadyCell(spec::Cell cell, const verify::PositionRule& rule)
      : cell_(std::move(cell)), plan_(spec::plan_with_rule(cell_, rule)) {
    facts_ = judge::gather_facts(cell_, plan_, &prepared_);
  }
  explicit ReadyCell(const std::string& yaml) : ReadyCell(experiment_of(yaml).cells.at(0)) {}
  ReadyCell(const ReadyCell&) = delete;
  ReadyCell& operator=(const ReadyCell&) = delete;

  [[nodiscard]] const spec::Cell& cell() const { return cell_; }
  [[nodiscard]] const judge::DistributionFacts& facts() const { return facts_; }
  [[nodiscard]] const decode::Prepared& prepared() const { return prepared_; }
  [[nodiscard]] const decode::PreparationPlan& preparation() const { return plan_; }
  [[nodiscard]] rng::Key draw_key() const { return spec::draw_key(cell_); }
  [[nodiscard]] decode::Simulator simulator() const {
    return {plan_, prepared_, draw_key(), cell_.draft_length(), cell_.sequence_rounds};
  }

 private:
  spec::Cell cell_;
  decode::PreparationPlan plan_;
  decode::Prepared prepared_;
  judge::DistributionFacts facts_;
};

}  // namespace specsim::tests
