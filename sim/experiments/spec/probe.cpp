#include "sim/experiments/spec/read_cell.h"
#include "sim/foundation/base/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace specsim::spec {

namespace {

constexpr std::size_t kFreshProbes = 64;
constexpr std::uint64_t kPoolProbeBudget = 10'000'000;  // the part of it (in tokens) for further contexts of pools
constexpr std::uint64_t kProbeBudget = 200'000'000;     // tokens of distributions that are drawn to find errors before the start

}  // namespace

void probe(const std::vector<Cell>& cells, Diagnostics& diagnostics) {
  std::set<std::string> seen;
  std::uint64_t spent = 0;
  for (const Cell& cell : cells) {
    if (!seen.insert(cell.preparation_key).second) continue;
    const auto vocab = static_cast<std::size_t>(cell.vocab);
    std::vector<double> target(vocab);
    std::vector<double> draft(vocab);
    const std::size_t pairs = cell.contexts->pairs.size();
    const auto contexts = static_cast<std::size_t>(cell.contexts->process->shape().contexts);  // 0: one per text position
    const std::size_t draws = pairs == 1 && cell.contexts->pairs[0].random() ? (contexts > 0 ? contexts : kFreshProbes) : pairs;
    for (std::size_t context = 0; context < draws; ++context) {
      const families::DistributionAddress address = cell.contexts->address(distribution_key(cell), context);
      const families::PairSource& pair = cell.contexts->pair(context);
      spent += vocab * (1 + pair.depths());
      if (spent > kProbeBudget) return;
      if (context >= pairs && spent > kPoolProbeBudget) break;
      try {
        pair.draw_target(address, target);
        for (std::size_t depth = 0; depth < pair.depths(); ++depth) pair.draw_draft(address, depth, target, draft);
      } catch (const BadInput& bad) {
        for (const Diagnostic& diagnostic : bad.list()) diagnostics.add(diagnostic.where, diagnostic.message);
        return;
      } catch (const InvariantBroken&) {
        diagnostics.add(
            cell.places.pair,
            "pair has a distribution that keeps no token, allowed: transforms and settings that leave probability on some token");
        return;
      }
      if (cell.verifier().demands.one_hot_target && *std::max_element(target.begin(), target.end()) < 1.0) {
        diagnostics.add(cell.places.verifier,
                        fmt::format("verifier {} for a target that is not one-hot, allowed: pair.target_sampling: {{temperature: "
                                    "0}}, or a one_hot target",
                                    cell.verifier().info.name));
        return;
      }
    }
  }
}

double most_context(const Cell& cell) {
  if (!cell.placement) return cell.workload.context;
  return std::max(cell.workload.context,
                  static_cast<double>(cell.placement->setting.prompt_tokens + cell.placement->setting.output_tokens));
}

// A draft on its own GPU does not use the target's memory. The memory of a device across a network is unknown.
std::optional<cost::MemoryBudget> misfit(const Cell& cell) {
  if (!cell.cost_choice) return std::nullopt;
  std::vector<cost::Kept> memories = {cost::Kept::both};
  const placement::Placement* placed = cell.placement ? cell.placement->setting.placement.get() : nullptr;
  if (cell.draft_length() == 0 || (placed != nullptr && !placed->speculates()))
    memories = {cost::Kept::target};
  else if (placed != nullptr && placed->draft_elsewhere())
    memories = {cost::Kept::target, placed->second_gpu() ? cost::Kept::draft : cost::Kept::target};
  const int look_ahead = 1 + cell.drafted_nodes();
  for (const cost::Kept kept : memories) {
    auto memory_budget = cell.cost().memory_budget({cell.workload.batch, most_context(cell)}, look_ahead, kept);
    if (memory_budget && !memory_budget->fits()) return memory_budget;
  }
  return std::nullopt;
}

}  // namespace specsim::spec
