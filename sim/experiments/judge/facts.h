// The facts about a cell's distributions that theory needs. They are gathered while a run draws the distributions, which are too
// large to keep.
#pragma once

#include "sim/experiments/judge/cell_theory.h"
#include "sim/experiments/run/runner.h"
#include "sim/experiments/spec/spec.h"
#include "sim/rounds/decode/simulator.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace specsim::judge {

// Gathered once for all cells that decode the same contexts.
struct DistributionFacts {
  std::shared_ptr<const CellTheory> theory;  // nullptr: no theory covers this cell
  std::string missing;                       // why no theory covers it; "" if one does
  // chi2(draft || target), mean over contexts; infinite if the draft emits tokens that the target cannot
  double chi_squared = 0.0;
  double kl = 0.0;  // KL(target || draft), mean over contexts
  // For lossy rules with theory and one stratum: the classes' masses of a judged token, [depth][class].
  std::vector<std::vector<double>> judged_mass;
  // The same for the token after a fully accepted block, [class]; empty: the target's.
  std::vector<double> bonus_mass;
  // For lossy rules without the above: the classes of the tokens that one round emits, if theory knows them.
  std::optional<theory::TokenMoments> tokens_of_round;
  decode::Prepared classes;  // without tables
};

// Gathers the facts of a cell, which it refers to.
class FactsObserver final : public run::Observer {
 public:
  explicit FactsObserver(const spec::Cell& cell);
  void see(int context, int depth, const verify::PositionDistributions& distributions,
           const decode::OutputClasses& classes) override;
  void finish(const decode::Prepared& prepared) override;
  // Only after finish().
  [[nodiscard]] const DistributionFacts& facts() const { return facts_; }
  [[nodiscard]] DistributionFacts take() && { return std::move(facts_); }

 private:
  const spec::Cell* cell_;
  std::shared_ptr<CellTheory> theory_;
  DistributionFacts facts_;
};

// The facts of all cells of a run.
class FactsOfCells {
 public:
  // For RunOptions::observe; refers to this object.
  [[nodiscard]] run::Observe observe();
  // The facts of a cell whose run is finished.
  [[nodiscard]] const DistributionFacts& of(const spec::Cell& cell) const;

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const FactsObserver>> by_key_;
};

// Draws all distributions of `plan` once. `plan` is the cell's, except for its rule. Also builds the tables into `tables` if
// given. The facts refer to the cell. `stop`: see decode::prepare().
DistributionFacts gather_facts(const spec::Cell& cell, const decode::PreparationPlan& plan, decode::Prepared* tables,
                               const std::atomic<bool>* stop = nullptr);

}  // namespace specsim::judge
