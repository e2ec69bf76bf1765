#include "sim/answers/plan/engines.h"

#include "sim/answers/plan/engine_flags.h"
#include "sim/answers/plan/server_fit.h"
#include "sim/answers/plan/server_split.h"
#include "sim/foundation/base/shell_word.h"
#include "sim/hardware/latency/server_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace specsim::plan {

namespace {

using cost::Deployment;
using cost::made_for_another;
using cost::ModelShape;

// The settings that a server must have.
struct RequiredSettings {
  int draft_length;
  double batch;
  double context;
  const std::vector<LengthRange>& by_batch;
};

// A command of an engine, of the version whose flags and rules these are; each rule is cited where it is applied.
EngineCommand command_of(const EngineFlags& flags) { return {fmt::format("{} {}", flags.engine, flags.version), "", {}, {}}; }

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
// Layers that read the target's cache (Gemma 4's assistants). All four engines run them as MTP modules with a path.
bool is_assistant(const Deployment& d) { return d.draft && d.draft->reads_target_cache(); }
bool is_domino(const Deployment& d) { return drafts_as(d, "domino"); }
// Drafters that an engine does not support. Only SGLang supports Domino.
std::string unserved(const Deployment& d, bool takes_domino) {
  for (const char* word : {"domino", "dflare", "hydra"})
    if (drafts_as(d, word) && !(takes_domino && is_domino(d)))
      return fmt::format("it supports no drafters of this kind ({})", word);
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
  return fmt::format("<path of {}{}{}>", model.name, model.gguf ? ".gguf" : "",
                     model.weight_bits < 16.0 ? fmt::format(" with {:g}-bit weights", model.weight_bits) : "");
}

// The same as a word of a command. The user replaces it, so it is only quoted if the shell would read the name as more than a
// word.
std::string path_word(const ModelShape& model) {
  return shell_word(model.name) == model.name ? path_of(model) : shell_word(path_of(model));
}

bool has_gguf(const Deployment& d) { return d.target->gguf || (d.draft && d.draft->gguf); }

// Why llama.cpp has no file of these weights; empty: it may have one. ggml has types for mxfp4 and nvfp4, but none for fp8, nor
// for weights of GPTQ, AWQ and compressed-tensors.
std::string no_gguf(const Deployment& d) {
  constexpr std::array<std::string_view, 7> kTypes = {
      "", "bfloat16", "float16", "nvfp4", "w4a16_mxfp4", "w4a8_mxfp4_mxfp8", "w4a8_nvfp4"};
  const auto has = [&](const std::string& kernel) { return std::find(kTypes.begin(), kTypes.end(), kernel) != kTypes.end(); };
  for (const ModelShape* const model : {&*d.target, d.draft && !is_module(d) ? &*d.draft : nullptr})
    if (model != nullptr && !model->gguf && !(has(model->product_type) && has(model->expert_type)))
      return fmt::format("it loads GGUF files, which have no type like that of {}'s weights (--dtype q4_k_m or q8_0 plans one)",
                         model->name);
  return "";
}

// Weights in host memory, which both engines count in GiB per GPU.
void add_offload(ServerCommand& command, const ModelShape& model) {
  if (!model.offload) return;
  command.add(FlagUse::offload, std::ceil(model.offload->share * model.layer_bytes(model.experts) / model.tensor_parallel /
                                          (1024.0 * 1024.0 * 1024.0)));
}

// Why an engine cannot put the draft on a GPU of its own; empty: there is none.
std::string unplaced(const Deployment& d, int draft_length) {
  return d.draft_place && draft_length > 0 ? "it runs the draft on the target's GPUs" : "";
}

// Why no engine drafts so many tokens with this drafter; empty: it may.
std::string past_block(const Deployment& d, int draft_length) {
  if (!d.draft || !d.draft->longest_draft || draft_length <= *d.draft->longest_draft) return "";
  return fmt::format("draft length {}: {} drafts at most {:g} tokens", draft_length, d.draft->name, *d.draft->longest_draft);
}

// Several GPUs share the experts, and each has sequences and all other weights of its own.
bool shares_experts(const Deployment& d) { return d.target->expert_parallel > 1.0; }
bool loads_whole_experts(const Deployment& d) { return d.target->whole_experts || d.target->cuts_expert_blocks(); }

constexpr std::string_view kFirstMachine = "<address of machine 0>";

// Notes how the server is started on the other machines: with the same command, but for these flags.
void note_machines(const Machines& machines, const std::string& changes, EngineCommand& own) {
  own.needs.push_back(
      fmt::format("it runs on {:g} machines with {:g} GPUs each, connected by a fast network: start it on all of them, "
                  "{}",
                  machines.count, machines.gpus, changes));
}

// The GPUs that an engine's server, of the version whose flags these are, runs on.
struct SupportedGpus {
  std::initializer_list<cost::Maker> makers;
  double least_capability = 0.0;  // compute capability of NVIDIA's
};

// Why an engine has no server on such a GPU; empty: it may have one.
std::string unfit_gpu(const Deployment& d, const SupportedGpus& supported) {
  const cost::Hardware& gpu = d.hardware;
  if (gpu.maker != cost::Maker::unknown &&
      std::find(supported.makers.begin(), supported.makers.end(), gpu.maker) == supported.makers.end())
    return fmt::format("it has no server for {}, or one with flags of its own", gpu.name);
  if (gpu.compute_capability > 0.0 && gpu.compute_capability < supported.least_capability)
    return fmt::format("it has no server for {}: it needs compute capability {:.1f}, the GPU has {:.1f}", gpu.name,
                       supported.least_capability, gpu.compute_capability);
  return "";
}

// Whether the server has a cache of the target's bits, all of them or one of `widths`; else why not.
bool caches(const Deployment& d, std::initializer_list<double> widths, EngineCommand& own) {
  const double bits = d.target->kv_bits;
  if (bits >= 16.0 || std::find(widths.begin(), widths.end(), bits) != widths.end()) return true;
  own.notes.push_back(fmt::format("it has no cache of {:g} bits for each key or value", bits));
  return false;
}

// Notes that a flag for the context may be needed, where the model's own is not known. `effect`: what the server does without.
void note_context(const ServerFit& fit, const EngineFlags& flags, const char* effect, EngineCommand& own) {
  if (fit.unknown)
    own.needs.push_back(fmt::format("the model's own context is not known here (key context of its description): {} {} {:.0f}",
                                    effect, flags.name(FlagUse::context), fit.planned));
}

// Whether the server starts with what is asked, else why not; warns where the model's own context ends before the planned one.
bool starts(const ServerFit& fit, const RequiredSettings& asked, EngineCommand& own) {
  if (!fit.why_not.empty()) {
    own.notes.push_back(fit.why_not);
    return false;
  }
  if (fit.past_model)
    own.needs.push_back(
        fmt::format("a context of {:.0f} tokens is longer than the model's own limit, which the server enforces", asked.context));
  return true;
}

std::string vocabularies(const Deployment& d) {
  return fmt::format("the vocabularies differ ({} tokens, the draft's {})", counted(d.target->vocab), counted(d.draft->vocab));
}

// Why an engine rejects this head, given whether it supports Medusa's and Domino's; empty: it may support it.
std::string unfit_head(const Deployment& d, bool takes_medusa = false, bool takes_domino = false) {
  if (d.draft)
    if (const std::string why = made_for_another(*d.target, *d.draft); !why.empty()) return why + ": refused";
  if (std::string why = unserved(d, takes_domino); !why.empty()) return why;
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

// _maybe_disable_dynamic_sd_for_data_parallel of vllm/config/vllm.py drops the table where GPUs share experts. Full CUDA graphs
// with it need the second model runner (pull request 45953), which runs these methods only
// (VllmConfig._get_v2_model_runner_unsupported_features); without them 7 to 22 % of TPOT are lost (issue 49548).
bool takes_table_vllm(const Deployment& d) {
  return !shares_experts(d) && (is_head(d) || is_assistant(d)) && !is_medusa(d) && !is_peagle(d) &&
         !drafts_as(d, "mlp_speculator");
}

// Pull request 32374, merged in June 2026: vLLM 0.24 has it, 0.19 does not. The lengths may not exceed num_speculative_tokens.
std::string table_vllm(const std::vector<LengthRange>& by_batch) {
  return by_batch.empty() ? "" : ", \"num_speculative_tokens_per_batch_size\": " + ranges_text(by_batch);
}

EngineCommand vllm(const Deployment& d, const RequiredSettings& asked) {
  using enum cost::Maker;
  EngineCommand own = command_of(vllm_flags());
  const int draft_length = asked.draft_length;
  // docs/getting_started/installation of vLLM 0.26; its servers for Apple's and Google's chips are packages of their own.
  constexpr double kTuring = 7.5;
  for (const std::string& why :
       {unfit_gpu(d, {{nvidia, amd, intel}, kTuring}), unplaced(d, draft_length), uneven_heads(d), past_block(d, draft_length)}) {
    if (why.empty()) continue;
    own.notes.push_back(why);
    return own;
  }
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
  if (!caches(d, {8.0}, own)) return own;
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
  const ServerFit fit = fit_for_one(d, cost::MemoryRules::vllm, asked.context, draft_length);
  if (!starts(fit, asked, own)) return own;
  note_context(fit, vllm_flags(), "if the server refuses to start because the cache does not hold it, add", own);
  const bool by_batch = !asked.by_batch.empty() && takes_table_vllm(d);
  if (by_batch)
    own.needs.emplace_back(
        "num_speculative_tokens_per_batch_size needs vLLM 0.24 or later; the variable keeps full CUDA graphs with it");
  if (has_gguf(d))
    own.needs.emplace_back("GGUF files need its plug-in vllm-gguf-plugin, which is experimental, and one file per model");
  ServerCommand command(vllm_flags());
  command.add_word(path_word(*d.target));
  if (d.target->gguf) command.add(FlagUse::tokenizer, fmt::format("<path of {}>", shell_word(d.target->name)));
  if (shards != 1.0) command.add(FlagUse::tensor_parallel, shards);
  if (shares_experts(d)) command.add(FlagUse::data_parallel, d.target->expert_parallel);
  if (shares_experts(d) || loads_whole_experts(d)) command.add(FlagUse::expert_parallel);
  // docs/serving/parallelism_scaling.md and data_parallel_deployment.md.
  if (const Machines machines = machines_of(d); machines.count > 1.0 && shares_experts(d)) {
    command.add(FlagUse::local_data_parallel, machines.gpus);
    command.add(FlagUse::data_parallel_address, kFirstMachine);
    note_machines(machines,
                  fmt::format("on machine N > 0 with {} {} {:g}N", vllm_flags().name(FlagUse::headless),
                              vllm_flags().name(FlagUse::data_parallel_start), machines.gpus),
                  own);
  } else if (machines.count > 1.0) {
    command.add(FlagUse::machines, machines.count);
    command.add(FlagUse::machine_rank, 0);
    command.add(FlagUse::machine_address, kFirstMachine);
    note_machines(machines,
                  fmt::format("on machine N > 0 with {} N {}", vllm_flags().name(FlagUse::machine_rank),
                              vllm_flags().name(FlagUse::headless)),
                  own);
  }
  if (has_own_code(*d.target)) command.add(FlagUse::trust_code);
  if (d.target->kv_bits < 16.0) command.add(FlagUse::keys, "fp8");
  add_offload(command, *d.target);
  if (fit.context) command.add(FlagUse::context, *fit.context);
  if (asked.batch > cost::vllm_step(d.hardware).requests) command.add(FlagUse::requests, asked.batch);
  if (draft_length > 0)
    command.add(FlagUse::speculation, shell_word(fmt::format("{{{}, \"num_speculative_tokens\": {}{}}}", draft, draft_length,
                                                             by_batch ? table_vllm(asked.by_batch) : "")));
  own.command = (by_batch ? "VLLM_USE_V2_MODEL_RUNNER=1 " : "") + command.text();
  return own;
}

EngineCommand sglang(const Deployment& d, const RequiredSettings& asked) {
  using enum cost::Maker;
  EngineCommand own = command_of(sglang_flags());
  const int draft_length = asked.draft_length;
  constexpr double kTuring = 7.5;  // the oldest that its installation page names
  for (const std::string& why :
       {unfit_gpu(d, {{nvidia, amd, intel}, kTuring}), unplaced(d, draft_length), uneven_heads(d), past_block(d, draft_length)}) {
    if (why.empty()) continue;
    own.notes.push_back(why);
    return own;
  }
  // Since pull request 23838 a draft with another vocabulary is rejected. Earlier versions served it, and its tokens had other
  // meanings.
  if (vocabularies_differ(d)) {
    own.notes.push_back(vocabularies(d) + ": rejected (versions before pull request 23838 start, but emit nonsense)");
    return own;
  }
  if (const std::string why = unfit_head(d, false, true); !why.empty()) {
    own.notes.push_back(why);
    return own;
  }
  if (is_pard(d) || is_peagle(d)) {
    own.notes.emplace_back("it drafts in one pass only with heads on the target's features (DFLASH, DSPARK)");
    return own;
  }
  if (is_domino(d) && d.target->tensor_parallel > 1.0) {
    own.notes.emplace_back("it runs Domino on one GPU only (pull request 36899)");
    return own;
  }
  // _handle_ngram and _handle_dspark of arg_groups/speculative_hook.py refuse GPUs that are not "cuda". ROCm's are, but its build
  // lacks the kernel that NGRAM calls, and DSpark's drafts are never accepted there (pull request 33301, open in August 2026).
  if (draft_length > 0 && (!d.draft || is_dspark(d)) && d.hardware.maker != cost::Maker::unknown && d.hardware.maker != nvidia) {
    own.notes.push_back(fmt::format("its {} runs on NVIDIA's GPUs only", d.draft ? "DSPARK" : "NGRAM"));
    return own;
  }
  // _handle_speculative_decoding of server_args.py, and _handle_dflash.
  if (draft_length > 0 && shares_experts(d) && (!d.draft || !is_head(d) || (is_dflash(d) && !is_dspark(d)))) {
    own.notes.emplace_back(
        "with --enable-dp-attention (GPUs share the experts) it supports only EAGLE heads, MTP modules and DSpark");
    return own;
  }
  if (!caches(d, {8.0}, own)) return own;
  const ServerFit fit = fit_for_one(d, cost::MemoryRules::sglang, asked.context, draft_length);
  if (!starts(fit, asked, own)) return own;
  ServerCommand command(sglang_flags());
  command.add(FlagUse::model, path_word(*d.target));
  if (d.target->gguf) command.add(FlagUse::file_type, "gguf");
  if (has_gguf(d) && draft_length > 0) own.notes.emplace_back("it does not document GGUF files with speculation");
  if (const double gpus = gpus_of(d); gpus > 1.0) command.add(FlagUse::tensor_parallel, gpus);
  if (shares_experts(d)) {
    command.add(FlagUse::data_parallel, d.target->expert_parallel);
    command.add(FlagUse::attention_data_parallel);
    command.add(FlagUse::expert_parallel, d.target->expert_parallel);
    if (is_dspark(d)) command.add(FlagUse::shared_head);
  } else if (loads_whole_experts(d)) {
    command.add(FlagUse::expert_parallel, d.target->tensor_parallel);
  }
  if (const Machines machines = machines_of(d); machines.count > 1.0) {  // its documentation on multi-node deployment
    command.add(FlagUse::machines, machines.count);
    command.add(FlagUse::machine_rank, 0);
    command.add(FlagUse::machine_address, fmt::format("{}:5000", kFirstMachine));
    note_machines(machines, fmt::format("on machine N > 0 with {} N", sglang_flags().name(FlagUse::machine_rank)), own);
  }
  if (has_own_code(*d.target)) command.add(FlagUse::trust_code);
  if (d.target->kv_bits < 16.0) command.add(FlagUse::keys, "fp8_e4m3");
  add_offload(command, *d.target);
  if (const double all = asked.batch * d.target->expert_parallel; draft_length > 0 && all > cost::kSglangRunsSpeculating)
    command.add(FlagUse::requests, all);
  if (d.draft && !is_module(d) && d.draft->gguf != d.target->gguf)
    command.add(FlagUse::draft_file_type, d.draft->gguf ? "gguf" : "auto");
  if (is_dflash(d)) {
    // DFlash's block counts the token before the drafts, DSpark's does not.
    command.add(FlagUse::speculation, is_dspark(d) ? "DSPARK" : "DFLASH");
    command.add(FlagUse::draft_model, path_word(*d.draft));
    if (is_dspark(d))
      command.add(FlagUse::block, draft_length);
    else
      command.add(FlagUse::verified, draft_length + 1);
    if (is_domino(d)) own.notes.emplace_back("it runs Domino only for greedy decoding, since pull request 36899");
  } else if (!d.draft && draft_length > 0) {
    // A chain, so no breadth. The number of verified tokens includes the token before the drafts.
    command.add(FlagUse::speculation, "NGRAM");
    command.add(FlagUse::verified, draft_length + 1);
    command.add(FlagUse::lookup, 1);
    own.notes.emplace_back(
        "its NGRAM drafts from a trie of recently emitted tokens, not from the prompt (drafter sglang_ngram), so its acceptance "
        "differs from prompt lookup's");
  } else if (d.draft) {
    // With topk 1, num-draft-tokens must be num-steps + 1.
    // NEXTN becomes FROZEN_KV_MTP for Gemma 4's assistants (pull request 24436).
    command.add(FlagUse::speculation, is_assistant(d) ? "NEXTN" : is_eagle3(d) ? "EAGLE3" : is_head(d) ? "EAGLE" : "STANDALONE");
    if (!is_module(d)) command.add(FlagUse::draft_model, path_word(*d.draft));
    command.add(FlagUse::draft_length, draft_length);
    command.add(FlagUse::breadth, 1);
    command.add(FlagUse::verified, draft_length + 1);
    // By default, the draft is assumed to be quantised like the target.
    if (d.target->weight_bits < 16.0 && d.draft->weight_bits >= 16.0) command.add(FlagUse::draft_type, "unquant");
    note_sizes(d, "SGLang", own);
  }
  own.command = command.text();
  return own;
}

// Devices of a backend of llama.cpp: so many after the first ones.
std::string devices(std::string_view backend, double first, double count) {
  std::string list;
  for (double i = first; i < first + count; i += 1.0) list += fmt::format("{}{}{:g}", list.empty() ? "" : ",", backend, i);
  return list;
}

// The backend of the target's GPU; Vulkan if the draft's is of another maker, since one backend must run both.
std::string_view backend_llama_cpp(const Deployment& d) {
  if (d.draft_place && d.draft_place->hardware.maker != d.hardware.maker) return "Vulkan";
  switch (d.hardware.maker) {
    case cost::Maker::amd:
      return "ROCm";
    case cost::Maker::intel:
      return "SYCL";
    case cost::Maker::apple:
      return "Metal";
    default:
      return "CUDA";
  }
}

// Why llama.cpp's --split-mode tensor refuses this target; empty: it may start. Architectures: llm_arch_supports_sm_tensor of
// src/llama-arch.cpp. Those with latent attention are DeepSeek2, DeepSeek 3.2, GLM-DSA, MiniCPM3, Mistral 4 and Kimi-Linear;
// with states Mamba, Jamba, PLaMo 2, Falcon-H1, Granite 4, Nemotron-H and LFM2 (Qwen's Gated DeltaNet is supported). Caches and
// backends: docs/multi-gpu.md.
std::string refuses_tensor_split(const Deployment& d) {
  constexpr std::array<std::string_view, 9> kArchitectures = {"grok",    "mpt",          "olmo2",      "olmoe",    "bitnet",
                                                              "gemma3n", "gemma3n_text", "minimax_m2", "flex_olmo"};
  const ModelShape& target = *d.target;
  std::string architecture = target.architecture;
  std::replace(architecture.begin(), architecture.end(), '-', '_');
  if (std::find(kArchitectures.begin(), kArchitectures.end(), architecture) != kArchitectures.end()) return "this architecture";
  if (target.latent) return "latent attention";
  if (target.compressed) return "compressed attention";
  if (target.state && target.state->kind != cost::StateLayer::Kind::gated_deltanet) return "layers with such states";
  if (target.layer_embeddings && target.layer_embeddings->rank > 0.0) return "this architecture";
  if (target.kv_bits < 16.0) return "a cache of fewer than 16 bits";
  using enum cost::Maker;
  if (d.hardware.maker == intel || d.hardware.maker == apple) return fmt::format("the backend of {}", d.hardware.name);
  return "";
}

EngineCommand llama_cpp(const Deployment& d, const RequiredSettings& asked) {
  using enum cost::Maker;
  EngineCommand own = command_of(llama_cpp_flags());
  const int draft_length = asked.draft_length;
  for (const std::string& why : {unfit_gpu(d, {{nvidia, amd, intel, apple}}), past_block(d, draft_length)}) {
    if (why.empty()) continue;
    own.notes.push_back(why);
    return own;
  }
  if (shares_experts(d)) {
    own.notes.emplace_back("it does not support GPUs that share the experts while each serves its own sequences");
    return own;
  }
  if (d.target->offload) {
    own.notes.emplace_back("layers in host memory (--n-gpu-layers) run on the CPU, which this plan does not model");
    return own;
  }
  // Its RPC backend sends every operation of a draft pass, and the logits back, instead of the ids of whole drafts.
  if (d.draft_place && d.draft_place->link_latency > 0.0 && draft_length > 0) {
    own.notes.emplace_back("a GPU of another machine (--rpc) sends logits after each draft pass, which this plan does not model");
    return own;
  }
  if (d.draft && !is_head(d) && std::abs(d.draft->vocab - d.target->vocab) > kVocabularyDifferenceLlamaCpp) {
    own.notes.push_back(vocabularies(d) + fmt::format(": rejected beyond a difference of {:g}", kVocabularyDifferenceLlamaCpp));
    return own;
  }
  if (is_pard(d) || is_peagle(d)) {
    own.notes.emplace_back("it drafts in one pass only with heads on the target's features (draft-dflash, draft-dspark)");
    return own;
  }
  if (is_head(d) && !is_eagle3(d) && !is_dflash(d) && !is_mtp(d)) {
    own.notes.emplace_back("it supports EAGLE heads only of EAGLE-3 (--spec-type draft-eagle3)");
    return own;
  }
  if (const std::string why = unfit_head(d); !why.empty()) {
    own.notes.push_back(why);
    return own;
  }
  if (const std::string why = no_gguf(d); !why.empty()) {
    own.notes.push_back(why);
    return own;
  }
  if (const Machines machines = machines_of(d); machines.count > 1.0) {
    own.notes.push_back(
        fmt::format("its --split-mode tensor needs all GPUs in one machine, which has {:g}", d.hardware.machine_gpus));
    return own;
  }
  if (d.target->tensor_parallel > 1.0)
    if (const std::string what = refuses_tensor_split(d); !what.empty()) {
      own.notes.push_back(fmt::format(
          "its --split-mode tensor refuses {}, and with --split-mode layer the GPUs run in turn, which this plan does not model",
          what));
      return own;
    }
  if (!caches(d, {8.0, 8.5}, own)) return own;
  const ServerFit fit = fit_for_all(d, asked.batch, asked.context, draft_length);
  if (!starts(fit, asked, own)) return own;
  // ngram-simple makes no draft shorter than the looked-up tokens (common/ngram-map.cpp); ngram-map-k does.
  if (!d.draft && draft_length > 0)
    own.notes.push_back(fmt::format(
        "its ngram-simple looks up exactly {0} tokens (drafter ngram_simple), so acceptance differs from prompt lookup; "
        "--spec-type ngram-map-k --spec-ngram-map-k-size-n {0} --spec-ngram-map-k-size-m {1} drafts at most as many tokens as "
        "were accepted there before (drafter ngram_map_k)",
        std::min(kLongestLookup, draft_length), draft_length));
  if (is_module(d)) own.needs.emplace_back("the target's file must contain the module, which some conversions drop");
  note_context(fit, llama_cpp_flags(), "longer requests than planned are refused; for each sequence the command has", own);
  // By default llama-server places a model's layers on one GPU after the other.
  ServerCommand command(llama_cpp_flags());
  command.add(FlagUse::model, path_word(*d.target));
  if (d.target->tensor_parallel > 1.0) command.add(FlagUse::tensor_parallel, "tensor");
  if (d.target->kv_bits < 16.0) {
    command.add(FlagUse::keys, "q8_0");
    command.add(FlagUse::values, "q8_0");
  }
  command.add(FlagUse::context, *fit.context);  // of all sequences together
  if (asked.batch > 1.0) command.add(FlagUse::requests, asked.batch);
  if (d.draft) {
    // --draft-max and --draft-min were removed. p-min 0: unlikely drafts are not suppressed, since the plan counts every one.
    // draft-mtp without its own model uses the target's file (common_speculative_init_result). Gemma 4's assistants have a file
    // (pull request 23398, June 2026).
    command.add(FlagUse::speculation, is_mtp(d)      ? "draft-mtp"
                                      : is_dspark(d) ? "draft-dspark"
                                      : is_dflash(d) ? "draft-dflash"
                                      : is_head(d)   ? "draft-eagle3"
                                                     : "draft-simple");
    if (!is_module(d)) command.add(FlagUse::draft_model, path_word(*d.draft));
    if (d.draft_place) {
      const std::string_view backend = backend_llama_cpp(d);
      command.add(FlagUse::device, devices(backend, 0, d.target->tensor_parallel));
      command.add(FlagUse::draft_device, devices(backend, d.target->tensor_parallel, d.draft->tensor_parallel));
      own.notes.push_back(fmt::format("llama-server --list-devices prints the names: here {} is the first device, {} follows",
                                      d.hardware.name, d.draft_place->hardware.name));
    }
    command.add(FlagUse::draft_length, draft_length);
    command.add(FlagUse::least_probability, 0);
  } else if (draft_length > 0) {
    command.add(FlagUse::speculation, "ngram-simple");
    command.add(FlagUse::lookup, std::min(kLongestLookup, draft_length));
    command.add(FlagUse::lookup_drafts, draft_length);
  }
  own.command = command.text();
  if (vocabularies_differ(d)) own.notes.push_back(vocabularies(d) + ": accepted if the tokens that both have are the same text");
  return own;
}

// It rejects the schedule for Gemma 4's assistants (pull request 15833).
bool takes_table_tensorrt(const Deployment& d) { return !is_assistant(d); }

// draft_len_schedule since pull request 10860 (March 2026): {4: 4, 8: 2} drafts 4 up to 4 sequences, 2 up to 8, none above.
std::string table_tensorrt(const std::vector<LengthRange>& by_batch) {
  std::string list;
  for (const LengthRange& one : by_batch)
    if (one.draft_length > 0) list += fmt::format("{}{}: {}", list.empty() ? "" : ", ", one.to, one.draft_length);
  return list.empty() ? "" : ", draft_len_schedule: {" + list + "}";
}

EngineCommand tensorrt(const Deployment& d, const RequiredSettings& asked) {
  EngineCommand own = command_of(tensorrt_flags());
  constexpr double kAmpere = 8.0;  // the oldest that its support matrix names
  for (const std::string& why :
       {unfit_gpu(d, {{cost::Maker::nvidia}, kAmpere}), unplaced(d, asked.draft_length),
        std::string(has_gguf(d) ? "it loads no GGUF files" : ""), uneven_heads(d), past_block(d, asked.draft_length)}) {
    if (why.empty()) continue;
    own.notes.push_back(why);
    return own;
  }
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
  if (!caches(d, {8.0}, own)) return own;
  const ServerFit fit = fit_for_one(d, cost::MemoryRules::trtllm, asked.context, asked.draft_length);
  if (!starts(fit, asked, own)) return own;
  if (is_assistant(d)) own.needs.emplace_back("needs pull request 15833 (July 2026): Gemma 4's assistants");
  ServerCommand command(tensorrt_flags());
  command.add_word(path_word(*d.target));
  if (const double gpus = gpus_of(d); gpus > 1.0) command.add(FlagUse::tensor_parallel, gpus);
  if (shares_experts(d))
    command.add(FlagUse::expert_parallel, d.target->expert_parallel);
  else if (loads_whole_experts(d))
    command.add(FlagUse::expert_parallel, d.target->tensor_parallel);
  // Multi-node serving in docs/source/commands/trtllm-serve.
  if (const Machines machines = machines_of(d); machines.count > 1.0)
    note_machines(machines,
                  fmt::format("by MPI: srun --nodes {:g} --ntasks-per-node {:g} --mpi pmix trtllm-llmapi-launch COMMAND",
                              machines.count, machines.gpus),
                  own);
  if (has_own_code(*d.target)) command.add(FlagUse::trust_code);
  command.add(FlagUse::requests, asked.batch);
  if (fit.context) command.add(FlagUse::context, *fit.context);
  std::vector<std::string> options;
  if (shares_experts(d)) options.emplace_back("enable_attention_dp: true");
  if (d.target->kv_bits < 16.0) options.emplace_back("kv_cache_config: {dtype: fp8}");
  if (asked.draft_length > 0)
    options.push_back(fmt::format("speculative_config: {{{}, max_draft_len: {}{}}}", draft, asked.draft_length,
                                  takes_table_tensorrt(d) ? table_tensorrt(asked.by_batch) : ""));
  const char* const file = asked.draft_length > 0 ? "speculative.yaml" : "options.yaml";
  if (!options.empty()) command.add(FlagUse::options_file, file);
  own.command = options.empty() ? command.text()
                                : fmt::format("echo {} > {} && {}", shell_word(fmt::format("{{{}}}", fmt::join(options, ", "))),
                                              file, command.text());
  return own;
}

struct Server {
  std::string_view name;
  std::string_view engine;                   // its engine presets and its library of kernels begin with this word
  bool (*takes_lengths)(const Deployment&);  // draft lengths by batch; nullptr: never
  bool that_rise;                            // and lengths that rise with the batch
  EngineCommand (*command)(const Deployment&, const RequiredSettings&);
};
constexpr std::array kServers = {Server{"vLLM", "vllm", takes_table_vllm, true, vllm},
                                 Server{"SGLang", "sglang", nullptr, false, sglang},
                                 Server{"llama.cpp", "llama_cpp", nullptr, false, llama_cpp},
                                 Server{"TensorRT-LLM", "trtllm", takes_table_tensorrt, false, tensorrt}};

const Server* find_server(std::string_view name) {
  const auto* const found =
      std::find_if(kServers.begin(), kServers.end(), [&](const Server& server) { return server.name == name; });
  return found == kServers.end() ? nullptr : found;
}

// Without speculation there is no draft either.
EngineCommand command_for(const Server& server, const Deployment& deployment, const RequiredSettings& asked) {
  if (asked.draft_length > 0 || !deployment.draft) return server.command(deployment, asked);
  Deployment plain = deployment;
  plain.draft.reset();
  return server.command(plain, asked);
}

}  // namespace

std::string server_of(const cost::Engine& engine) {
  // A preset in braces has the name that its file gives.
  for (const std::string* word : {&engine.name, &engine.kernels})
    for (const Server& server : kServers)
      if (word->starts_with(server.engine) || word->starts_with(server.name)) return std::string(server.name);
  return "";
}

bool takes_lengths_by_batch(const std::string& engine, const Deployment& deployment) {
  const Server* const server = find_server(engine);
  return server != nullptr && server->takes_lengths != nullptr && deployment.target && server->takes_lengths(deployment);
}

bool takes_lengths_that_rise(const std::string& engine) {
  const Server* const server = find_server(engine);
  return server != nullptr && server->that_rise;
}

std::optional<EngineCommand> engine_command(const std::string& engine, const Deployment& deployment, int draft_length,
                                            double batch, const std::vector<LengthRange>& by_batch, double context) {
  const Server* const server = find_server(engine);
  if (!deployment.target || server == nullptr) return std::nullopt;
  return command_for(*server, deployment, {draft_length, batch, context, by_batch});
}

double gpus_of(const cost::Deployment& deployment) {
  return deployment.target ? deployment.target->tensor_parallel * deployment.target->expert_parallel : 1.0;
}

std::vector<EngineCommand> engine_commands(const cost::Deployment& deployment, int draft_length, double batch, double context) {
  if (!deployment.target) return {};
  std::vector<EngineCommand> list;
  list.reserve(kServers.size());
  const std::vector<LengthRange> one_length;
  for (const Server& server : kServers)
    list.push_back(command_for(server, deployment, {draft_length, batch, context, one_length}));
  return list;
}

namespace {

// The preset that has this name or alias; "" for none.
std::string preset_called(const std::string& name) {
  for (const cost::Preset& one : cost::presets()) {
    if (one.kind != cost::PresetKind::model) continue;
    const std::vector<std::string> aliases = cost::aliases_of(one);
    if (one.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end()) return one.name;
  }
  return "";
}

// The target that a head's description names (verifier: Qwen/Qwen3-8B), or its own name (eagle3-TARGET, TARGET-mtp); "" if
// neither does.
std::string named_target(const ModelShape& head) {
  std::string verifier = head.verifier.substr(head.verifier.rfind('/') + 1);
  std::transform(verifier.begin(), verifier.end(), verifier.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (std::string own = preset_called(verifier); !own.empty()) return own;
  std::string rest = head.name;
  for (const std::string_view prefix : {"eagle3-", "p-eagle-", "dflash-", "dspark-"})
    if (rest.starts_with(prefix)) rest = rest.substr(prefix.size());
  for (const std::string_view suffix : {"-mtp", "-assistant"})
    if (rest.ends_with(suffix)) rest = rest.substr(0, rest.size() - suffix.size());
  return rest == head.name ? "" : preset_called(rest);
}

// Whether a model is the recorded one: by its name if it is a preset's, otherwise by its widths.
bool is_recorded(const ModelShape& model, const std::string& recorded) {
  if (const std::string own = preset_called(model.name); !own.empty())
    return own == cost::own_name(cost::PresetKind::model, recorded);
  Diagnostics ignored;
  const ModelShape other = cost::read_model(config::parse_text(recorded, "", ignored), "model", ignored);
  return !ignored.empty() || (model.layers == other.layers && model.hidden == other.hidden && model.vocab == other.vocab &&
                              model.experts == other.experts && model.on_target() == other.on_target());
}

// Why acceptance that was recorded with other models does not hold for these; empty: nothing is known against it. A table
// without a target names a draft for the latency only.
std::string recorded_otherwise(const Deployment& d, const RecordedModels& recorded) {
  const bool of_ngrams = recorded.draft == "none";
  const bool target = !recorded.target.empty() && !is_recorded(*d.target, recorded.target);
  const bool draft =
      d.draft && (of_ngrams || (!recorded.draft.empty() && !recorded.target.empty() && !is_recorded(*d.draft, recorded.draft)));
  if (!target && !draft) return "";
  const auto drafted_by = [](const std::string& name) { return name.empty() ? "" : " drafted by " + name; };
  return fmt::format("the acceptance was recorded with {}{}, not with {}{}: expect another",
                     recorded.target.empty() ? "a target" : recorded.target,
                     of_ngrams ? " drafted by n-grams" : drafted_by(recorded.draft), d.target->name,
                     drafted_by(d.draft ? d.draft->name : ""));
}

}  // namespace

std::vector<std::string> pair_warnings(const cost::Deployment& deployment, const RecordedModels& recorded) {
  std::vector<std::string> list;
  if (!deployment.target) return list;
  if (std::string why = recorded_otherwise(deployment, recorded); !why.empty()) list.push_back(std::move(why));
  if (is_head(deployment) || is_assistant(deployment)) {
    const std::string own = named_target(*deployment.draft);
    const std::string target = preset_called(deployment.target->name);
    if (const std::string why = made_for_another(*deployment.target, *deployment.draft); !why.empty())
      list.push_back(why + ": no engine serves this pair");
    else if (!own.empty() && !target.empty() && own != target)
      list.push_back(
          fmt::format("{} was trained for {}, the target is {}: expect fewer accepted drafts than are published for it",
                      deployment.draft->name, own, target));
  }
  if (vocabularies_differ(deployment))
    list.push_back(fmt::format("{}: {}", vocabularies(deployment),
                               std::abs(deployment.draft->vocab - deployment.target->vocab) > kVocabularyDifferenceLlamaCpp
                                   ? "no engine supports this pair as planned"
                                   : "vLLM and SGLang refuse the pair, llama.cpp takes it"));
  return list;
}

}  // namespace specsim::plan
