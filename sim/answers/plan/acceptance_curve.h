// Tokens per round by draft length: what a plan needs to know of a draft, wherever the figures come from. Each source names
// what it measures, so that unconditional rates, conditional ones and lengths are never taken for one another.
#pragma once

#include "sim/experiments/spec/spec.h"

#include <limits>
#include <string>
#include <vector>

namespace specsim::plan {

// alpha of a memoryless draft that emits so many tokens per round, bonus included.
double equivalent_alpha(double tokens_per_round, int draft_length);

struct AcceptanceCurve {
  std::string source;                    // what the reader is told: "alpha 0.75 at every position"
  std::vector<double> tokens_per_round;  // [draft_length], 1 at 0
  std::vector<double> full_rate;         // [draft_length], share of rounds that accept every draft
  int measured = 0;                      // beyond this draft length the last rate is assumed to hold on
  bool sampled = false;  // it comes from data: parts has its spread, or is empty where there is too little for one
  // Tokens per round of independent parts of the data, paired over draft lengths: [part][draft_length]. Their spread is that of
  // tokens_per_round, by the linear expansion of emitted / rounds: parts may differ in size. A part that is much of the data draws
  // the ratio to itself, so that its own difference counts as if it were left out (the jackknife).
  std::vector<std::vector<double>> parts;
  double freedom = std::numeric_limits<double>::quiet_NaN();  // degrees of freedom of that spread: as many as parts of one size

  // Leaves out draft lengths above `most`, 1 at least.
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
// Rates per position of all rounds, as vLLM logs them: they fall. Throws BadInput, at `where`, where they rise.
AcceptanceCurve unconditional_acceptance(const std::vector<double>& rates, int longest, const Location& where = {});
// Converts rates per position of all rounds to rates of the rounds that reach the position. Throws BadInput, at `where`, where
// they rise.
std::vector<double> conditional_rates(const std::vector<double>& rates, const Location& where);
// Mean emitted tokens per round (bonus included), measured at a draft length. Throws BadInput, at `where`, beyond 1 to
// draft_length + 1.
AcceptanceCurve length_acceptance(double mean_length, int draft_length, int longest, const Location& where = {});
// Accepted / drafted tokens, measured where every round drafted draft_length tokens. Where a confidence threshold cuts drafts
// short (llama.cpp's p-min, vLLM's dynamic lengths) the rate is one of shorter drafts, and this overestimates.
AcceptanceCurve rate_acceptance(double rate, int draft_length, int longest);
// Recorded acceptance in one of three forms: JSONL, one request a line. Reads the file; throws BadInput with the line of what is
// wrong.
//   {"request": ID, "draft_length": D, "accepted": [a0, a1, ...]}: the prefix that a round starting at each output position
//   would have had accepted, drafting D tokens; a draft length above D is not answered.
//   {"request": ID, "draft_length": D, "rounds": [a0, a1, ...]}: what each round had accepted, exact at D; a shorter draft length
//   is taken from the same rounds, cut short, though its own rounds would start elsewhere.
//   {"request": ID, "overlap": [o0, o1, ...]}: the probability that a draft for this position is accepted once reached. Holds no
//   depth.
AcceptanceCurve trace_acceptance(const std::string& path, int longest);
// The curve of recorded overlaps, [request][position]: each is the probability that a draft for this position is accepted once
// reached. Requests without positions are left out. `source`: the record as messages call it. Throws BadInput if none has any.
AcceptanceCurve overlap_acceptance(const std::vector<std::vector<double>>& overlaps, const std::string& source, int longest);
// A cell's own distributions, simulated at every draft length with shared random numbers, `rounds` rounds each.
AcceptanceCurve simulated_acceptance(const spec::Cell& cell, int longest, std::uint64_t rounds);
// The curve of a cell's own distributions by theory alone; empty where there is no theory.
AcceptanceCurve predicted_acceptance(const spec::Cell& cell, int longest);

}  // namespace specsim::plan
