// GPU memory that serving engines set aside by their own rules and defaults, before weights and caches.
#pragma once

#include "sim/hardware/latency/deployment.h"
#include "sim/hardware/latency/memory_budget.h"

#include <cstdint>

namespace specsim::cost {

// The largest step that a server's options allow.
struct StepLimits {
  double rows = 0.0;
  double requests = 0.0;
};

// The contents of the share of a GPU's memory that a server is configured with.
enum class MemoryShare {
  everything,         // weights, activations and cache: vLLM's gpu_memory_utilization
  weights_and_cache,  // only weights and cache, not activations and graphs: SGLang's mem_fraction_static
  cache_of_rest       // only the cache, as a share of what weights and activations leave: TensorRT-LLM's free_gpu_memory_fraction
};

// vLLM's default share: 0.9 up to version 0.20; from 0.21 on 0.92, of which an estimate of the captured graphs is subtracted
// (pull request 30515): 0.3 GiB and more, so that both leave about as much. TensorRT-LLM's default is 0.9 too (llm_args.py).
constexpr double kUsualShare = 0.9;
// Memory that the driver keeps for itself although it reports it: nvidia-smi's 79.65 GiB of an H100 are 79.1 GiB to a program,
// its 23.99 GiB of an RTX 4090 are 23.5.
constexpr double kDriverBytes = 0x1.0p29;

// Defaults of max_num_batched_tokens and max_num_seqs of `vllm serve`.
StepLimits vllm_step(const Hardware& hardware);
// Default chunked_prefill_size of SGLang.
std::uint32_t sglang_chunk(const Hardware& hardware);
// SGLang's default max_running_requests with speculation by a draft model, a head or n-grams
// (ServerArgs._handle_speculative_decoding).
constexpr std::uint32_t kSglangRunsSpeculating = 48;
// SGLang's default mem_fraction_static, for prompts cut into `chunk` tokens on this many GPUs.
double sglang_share(const Hardware& hardware, std::uint32_t chunk, int gpus);
// max_num_tokens of `trtllm-serve`, whose profile run computes prompts with few logits.
constexpr StepLimits kTrtllmStep = {8192.0, 0.0};

// Tokens of a block of vLLM's cache for a target that also has layers with a state, so that a block of attention's cache takes at
// least the bytes of a layer's state: Platform._align_hybrid_block_size of vLLM 0.27, in multiples of 16 tokens. The state
// includes the window of the convolution, which is longer by `draft_length` tokens. 0: the target has no such layers.
std::uint32_t vllm_hybrid_block(const ModelShape& target, int draft_length);

// Bytes of one GPU, besides weights and cache, while vLLM V1 computes the largest step that its options allow. vLLM measures this
// at its start: the layers' activations, or the logits of `step.requests` rows while they are sampled, whichever is more. With
// `speculative` the rejection sampler runs too, with one draft for each request whatever the draft length is.
double profiled_bytes(const Deployment& deployment, const StepLimits& step, bool speculative);

// Stores in `budget` the memory that the engine's rules leave for weights and caches, and the memory that they set aside. The
// budget's lines stay as they are. `rows`: rows of a step of the workload that the server must be started for; `weights`: bytes
// of the lines that are not a cache.
void reserve_by_rules(const Deployment& deployment, double requests, double rows, bool speculative, double weights,
                      MemoryBudget& budget);

}  // namespace specsim::cost
