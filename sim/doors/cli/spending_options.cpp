#include "sim/doors/cli/spending_options.h"

#include "sim/doors/cli/numbers.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/config/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace specsim::cli {

void add_spending_options(CommandLine& line, SpendingOptions& options) {
  line.add({{"power-cap", options.power_cap, config::between(1, 1e5), "power limit of each GPU, watts; it lowers the clock"},
            {"price", options.prices, read_texts,
             "dollars per GPU-hour: DOLLARS, or GPU=DOLLARS, commas between; default: those of the GPU's file"}});
}

std::optional<double> price_given(const SpendingOptions& options, const std::string& hardware,
                                  const std::vector<std::string>& all) {
  std::map<std::string, double> dollars;  // by GPU; "": of the others
  for (const std::string& one : options.prices) {
    const std::size_t equals = one.find('=');
    const std::string gpu = equals == std::string::npos ? "" : one.substr(0, equals);
    if (equals == 0 || (!gpu.empty() && std::find(all.begin(), all.end(), gpu) == all.end()))
      throw BadInput({"--price", 0, 0}, fmt::format("a cost of {}, which is not among the GPUs, allowed: {}",
                                                    config::quote_for_message(gpu), fmt::join(all, ", ")));
    const double cost = read_number(equals == std::string::npos ? one : one.substr(equals + 1), "--price", config::above(0, 1e6));
    if (!dollars.emplace(gpu, cost).second)
      throw BadInput({"--price", 0, 0}, fmt::format("two costs {}, allowed: one", gpu.empty() ? "without a GPU" : "of " + gpu));
  }
  auto found = dollars.find(hardware);
  if (found == dollars.end()) found = dollars.find("");
  return found == dollars.end() ? std::nullopt : std::optional(found->second);
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
