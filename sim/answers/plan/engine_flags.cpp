#include "sim/answers/plan/engine_flags.h"

#include "sim/foundation/base/check.h"

#include <algorithm>
#include <array>

namespace specsim::plan {

namespace {

using enum FlagUse;

constexpr std::string_view kVllmArguments = "vllm/engine/arg_utils.py";
constexpr std::string_view kVllmCommand = "vllm/entrypoints/openai/cli_args.py";
constexpr std::string_view kSglangArguments = "python/sglang/srt/server_args.py";
constexpr std::string_view kLlamaArguments = "common/arg.cpp";
constexpr std::string_view kTensorRtArguments = "tensorrt_llm/commands/serve.py";

constexpr std::array kVllm = {EngineFlag{tokenizer, "--tokenizer", kVllmArguments},
                              EngineFlag{tensor_parallel, "--tensor-parallel-size", kVllmArguments},
                              EngineFlag{data_parallel, "--data-parallel-size", kVllmArguments},
                              EngineFlag{expert_parallel, "--enable-expert-parallel", kVllmArguments},
                              EngineFlag{local_data_parallel, "--data-parallel-size-local", kVllmArguments},
                              EngineFlag{data_parallel_start, "--data-parallel-start-rank", kVllmArguments},
                              EngineFlag{data_parallel_address, "--data-parallel-address", kVllmArguments},
                              EngineFlag{machines, "--nnodes", kVllmArguments},
                              EngineFlag{machine_rank, "--node-rank", kVllmArguments},
                              EngineFlag{machine_address, "--master-addr", kVllmArguments},
                              EngineFlag{headless, "--headless", kVllmCommand},
                              EngineFlag{trust_code, "--trust-remote-code", kVllmArguments},
                              EngineFlag{context, "--max-model-len", kVllmArguments},
                              EngineFlag{requests, "--max-num-seqs", kVllmArguments},
                              EngineFlag{keys, "--kv-cache-dtype", kVllmArguments},
                              EngineFlag{offload, "--cpu-offload-gb", kVllmArguments},
                              EngineFlag{speculation, "--speculative-config", kVllmArguments}};
constexpr std::array kSglang = {EngineFlag{model, "--model-path", kSglangArguments},
                                EngineFlag{file_type, "--load-format", kSglangArguments},
                                EngineFlag{draft_file_type, "--speculative-draft-load-format", kSglangArguments},
                                EngineFlag{tensor_parallel, "--tp", kSglangArguments},
                                EngineFlag{data_parallel, "--dp", kSglangArguments},
                                EngineFlag{expert_parallel, "--ep", kSglangArguments},
                                EngineFlag{attention_data_parallel, "--enable-dp-attention", kSglangArguments},
                                EngineFlag{shared_head, "--enable-dp-lm-head", kSglangArguments},
                                EngineFlag{machines, "--nnodes", kSglangArguments},
                                EngineFlag{machine_rank, "--node-rank", kSglangArguments},
                                EngineFlag{machine_address, "--dist-init-addr", kSglangArguments},
                                EngineFlag{trust_code, "--trust-remote-code", kSglangArguments},
                                EngineFlag{requests, "--max-running-requests", kSglangArguments},
                                EngineFlag{keys, "--kv-cache-dtype", kSglangArguments},
                                EngineFlag{offload, "--cpu-offload-gb", kSglangArguments},
                                EngineFlag{speculation, "--speculative-algorithm", kSglangArguments},
                                EngineFlag{draft_model, "--speculative-draft-model-path", kSglangArguments},
                                EngineFlag{draft_type, "--speculative-draft-model-quantization", kSglangArguments},
                                EngineFlag{draft_length, "--speculative-num-steps", kSglangArguments},
                                EngineFlag{breadth, "--speculative-eagle-topk", kSglangArguments},
                                EngineFlag{verified, "--speculative-num-draft-tokens", kSglangArguments},
                                EngineFlag{block, "--speculative-dspark-block-size", kSglangArguments},
                                EngineFlag{lookup, "--speculative-ngram-max-bfs-breadth", kSglangArguments}};
constexpr std::array kLlamaCpp = {EngineFlag{model, "--model", kLlamaArguments},
                                  EngineFlag{tensor_parallel, "--split-mode", kLlamaArguments},
                                  EngineFlag{context, "--ctx-size", kLlamaArguments},
                                  EngineFlag{requests, "--parallel", kLlamaArguments},
                                  EngineFlag{keys, "--cache-type-k", kLlamaArguments},
                                  EngineFlag{values, "--cache-type-v", kLlamaArguments},
                                  EngineFlag{speculation, "--spec-type", kLlamaArguments},
                                  EngineFlag{draft_model, "--model-draft", kLlamaArguments},
                                  EngineFlag{device, "--device", kLlamaArguments},
                                  EngineFlag{draft_device, "--device-draft", kLlamaArguments},
                                  EngineFlag{draft_length, "--spec-draft-n-max", kLlamaArguments},
                                  EngineFlag{least_probability, "--spec-draft-p-min", kLlamaArguments},
                                  EngineFlag{lookup, "--spec-ngram-simple-size-n", kLlamaArguments},
                                  EngineFlag{lookup_drafts, "--spec-ngram-simple-size-m", kLlamaArguments}};
constexpr std::array kTensorRt = {EngineFlag{tensor_parallel, "--tp_size", kTensorRtArguments},
                                  EngineFlag{expert_parallel, "--ep_size", kTensorRtArguments},
                                  EngineFlag{trust_code, "--trust_remote_code", kTensorRtArguments},
                                  EngineFlag{context, "--max_seq_len", kTensorRtArguments},
                                  EngineFlag{requests, "--max_batch_size", kTensorRtArguments},
                                  EngineFlag{options_file, "--extra_llm_api_options", kTensorRtArguments}};

}  // namespace

std::string_view EngineFlags::name(FlagUse use) const {
  const auto found = std::find_if(flags.begin(), flags.end(), [use](const EngineFlag& flag) { return flag.use == use; });
  SPECSIM_CHECK(found != flags.end(), "{} has no flag {}", engine, static_cast<int>(use));
  return found->name;
}

const EngineFlags& vllm_flags() {
  static constexpr EngineFlags flags{"vLLM", "0.27.1", "vllm serve", kVllm};
  return flags;
}

const EngineFlags& sglang_flags() {
  static constexpr EngineFlags flags{"SGLang", "0.5.18", "python3 -m sglang.launch_server", kSglang};
  return flags;
}

const EngineFlags& llama_cpp_flags() {
  static constexpr EngineFlags flags{"llama.cpp", "b11118", "llama-server", kLlamaCpp};
  return flags;
}

const EngineFlags& tensorrt_flags() {
  static constexpr EngineFlags flags{"TensorRT-LLM", "1.3", "trtllm-serve", kTensorRt};
  return flags;
}

}  // namespace specsim::plan
