// The registry of cost models: how long a forward pass takes.
#pragma once

#include "sim/foundation/config/registry.h"
#include "sim/hardware/latency/memory_budget.h"
#include "sim/hardware/latency/pass.h"
#include "sim/hardware/latency/server_factors.h"

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace specsim::cost {

struct Deployment;
class CostModel;

// Derivative of the seconds of one pass with respect to the server's factors. `speculates`: the pass is of a speculative round;
// `verified_rows`: rows of sequences that verify drafts.
FactorVector pass_slope(const PassTime& time, Role role, double sequences, bool speculates, double verified_rows);

// The errors of a model's times, as standard deviations of their logarithms.
class Uncertainty {
 public:
  virtual ~Uncertainty() = default;
  // The belief about the server's factors: the prior, or the posterior after runs of the server; none: the model has no such
  // factors.
  [[nodiscard]] virtual std::optional<FactorBelief> factors() const { return std::nullopt; }
  // Standard deviation of the error that the factors cannot express.
  [[nodiscard]] virtual double discrepancy() const { return kDiscrepancies.tpot; }
  // Standard deviation due to the estimates of the pass's kernels.
  [[nodiscard]] virtual double kernel_error(Role role, const Pass& pass) const = 0;
  // The share of the variance of kernel_error() that passes of one role have in common, whatever their rows: the error of a whole
  // GPU or type. The rest differs from one number of rows to another.
  [[nodiscard]] virtual double shared_variance(Role /*role*/, const Pass& /*pass*/) const { return kSharedByMeasured; }
  // Correlation of the residuals of measured products at different numbers of rows.
  static constexpr double kSharedByMeasured = 0.3;
  // The same for an estimate without a fit of the GPU's own; assumed. Over six measured sets of weight-only kernels the errors at
  // 1 and 8 rows correlate at .78, at 1 and 64 rows at .84. SGLang's set alone causes this: among the five others, whose errors
  // are small, the correlations are -.5 and -.4. Another reason for a high value: libraries read at .52 to .97 of a plain
  // kernel's bandwidth, which affects every memory-bound pass.
  static constexpr double kSharedByOthers = 0.8;
};

// An operation of a pass: which kernel computes it, the source of that kernel's figures, and how long it takes.
struct ExplainedOperation {
  std::string name;
  std::string shape;
  double count = 1.0;  // how often in the pass
  std::string kernel;
  std::string source;
  double seconds = 0.0;         // once
  std::optional<double> error;  // standard deviation of the logarithm; none: not stated for it alone
};

// Further answers of a cost model that knows GPU, models and engine, and not only times.
class DeployedModel {
 public:
  virtual ~DeployedModel() = default;
  [[nodiscard]] virtual const Deployment& deployment() const = 0;
  // The memory that is needed for `look_ahead` new tokens per sequence; tokens beyond the first have a line of their own.
  [[nodiscard]] virtual MemoryBudget memory_budget(const Workload& workload, int look_ahead, Kept kept) const = 0;
  // The same model with the target on the draft's GPUs as well, tensor parallel; nullptr if that cannot be computed or the two
  // use different numbers of GPUs.
  [[nodiscard]] virtual std::unique_ptr<CostModel> with_twice_the_gpus() const = 0;
  // The same model with the draft on the target's GPUs; nullptr if it is there.
  [[nodiscard]] virtual std::unique_ptr<CostModel> draft_with_target() const = 0;
  // The same model with memory of this many times the bandwidth, and this many times the engine's host time.
  [[nodiscard]] virtual std::unique_ptr<CostModel> scaled(double bandwidth, double host) const = 0;
  // Describes in which ways a pass exceeds the measured range of its kernels, one line each.
  [[nodiscard]] virtual std::vector<std::string> beyond_measured(Role role, const Pass& pass) const = 0;
  [[nodiscard]] virtual std::vector<ExplainedOperation> explain(Role role, const Pass& pass) const = 0;
};

// How the draft's passes produce a round's draft tokens.
struct DraftForm {
  std::optional<int> longest;  // tokens that it can draft at most
  bool one_pass = false;       // one pass over all positions drafts a whole chain
  std::optional<int> heads;    // heads that guess one token each in one pass; none: a pass for each token
};

class CostModel {
 public:
  CostModel() = default;
  CostModel(const CostModel&) = delete;
  CostModel& operator=(const CostModel&) = delete;
  virtual ~CostModel() = default;
  // Time of a pass. Throws BadInput for a pass that the model does not cover (a table's edge).
  [[nodiscard]] virtual PassTime pass(Role role, const Pass& pass) const = 0;
  // Time of a round's draft pass number `index`, 0 .. draft_length - 1, with `extra` tokens per sequence to catch up with.
  [[nodiscard]] virtual PassTime draft_pass(const Workload& workload, int index, double extra) const;
  // Time of a pass over chunks of prompts and decoding sequences at once; `logits` of its rows go through the LM head. A model
  // that cannot treat the two separately uses the mean sequence.
  [[nodiscard]] virtual PassTime mixed_pass(Role role, const Segment& prompts, const Segment& decoding, double logits,
                                            const OtherEngines& peers) const;
  // The first of a step's draft passes, over the same rows.
  [[nodiscard]] virtual PassTime mixed_draft_pass(const Segment& prompts, const Segment& decoding) const;
  // Time of a speculative round outside its passes: proposing, accepting, bookkeeping. Seconds.
  [[nodiscard]] virtual double round_overhead(double batch) const = 0;
  // Seconds of a speculative round's messages between the target's GPUs and one of the draft's own, there and back.
  [[nodiscard]] virtual double link_seconds(double /*batch*/, double /*verified_rows*/) const { return 0.0; }
  // False: times are in units of a target pass over one token, and only their ratios have a meaning.
  [[nodiscard]] virtual bool in_seconds() const { return true; }
  [[nodiscard]] virtual DraftForm draft_form() const { return {}; }
  // Warnings for the user about the model: unverified figures, kept dips.
  [[nodiscard]] virtual std::vector<std::string> warnings() const { return {}; }
  // nullptr: the model does not state its errors.
  [[nodiscard]] virtual const Uncertainty* uncertainty() const { return nullptr; }
  // nullptr: only times are known.
  [[nodiscard]] virtual const DeployedModel* deployed() const { return nullptr; }

  // Derived quantities.

  // Time of a draft pass over `rows` tokens of each sequence, a level of a tree.
  [[nodiscard]] PassTime draft_level(const Workload& workload, int index, double rows, double extra) const;
  // Whether draft pass number `index` of a round exists: heads that guess several tokens at once need one pass only.
  [[nodiscard]] bool makes_draft_pass(int index) const;
  [[nodiscard]] bool drafts_at_once() const { return draft_form().one_pass; }
  // Draft tokens of a round that the draft can propose one after the other.
  [[nodiscard]] int most_drafts() const;
  [[nodiscard]] double kernel_error(Role role, const Pass& pass) const;
  [[nodiscard]] double shared_variance(Role role, const Pass& pass) const;
  // Standard deviation of the logarithm of a pass's time, from the server's factors and its kernels; 0: not stated.
  [[nodiscard]] double relative_error(Role role, const Pass& pass) const;
  [[nodiscard]] const Deployment* deployment() const;
  // Empty if sizes are not known.
  [[nodiscard]] std::optional<MemoryBudget> memory_budget(const Workload& workload, int look_ahead, Kept kept) const;
  [[nodiscard]] std::unique_ptr<CostModel> with_twice_the_gpus() const;
  [[nodiscard]] std::unique_ptr<CostModel> scaled(double bandwidth, double host) const;
  [[nodiscard]] std::vector<std::string> beyond_measured(Role role, const Pass& pass) const;
};

struct CostEntry {
  config::PartInfo info;
  // May return nullptr after reporting.
  std::function<std::unique_ptr<CostModel>(const config::Arguments&, Diagnostics&)> make;
};

config::Registry<CostEntry>& cost_models();

}  // namespace specsim::cost
