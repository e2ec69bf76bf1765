// Context processes whose parameters make recorded acceptance most likely.
//
// All of them are one model: a hidden state at each text position, with a probability of acceptance per state and depth in the
// block.
// - `constant` has one state.
// - by_depth has one state and a probability per depth.
// - kept_state has states that a request keeps.
// - regimes has states that follow one another as a Markov chain.
// - regimes_by_depth is such a chain whose acceptance falls with depth in every state (FallingRates).
// - requests_and_regimes has two kinds of requests, each with two such regimes of its own.
//
// Positions without a judged draft (bonus tokens) carry no information. Likelihoods are maximised by expectation-maximisation
// (Baum, Petrie, Soules, Weiss 1970).
#pragma once

#include "sim/foundation/base/token.h"
#include "sim/foundation/rng/address.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::fit {

// Recorded acceptance: the drafted and accepted tokens of each round of a request.

struct RecordedRound {
  int accepted = 0;
  int drafted = 0;
};
struct RecordedRequest {
  std::vector<RecordedRound> rounds;
};

// One draft length of a record.
struct RecordedLength {
  int draft_length = 0;
  std::vector<RecordedRequest> requests;
};

// Reads rounds_t*.jsonl of specsim calibrate, a log of the same form, or accepted prefixes by position. `kind`: the only kind to
// read, or "". Throws BadInput with the line of the error, also if rounds drafted different numbers of tokens. Prefixes
// determine the rounds of every shorter draft length exactly; all are returned, the shortest first. Rounds determine only their
// own draft length.
std::vector<RecordedLength> read_draft_lengths(const std::string& path, const std::string& kind);

// The data of a fit, and the data that test it.
struct FitData {
  std::vector<RecordedRequest> requests;
  std::vector<RecordedLength> held_out;  // recorded at other draft lengths
};

// Reads the rounds of `path` that drafted `draft_length` tokens (0: the longest recorded). The longer rounds, and those of
// `other` ("": none), are held out. Throws BadInput as read_draft_lengths does, and for a draft length that the file does not
// hold.
FitData read_fit_data(const std::string& path, const std::string& other, const std::string& kind, int draft_length);

// The longest draft length of read_draft_lengths(), the default of fits.
std::vector<RecordedRequest> read_rounds(const std::string& path, const std::string& kind);

// Positions with an accepted or rejected draft; and tokens, including the bonus token.
std::uint64_t judged_positions(const RecordedRequest& request);
std::uint64_t emitted(const RecordedRequest& request);
double tokens_per_round(const std::vector<RecordedRequest>& requests);
// The indices of about `most` requests (all, if there are no more), in order. The choice is spread so that it follows no period
// in which kinds of requests may alternate: it takes those whose multiple of the golden ratio has a small enough fraction.
std::vector<std::size_t> spread_choice(std::size_t requests, std::size_t most);

// Acceptance that falls with depth, in the same way in every state: logit alpha(state, depth) = level(state) + slope log(1 +
// depth). Recorded drafts fall fastest over the first positions and then level off. One slope can be estimated from few rounds,
// and it extrapolates to longer drafts. A rate per depth cannot extrapolate beyond the recorded depths.
struct FallingRates {
  std::vector<double> level;  // [state]
  double slope = 0.0;
  [[nodiscard]] double alpha(std::size_t state, std::size_t depth) const;
};

enum class Process { constant, by_depth, kept_state, regimes, regimes_by_depth, requests_and_regimes };
inline constexpr std::array kAllProcesses = {Process::constant, Process::by_depth,         Process::kept_state,
                                             Process::regimes,  Process::regimes_by_depth, Process::requests_and_regimes};
[[nodiscard]] const char* to_text(Process process);

// The end of a request: after the round in which it has emitted `tokens`, or after `rounds` if that is not 0.
struct RequestEnd {
  std::uint64_t tokens = 1;
  std::uint64_t rounds = 0;
};

struct FittedProcess {
  Process process = Process::constant;
  std::vector<double> start;                    // [state]
  std::vector<std::vector<double>> transition;  // [state][state]
  std::vector<std::vector<double>> alpha;       // [state][depth]; the last entry holds for deeper positions
  FallingRates rates = {};                      // source of alpha in the last two processes

  [[nodiscard]] int parameters() const;
  [[nodiscard]] double acceptance(std::size_t state, int depth) const;
  [[nodiscard]] double log_likelihood(const RecordedRequest& request) const;
  // A request whose rounds draft `draft_length` tokens, up to its end.
  [[nodiscard]] RecordedRequest simulate(int draft_length, RequestEnd end, rng::Stream& random) const;
  // An experiment for specsim run. Its sequences have `rounds` whole rounds, the mean of requests that end as `end` states.
  [[nodiscard]] std::string yaml(int draft_length, RequestEnd end, std::uint64_t rounds) const;
};

// `states`: for kept_state, regimes and regimes_by_depth; requests_and_regimes has four. The fit does not see outcomes at
// `judged_depth` and deeper, so that they can test it. Once `stop` is set, returns the result so far.
FittedProcess fit_process(Process process, std::size_t states, const std::vector<RecordedRequest>& requests,
                          int judged_depth = kMaxDraftLength, const std::atomic<bool>* stop = nullptr);

}  // namespace specsim::fit
