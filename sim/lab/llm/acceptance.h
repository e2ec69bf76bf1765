// How often a real target accepts a real draft, and why: measured from outcomes and from the two distributions at the same
// positions.
#pragma once

#include "sim/foundation/math/series.h"
#include "sim/lab/llm/method.h"
#include "sim/lab/llm/prompts.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace specsim::llm {

// Judged positions under one condition (a depth, say).
struct Tally {
  std::uint64_t judged = 0;
  std::uint64_t accepted = 0;
  double expected = 0.0;          // sum of the rule's acceptance by the distributions; for the token rule: min(target, drafted)
  double outcome_variance = 0.0;  // sum of expected (1 - expected): the outcomes' variance, given the distributions
  double kl = 0.0;                // sums of KL(target, draft model), where finite
  std::uint64_t kl_infinite = 0;
  double target_entropy = 0.0;  // sums, nats
  double draft_entropy = 0.0;

  void add(const JudgedPosition& position, double expected_of_it);
  [[nodiscard]] double alpha() const { return static_cast<double>(accepted) / static_cast<double>(judged); }  // share of outcomes
  [[nodiscard]] double alpha_of_distributions() const { return expected / static_cast<double>(judged); }
  // (outcomes - distributions) in standard errors: accepted less expected is a sum of martingale differences. If the
  // distributions leave nothing to chance, as at temperature 0, it is 0 or infinite.
  [[nodiscard]] double z() const;
};

// A pair of distributions over a vocabulary, reduced for a trace.
struct DistributionClasses {
  std::vector<double> target;
  std::vector<double> draft;
};

// Keeps the `tokens` likeliest tokens of either distribution, the likeliest first (ties: the lower token), and puts the rest into
// four classes by target / draft: above 4, above 1, above 1/4, below. No class mixes tokens that the draft makes too likely with
// others, so the overlap does not change; the ratio of a token in a class changes only within the class's range.
DistributionClasses distribution_classes(std::span<const double> target, std::span<const double> draft, std::size_t tokens);

// The acceptance measured while decoding one prompt.
struct RequestAcceptance {
  std::string kind;
  std::uint64_t rounds = 0;
  std::uint64_t emitted = 0;
  std::vector<int> accepted;  // [round]: accepted draft tokens
  std::vector<int> drafted;
  // For each token x of a longer output, the probability that a round that reaches it accepts it, given that x is emitted: for
  // the token rule min(1, drafted(x) / target(x)). Exact at any depth, for a draft with its whole context. It covers the counted
  // tokens and another draft_length tokens, the room of the last counted round, or less if the context ends. So its length does
  // not depend on the method. Empty for rules that judge blocks or are not lossless.
  std::vector<double> given_text;
  std::vector<DistributionClasses> distributions;  // at the same positions, if they were requested
};

struct MeasuredAcceptance {
  std::vector<Tally> by_depth;  // given that the depth is reached
  Tally after_rejection;        // first position of a round, by the end of the previous round
  Tally after_full;
  std::vector<std::uint64_t> accepted_counts;  // rounds by accepted
  std::vector<RequestAcceptance> requests;

  [[nodiscard]] std::uint64_t rounds() const;
  [[nodiscard]] double tokens_per_round() const;
  [[nodiscard]] double tokens_per_round_error() const;  // standard error, from the spread over requests; NaN for one request
};

struct AcceptanceRun {
  double temperature = 1.0;
  int draft_length = 4;
  std::size_t tokens = 64;  // least number of emitted tokens per prompt, if the context allows
  std::uint64_t seed = 0;
  std::size_t distribution_tokens = 0;  // > 0: distributions are kept, with this many tokens listed singly
};

// Decodes every prompt separately. `draft` may be null for a drafter that reads the text alone.
MeasuredAcceptance measure_acceptance(Model& target, Model* draft, const Method& method, const std::vector<Prompt>& prompts,
                                      const AcceptanceRun& run, const std::function<void(double done, double all)>& progress);

// One line per request: {"request", "kind", "overlap": [given_text]}; read by `specsim plan --trace` and context: {process:
// trace}.
std::string overlap_trace(const MeasuredAcceptance& acceptance);
// The same for distributions: {"request", "kind", "target": [DISTRIBUTION, ...], "draft": [DISTRIBUTION, ...]}.
std::string distribution_trace(const MeasuredAcceptance& acceptance);
// One line per request: {"request", "kind", "draft_length", "rounds": [accepted]}; read by `specsim fit`. If some rounds drafted
// less than draft_length, "drafted": [...] lists the drafted tokens. `tree`: drafts were trees, and lines have "tree": true.
std::string rounds_trace(const MeasuredAcceptance& acceptance, int draft_length, bool tree = false);

}  // namespace specsim::llm
