// How recorded positions go with those before them, as the parameters of context process `text`.
#pragma once

#include "sim/experiments/fit/spread_contexts.h"
#include "sim/experiments/fit/spread_parameter.h"

#include <vector>

namespace specsim::fit {

struct TextFit {
  SpreadParameter persistence;
  SpreadParameter between_requests;
  std::vector<SpreadMoment> moments;
};

// `overlap`: [request][position], of every position of a text. Covariances are met: of neighbours by the persistence, of
// positions far apart in one request by the share between requests, which is taken for 0 where too few positions are far apart.
// Neither is fitted where scales have no spread. Errors by leaving out one request after the other (the jackknife), the scales
// held fixed.
TextFit fit_text(const std::vector<std::vector<double>>& overlap, const SpreadContexts& contexts, const SpreadValues& values);

}  // namespace specsim::fit
