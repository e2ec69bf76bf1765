// What theory needs to know of a cell's distributions. It is gathered while a run draws them, since they are too large to keep.
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
  std::string missing;                       // why no theory covers it; "" where one does
  double chi_squared = 0.0;  // chi2(draft || target), mean over contexts; infinite where the draft goes where the target cannot
  double kl = 0.0;           // KL(target || draft), mean over contexts
  // Lossy rules, where there is theory of them and one stratum: the classes' masses of a token that is judged, [depth][class].
  std::vector<std::vector<double>> judged_mass;
  // The same of the token behind a block that was accepted whole, [class]; empty: the target's.
  std::vector<double> bonus_mass;
  // Lossy rules of which the above is not known: what one round emits, by class, where theory knows that.
  std::optional<theory::TokenMoments> tokens_of_round;
  decode::Prepared classes;  // without tables
};

// Gathers them for a cell, which it refers to.
class FactsObserver final : public run::Observer {
 public:
  explicit FactsObserver(const spec::Cell& cell);
  void see(int context, int depth, const verify::PositionDistributions& distributions,
           const decode::OutputClasses& classes) override;
  void finish(const decode::Prepared& prepared) override;
  // The facts; only after finish().
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
  // For RunOptions::observe; refers to this.
  [[nodiscard]] run::Observe observe();
  // The facts of a cell whose run is finished.
  [[nodiscard]] const DistributionFacts& of(const spec::Cell& cell) const;

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const FactsObserver>> by_key_;
};

// Draws all distributions of `plan`, which is the cell's but for its rule, once; builds the tables into `tables` as well where it
// is given. The facts refer to the cell. `stop`: see decode::prepare().
DistributionFacts gather_facts(const spec::Cell& cell, const decode::PreparationPlan& plan, decode::Prepared* tables,
                               const std::atomic<bool>* stop = nullptr);

}  // namespace specsim::judge
