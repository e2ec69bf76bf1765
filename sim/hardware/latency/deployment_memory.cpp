#include "sim/hardware/latency/deployment_memory.h"

#include "sim/hardware/latency/server_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::cost {

MemoryBudget memory_of(const Deployment& deployment, const Workload& workload, int look_ahead, Kept kept) {
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
    reserve_by_rules(deployment, workload.batch, workload.batch * look_ahead, kept == Kept::both, fixed, memory_budget);
  else
    memory_budget.available_bytes = deployment.hardware.memory_bytes * deployment.memory_share.value_or(kUsualShare);
  return memory_budget;
}

}  // namespace specsim::cost
