#include "sim/experiments/spec/read_cell.h"
#include "sim/foundation/base/check.h"
#include "sim/hardware/latency/deployment.h"
#include "sim/hardware/latency/deployment_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

namespace {

// Which models share a memory, one entry per memory to look at. A draft on its own GPU does not use the target's. The memory of a
// device across a network is unknown.
std::vector<cost::Kept> memories_of(const Cell& cell) {
  const cost::Deployment* const deployment = cell.cost().deployment();
  const bool own_gpu = deployment != nullptr && deployment->draft_place;
  const placement::Placement* placed = cell.placement ? cell.placement->setting.placement.get() : nullptr;
  if (cell.draft_length() == 0 || (placed != nullptr && !placed->speculates())) return {cost::Kept::target};
  if (placed != nullptr && placed->draft_elsewhere())
    return {cost::Kept::target, placed->second_gpu() || own_gpu ? cost::Kept::draft : cost::Kept::target};
  return {cost::Kept::both};
}

int look_ahead_of(const Cell& cell) { return 1 + cell.drafted_nodes(); }

std::optional<cost::MemoryBudget> misfit_of(const Cell& cell, double batch) {
  for (const cost::Kept kept : memories_of(cell)) {
    auto memory_budget = cell.cost().memory_budget({batch, most_context(cell)}, look_ahead_of(cell), kept);
    if (memory_budget && !memory_budget->fits()) return memory_budget->tightest();
  }
  return std::nullopt;
}

// The fewest GPUs, of powers of two that divide the heads, that hold the cell; nothing where 64 do not, or sizes are not known.
std::optional<int> gpus_that_hold(const Cell& cell) {
  const cost::Deployment* const deployment = cell.cost().deployment();
  if (deployment == nullptr || !deployment->target || deployment->target->expert_parallel > 1.0 || deployment->draft_place)
    return std::nullopt;
  cost::Deployment own = *deployment;
  for (int gpus = 2; gpus <= 64; gpus *= 2) {
    if (gpus <= deployment->target->tensor_parallel) continue;
    if (std::fmod(own.target->heads, gpus) != 0.0) break;
    own.target->tensor_parallel = gpus;
    if (own.draft && std::fmod(own.draft->heads, gpus) == 0.0) own.draft->tensor_parallel = gpus;
    const std::vector<cost::Kept> memories = memories_of(cell);
    if (std::all_of(memories.begin(), memories.end(), [&](cost::Kept kept) {
          return cost::memory_of(own, {cell.workload.batch, most_context(cell)}, look_ahead_of(cell), kept).fits();
        }))
      return gpus;
  }
  return std::nullopt;
}

}  // namespace

std::optional<cost::MemoryBudget> misfit(const Cell& cell) {
  return cell.cost_choice ? misfit_of(cell, cell.workload.batch) : std::nullopt;
}

std::string ways_to_fit(const Cell& cell) {
  double fitting = 0.0;
  for (double above = cell.workload.batch; above - fitting > 1.0;) {
    const double middle = std::floor(0.5 * (fitting + above));
    (misfit_of(cell, middle) ? above : fitting) = middle;
  }
  std::string list = fitting > 0.0 ? fmt::format("at most {:g} sequence{}, ", fitting, fitting == 1.0 ? "" : "s") : "";
  if (const std::optional<int> gpus = gpus_that_hold(cell))
    list += fmt::format("{} GPUs (--tensor-parallel {}, or tensor_parallel of the target), ", *gpus, *gpus);
  return list + "shorter contexts, or fewer bits";
}

}  // namespace specsim::spec
