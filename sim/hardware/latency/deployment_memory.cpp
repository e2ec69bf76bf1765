#include "sim/hardware/latency/deployment_memory.h"

#include "sim/hardware/latency/server_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace specsim::cost {

namespace {

// The memory of one GPU. `speculative`: drafts are verified there.
MemoryBudget memory_on_one(const Deployment& deployment, const Workload& workload, int look_ahead, Kept kept, bool speculative) {
  const auto cached = [&](const ModelShape& model, double tokens) {
    double sum = 0.0;
    for (const AttentionKind& kind : model.attention_kinds())
      sum += (kind.layers - kind.borrowing) * kind.elements * model.kv_bits / 8.0 / model.kv_shards(kind) * workload.batch *
             kind.kept(tokens);
    return sum + workload.batch * tokens * model.indexers() * model.index_key_bytes();
  };
  const auto weights = [](const ModelShape& model) {
    const double elsewhere = model.layer_bytes(model.experts) - model.layer_bytes(model.experts / model.expert_parallel);
    return (model.weight_bytes() - elsewhere - (model.offload ? model.offload->share : 0.0) * model.layer_bytes(model.experts)) /
           model.tensor_parallel;
  };
  MemoryBudget memory_budget;
  double fixed = 0.0;  // bytes of weights
  double slots = 0.0;  // slots in every cache for drafts that may be rejected
  const auto keep = [&](const char* what, const std::optional<ModelShape>& model) {
    if (!model) return;
    const double kv = cached(*model, workload.context + std::min(look_ahead, 1));
    memory_budget.lines.push_back({fmt::format("{} weights", what), weights(*model)});
    fixed += weights(*model);
    if (model->offload)  // the layer that is computed and the next one, which is being loaded
      memory_budget.lines.push_back({fmt::format("{} layers being loaded", what),
                                     2.0 * model->layer_bytes(model->experts) / model->layers / model->tensor_parallel});
    memory_budget.lines.push_back({fmt::format("{} KV", what), kv});
    const double states = workload.batch * model->recurrent_bytes() / model->tensor_parallel;  // one more for each draft
    if (states > 0.0) memory_budget.lines.push_back({fmt::format("{} states", what), states});
    slots += cached(*model, workload.context + look_ahead) - kv + look_ahead * states;
    memory_budget.gpus = std::max(memory_budget.gpus, model->tensor_parallel);
  };
  if (kept != Kept::draft) keep("target", deployment.target);
  if (kept != Kept::target) keep("draft", deployment.draft);
  if (slots > 0.0) memory_budget.lines.push_back({"look-ahead slots", slots});
  const bool ruled = !deployment.memory_share && deployment.engine.memory != MemoryRules::none;
  if (ruled)
    reserve_by_rules(deployment, workload.batch, workload.batch * look_ahead, speculative, fixed, memory_budget);
  else
    memory_budget.available_bytes = deployment.hardware.memory_bytes * deployment.memory_share.value_or(kUsualShare);
  return memory_budget;
}

MemoryBudget memory_of_draft_place(const Deployment& deployment, const Workload& workload, int look_ahead) {
  MemoryBudget own = memory_on_one(alone_on_draft_place(deployment), workload, look_ahead, Kept::target, false);
  own.device = deployment.draft_place->hardware.name;
  for (MemoryItem& line : own.lines)
    if (line.what.starts_with("target")) line.what.replace(0, 6, "draft");
  return own;
}

}  // namespace

MemoryBudget memory_of(const Deployment& deployment, const Workload& workload, int look_ahead, Kept kept) {
  const bool speculative = kept == Kept::both;
  if (!deployment.draft_place || kept == Kept::target) return memory_on_one(deployment, workload, look_ahead, kept, speculative);
  MemoryBudget draft = memory_of_draft_place(deployment, workload, look_ahead);
  if (kept == Kept::draft) return draft;
  MemoryBudget both = memory_on_one(deployment, workload, look_ahead, Kept::target, speculative);
  both.elsewhere.push_back(std::move(draft));
  return both;
}

}  // namespace specsim::cost
