// Methods of decoding side by side on the same workloads and the same laws, fastest first.
#pragma once

#include "sim/experiment/results.h"
#include "sim/experiment/runner.h"

#include <string>
#include <vector>

namespace specsim::experiment {

struct Contender {
  Row row;                     // of the whole run
  double speedup = 0.0;        // over plain decoding
  double speedup_error = 0.0;  // standard errors, from the spread between pieces of the run
  double behind = 0.0;         // 1 - speedup / that of the fastest
  double behind_error = 0.0;   // of the same pieces' ratios: chance that both methods shared cancels
};

struct Ranking {
  std::string workload;               // in words
  std::vector<Contender> contenders;  // fastest first
  int pieces = 0;                     // of equal size, that errors come from: pieces - 1 degrees of freedom
};

// Every method draws with the same addressed words, so that piece by piece they face the same luck. Cells that differ in nothing
// but prices are simulated once. Cells with the same workload and axes beside `decode` and `cost.draft` are ranked together, in
// the order in which these first appear. Throws BadInput where laws or seeds differ between cells that are ranked together, and
// where there are too few rounds for errors. `options`: threads, stop, progress. Empty if it was stopped.
std::vector<Ranking> rank_methods(const std::vector<const Cell*>& cells, const RunOptions& options);

// A drafter and verifier in one line, from the cell's config: kinds first, then parameters.
std::string method_text(const Cell& cell);

// Half of a two-sided interval of a mean over `pieces`; for one method or one pair, whatever the number of methods.
constexpr double kRankingLevel = 0.99;
double half_width(double standard_error, int pieces);

std::string ranking_csv(const std::vector<Ranking>& rankings);

}  // namespace specsim::experiment
