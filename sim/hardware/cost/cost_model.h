// The registry of cost models: how long a forward pass takes.
#pragma once

#include "sim/foundation/config/registry.h"
#include "sim/hardware/cost/memory_budget.h"
#include "sim/hardware/cost/pass.h"

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace specsim::cost {

struct Deployment;

class CostModel {
 public:
  CostModel() = default;
  CostModel(const CostModel&) = delete;
  CostModel& operator=(const CostModel&) = delete;
  virtual ~CostModel() = default;
  // Time of a pass. Throws BadInput for one that the model does not cover (a table's edge).
  [[nodiscard]] virtual PassTime pass(Role role, const Pass& pass) const = 0;
  // Time of a round's draft pass number `index`, 0 .. draft_length - 1, with `extra` tokens per sequence to catch up with.
  [[nodiscard]] virtual PassTime draft_pass(const Workload& workload, int index, double extra) const {
    return pass(Role::draft, {workload.batch, 1.0 + extra, workload.context + index, 1.0});
  }
  // The same over `rows` tokens of each sequence, a level of a tree.
  [[nodiscard]] PassTime draft_level(const Workload& workload, int index, double rows, double extra) const {
    if (rows == 1.0) return draft_pass(workload, index, extra);
    if (rows == 0.0 || !makes_draft_pass(index)) return {};
    return pass(Role::draft, {workload.batch, rows + extra, workload.context + index, rows});
  }
  // Whether draft pass number `index` of a round is one: heads that guess several tokens at once make none for the others.
  [[nodiscard]] virtual bool makes_draft_pass(int /*index*/) const { return true; }
  // Whether a chain's drafts come of one pass over all of their positions.
  [[nodiscard]] virtual bool drafts_at_once() const { return false; }
  // Draft tokens of a round that the draft can guess one after the other; heads guess one each.
  [[nodiscard]] virtual int most_drafts() const { return std::numeric_limits<int>::max(); }
  // Time of a pass over chunks of prompts and decoding sequences at once, of whose rows `logits` go through the LM head. A model
  // that does not tell the two apart prices the mean sequence.
  [[nodiscard]] virtual PassTime mixed_pass(Role role, const Segment& prompts, const Segment& decoding, double logits,
                                            const OtherEngines& /*peers*/) const {
    const double n = prompts.sequences + decoding.sequences;
    return pass(role, {n, (prompts.rows + decoding.rows) / n, (prompts.cached + decoding.cached) / n, logits / n});
  }
  // The first of a step's draft passes, over the same rows.
  [[nodiscard]] virtual PassTime mixed_draft_pass(const Segment& prompts, const Segment& decoding) const {
    const double n = prompts.sequences + decoding.sequences;
    return draft_pass({n, (prompts.cached + decoding.cached) / n}, 0, (prompts.rows + decoding.rows) / n - 1.0);
  }
  // Standard deviation of the logarithm of a pass's time, as far as the model knows how wrong its prices are; 0: it does not say.
  [[nodiscard]] double relative_error(Role role, const Pass& pass) const {
    return std::hypot(kernel_error(role, pass), server_error(role));
  }
  // The part of it that the prices of the pass's kernels make.
  [[nodiscard]] virtual double kernel_error(Role /*role*/, const Pass& /*pass*/) const { return 0.0; }
  // What a server's steps take beside the sum of its kernels, its host and version among it: common to everything that one server
  // does at one load, so that it falls out of every comparison there.
  [[nodiscard]] virtual double server_error(Role /*role*/) const { return 0.0; }
  // The same of the rounds that draft, beyond its plain steps: common to them, whatever drafts and however much.
  [[nodiscard]] virtual double round_error() const { return 0.0; }
  // The share of the variance of kernel_error() that passes of one role have in common, whatever their rows: how far a whole GPU
  // or type is mispriced. The rest differs from one number of rows to another.
  [[nodiscard]] virtual double shared_variance(Role /*role*/) const { return kSharedByMeasured; }
  // Residuals of measured products at different numbers of rows correlate by so much.
  static constexpr double kSharedByMeasured = 0.3;
  // Time of a speculative round outside its passes: proposing, accepting, bookkeeping. Seconds.
  [[nodiscard]] virtual double round_overhead(double batch) const = 0;
  // False: times count in target passes over one token, and only ratios of them mean anything.
  [[nodiscard]] virtual bool in_seconds() const { return true; }
  // What must lie in memory for `look_ahead` new tokens per sequence, those beyond the first on a line of their own; empty where
  // the model does not know sizes.
  [[nodiscard]] virtual std::optional<MemoryBudget> memory_budget(const Workload& workload, int look_ahead, Kept kept) const;
  // The same with the target on the draft's GPUs as well, tensor parallel; nullptr where the model cannot price that or the two
  // are not on equally many.
  [[nodiscard]] virtual std::unique_ptr<CostModel> on_twice_the_gpus() const { return nullptr; }
  // The same with memory of so many times the bandwidth, and so many times the engine's host time; nullptr where the model
  // knows neither.
  [[nodiscard]] virtual std::unique_ptr<CostModel> scaled(double /*bandwidth*/, double /*host*/) const { return nullptr; }
  // The GPU and the models that are priced; nullptr where only times are known.
  [[nodiscard]] virtual const Deployment* deployment() const { return nullptr; }
  // What a user should know before trusting the model: unverified figures, kept dips.
  [[nodiscard]] virtual std::vector<std::string> warnings() const { return {}; }
  // In which way a pass is larger than what its prices were fitted to, a line each; empty where it is not or the model has no
  // fits.
  [[nodiscard]] virtual std::vector<std::string> beyond_measured(Role /*role*/, const Pass& /*pass*/) const { return {}; }
};

struct CostEntry {
  config::PartInfo info;
  // May return nullptr after reporting.
  std::function<std::unique_ptr<CostModel>(const config::Arguments&, Diagnostics&)> make;
};

config::Registry<CostEntry>& cost_models();

}  // namespace specsim::cost
