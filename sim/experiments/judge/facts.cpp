#include "sim/experiments/judge/facts.h"

#include "sim/experiments/judge/cell_theory.h"
#include "sim/experiments/judge/method.h"
#include "sim/foundation/base/check.h"
#include "sim/rounds/theory/bounds.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace specsim::judge {

FactsObserver::FactsObserver(const spec::Cell& cell) : cell_(&cell) {
  Coverage coverage = cover(cell);
  theory_ = std::move(coverage.theory);
  facts_.theory = theory_;
  facts_.missing = std::move(coverage.missing);
}

void FactsObserver::see(int context, int depth, const verify::PositionDistributions& distributions,
                        const decode::OutputClasses& classes) {
  const auto contexts = static_cast<double>(context_shape(*cell_).contexts);
  const auto add = [&](const std::vector<double>& emitted, std::vector<double>& mass) {
    mass.resize(static_cast<std::size_t>(classes.count));
    for (std::size_t x = 0; x < emitted.size(); ++x) mass[classes.of_token[x]] += emitted[x] / contexts;
  };
  std::vector<double> emitted;
  if (theory_ != nullptr) {
    if (depth == 0 && !cell_->lossless())
      theory_->sorted_by(context, {classes.of_token, static_cast<std::size_t>(classes.count)});
    emitted = theory_->see(context, depth, distributions);
  }
  if (!emitted.empty()) {
    facts_.judged_mass.resize(std::max(facts_.judged_mass.size(), static_cast<std::size_t>(depth) + 1));
    add(emitted, facts_.judged_mass[static_cast<std::size_t>(depth)]);
    if (depth == 0)
      if (const std::vector<double> behind = theory_->after_block(distributions); !behind.empty()) add(behind, facts_.bonus_mass);
  }
  if (depth == 0) {
    const double share = 1.0 / contexts;
    facts_.chi_squared += share * theory::chi_squared(distributions.drafted, distributions.target);
    facts_.kl += share * theory::kl_divergence(distributions.target, distributions.drafted);
  }
}

void FactsObserver::finish(const decode::Prepared& prepared) {
  if (theory_ != nullptr) {
    theory_->finish();
    if (!cell_->lossless()) facts_.tokens_of_round = theory_->tokens_of_round();
  }
  if (context_shape(*cell_).contexts == 0) {  // with fresh distributions none was seen
    facts_.chi_squared = std::numeric_limits<double>::quiet_NaN();
    facts_.kl = std::numeric_limits<double>::quiet_NaN();
  }
  facts_.classes.classes = prepared.classes;
  facts_.classes.class_count = prepared.class_count;
  facts_.classes.bin_of_class = prepared.bin_of_class;
  facts_.classes.strata = prepared.strata;
  facts_.classes.stratum = prepared.stratum;
}

run::Observe FactsOfCells::observe() {
  // The registry is built here and not by the first worker thread. If memory runs out while an entry's list of parameters is
  // built, code of gcc 12 frees memory that it has not allocated. Memory mostly runs out because of the threads' stacks.
  static_cast<void>(theories());
  static_cast<void>(policy_theories());
  return [this](const spec::Cell& cell) {
    auto observer = std::make_shared<FactsObserver>(cell);
    const std::lock_guard lock(mutex_);
    by_key_[cell.preparation_key] = observer;
    return observer;
  };
}

const DistributionFacts& FactsOfCells::of(const spec::Cell& cell) const {
  const auto found = by_key_.find(cell.preparation_key);
  SPECSIM_CHECK(found != by_key_.end(), "no facts of {} cell {}", cell.experiment, cell.index);
  return found->second->facts();
}

DistributionFacts gather_facts(const spec::Cell& cell, const decode::PreparationPlan& plan, decode::Prepared* tables,
                               const std::atomic<bool>* stop) {
  FactsObserver facts(cell);
  decode::Prepared prepared = decode::prepare(
      plan,
      [&](int context, int depth, const verify::PositionDistributions& distributions, const decode::OutputClasses& classes) {
        facts.see(context, depth, distributions, classes);
      },
      tables != nullptr, stop);
  facts.finish(prepared);
  if (tables != nullptr) *tables = std::move(prepared);
  return std::move(facts).take();
}

}  // namespace specsim::judge
