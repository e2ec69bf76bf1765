// Compares decoding methods on the same workloads and the same distributions, fastest first.
#pragma once

#include "sim/answers/plan/gain.h"
#include "sim/experiments/judge/prediction.h"
#include "sim/experiments/judge/rows.h"
#include "sim/experiments/run/runner.h"
#include "sim/rounds/tokens/tree.h"

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace specsim::plan {

// A cell's rounds are split over this many replicates. Each replicate draws the distributions again (if they are random) and
// decodes other texts. Errors come from the spread between replicates, so intervals hold for the families of distributions, not
// for one draw of them. The prompt of context process copy is the same in all.
constexpr int kReplicates = 16;
// The level of each single interval, not corrected for the number of methods. Intervals are Student's, with kReplicates - 1
// degrees of freedom.
constexpr double kRankingLevel = 0.99;

// The number of replicates that are run: all, or as many as the ranking needs (race.h), but at least kFirstAnswer each.
enum class Draws : bool { all, as_needed };
constexpr int kFirstAnswer = 4;

struct Contender {
  judge::Row row;                // all replicates together, without the emitted tokens' classes, which differ; exact: of tables
  int replicates = kReplicates;  // how many replicates its figures come from
  double tokens_per_round_error = 0.0;  // standard error
  // Relative to decoding without speculation. A method that was stopped early gets the first method's speedup times their ratio
  // over the replicates that both had.
  double speedup = 0.0;
  double speedup_half_width = 0.0;  // half the width of its interval
  Gain gain;                        // the speedup with the errors of the latency model and of the replicates
  double behind = 0.0;              // 1 - speedup / speedup of the fastest method
  double behind_half_width = 0.0;   // from ratios within each replicate, in which shared random numbers cancel
  bool uses_forecasts = false;      // its policy knows future acceptance: shown, but not a method that a user can run
  std::optional<bool> engine_runs;  // whether the engine in the cost supports such a method (engine_methods.h)
  // as `behind`, relative to the fastest method that a user can run; negative for one that knows future acceptance
  double behind_method = 0.0;
  double behind_method_half_width = 0.0;
  double latency_noise =
      0.0;  // standard error of the logarithm of the fastest method's speedup over this one's, due to latencies

  // Whether the latency error leaves open which of the two is faster; false for the fastest itself.
  [[nodiscard]] bool tied() const { return behind_method != 0.0 && -std::log1p(-behind_method) < latency_noise; }
};

struct Ranking {
  std::string workload;               // the cells ranked together, in words
  std::vector<Contender> contenders;  // fastest first
};

// The cells ranked together, in words.
std::string workload_of(const spec::Cell& cell);
// The theory of an acceptance table, whose sum over the nodes of a tree takes no time. Empty for other cells: their
// distributions are drawn again in each replicate, so the prediction would differ.
judge::Prediction exact_on_table(const spec::Cell& cell);

// Receives the rankings of the first kFirstAnswer replicates while the others are run.
using FirstAnswer = std::function<void(const std::vector<Ranking>&)>;

// In each replicate all methods meet the same distributions and use the same addressed random numbers. Cells that differ only in
// latencies are simulated once. Cells are ranked together if their workload and all axes except `decode` and `cost.draft` are
// equal, in the order of first appearance. Throws BadInput if distributions or seeds differ between cells that are ranked
// together, and if there are too few rounds for a sequence in each replicate. `options`: threads, stop, progress. Empty if it
// was stopped.
std::vector<Ranking> rank_methods(const std::vector<const spec::Cell*>& cells, const run::RunOptions& options,
                                  Draws draws = Draws::all, const FirstAnswer& first_answer = {});

// The token tree of the cell's drafter; nullptr if it has none, or a chain.
const tokens::Tree* tree_of(const spec::Cell& cell);

// The trees of the fastest methods, one line per node.
std::string trees_csv(const std::vector<Ranking>& rankings);
std::string ranking_csv(const std::vector<Ranking>& rankings);
// ranking.csv and trees.csv and their columns, for the reference page.
std::vector<report::FileInfo> ranking_file_infos();

}  // namespace specsim::plan
