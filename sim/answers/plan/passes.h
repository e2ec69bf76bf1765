// Forward passes priced one by one: what specsim pass shows.
#pragma once

#include "sim/foundation/report/column.h"
#include "sim/hardware/latency/deployment.h"
#include "sim/hardware/latency/pass.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace specsim::plan {

// A model on a GPU, whose passes are priced, and the names by which the user chose the two.
struct PassSetting {
  std::string hardware;
  std::string model;
  cost::Deployment deployment;  // the model alone, in the role that it is priced in
  [[nodiscard]] const cost::ModelShape& shape() const { return deployment.target ? *deployment.target : *deployment.draft; }
};

struct PassGrid {
  cost::Role role = cost::Role::target;
  std::vector<double> batches;
  std::vector<double> contexts;
  std::vector<double> tokens;  // new ones of each sequence
  double most_logits = 1e9;    // rows of a sequence that go through the LM head, at most
  bool products_only = false;  // the layers' matrix products alone
};

// The passes of the grid: by batch, context, tokens.
std::vector<cost::Pass> passes_of(const PassGrid& grid);

struct PricedPass {
  std::size_t setting = 0;
  cost::Pass pass;
  cost::PassTime time;
  double error = 0.0;         // standard deviation of the logarithm of the time
  double kernel_error = 0.0;  // the part of it that prices of kernels make
  double shared = 0.0;        // share of that part's variance that passes over other rows have in common with it
  double ratio = 1.0;         // time over that of the pass over the grid's first number of tokens, at the same batch and context
  std::optional<bool> fits;   // whether model and cache fit into memory; nullopt for a draft, beside which its target lies there
  double joules = std::numeric_limits<double>::quiet_NaN();  // of all GPUs; NaN where their power is not known
  double joules_error = 0.0;                                 // standard deviation of its logarithm
};

struct PricedPasses {
  std::vector<PricedPass> passes;     // setting by setting, then batch, context, tokens
  std::vector<std::string> warnings;  // what the settings' cost models warn of, each once
};

// Prices every pass of the grid in each setting.
PricedPasses price_passes(const std::vector<PassSetting>& settings, const PassGrid& grid);

// CSV with a header and a line for each pass; times in milliseconds.
std::string passes_csv(const std::vector<PassSetting>& settings, const std::vector<PricedPass>& passes);
// The columns of that CSV, for the reference page.
report::FileInfo passes_info();

}  // namespace specsim::plan
