// specsim tune: learns from a server's runs, and predicts other runs.
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
  std::vector<Fit> fits;                           // [run]
  std::vector<Logarithms> prior_means;             // [run]: the prediction before learning
  std::vector<LearnedFactors::Expected> expected;  // [cell]
  std::vector<std::vector<double>> covariance;     // as LearnedFactors::covariance, for the cells
  std::vector<Prediction> predictions;             // [cell]
  std::vector<Acceptance> acceptances;             // [cell]
};

TuneResult tune(const TuneRequest& request);

// The result of learning in sentences: the factors that differ from their prior by more than their remaining uncertainty.
std::vector<std::string> findings(const TuneResult& result);
// An engine file: the engine of the request with the learned factors.
std::string server_yaml(const TuneRequest& request, const TuneResult& result);

// For each cell and metric: its simulated value, and the change of its logarithm per unit of each factor (a logarithm of GPU
// time, or a microsecond).
std::string slopes_csv(const std::vector<Run>& cells, const std::vector<Prediction>& predictions,
                       const std::vector<Acceptance>& acceptances);

// The columns of the cells, then each metric with the bounds of its 95 % interval.
std::string predictions_csv(const std::vector<Run>& cells, const std::vector<LearnedFactors::Expected>& expected);

}  // namespace specsim::tune
