// Fits the synthetic pair of distributions to a record: normal logits whose scale differs between contexts, and a draft whose
// error scale differs too (docs/results/language.md).
#pragma once

#include "sim/experiments/fit/spread_file.h"
#include "sim/experiments/fit/spread_parameter.h"

#include <cstddef>
#include <string>
#include <vector>

namespace specsim::fit {

// The recorded positions, request by request.
struct SpreadRecord {
  int vocab = 0;                             // size of the recorded distributions; 0: not recorded
  std::vector<std::vector<double>> entropy;  // [request][position] of the target's distribution, nats; empty: not recorded
  std::vector<std::vector<double>> overlap;  // [request][position]
  bool outcomes = false;                     // the overlaps are outcomes: 1 accepted, 0 rejected
};

// Reads recorded acceptance in any of its forms. Throws BadInput with the lines of the errors.
SpreadRecord read_spread_record(const std::string& path, const std::string& kind);

struct SpreadFit {
  std::size_t requests = 0;
  std::size_t positions = 0;
  int vocab = 0;
  SpreadParameter sigma;         // standard deviation of the target's logits
  SpreadParameter sigma_spread;  // standard deviation of its logarithm over contexts
  SpreadParameter noise;         // standard deviation of the draft's logits around the target's
  SpreadParameter noise_spread;
  SpreadParameter persistence;  // of context process `text`, as is the next
  SpreadParameter between_requests;
  std::vector<SpreadMoment> moments;
  // The methods that the fit cannot distinguish; "" if there are none.
  [[nodiscard]] std::string warning() const;
  // An experiment for `specsim run`. Its sweep omits the methods that warning() names.
  [[nodiscard]] std::string yaml() const;
};

// The fit matches means and standard deviations over positions: the target's entropy by sigma and its spread, the overlap by the
// noise and its spread. It matches covariances along a text by the parameters of context process `text`. Without recorded
// distributions the target is that of docs/results/language.md. If only outcomes are recorded, so is the noise's spread, and
// correlations between target and draft are unknown. A spread of 0 means that the record's positions differ no more than such
// contexts differ anyway.
SpreadFit fit_spread(const SpreadRecord& record);

}  // namespace specsim::fit
