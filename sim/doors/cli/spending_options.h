// --power-cap and --price: what plan, serve, pass and choose change of a GPU for energy and cost.
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
// Dollars of an hour of the GPU that was asked for by that name; nothing where no price is given. Throws BadInput for what is no
// price, and for a price of a GPU that is none of `all`.
std::optional<double> price_given(const SpendingOptions& options, const std::string& hardware, const std::vector<std::string>& all);
// What the options change of that GPU. Throws BadInput as price_given() does.
std::vector<cost::PresetChoice::Change> spending_changes(const SpendingOptions& options, const std::string& hardware,
                                                         const std::vector<std::string>& all);

}  // namespace specsim::cli
