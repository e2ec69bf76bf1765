// Latency estimates of single forward passes, for specsim pass.
#pragma once

#include "sim/foundation/report/column.h"
#include "sim/hardware/latency/deployment.h"
#include "sim/hardware/latency/pass.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace specsim::plan {

// A model on a GPU, and the user's names for the two.
struct PassSetting {
  std::string hardware;
  std::string model;
  cost::Deployment deployment;  // only the model, in the role whose latency is estimated
  [[nodiscard]] const cost::ModelShape& shape() const { return deployment.target ? *deployment.target : *deployment.draft; }
};

struct PassGrid {
  cost::Role role = cost::Role::target;
  std::vector<double> batches;
  std::vector<double> contexts;
  std::vector<double> tokens;  // new tokens per sequence
  double most_logits = 1e9;    // most rows per sequence through the LM head
  bool products_only = false;  // only the layers' matrix products
};

// The passes of the grid: by batch, context, tokens.
std::vector<cost::Pass> passes_of(const PassGrid& grid);

struct EstimatedPass {
  std::size_t setting = 0;
  cost::Pass pass;
  cost::PassTime time;
  double error = 0.0;         // standard deviation of the logarithm of the time
  double kernel_error = 0.0;  // the part due to kernel latencies
  double shared = 0.0;        // share of that part's variance that passes over other numbers of rows have in common
  double ratio = 1.0;         // time relative to the pass with the grid's first number of tokens, at the same batch and context
  std::optional<bool> fits;   // whether model and cache fit into memory; nullopt for a draft, which shares memory with its target
  double joules = std::numeric_limits<double>::quiet_NaN();  // of all GPUs; NaN if their power is not known
  double joules_error = 0.0;                                 // standard deviation of its logarithm
};

struct EstimatedPasses {
  std::vector<EstimatedPass> passes;  // setting by setting, then batch, context, tokens
  std::vector<std::string> warnings;  // warnings of the settings' cost models, each once
};

// Estimates the latency of every pass of the grid in each setting.
EstimatedPasses estimate_passes(const std::vector<PassSetting>& settings, const PassGrid& grid);

// CSV with a header and a line per pass; times in milliseconds.
std::string passes_csv(const std::vector<PassSetting>& settings, const std::vector<EstimatedPass>& passes);
// The columns of that CSV, for the reference page.
report::FileInfo passes_info();

}  // namespace specsim::plan
