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

// Derivative of seconds by the server's factors, of one pass. `speculates`: it is of a speculative round; `verified_rows`: rows of
// sequences that verify drafts.
FactorVector pass_slope(const PassTime& time, Role role, double sequences, bool speculates, double verified_rows);

// How wrong a model's times may be, as standard deviations of their logarithms.
class Uncertainty {
 public:
  virtual ~Uncertainty() = default;
  // What is known of the server's factors: the prior, or what its runs taught; none: the model has no such factors.
  [[nodiscard]] virtual std::optional<FactorBelief> factors() const { return std::nullopt; }
  // Standard deviation of what the factors cannot express.
  [[nodiscard]] virtual double discrepancy() const { return kDiscrepancy; }
  // What the estimates of the pass's kernels make.
  [[nodiscard]] virtual double kernel_error(Role role, const Pass& pass) const = 0;
  // The share of the variance of kernel_error() that passes of one role have in common, whatever their rows: how far a whole GPU
  // or type is misjudged. The rest differs from one number of rows to another.
  [[nodiscard]] virtual double shared_variance(Role /*role*/) const { return kSharedByMeasured; }
  // Residuals of measured products at different numbers of rows correlate by so much.
  static constexpr double kSharedByMeasured = 0.3;
  // The same of an estimate that no fit of the GPU's own serves for; assumed. Over six measured sets of kernels for weights alone
  // the errors at 1 and 8 rows correlate at .78, at 1 and 64 rows at .84, but by SGLang's set alone: among the five others, which
  // are missed by little, they do not (-.5, -.4). What speaks for it besides is that libraries read at .52 to .97 of a plain
  // kernel's bandwidth, which every pass that is bound by memory pays.
  static constexpr double kSharedByOthers = 0.8;
};

// An operation of a pass: which kernel computes it, where that kernel's figures are from, how long it takes.
struct ExplainedOperation {
  std::string name;
  std::string shape;
  double count = 1.0;  // how often in the pass
  std::string kernel;
  std::string source;
  double seconds = 0.0;         // once
  std::optional<double> error;  // standard deviation of the logarithm; none: not stated for it alone
};

// What a cost model can say that knows GPU, models and engine, and not times alone.
class DeployedModel {
 public:
  virtual ~DeployedModel() = default;
  [[nodiscard]] virtual const Deployment& deployment() const = 0;
  // What must lie in memory for `look_ahead` new tokens per sequence, those beyond the first on a line of their own.
  [[nodiscard]] virtual MemoryBudget memory_budget(const Workload& workload, int look_ahead, Kept kept) const = 0;
  // The same with the target on the draft's GPUs as well, tensor parallel; nullptr where that cannot be computed or the two are
  // not on equally many.
  [[nodiscard]] virtual std::unique_ptr<CostModel> on_twice_the_gpus() const = 0;
  // The same with memory of so many times the bandwidth, and so many times the engine's host time.
  [[nodiscard]] virtual std::unique_ptr<CostModel> scaled(double bandwidth, double host) const = 0;
  // In which way a pass is larger than what its kernels were measured with, a line each.
  [[nodiscard]] virtual std::vector<std::string> beyond_measured(Role role, const Pass& pass) const = 0;
  [[nodiscard]] virtual std::vector<ExplainedOperation> explain(Role role, const Pass& pass) const = 0;
};

// How a round's drafts come of the draft's passes.
struct DraftForm {
  std::optional<int> longest;  // tokens that it can draft at most
  bool one_pass = false;       // a chain's drafts come of one pass over all of their positions
  std::optional<int> heads;    // heads that guess one token each in one pass; none: a pass for each token
};

class CostModel {
 public:
  CostModel() = default;
  CostModel(const CostModel&) = delete;
  CostModel& operator=(const CostModel&) = delete;
  virtual ~CostModel() = default;
  // Time of a pass. Throws BadInput for one that the model does not cover (a table's edge).
  [[nodiscard]] virtual PassTime pass(Role role, const Pass& pass) const = 0;
  // Time of a round's draft pass number `index`, 0 .. draft_length - 1, with `extra` tokens per sequence to catch up with.
  [[nodiscard]] virtual PassTime draft_pass(const Workload& workload, int index, double extra) const;
  // Time of a pass over chunks of prompts and decoding sequences at once, of whose rows `logits` go through the LM head. A model
  // that does not tell the two apart takes the mean sequence.
  [[nodiscard]] virtual PassTime mixed_pass(Role role, const Segment& prompts, const Segment& decoding, double logits,
                                            const OtherEngines& peers) const;
  // The first of a step's draft passes, over the same rows.
  [[nodiscard]] virtual PassTime mixed_draft_pass(const Segment& prompts, const Segment& decoding) const;
  // Time of a speculative round outside its passes: proposing, accepting, bookkeeping. Seconds.
  [[nodiscard]] virtual double round_overhead(double batch) const = 0;
  // False: times count in target passes over one token, and only ratios of them mean anything.
  [[nodiscard]] virtual bool in_seconds() const { return true; }
  [[nodiscard]] virtual DraftForm draft_form() const { return {}; }
  // What a user should know before trusting the model: unverified figures, kept dips.
  [[nodiscard]] virtual std::vector<std::string> warnings() const { return {}; }
  // nullptr: the model does not say how wrong it may be.
  [[nodiscard]] virtual const Uncertainty* uncertainty() const { return nullptr; }
  // nullptr: only times are known.
  [[nodiscard]] virtual const DeployedModel* deployed() const { return nullptr; }

  // What follows from these.

  // Time of a draft pass over `rows` tokens of each sequence, a level of a tree.
  [[nodiscard]] PassTime draft_level(const Workload& workload, int index, double rows, double extra) const;
  // Whether draft pass number `index` of a round is one: heads that guess several tokens at once make none for the others.
  [[nodiscard]] bool makes_draft_pass(int index) const;
  [[nodiscard]] bool drafts_at_once() const { return draft_form().one_pass; }
  // Draft tokens of a round that the draft can guess one after the other.
  [[nodiscard]] int most_drafts() const;
  [[nodiscard]] double kernel_error(Role role, const Pass& pass) const;
  [[nodiscard]] double shared_variance(Role role) const;
  // Standard deviation of the logarithm of a pass's time, by the server's factors and its kernels; 0: the model does not say.
  [[nodiscard]] double relative_error(Role role, const Pass& pass) const;
  [[nodiscard]] const Deployment* deployment() const;
  // Empty where sizes are not known.
  [[nodiscard]] std::optional<MemoryBudget> memory_budget(const Workload& workload, int look_ahead, Kept kept) const;
  [[nodiscard]] std::unique_ptr<CostModel> on_twice_the_gpus() const;
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
