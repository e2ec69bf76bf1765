// Tokens per round by draft length: all that a plan needs to know about a draft, from any source. Each source names what it
// measures, so that unconditional rates, conditional rates and lengths are never confused.
#pragma once

#include "sim/experiments/spec/context_rates.h"
#include "sim/experiments/spec/spec.h"

#include <limits>
#include <string>
#include <vector>

namespace specsim::plan {

// alpha of a memoryless draft that emits this many tokens per round, including the bonus token.
double equivalent_alpha(double tokens_per_round, int draft_length);

struct AcceptanceCurve {
  std::string source;                    // its description for the user: "alpha 0.75 at every position"
  std::vector<double> tokens_per_round;  // [draft_length], 1 at 0
  std::vector<double> full_rate;         // [draft_length], share of rounds that accept every draft
  int measured = 0;                      // beyond this draft length the last rate is assumed to continue
  bool assumed = false;                  // the user's config states that it is not measured
  bool sampled = false;                  // it comes from data: parts has its spread, or is empty if there is too little data
  // Tokens per round of independent parts of the data, paired over draft lengths: [part][draft_length]. Their spread gives the
  // error of tokens_per_round, by the linear expansion of emitted / rounds; parts may differ in size. A part that is a large
  // share of the data pulls the ratio towards itself, so its difference counts as if it were left out (the jackknife).
  std::vector<std::vector<double>> parts;
  double freedom = std::numeric_limits<double>::quiet_NaN();  // degrees of freedom of that spread, as of parts of equal size

  // Acceptance that changes with the context: rates by position at rising contexts. Empty: it is the same at all. The figures
  // above are then those of one context.
  std::vector<spec::ContextRates> by_context;

  // The models with which the acceptance was recorded, in the form of cost.target and cost.draft; "": not stated.
  std::string recorded_target;
  std::string recorded_draft;

  // The curve at a context: itself, unless by_context has rates (spec::rates_at).
  [[nodiscard]] AcceptanceCurve at(double context) const;
  // Removes draft lengths above `most`, at least 1.
  void end_at(int most);
  [[nodiscard]] int longest() const { return static_cast<int>(tokens_per_round.size()) - 1; }
  [[nodiscard]] double equivalent_alpha(int draft_length) const {
    return plan::equivalent_alpha(tokens_per_round[static_cast<std::size_t>(draft_length)], draft_length);
  }
};

// Acceptance alpha at every position.
AcceptanceCurve constant_acceptance(double alpha, int longest);
// Rates of acceptance given that a position is reached, by position.
AcceptanceCurve conditional_acceptance(const std::vector<double>& rates, int longest);
// Rates of acceptance given that a position is reached, by position and context; the curve is that of the first context.
AcceptanceCurve context_acceptance(std::vector<spec::ContextRates> by_context, int longest);
// Rates per position over all rounds, as vLLM logs them; these never rise. Throws BadInput at `where` if they do.
AcceptanceCurve unconditional_acceptance(const std::vector<double>& rates, int longest, const Location& where = {});
// Converts rates per position over all rounds to rates over the rounds that reach the position. Throws BadInput at `where` if
// they rise.
std::vector<double> conditional_rates(const std::vector<double>& rates, const Location& where);
// Mean emitted tokens per round (including the bonus token), measured at a draft length. Throws BadInput at `where` outside 1 to
// draft_length + 1.
AcceptanceCurve length_acceptance(double mean_length, int draft_length, int longest, const Location& where = {});
// Accepted / drafted tokens, measured when every round drafted draft_length tokens. If a confidence threshold shortens drafts
// (llama.cpp's p-min, vLLM's dynamic lengths), the rate is that of shorter drafts, and this overestimates.
AcceptanceCurve rate_acceptance(double rate, int draft_length, int longest);
// Recorded acceptance in one of three forms of JSONL, one request per line. Reads the file; throws BadInput with the line of the
// error.
// - {"request": ID, "draft_length": D, "accepted": [a0, a1, ...]}: the prefix that a round starting at each output position
//   would have had accepted, with D drafted tokens. It covers draft lengths up to D.
// - {"request": ID, "draft_length": D, "rounds": [a0, a1, ...]}: the accepted tokens of each round, exact at D. A shorter draft
//   length uses the same rounds, cut short, although its own rounds would start elsewhere.
// - {"request": ID, "overlap": [o0, o1, ...]}: the probability that a draft for this position is accepted once reached. Contains
//   no depth.
AcceptanceCurve trace_acceptance(const std::string& path, int longest);
// The curve of recorded overlaps, [request][position]: the probability that a draft for this position is accepted once reached.
// Requests without positions are ignored. `source`: the record's name in messages. Throws BadInput if no request has a position.
AcceptanceCurve overlap_acceptance(const std::vector<std::vector<double>>& overlaps, const std::string& source, int longest);
// A cell's own distributions, simulated at every draft length with shared random numbers, `rounds` rounds each.
AcceptanceCurve simulated_acceptance(const spec::Cell& cell, int longest, std::uint64_t rounds);
// The curve of a cell's own distributions by theory alone; empty if there is no theory.
AcceptanceCurve predicted_acceptance(const spec::Cell& cell, int longest);

}  // namespace specsim::plan
