// The synthetic pair of distributions that a record's positions look like: normal logits whose scale differs from context to
// context, and a draft whose error does (docs/results/language.md).
#pragma once

#include "sim/experiments/fit/spread_file.h"
#include "sim/experiments/fit/spread_parameter.h"

#include <cstddef>
#include <string>
#include <vector>

namespace specsim::fit {

// What a record says of its positions, request by request.
struct SpreadRecord {
  int vocab = 0;                             // tokens of the recorded distributions; 0: none are recorded
  std::vector<std::vector<double>> entropy;  // [request][position] of the target's distribution, nats; empty: not recorded
  std::vector<std::vector<double>> overlap;  // [request][position]
  bool outcomes = false;                     // 1 and 0 stand for overlap: what was accepted and what was not
};

// Reads recorded acceptance in any of its forms. Throws BadInput with the lines of what is wrong.
SpreadRecord read_spread_record(const std::string& path, const std::string& kind);

struct SpreadFit {
  std::size_t requests = 0;
  std::size_t positions = 0;
  int vocab = 0;
  SpreadParameter sigma;         // standard deviation of the target's logits
  SpreadParameter sigma_spread;  // standard deviation of its logarithm over contexts
  SpreadParameter noise;         // standard deviation of the draft's logits around the target's
  SpreadParameter noise_spread;
  SpreadParameter persistence;  // a parameter of context process text, and so is the next
  SpreadParameter between_requests;
  std::vector<SpreadMoment> moments;
  // Which methods the fit does not tell apart, "" where it does all.
  [[nodiscard]] std::string warning() const;
  // An experiment for `specsim run`. Its sweep leaves out what warning() names.
  [[nodiscard]] std::string yaml() const;
};

// Means and standard deviations over positions are met: of the target's entropy by sigma and its spread, of the overlap by the
// noise and its spread; covariances along a text by what process `text` has for them. Without distributions the
// target is the one of docs/results/language.md, and where only outcomes are known so is the noise's spread, which they do not
// tell, nor anything of what goes with what. A spread of 0: the record's positions differ no more than such contexts do anyway.
SpreadFit fit_spread(const SpreadRecord& record);

}  // namespace specsim::fit
