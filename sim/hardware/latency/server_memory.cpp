#include "sim/hardware/latency/server_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace specsim::cost {

namespace {

constexpr double kMebibyte = 0x1.0p20;
constexpr double kGibibyte = 0x1.0p30;

// ---- vLLM's profile run: gpu_worker.determine_available_memory and gpu_model_runner.profile_run of early 2026 ----

// Growth outside PyTorch's allocator between the start and the end of the profile run: 0.07 GiB in vLLM's pull request 21489.
constexpr double kOutsideBytes = 0.1 * kGibibyte;
constexpr double kSampledBytes = 4.0;  // fp32, in which sampling computes
// Copies of the logits of all requests at once, each of kSampledBytes. Top-k and top-p sort them: PyTorch's segmented sort
// (SortStable.cu) takes 64-bit indices in (2), sorted values and indices out (1 + 2) and the radix sort's second buffers of both
// (1 + 2). The logits themselves are kept in fp32 (1) and bf16 (0.5).
constexpr double kSorting = 8.0;
constexpr double kSamplingCopies = kSorting + 1.0 + 0.5;
// The rejection sampler sorts the drafts' rows while it holds three more sets: the bf16 logits of two rows per request (1), those
// of the bonus tokens in bf16 (0.5) and fp32 (1), and the drafts' rows in fp32 twice (2).
constexpr double kRejectionCopies = kSorting + 1.0 + 0.5 + 1.0 + 2.0;

// Elements that a layer's products need at once for one row: the larger of attention's and the MLP's.
double layer_elements(const ModelShape& model) {
  const double shards = model.tensor_parallel;
  const double parts = model.gated ? 3.0 : 2.0;  // gate and up projections, and their product
  const bool has_dense = model.experts == 0.0 || model.dense_layers > 0.0;
  const double dense = parts * std::max(has_dense ? model.ffn : 0.0, model.shared_ffn) / shards;
  const double mixture = model.experts > 0.0 ? model.experts_per_token * (parts * model.expert_ffn / shards + model.hidden) : 0.0;
  const double attention = 2.0 * model.heads * model.head_dim / shards + 2.0 * model.kv_heads * model.head_dim / shards;
  return std::max({dense, mixture, attention}) + 2.0 * model.hidden;  // besides the layer's input and the residual stream
}

// ---- handle_gpu_memory_settings of sglang/srt/arg_groups/gpu_memory_hook.py (2026) ----

double largest_decode_graph(const Hardware& hardware, int gpus) {
  const bool few = gpus < 4;
  return hardware.memory_bytes < 20.0 * kGibibyte    ? 8.0
         : hardware.memory_bytes < 35.0 * kGibibyte  ? (few ? 48.0 : 160.0)
         : hardware.memory_bytes < 60.0 * kGibibyte  ? (few ? 32.0 : 160.0)
         : hardware.memory_bytes < 160.0 * kGibibyte ? (few ? 256.0 : 512.0)
                                                     : 512.0;
}

// Sizes that prompts' graphs are captured for, up to that of a chunk: every 4 tokens up to 32, every 16 up to 256, and so on.
std::uint32_t prefill_graphs(std::uint32_t chunk) {
  struct Stretch {
    std::uint32_t from, to, every;
  };
  std::uint32_t count = 0;
  for (const auto [from, to, every] : {Stretch{4, 32, 4}, Stretch{48, 256, 16}, Stretch{288, 512, 32}, Stretch{576, 1024, 64},
                                       Stretch{1280, 4096, 256}, Stretch{4608, chunk, 512}})
    if (const std::uint32_t last = std::min(to, chunk); last >= from) count += (last - from) / every + 1;
  return count;
}

}  // namespace

// EngineArgs.get_batch_defaults of vllm/engine/arg_utils.py (2026), OPENAI_API_SERVER.
StepLimits vllm_step(const Hardware& hardware) {
  const bool large = hardware.memory_bytes >= 70.0 * kGibibyte && hardware.name.find("A100") == std::string::npos;
  return large ? StepLimits{8192.0, 1024.0} : StepLimits{2048.0, 256.0};
}

std::uint32_t sglang_chunk(const Hardware& hardware) {
  return hardware.memory_bytes < 20.0 * kGibibyte    ? 2048
         : hardware.memory_bytes < 60.0 * kGibibyte  ? 4096
         : hardware.memory_bytes < 160.0 * kGibibyte ? 8192
                                                     : 16384;
}

// For a model whose attention keeps heads; latent attention reserves more.
double sglang_share(const Hardware& hardware, std::uint32_t chunk, int gpus) {
  const std::uint32_t tokens = std::clamp<std::uint32_t>(chunk, 2048, 1000000);
  double reserved = 512.0 + 1.5 * tokens + 1024.0 / 8.0 * gpus;  // MiB
  reserved += 2.0 * largest_decode_graph(hardware, gpus) + 8.0 * prefill_graphs(tokens);
  if (hardware.memory_bytes > 60.0 * kGibibyte) reserved = std::max(reserved, 10.0 * 1024.0);
  const double share = 1.0 - reserved * kMebibyte / hardware.memory_bytes;
  return std::max(0.05, std::round(1e3 * share) / 1e3);
}

std::uint32_t vllm_hybrid_block(const ModelShape& target, int draft_length) {
  constexpr double kAlignment = 16.0;      // tokens of attention kernels' blocks
  constexpr double kConvolvedBytes = 2.0;  // as in ModelShape::recurrent_bytes()
  const std::vector<AttentionKind> kinds = target.attention_kinds();
  if (target.recurrent_bytes() <= 0.0 || kinds.empty()) return 0;
  const StateLayer& state = *target.state;
  const double window = std::max(0.0, state.convolved - 1.0) + draft_length;
  const double bytes = state.state_elements() * state.state_bits / 8.0 + state.channels() * window * kConvolvedBytes;
  double a_token = 0.0;  // of the largest layer
  for (const AttentionKind& kind : kinds)
    a_token = std::max(a_token, kind.elements * target.kv_bits / 8.0 / target.kv_shards(kind));
  return static_cast<std::uint32_t>(kAlignment * std::ceil(bytes / target.tensor_parallel / (kAlignment * a_token)));
}

double profiled_bytes(const Deployment& deployment, const StepLimits& step, bool speculative) {
  const ModelShape& target = *deployment.target;
  const double row = kActivationBytes * target.hidden;
  const double layers = step.rows * kActivationBytes * layer_elements(target);
  const double sampled = std::min(step.requests, step.rows) * target.vocab * kSampledBytes;
  const double sampling = sampled * (speculative ? kRejectionCopies : kSamplingCopies);
  // The last layer's output of all rows stays while tokens are sampled; a head's own input buffer stays permanently.
  const bool head = speculative && deployment.draft && deployment.draft->on_target();
  return std::max(layers, step.rows * row + sampling) + (head ? step.rows * row : 0.0) + kOutsideBytes;
}

void reserve_by_rules(const Deployment& deployment, double requests, double rows, bool speculative, double weights,
                      MemoryBudget& budget) {
  const double all = deployment.hardware.memory_bytes - kDriverBytes;
  budget.set_aside = {{"the driver", kDriverBytes}};
  const auto profiled = [&](const StepLimits& least) {
    if (!deployment.target) return 0.0;
    const double bytes =
        profiled_bytes(deployment, {std::max(least.rows, rows), std::max(least.requests, requests)}, speculative);
    budget.set_aside.push_back({"activations and logits", bytes});
    return bytes;
  };
  switch (deployment.engine.memory) {
    case MemoryRules::none:
      break;
    case MemoryRules::vllm:
      budget.set_aside.push_back({fmt::format("beyond gpu_memory_utilization {:g}", kUsualShare), (1.0 - kUsualShare) * all});
      profiled(vllm_step(deployment.hardware));
      break;
    case MemoryRules::sglang: {
      const double share = sglang_share(deployment.hardware, sglang_chunk(deployment.hardware), static_cast<int>(budget.gpus));
      budget.set_aside.push_back({fmt::format("beyond mem_fraction_static {:g}", share), (1.0 - share) * all});
      break;
    }
    case MemoryRules::trtllm: {
      const double beside = profiled(kTrtllmStep);
      const double rest = std::max(0.0, all - weights - beside);
      budget.set_aside.push_back({fmt::format("beyond free_gpu_memory_fraction {:g}", kUsualShare), (1.0 - kUsualShare) * rest});
      break;
    }
  }
  budget.available_bytes = deployment.hardware.memory_bytes;
  for (const MemoryItem& item : budget.set_aside) budget.available_bytes -= item.bytes;
  budget.available_bytes = std::max(budget.available_bytes, 1.0);
}

}  // namespace specsim::cost
