#include "sim/doors/cli/spending_options.h"

#include "sim/doors/cli/numbers.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/config/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace specsim::cli {

void add_spending_options(CommandLine& line, SpendingOptions& options) {
  line.add({{"power-cap", options.power_cap, config::between(1, 1e5), "power limit of each GPU, watts; it lowers the clock"},
            {"price", options.prices, read_texts,
             "dollars per GPU-hour: DOLLARS, or GPU=DOLLARS, commas between; if not given those of the GPU's file"}});
}

std::optional<double> price_given(const SpendingOptions& options, const std::string& hardware, const std::vector<std::string>& all) {
  std::optional<double> found;
  for (const std::string& one : options.prices) {
    const std::size_t equals = one.find('=');
    const std::string gpu = equals == std::string::npos ? "" : one.substr(0, equals);
    const double dollars = read_number(equals == std::string::npos ? one : one.substr(equals + 1), "--price", config::above(0, 1e6));
    if (!gpu.empty() && std::find(all.begin(), all.end(), gpu) == all.end())
      throw BadInput({"--price", 0, 0}, fmt::format("a cost of {}, which is not among the GPUs, allowed: {}", config::quote_for_message(gpu),
                                                    fmt::join(all, ", ")));
    if (gpu == hardware || (gpu.empty() && !found)) found = dollars;
  }
  return found;
}

std::vector<cost::PresetChoice::Change> spending_changes(const SpendingOptions& options, const std::string& hardware,
                                                         const std::vector<std::string>& all) {
  std::vector<cost::PresetChoice::Change> changes;
  if (options.power_cap) changes.push_back({"power", fmt::format("{{cap_w: {:g}}}", *options.power_cap), {"--power-cap", 0, 0}});
  if (const std::optional<double> dollars = price_given(options, hardware, all))
    changes.push_back({"price", fmt::format("{{dollars_per_hour: {}, source: an option}}", *dollars), {"--price", 0, 0}});
  return changes;
}

}  // namespace specsim::cli
