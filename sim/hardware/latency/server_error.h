// What prices err by beside the prices of kernels, as standard deviations of logarithms. scripts/results/price_coverage.py
// estimates them, and says from which rows and how often the others lie within them (docs/results/prices.md).
#pragma once

#include "sim/hardware/model/model_shape.h"

namespace specsim::cost {

constexpr double kServerError = 0.07;           // a step of a dense model
constexpr double kServerErrorOfExperts = 0.16;  // the same of a model with experts
constexpr double kRoundError = 0.17;            // rounds of a server, beyond its plain steps

// Figures of integer kernels are of whole passes on users' machines, whose error has this in it.
inline double error_beside_kernels(const ModelShape& model, bool integer_kernels) {
  if (integer_kernels && model.weight_bits < 16.0) return 0.0;
  return model.experts > 0.0 ? kServerErrorOfExperts : kServerError;
}

}  // namespace specsim::cost
