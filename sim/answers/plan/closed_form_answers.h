// Results of closed forms at given acceptance and costs, without a simulation.
#pragma once

#include "sim/rounds/theory/closed_forms.h"
#include "sim/rounds/theory/requests.h"
#include "sim/rounds/theory/round_distribution.h"
#include "sim/rounds/theory/speedup.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::plan {

// The first `draft_length` acceptance rates by position, each given that the position is reached; the last rate is repeated.
std::vector<double> first_rates(const std::vector<double>& rates, int draft_length);

// The best draft length up to kMaxDraftLength at these rates.
theory::BestDraftLength best_draft_length(const std::vector<double>& rates, const theory::RatioCost& cost);

// Results of closed forms for a round at given rates by position.
struct RateAnswers {
  theory::RoundDistribution distribution;
  double speedup = 1.0;  // relative to decoding without speculation
  theory::BestDraftLength best;
  // Only if acceptance is the same at every position and something is drafted; otherwise empty.
  bool constant = false;
  std::optional<double> continuous_best;                // the best draft length if lengths were real numbers
  std::optional<double> break_even;                     // the alpha with speedup 1 at this draft length
  std::optional<theory::BreakEven> break_even_at_best;  // the smallest alpha at which some draft length pays
  std::optional<theory::SpeedupSensitivity> slope;
};
RateAnswers answers_at(const std::vector<double>& rates, int draft_length, const theory::RatioCost& cost);

// Kinds of requests, each with its own alpha, that all emit equally many tokens.
struct RequestKind {
  double alpha = 0.0;
  double share = 1.0;             // share of the requests
  double tokens_per_round = 1.0;  // mean tokens per round at the given draft length
  theory::BestDraftLength best;
};
struct RequestAnswers {
  std::vector<RequestKind> kinds;
  double tokens_per_round = 1.0;     // all kinds together, at one draft length
  theory::BestDraftLength best;      // one length for all kinds
  double speedup_at_own_best = 1.0;  // each kind at its own best draft length
  theory::PoolingFigures pooled;     // the result with one pooled alpha
};
// `weights`: weight of each alpha, on any positive scale. `draft_length` is at least 1.
RequestAnswers answers_of_requests(const std::vector<double>& alphas, const std::vector<double>& weights, int draft_length,
                                   const theory::RatioCost& cost);

// A named closed form at the same rates; nullopt if it is undefined there.
std::optional<theory::ClosedFormPrediction> answer_of(const theory::ClosedForm& form, const std::vector<double>& rates,
                                                      int draft_length, double cost_ratio);

}  // namespace specsim::plan
