// What serving engines set aside of a GPU's memory by their own rules and defaults, before weights and caches.
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

// What lies in the share of the GPU's memory that a server is told.
enum class MemoryShare {
  everything,         // weights, activations and cache: vLLM's gpu_memory_utilization
  weights_and_cache,  // activations and graphs lie beside it: SGLang's mem_fraction_static
  cache_of_rest       // cache, of what weights and activations leave: TensorRT-LLM's free_gpu_memory_fraction
};

// vLLM's default share, 0.9 to version 0.20; from 0.21 on 0.92, of which an estimate of the captured graphs is taken (pull
// request 30515): 0.3 GiB and more, so that both leave about as much. TensorRT-LLM's default is 0.9 too (llm_args.py).
constexpr double kUsualShare = 0.9;
// What the driver keeps of the memory that it reports: nvidia-smi's 79.65 GiB of an H100 are 79.1 GiB to a program, its 23.99 GiB
// of an RTX 4090 are 23.5.
constexpr double kDriverBytes = 0x1.0p29;

// max_num_batched_tokens and max_num_seqs of `vllm serve` where nothing is said.
StepLimits vllm_step(const Hardware& hardware);
// chunked_prefill_size of SGLang where nothing is said.
std::uint32_t sglang_chunk(const Hardware& hardware);
// Its max_running_requests as soon as it speculates, with a draft model, a head or n-grams, where nothing is said
// (ServerArgs._handle_speculative_decoding).
constexpr std::uint32_t kSglangRunsSpeculating = 48;
// Its mem_fraction_static where nothing is said, for prompts cut into `chunk` tokens on so many GPUs.
double sglang_share(const Hardware& hardware, std::uint32_t chunk, int gpus);
// max_num_tokens of `trtllm-serve`, whose profile run computes prompts, of few logits.
constexpr StepLimits kTrtllmStep = {8192.0, 0.0};

// Bytes of one GPU beside weights and cache while vLLM V1 computes the largest step that its options allow, which it runs at its
// start to learn them: the layers' activations, or the logits of `step.requests` rows while they are sampled, whichever is more.
// With `speculative` the rejection sampler runs too, with one draft for each request whatever the draft length is.
double profiled_bytes(const Deployment& deployment, const StepLimits& step, bool speculative);

// Puts what the engine's rules leave for weights and caches into `budget`, whose lines stand, and what they set aside. `rows`:
// those of a step of the workload, for which a server must be started; `weights`: bytes of those lines that are no cache.
void leave_by_rules(const Deployment& deployment, double requests, double rows, bool speculative, double weights,
                    MemoryBudget& budget);

}  // namespace specsim::cost
