// Which of the simulator's context processes reproduces recorded acceptance, and with which parameters.
//
// All of them are one model: a hidden state at each text position, with a probability of acceptance for each state and depth in
// the block. iid has one state; by_depth one state and a probability for each depth; requests a state that a request keeps;
// regimes states that follow one another as a Markov chain. Positions that no draft was judged at (bonus tokens) show nothing.
// Likelihoods are maximised by expectation and maximisation (Baum, Petrie, Soules, Weiss 1970).
#pragma once

#include "sim/rng/address.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace specsim::llm {

struct RecordedRound {
  int accepted = 0;
  int drafted = 0;
};
struct RecordedRequest {
  std::vector<RecordedRound> rounds;
};

// Reads what rounds_trace writes; `kind`: "" or the only one to take. Throws BadInput with the line of what is wrong.
std::vector<RecordedRequest> read_rounds(const std::string& path, const std::string& kind);

enum class Family { iid, by_depth, requests, regimes };
[[nodiscard]] const char* to_text(Family family);

struct FamilyModel {
  Family family = Family::iid;
  std::vector<double> start;                    // [state]
  std::vector<std::vector<double>> transition;  // [state][state]
  std::vector<std::vector<double>> alpha;       // [state][depth]; one depth: the same at all, else the last holds beyond

  [[nodiscard]] int parameters() const;
  [[nodiscard]] double acceptance(std::size_t state, int depth) const;
  [[nodiscard]] double log_likelihood(const RecordedRequest& request) const;
  // A request of rounds that draft `draft_length` tokens, until it has emitted `tokens`.
  [[nodiscard]] RecordedRequest simulate(int draft_length, std::uint64_t tokens, rng::Stream& random) const;
  // An experiment for specsim run: sequences of `rounds` whole rounds, as requests of `tokens` tokens have them on average.
  [[nodiscard]] std::string yaml(int draft_length, std::uint64_t tokens, std::uint64_t rounds) const;
};

// `states` of requests and regimes.
FamilyModel fit_family(Family family, std::size_t states, const std::vector<RecordedRequest>& requests);

constexpr std::size_t kReplicates = 499;  // of the bootstrap

// How a family stands to the data.
struct FamilyReport {
  FamilyModel model;
  double log_likelihood = 0.0;
  double held_out = 0.0;      // log score of a judged position, each fifth of the requests by a fit of the others
  double behind_best = 0.0;   // that the best of those that may be used is ahead in held_out
  double behind_error = 0.0;  // its standard error, over requests
  double tokens_per_round = 0.0;
  // Parametric bootstrap: how often data of the fitted model lie as far from its mean as the recorded ones. The parameters are
  // not fitted again to each of them, as they were to the recorded ones, which lie closer for it: p is too large if anything, and
  // a wrong family is rejected less often, a right one less often than the level says.
  double p_by_depth = 1.0;  // accepted by depth
  double p_accepted = 1.0;  // law of accepted in a round
  double p_runs = 1.0;      // lengths of runs of accepted positions, across rounds
  double p_requests = 1.0;  // spread of the acceptance rate over requests
  [[nodiscard]] bool rejected() const;
};

struct FitReport {
  int draft_length = 0;
  std::uint64_t tokens = 0;  // that a request was to emit, mean
  std::uint64_t rounds = 0;  // of a request, mean
  double tokens_per_round = 0.0;
  std::vector<FamilyReport> families;
  // To use: of those that the data do not reject (of all, where they reject all) the simplest that is within one standard error
  // of the best held-out score.
  std::size_t best = 0;
};

struct FitRun {
  std::uint64_t seed = 0;  // of the bootstrap
  unsigned threads = 1;    // results do not depend on it
  std::function<void(double done, double all)> progress = {};
  const std::atomic<bool>* stop = nullptr;  // set: return soon, without families
};

// Requests may differ in length. How much one was to emit is known from its record up to the last round: where one length fits
// all of them it is taken, else each replicate draws a request's length from what its own record allows, all equally likely.
FitReport fit_families(const std::vector<RecordedRequest>& requests, const FitRun& run);

// Of a model's requests at another draft length, from so many simulated requests.
double simulated_tokens_per_round(const FamilyModel& model, int draft_length, std::uint64_t tokens, std::uint64_t requests,
                                  std::uint64_t seed);

}  // namespace specsim::llm
