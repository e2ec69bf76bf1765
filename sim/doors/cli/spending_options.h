// Options of plan, serve, pass and choose on the power and the cost of GPUs.
#pragma once

#include "sim/doors/cli/command_line.h"
#include "sim/hardware/presets/presets.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::cli {

struct SpendingOptions {
  std::optional<double> power_cap;  // watts of each GPU
  std::vector<std::string> prices;  // GPU=DOLLARS, or DOLLARS for every GPU
  [[nodiscard]] bool any() const { return power_cap || !prices.empty(); }
};

void add_spending_options(CommandLine& line, SpendingOptions& options);
// Dollars per hour of the GPU with that name; nothing if no option gives them. Throws BadInput for what is no number, and for a
// GPU that is none of `all`.
std::optional<double> price_given(const SpendingOptions& options, const std::string& hardware,
                                  const std::vector<std::string>& all);
// Changes of that GPU by the options. Throws BadInput as price_given() does.
std::vector<cost::PresetChoice::Change> spending_changes(const SpendingOptions& options, const std::string& hardware,
                                                         const std::vector<std::string>& all);

}  // namespace specsim::cli
