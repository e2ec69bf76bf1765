// Context processes with parameters that make recorded acceptance likeliest.
//
// All of them are one model: a hidden state at each text position, with a probability of acceptance for each state and depth in
// the block. `constant` has one state; by_depth one state and a probability for each depth; kept_state a state that a request
// keeps; regimes states that follow one another as a Markov chain; regimes_by_depth such a chain with acceptance that falls with
// depth in every state (FallingRates); requests_and_regimes two kinds of requests, each with two such regimes of its own.
// Positions that no draft was judged at (bonus tokens) show nothing. Likelihoods are maximised by expectation and maximisation
// (Baum, Petrie, Soules, Weiss 1970).
#pragma once

#include "sim/experiments/fit/recorded_rounds.h"
#include "sim/foundation/base/token.h"
#include "sim/foundation/rng/address.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::fit {

// Acceptance that falls with depth, the same way in every state: logit alpha(state, depth) = level(state) + slope log(1 + depth).
// Recorded drafts fall fastest over the first positions and level off; one slope can be told from few rounds and says how longer
// drafts go on, where a rate for each depth says nothing of those that were not recorded.
struct FallingRates {
  std::vector<double> level;  // [state]
  double slope = 0.0;
  [[nodiscard]] double alpha(std::size_t state, std::size_t depth) const;
};

enum class Process { constant, by_depth, kept_state, regimes, regimes_by_depth, requests_and_regimes };
inline constexpr std::array kAllProcesses = {Process::constant, Process::by_depth,         Process::kept_state,
                                             Process::regimes,  Process::regimes_by_depth, Process::requests_and_regimes};
[[nodiscard]] const char* to_text(Process process);

// Where a request ends: with the round in which it has emitted `tokens`, or after `rounds`, where that is not 0.
struct RequestEnd {
  std::uint64_t tokens = 1;
  std::uint64_t rounds = 0;
};

struct FittedProcess {
  Process process = Process::constant;
  std::vector<double> start;                    // [state]
  std::vector<std::vector<double>> transition;  // [state][state]
  std::vector<std::vector<double>> alpha;       // [state][depth]; one depth: the same at all, else the last holds beyond
  FallingRates rates = {};                      // what alpha is computed from, in the last two processes

  [[nodiscard]] int parameters() const;
  [[nodiscard]] double acceptance(std::size_t state, int depth) const;
  [[nodiscard]] double log_likelihood(const RecordedRequest& request) const;
  // A request of rounds that draft `draft_length` tokens, up to where it ends.
  [[nodiscard]] RecordedRequest simulate(int draft_length, RequestEnd end, rng::Stream& random) const;
  // An experiment for specsim run: sequences of `rounds` whole rounds, as requests that end so have them on average.
  [[nodiscard]] std::string yaml(int draft_length, RequestEnd end, std::uint64_t rounds) const;
};

// `states` of kept_state, regimes and regimes_by_depth; requests_and_regimes has four. Outcomes at `judged_depth` and deeper are
// kept from the fit, so that it can be judged by them. Once `stop` is set, what has been reached is returned.
FittedProcess fit_process(Process process, std::size_t states, const std::vector<RecordedRequest>& requests,
                          int judged_depth = kMaxDraftLength, const std::atomic<bool>* stop = nullptr);

}  // namespace specsim::fit
