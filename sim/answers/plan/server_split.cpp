#include "sim/answers/plan/server_split.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

namespace specsim::plan {

namespace {

using cost::ModelShape;

bool divides(double part, double whole) { return std::fmod(whole, part) == 0.0; }

// Heads are divided if they are as many as the GPUs or more, and copied if they are fewer, always equally: assertions in the
// attention of each of vLLM's and SGLang's models (total_num_kv_heads), duplicate_kv_weight of
// tensorrt_llm/_torch/models/modeling_utils.py.
bool shares_heads(const ModelShape& model, double shards) {
  if (model.over_one_vector() || model.layers == 0.0) return true;
  const std::vector<cost::AttentionKind> kinds = model.attention_kinds();
  return std::all_of(kinds.begin(), kinds.end(), [&](const cost::AttentionKind& kind) {
    return kind.layers == 0.0 || (kind.kv_heads >= shards ? divides(shards, kind.kv_heads) : divides(kind.kv_heads, shards));
  });
}

}  // namespace

std::string uneven_heads(const cost::Deployment& deployment) {
  const double shards = deployment.target->tensor_parallel;
  // A draft is divided as the target is, whatever the plan assumes (note_sizes).
  for (const ModelShape* const model : {&*deployment.target, deployment.draft ? &*deployment.draft : nullptr}) {
    if (model == nullptr || shares_heads(*model, shards)) continue;
    std::vector<double> allowed;
    for (double size = 1.0; size <= 2.0 * shards; size += 1.0)
      if (divides(size, deployment.target->heads) && divides(size, model->heads) && shares_heads(*model, size) &&
          shares_heads(*deployment.target, size))
        allowed.push_back(size);
    return fmt::format("tensor parallel {:g} does not divide the {:g} key and value heads of {} equally; allowed: {}", shards,
                       model->kv_heads, model->name, fmt::join(allowed, ", "));
  }
  return "";
}

bool has_own_code(const ModelShape& target) {
  // No class of transformers reads these: tokenization_kimi.py, tokenization_qwen.py and tokenization_internlm.py are tokenizers,
  // configuration_mimo_v2_flash.py is a configuration. vLLM's recipes for them have the flag.
  constexpr std::array<std::string_view, 7> kArchitectures = {"kimi_k2",       "kimi_k25", "kimi_k3", "kimi_linear",
                                                              "mimo_v2_flash", "internlm", "qwen"};
  return !target.gguf && std::find(kArchitectures.begin(), kArchitectures.end(), target.architecture) != kArchitectures.end();
}

Machines machines_of(const cost::Deployment& deployment) {
  const double gpus = deployment.target->tensor_parallel * deployment.target->expert_parallel;
  const double count = std::ceil(gpus / deployment.hardware.machine_gpus);
  return {count, gpus / count};
}

}  // namespace specsim::plan
