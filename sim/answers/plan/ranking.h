// Methods of decoding side by side on the same workloads and the same distributions, fastest first.
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

// A cell's rounds are split over so many replicates: each draws the distributions anew, where they are random, and decodes texts
// of its own. The spread between replicates is what errors come from, so that intervals hold for the families of distributions,
// not for one draw of them. The prompt of context process copy is the same in all.
constexpr int kReplicates = 16;
// The level of each interval by itself: it is not corrected for the number of methods. Intervals are Student's, with
// kReplicates - 1 degrees of freedom.
constexpr double kRankingLevel = 0.99;

// How many of the replicates are run: all, or as many as the ranking needs (race.h), but for kFirstAnswer of each at least.
enum class Draws : bool { all, as_needed };
constexpr int kFirstAnswer = 4;

struct Contender {
  judge::Row row;                // all replicates together; without the emitted tokens' classes, which differ; exact: of tables
  int replicates = kReplicates;  // how many replicates its figures come from
  double tokens_per_round_error = 0.0;  // standard error
  // Over plain decoding. A method that was stopped early gets the first's speedup less what it lost to the first in the
  // replicates that both had.
  double speedup = 0.0;
  double speedup_half_width = 0.0;  // half the width of its interval
  Gain gain;                        // the speedup with the error of the latency model and of the replicates
  double behind = 0.0;              // 1 - speedup / that of the fastest
  double behind_half_width = 0.0;   // from ratios within each replicate: chance that both methods shared cancels
  bool foresees = false;            // its policy knows what will be accepted: shown, but no method that somebody can run
  std::optional<bool> engine_runs;  // whether the engine that prices it has such a method (engine_methods.h)
  double behind_method = 0.0;  // as `behind`, to the fastest that somebody can run; negative for one that knows future acceptance
  double behind_method_half_width = 0.0;
  double price_noise = 0.0;  // standard error of the logarithm of the fastest method's speedup over this one's, from prices

  // Whether prices leave open which of the two is faster; false for the fastest itself.
  [[nodiscard]] bool tied() const { return behind_method != 0.0 && -std::log1p(-behind_method) < price_noise; }
};

struct Ranking {
  std::string workload;               // what is ranked together, in words
  std::vector<Contender> contenders;  // fastest first
};

// What is ranked together, in words.
std::string workload_of(const spec::Cell& cell);
// What theory says of an acceptance table, whose sum over the nodes of a tree takes no time; nothing of other cells, whose
// distributions are drawn anew in each replicate: it would say something else in each.
judge::Prediction exact_on_table(const spec::Cell& cell);

// Sees the rankings of the first kFirstAnswer replicates while the others are run.
using FirstAnswer = std::function<void(const std::vector<Ranking>&)>;

// In each replicate all methods meet the same distributions and draw with the same addressed random numbers. Cells that differ in
// nothing but prices are simulated once. Cells with the same workload and axes beside `decode` and `cost.draft` are ranked
// together, in the order in which these first appear. Throws BadInput where distributions or seeds differ between cells that are
// ranked together, and where there are too few rounds for a sequence in each replicate. `options`: threads, stop, progress. Empty
// if it was stopped.
std::vector<Ranking> rank_methods(const std::vector<const spec::Cell*>& cells, const run::RunOptions& options,
                                  Draws draws = Draws::all, const FirstAnswer& first_answer = {});

// The token tree of the cell's drafter; nullptr where it has none, or one that is a chain.
const tokens::Tree* tree_of(const spec::Cell& cell);

// The trees of the fastest methods, a line for each node.
std::string trees_csv(const std::vector<Ranking>& rankings);
std::string ranking_csv(const std::vector<Ranking>& rankings);
// ranking.csv and trees.csv and their columns, for the reference page.
std::vector<report::FileInfo> ranking_file_infos();

}  // namespace specsim::plan
