#include "sim/answers/plan/engines.h"

#include "sim/hardware/latency/server_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace specsim::plan {

namespace {

using cost::Deployment;
using cost::made_for_another;
using cost::ModelShape;

// Rules of these versions; each is cited where it is applied.
constexpr const char* kVllm = "vLLM 0.27.1";
constexpr const char* kSglang = "SGLang 0.5.18";
constexpr const char* kLlamaCpp = "llama.cpp b11118";
constexpr const char* kTensorRt = "TensorRT-LLM 1.3";

// vLLM: MAX_SPEC_LEN of vllm/v1/sample/rejection_sampler.py, drafts of one sequence in a step.
constexpr int kMostDraftsVllm = 128;
// llama.cpp: SPEC_VOCAB_MAX_SIZE_DIFFERENCE of common/speculative.cpp; from token 5 on, texts must be equal as well.
constexpr double kVocabularyDifferenceLlamaCpp = 128.0;
// The most and the fewest tokens that n-gram drafting looks up, as in drafter prompt_lookup, which acceptance is planned with.
constexpr int kLongestLookup = 3;
constexpr int kShortestLookup = 1;

bool is_head(const Deployment& d) { return d.draft && d.draft->on_target(); }
// EAGLE-3 joins the features of three layers; EAGLE uses one feature and the token.
bool drafts_as(const Deployment& d, std::string_view word) { return d.draft && d.draft->drafter == word; }
bool is_peagle(const Deployment& d) { return drafts_as(d, "p_eagle"); }
bool is_eagle3(const Deployment& d) {
  if (d.draft && !d.draft->drafter.empty()) return drafts_as(d, "eagle3") || is_peagle(d);
  return is_head(d) && d.draft->fused_inputs > 2.0 && !d.draft->one_pass;
}
// Heads that predict several tokens in one pass.
bool is_medusa(const Deployment& d) { return drafts_as(d, "medusa") || (d.draft && d.draft->prediction_heads > 1.0); }
// Drafts of one pass: a head on the target's features denoises a block (DFlash); an independent model fills in masks (PARD).
bool is_dflash(const Deployment& d) { return is_head(d) && d.draft->one_pass && !is_peagle(d) && !is_medusa(d); }
// The same with a Markov head (DSpark).
bool is_dspark(const Deployment& d) {
  return is_dflash(d) && (d.draft->drafter.empty() ? d.draft->markov_rank > 0.0 : drafts_as(d, "dspark"));
}
// Layers that read the target's cache (Gemma 4's assistants). vLLM and TensorRT-LLM run them as modules with a path.
bool is_assistant(const Deployment& d) { return drafts_as(d, "gemma_assistant"); }
// Drafters that none of these versions supports.
std::string unserved(const Deployment& d) {
  for (const char* word : {"domino", "dflare", "hydra"})
    if (drafts_as(d, word)) return fmt::format("it supports no drafters of this kind ({})", word);
  return "";
}
bool is_pard(const Deployment& d) { return d.draft && !is_head(d) && d.draft->one_pass; }
// A module for the next tokens inside the target's checkpoint (DeepSeek-V3), without a path of its own.
bool is_module(const Deployment& d) { return is_head(d) && d.draft->in_target_checkpoint; }
bool is_mtp(const Deployment& d) { return is_module(d) || is_assistant(d) || drafts_as(d, "mtp"); }
bool vocabularies_differ(const Deployment& d) { return d.draft && !is_head(d) && d.draft->vocab != d.target->vocab; }
bool sizes_differ(const Deployment& d) { return d.draft && d.draft->tensor_parallel != d.target->tensor_parallel; }

std::string counted(double n) {
  std::string digits = fmt::format("{:.0f}", n);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string path_of(const ModelShape& model) {
  return fmt::format("<path of {}{}>", model.name,
                     model.weight_bits < 16.0 ? fmt::format(" with {:g}-bit weights", model.weight_bits) : "");
}

// Weights in host memory, which both engines count in GiB per GPU.
std::string offloaded(const ModelShape& model) {
  if (!model.offload) return "";
  return fmt::format(" --cpu-offload-gb {:.0f}", std::ceil(model.offload->share * model.layer_bytes(model.experts) /
                                                           model.tensor_parallel / (1024.0 * 1024.0 * 1024.0)));
}

std::string vocabularies(const Deployment& d) {
  return fmt::format("the vocabularies differ ({} tokens, the draft's {})", counted(d.target->vocab), counted(d.draft->vocab));
}

// Why an engine rejects this head, given whether it supports Medusa's; empty: it may support it.
std::string unfit_head(const Deployment& d, bool takes_medusa = false) {
  if (d.draft)
    if (const std::string why = made_for_another(*d.target, *d.draft); !why.empty()) return why + ": refused";
  if (const std::string why = unserved(d); !why.empty()) return why;
  if (!d.draft || d.draft->prediction_heads == 0.0 || (takes_medusa && is_medusa(d))) return "";
  return "it supports no heads of this kind";
}

// Notes that the latency estimate does not apply to an engine that splits the draft over as many GPUs as the target.
void note_sizes(const Deployment& d, const char* engine, EngineCommand& own) {
  if (sizes_differ(d))
    own.notes.push_back(
        fmt::format("{} runs the draft on the target's {:g} GPUs, but the plan assumes {:g}: plan again with "
                    "--draft-tensor-parallel {:g}",
                    engine, d.target->tensor_parallel, d.draft->tensor_parallel, d.target->tensor_parallel));
}

// Pull request 32374, merged in June 2026: vLLM 0.24 has it, 0.19 does not. The lengths may not exceed num_speculative_tokens.
std::string table_vllm(const std::vector<LengthRange>& by_batch) {
  return by_batch.empty() ? "" : ", \"num_speculative_tokens_per_batch_size\": " + ranges_text(by_batch);
}

EngineCommand vllm(const Deployment& d, int draft_length, double batch, const std::vector<LengthRange>& by_batch) {
  EngineCommand own{kVllm, "", {}};
  // SpeculativeConfig.verify_equal_vocab_size_if_draft_model, vllm/config/speculative.py.
  if (vocabularies_differ(d)) {
    own.notes.push_back(vocabularies(d) +
                        ": rejected, unless \"use_heterogeneous_vocab\": true maps the tokens that both have and "
                        "drafts them greedily, with lower acceptance than in this plan");
    return own;
  }
  if (const std::string why = unfit_head(d, true); !why.empty()) {
    own.notes.push_back(why);
    return own;
  }
  if (is_medusa(d) && draft_length > d.draft->prediction_heads) {
    own.notes.push_back(fmt::format("draft length {}: the heads predict {:g} tokens", draft_length, d.draft->prediction_heads));
    return own;
  }
  if (draft_length > kMostDraftsVllm) {
    own.notes.push_back(fmt::format("draft length {}: rejected, at most {}", draft_length, kMostDraftsVllm));
    return own;
  }
  const double shards = d.target->tensor_parallel;
  std::string draft;
  if (!d.draft) {
    // If only one of the two is given, vLLM uses it for both (SpeculativeConfig, vllm/config/speculative.py).
    draft = fmt::format("\"method\": \"ngram\", \"prompt_lookup_min\": {}, \"prompt_lookup_max\": {}", kShortestLookup,
                        kLongestLookup);
  } else {
    draft = is_module(d) ? "\"method\": \"mtp\""
                         : fmt::format("\"method\": \"{}\", \"model\": \"{}\"",
                                       is_medusa(d)                     ? "medusa"
                                       : is_mtp(d)                      ? "mtp"
                                       : drafts_as(d, "mlp_speculator") ? "mlp_speculator"
                                       : is_dspark(d)                   ? "dspark"
                                       : is_dflash(d)                   ? "dflash"
                                       : is_eagle3(d)                   ? "eagle3"
                                       : is_head(d)                     ? "eagle"
                                                                        : "draft_model",
                                       path_of(*d.draft));
    if (is_pard(d) || is_peagle(d)) draft += ", \"parallel_drafting\": true";
    // DraftModelProposer._raise_if_draft_tp_mismatch, vllm/v1/spec_decode/draft_model.py: both sizes must be equal. For a head
    // the option may be 1, but the head is split like the target all the same (issue 31345).
    if (shards != 1.0) draft += fmt::format(", \"draft_tensor_parallel_size\": {:g}", shards);
    note_sizes(d, "vLLM", own);
  }
  if (!by_batch.empty())
    own.notes.emplace_back(
        "num_speculative_tokens_per_batch_size needs vLLM 0.24 or later; it disables full CUDA graphs (7 to 22 % of "
        "TPOT in issue "
        "49548), which this plan does not include");
  own.command = fmt::format("vllm serve {}{}{}{} --speculative-config '{{{}, \"num_speculative_tokens\": {}{}}}'",
                            path_of(*d.target), shards == 1.0 ? "" : fmt::format(" --tensor-parallel-size {:g}", shards),
                            (d.target->kv_bits < 16.0 ? " --kv-cache-dtype fp8" : "") + offloaded(*d.target),
                            batch > cost::vllm_step(d.hardware).requests ? fmt::format(" --max-num-seqs {:g}", batch) : "", draft,
                            draft_length, table_vllm(by_batch));
  return own;
}

EngineCommand sglang(const Deployment& d, int draft_length, double batch, const std::vector<LengthRange>& /*by_batch*/) {
  EngineCommand own{kSglang, "", {}};
  // Since pull request 23838 a draft with another vocabulary is rejected. Earlier versions served it, and its tokens had other
  // meanings.
  if (vocabularies_differ(d)) {
    own.notes.push_back(vocabularies(d) + ": rejected (versions before pull request 23838 start, but emit nonsense)");
    return own;
  }
  if (const std::string why = unfit_head(d); !why.empty()) {
    own.notes.push_back(why);
    return own;
  }
  if (is_pard(d) || is_peagle(d)) {
    own.notes.emplace_back("it drafts in one pass only with heads on the target's features (DFLASH, DSPARK)");
    return own;
  }
  std::string draft;
  if (is_dflash(d)) {
    // DFlash's block counts the token before the drafts, DSpark's does not.
    draft =
        is_dspark(d)
            ? fmt::format("--speculative-algorithm DSPARK --speculative-draft-model-path {} --speculative-dspark-block-size {}",
                          path_of(*d.draft), draft_length)
            : fmt::format("--speculative-algorithm DFLASH --speculative-draft-model-path {} --speculative-num-draft-tokens {}",
                          path_of(*d.draft), draft_length + 1);
  } else if (!d.draft) {
    // A chain, so no breadth. The number of verified tokens includes the token before the drafts.
    draft = fmt::format("--speculative-algorithm NGRAM --speculative-num-draft-tokens {} --speculative-ngram-max-bfs-breadth 1",
                        draft_length + 1);
    own.notes.emplace_back(
        "its NGRAM drafts from a trie of recently emitted tokens, not from the prompt (drafter sglang_ngram): another "
        "acceptance "
        "than with prompt look-up");
  } else {
    // With topk 1, num-draft-tokens must be num-steps + 1.
    draft = fmt::format(
        "--speculative-algorithm {}{} --speculative-num-steps {} "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens {}",
        is_eagle3(d) ? "EAGLE3"
        : is_head(d) ? "EAGLE"
                     : "STANDALONE",
        is_module(d) ? "" : " --speculative-draft-model-path " + path_of(*d.draft), draft_length, draft_length + 1);
    // By default, the draft is assumed to be quantised like the target.
    if (d.target->weight_bits < 16.0 && d.draft->weight_bits >= 16.0) draft += " --speculative-draft-model-quantization unquant";
    note_sizes(d, "SGLang", own);
  }
  own.command =
      fmt::format("python3 -m sglang.launch_server --model-path {}{}{}{} {}", path_of(*d.target),
                  d.target->tensor_parallel > 1.0 ? fmt::format(" --tp {:g}", d.target->tensor_parallel) : "",
                  (d.target->kv_bits < 16.0 ? " --kv-cache-dtype fp8_e4m3" : "") + offloaded(*d.target),
                  batch > cost::kSglangRunsSpeculating ? fmt::format(" --max-running-requests {:g}", batch) : "", draft);
  return own;
}

EngineCommand llama_cpp(const Deployment& d, int draft_length, double batch, const std::vector<LengthRange>& /*by_batch*/) {
  EngineCommand own{kLlamaCpp, "", {}};
  if (d.target->offload) {
    own.notes.emplace_back("layers in host memory (--n-gpu-layers) run on the CPU, which this plan does not model");
    return own;
  }
  if (d.draft && !is_head(d) && std::abs(d.draft->vocab - d.target->vocab) > kVocabularyDifferenceLlamaCpp) {
    own.notes.push_back(vocabularies(d) + fmt::format(": rejected beyond a difference of {:g}", kVocabularyDifferenceLlamaCpp));
    return own;
  }
  if (is_assistant(d)) {
    own.notes.emplace_back("it supports no drafters that read the target's cache");
    return own;
  }
  if (is_pard(d) || is_peagle(d)) {
    own.notes.emplace_back("it drafts in one pass only with heads on the target's features (draft-dflash, draft-dspark)");
    return own;
  }
  if (is_head(d) && !is_eagle3(d) && !is_dflash(d) && !is_module(d)) {
    own.notes.emplace_back("it supports EAGLE heads only of EAGLE-3 (--spec-type draft-eagle3)");
    return own;
  }
  if (const std::string why = unfit_head(d); !why.empty()) {
    own.notes.push_back(why);
    return own;
  }
  // --draft-max and --draft-min were removed. p-min 0: unlikely drafts are not suppressed, since the plan counts every one.
  // draft-mtp without its own model uses the target's file (common_speculative_init_result).
  const std::string draft =
      d.draft ? fmt::format("--spec-type {}{} --spec-draft-n-max {} --spec-draft-p-min 0",
                            is_module(d)   ? "draft-mtp"
                            : is_dspark(d) ? "draft-dspark"
                            : is_dflash(d) ? "draft-dflash"
                            : is_head(d)   ? "draft-eagle3"
                                           : "draft-simple",
                            is_module(d) ? "" : " --model-draft " + path_of(*d.draft), draft_length)
              : fmt::format("--spec-type ngram-simple --spec-ngram-simple-size-n {} --spec-ngram-simple-size-m {}",
                            std::min(kLongestLookup, draft_length), draft_length);
  // ngram-simple makes no draft shorter than the looked-up tokens (common/ngram-map.cpp); ngram-map-k does.
  if (!d.draft)
    own.notes.push_back(fmt::format(
        "its ngram-simple looks up exactly {0} tokens (drafter ngram_simple), so acceptance differs from prompt look-up; "
        "--spec-type ngram-map-k --spec-ngram-map-k-size-n {0} --spec-ngram-map-k-size-m {1} drafts no more after them than were "
        "accepted there before (drafter ngram_map_k)",
        std::min(kLongestLookup, draft_length), draft_length));
  if (is_module(d)) own.notes.emplace_back("the target's file must contain the module, which some conversions drop");
  // By default llama-server places a model's layers on one GPU after the other.
  own.command = fmt::format("llama-server --model {}{}{}{} {}", path_of(*d.target),
                            d.target->tensor_parallel > 1.0 ? " --split-mode tensor" : "",
                            d.target->kv_bits < 16.0 ? " --cache-type-k q8_0 --cache-type-v q8_0" : "",
                            batch > 1.0 ? fmt::format(" --parallel {:g}", batch) : "", draft);
  if (vocabularies_differ(d))
    own.notes.push_back(vocabularies(d) + ": accepted, if the tokens that both have are the same texts");
  return own;
}

// draft_len_schedule since pull request 10860 (March 2026): {4: 4, 8: 2} drafts 4 up to 4 sequences, 2 up to 8, none above.
std::string table_tensorrt(const std::vector<LengthRange>& by_batch) {
  std::string list;
  for (const LengthRange& one : by_batch)
    if (one.draft_length > 0) list += fmt::format("{}{}: {}", list.empty() ? "" : ", ", one.to, one.draft_length);
  return list.empty() ? "" : ", draft_len_schedule: {" + list + "}";
}

EngineCommand tensorrt(const Deployment& d, int draft_length, double batch, const std::vector<LengthRange>& by_batch) {
  EngineCommand own{kTensorRt, "", {}};
  if (vocabularies_differ(d)) {
    own.notes.push_back(vocabularies(d) + ": the draft must have the target's tokenizer");
    return own;
  }
  if (const std::string why = unfit_head(d); !why.empty()) {
    own.notes.push_back(why);
    return own;
  }
  if (d.draft && d.draft->one_pass) {
    own.notes.emplace_back("specsim does not know its option for drafts from one pass");
    return own;
  }
  if (is_head(d) && !is_eagle3(d) && !is_mtp(d)) {
    own.notes.emplace_back("its PyTorch backend supports EAGLE heads only of EAGLE-3 (decoding_type: Eagle3)");
    return own;
  }
  const std::string draft = !d.draft       ? fmt::format("decoding_type: NGram, max_matching_ngram_size: {}", kLongestLookup)
                            : is_module(d) ? std::string("decoding_type: MTP")
                            : is_mtp(d)    ? fmt::format("decoding_type: MTP, speculative_model: {}", path_of(*d.draft))
                                           : fmt::format("decoding_type: {}, speculative_model: {}",
                                                      is_eagle3(d) ? "Eagle3" : "Draft_Target", path_of(*d.draft));
  note_sizes(d, "TensorRT-LLM", own);
  own.command = fmt::format(
      "echo 'speculative_config: {{{}, max_draft_len: {}{}}}' > speculative.yaml && trtllm-serve {}{} --max_batch_size {:g} "
      "--extra_llm_api_options speculative.yaml",
      draft, draft_length, table_tensorrt(by_batch), path_of(*d.target),
      d.target->tensor_parallel > 1.0 ? fmt::format(" --tp_size {:g}", d.target->tensor_parallel) : "", batch);
  return own;
}

struct Server {
  std::string_view name;
  bool takes_lengths;  // draft lengths by batch
  bool that_rise;      // and lengths that rise with the batch
  EngineCommand (*command)(const Deployment&, int draft_length, double batch, const std::vector<LengthRange>& by_batch);
};
constexpr std::array kServers = {Server{"vLLM", true, true, vllm}, Server{"SGLang", false, false, sglang},
                                 Server{"llama.cpp", false, false, llama_cpp}, Server{"TensorRT-LLM", true, false, tensorrt}};

const Server* find_server(std::string_view name) {
  const auto* const found =
      std::find_if(kServers.begin(), kServers.end(), [&](const Server& server) { return server.name == name; });
  return found == kServers.end() ? nullptr : found;
}

}  // namespace

bool takes_lengths_by_batch(const std::string& engine) {
  const Server* const server = find_server(engine);
  return server != nullptr && server->takes_lengths;
}

bool takes_lengths_that_rise(const std::string& engine) {
  const Server* const server = find_server(engine);
  return server != nullptr && server->that_rise;
}

std::optional<EngineCommand> engine_command(const std::string& engine, const Deployment& deployment, int draft_length,
                                            double batch, const std::vector<LengthRange>& by_batch) {
  const Server* const server = find_server(engine);
  if (!deployment.target || server == nullptr) return std::nullopt;
  return server->command(deployment, draft_length, batch, by_batch);
}

std::vector<EngineCommand> engine_commands(const cost::Deployment& deployment, int draft_length, double batch) {
  if (!deployment.target) return {};
  std::vector<EngineCommand> list;
  list.reserve(kServers.size());
  for (const Server& server : kServers) list.push_back(server.command(deployment, draft_length, batch, {}));
  return list;
}

std::vector<std::string> pair_warnings(const cost::Deployment& deployment) {
  std::vector<std::string> list;
  if (!deployment.target) return list;
  if (vocabularies_differ(deployment))
    list.push_back(fmt::format("{}: {}", vocabularies(deployment),
                               std::abs(deployment.draft->vocab - deployment.target->vocab) > kVocabularyDifferenceLlamaCpp
                                   ? "no engine supports this pair as planned"
                                   : "vLLM and SGLang refuse the pair, llama.cpp takes it"));
  return list;
}

}  // namespace specsim::plan
