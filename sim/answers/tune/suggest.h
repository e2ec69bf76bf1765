// Suggests the run to measure next: the one with the largest expected gain for a decision.
//
// Beliefs about the candidates' speeds are normal, and a measured run moves the beliefs about all others. The value of a run is
// the expected gain of the best choice after it over the best choice now (the knowledge gradient for correlated beliefs:
// Frazier, Powell and Dayanik 2009). Later runs are valued with the covariance that the earlier ones leave.
#pragma once

#include "sim/answers/tune/tune.h"

#include <string>
#include <vector>

namespace specsim::tune {

enum class Question { best_draft_length, pays, max_rate };

struct Suggestion {
  std::size_t cell = 0;     // index of the candidate
  double value = 0.0;       // expected gain, as a share of the speed, averaged over the loads
  double open_after = 0.0;  // what perfect knowledge would still gain after this run
};

struct SuggestionList {
  double open = 0.0;                    // what perfect knowledge would gain now, as a share of the speed
  std::vector<Suggestion> suggestions;  // in the order in which to measure
};

// A decision counts as settled if perfect knowledge would gain less than this.
constexpr double kSettled = 0.005;

// Candidates with the same load and lengths but other draft lengths are one decision. For the highest rate, all are one.
// `draft_length`: the length that Question::pays compares with no speculation. Returns at most `count` runs, none of them twice,
// and none in `measured`.
SuggestionList suggest(const std::vector<Run>& candidates, const TuneResult& belief, Question question, int draft_length,
                       std::size_t count, const std::vector<Run>& measured);

// The default candidates of suggest(): loads 1, 4, 16, ... to `most_clients`, without speculation and with draft lengths 1 to
// `longest`, and the lengths of `like`.
std::vector<Run> usual_candidates(const Run& like, int longest, double most_clients);

}  // namespace specsim::tune
