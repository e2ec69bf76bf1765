// Methods of decoding side by side on the same workloads and the same laws, fastest first.
#pragma once

#include "sim/experiment/results.h"
#include "sim/experiment/runner.h"

#include <string>
#include <vector>

namespace specsim::experiment {

// A cell's rounds are split over so many worlds: each draws the laws anew, where they are random, and decodes texts of its own.
// The spread between worlds is what errors come from, so that intervals hold for the families of laws, not for one draw of them.
// The prompt of context process copy is the same in all.
constexpr int kWorlds = 16;
// Of all intervals, for one method or one pair, whatever the number of methods; by Student's law with kWorlds - 1 degrees.
constexpr double kRankingLevel = 0.99;

struct Contender {
  Row row;                              // of all worlds together; without the emitted tokens' classes, which differ
  double tokens_per_round_error = 0.0;  // standard error
  double speedup = 0.0;                 // over plain decoding
  double speedup_half_width = 0.0;      // of its interval
  double behind = 0.0;                  // 1 - speedup / that of the fastest
  double behind_half_width = 0.0;       // from ratios within each world: chance that both methods shared cancels
};

struct Ranking {
  std::string workload;               // in words
  std::vector<Contender> contenders;  // fastest first
};

// In each world all methods meet the same laws and draw with the same addressed words. Cells that differ in nothing but prices
// are simulated once. Cells with the same workload and axes beside `decode` and `cost.draft` are ranked together, in the order in
// which these first appear. Throws BadInput where laws or seeds differ between cells that are ranked together, and where there
// are too few rounds for a sequence in each world. `options`: threads, stop, progress. Empty if it was stopped.
std::vector<Ranking> rank_methods(const std::vector<const Cell*>& cells, const RunOptions& options);

// A drafter and verifier in one line, from the cell's config: kinds first, then parameters.
std::string method_text(const Cell& cell);

std::string ranking_csv(const std::vector<Ranking>& rankings);

}  // namespace specsim::experiment
