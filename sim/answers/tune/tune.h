// specsim tune: a server's runs in, what they taught and what is expected of other runs out.
#pragma once

#include "sim/answers/tune/learn.h"

#include <string>
#include <vector>

namespace specsim::tune {

struct TuneRequest {
  load::ServeRequest server;
  std::vector<Run> runs;
  std::vector<Run> cells;  // to predict
  PredictOptions options;
};

struct TuneResult {
  cost::FactorBelief prior;
  cost::FactorBelief belief;
  std::vector<Fit> fits;                    // [run]
  std::vector<Logarithms> prior_means;      // [run]: what was expected before
  std::vector<Learned::Expected> expected;  // [cell]
  std::vector<std::vector<double>> covariance;  // as Learned::covariance, of the cells
  std::vector<Prediction> predictions;          // [cell]
  std::vector<Acceptance> acceptances;          // [cell]
};

TuneResult tune(const TuneRequest& request);

// What was learned, in sentences: the factors that differ from their prior by more than what is still uncertain about them.
std::vector<std::string> findings(const TuneResult& result);
// An engine's file: the engine of the request with what was learned.
std::string server_yaml(const TuneRequest& request, const TuneResult& result);

// Of each cell and metric: its simulated value, and how its logarithm changes by each factor (per unit of the factor: a logarithm of
// GPU time, or a microsecond).
std::string slopes_csv(const std::vector<Run>& cells, const std::vector<Prediction>& predictions, const std::vector<Acceptance>& acceptances);

// The columns of the cells, then each metric with the bounds of its 95 % interval.
std::string predictions_csv(const std::vector<Run>& cells, const std::vector<Learned::Expected>& expected);

}  // namespace specsim::tune
