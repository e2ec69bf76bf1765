// Which run to measure next: the one from which a decision gains most, in expectation.
//
// What is believed of the candidates' speeds is normal, and a measured run moves the beliefs of all others. The value of a run is
// the expected gain of the best choice after it over the best choice now (the knowledge gradient for correlated beliefs: Frazier,
// Powell and Dayanik 2009). Runs that follow count with the covariance that the earlier ones leave.
#pragma once

#include "sim/answers/tune/tune.h"

#include <string>
#include <vector>

namespace specsim::tune {

enum class Question { best_draft_length, pays, max_rate };

struct Suggestion {
  std::size_t cell = 0;   // of the candidates
  double value = 0.0;     // expected gain, as a share of the speed, averaged over the loads
  double open_after = 0.0;  // what a perfect answer would still gain after this run
};

struct Suggested {
  double open = 0.0;                     // what a perfect answer would gain now, as a share of the speed
  std::vector<Suggestion> suggestions;   // in the order in which to measure
};

// From this on a decision counts as settled: a perfect answer would gain less.
constexpr double kSettled = 0.005;

// Candidates of the same load and lengths, with other draft lengths, are one decision. For the highest rate, all are one. `draft_length`: what Question::pays compares
// with no speculation. At most `count` runs; none of them twice, nor one of `measured`.
Suggested suggest(const std::vector<Run>& candidates, const TuneResult& belief, Question question, int draft_length, std::size_t count,
                  const std::vector<Run>& measured);

// The runs among which suggest() chooses where the user names none: loads 1, 4, 16, ... to `most_clients`, without speculation and
// with draft lengths 1 to `longest`, and the lengths of `like`.
std::vector<Run> usual_candidates(const Run& like, int longest, double most_clients);

}  // namespace specsim::tune
