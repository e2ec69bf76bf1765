#include "sim/answers/plan/engines.h"

#include "sim/answers/plan/engine_flags.h"
#include "sim/answers/plan/server_fit.h"
#include "sim/hardware/latency/server_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string_view>

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
EngineCommand command_of(const EngineFlags& flags) { return {fmt::format("{} {}", flags.engine, flags.version), "", {}}; }

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
  return fmt::format("<path of {}{}>", model.name,
                     model.weight_bits < 16.0 ? fmt::format(" with {:g}-bit weights", model.weight_bits) : "");
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

// Several GPUs share the experts, and each has sequences and all other weights of its own.
bool shares_experts(const Deployment& d) { return d.target->expert_parallel > 1.0; }

// Why an engine has no server on such a GPU; empty: it may have one.
std::string unfit_gpu(const Deployment& d, double least_capability) {
  const auto begins = [&](std::string_view word) { return d.hardware.name.starts_with(word); };
  if (begins("apple") || begins("tpu") || (least_capability > 0.0 && d.hardware.compute_capability < least_capability))
    return fmt::format("has no server for {}", d.hardware.name);
  return "";
}

// Whether the server has a cache of the target's bits, all of them or one of `widths`; else why not.
bool caches(const Deployment& d, std::initializer_list<double> widths, EngineCommand& own) {
  const double bits = d.target->kv_bits;
  if (bits >= 16.0 || std::find(widths.begin(), widths.end(), bits) != widths.end()) return true;
  own.notes.push_back(fmt::format("it has no cache of {:g} bits for each key or value", bits));
  return false;
}

// Whether the server starts with what is asked, else why not; notes where the model's own context ends before the planned one.
bool starts(const ServerFit& fit, const RequiredSettings& asked, EngineCommand& own) {
  if (!fit.why_not.empty()) {
    own.notes.push_back(fit.why_not);
    return false;
  }
  if (fit.past_model)
    own.notes.push_back(
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
  if (const std::string why = unserved(d, takes_domino); !why.empty()) return why;
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

EngineCommand vllm(const Deployment& d, const RequiredSettings& asked) {
  EngineCommand own = command_of(vllm_flags());
  const int draft_length = asked.draft_length;
  for (const std::string& why : {unfit_gpu(d, 0.0), unplaced(d, draft_length)}) {
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
  // Pull request 45953 keeps full graphs with the second model runner, which dense models get from 0.25 on and others by this
  // variable. _maybe_disable_dynamic_sd_for_data_parallel of vllm/config/vllm.py drops the table where GPUs share experts.
  if (!asked.by_batch.empty())
    own.notes.emplace_back(shares_experts(d)
                               ? "num_speculative_tokens_per_batch_size is ignored with data parallelism: every step drafts the "
                                 "longest of these lengths"
                               : "num_speculative_tokens_per_batch_size needs vLLM 0.24 or later; without "
                                 "VLLM_USE_V2_MODEL_RUNNER=1 the full CUDA graphs "
                                 "are lost with it (7 to 22 % of TPOT in issue 49548), which this plan does not include");
  ServerCommand command(vllm_flags());
  command.add_word(path_of(*d.target));
  if (shards != 1.0) command.add(FlagUse::tensor_parallel, shards);
  if (shares_experts(d)) {
    command.add(FlagUse::data_parallel, d.target->expert_parallel);
    command.add(FlagUse::expert_parallel);
  }
  if (d.target->kv_bits < 16.0) command.add(FlagUse::keys, "fp8");
  add_offload(command, *d.target);
  if (fit.context) command.add(FlagUse::context, *fit.context);
  if (asked.batch > cost::vllm_step(d.hardware).requests) command.add(FlagUse::requests, asked.batch);
  if (draft_length > 0)
    command.add(FlagUse::speculation,
                fmt::format("'{{{}, \"num_speculative_tokens\": {}{}}}'", draft, draft_length, table_vllm(asked.by_batch)));
  own.command = command.text();
  return own;
}

EngineCommand sglang(const Deployment& d, const RequiredSettings& asked) {
  EngineCommand own = command_of(sglang_flags());
  const int draft_length = asked.draft_length;
  for (const std::string& why : {unfit_gpu(d, 0.0), unplaced(d, draft_length)}) {
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
  command.add(FlagUse::model, path_of(*d.target));
  if (const double gpus = gpus_of(d); gpus > 1.0) command.add(FlagUse::tensor_parallel, gpus);
  if (shares_experts(d)) {
    command.add(FlagUse::data_parallel, d.target->expert_parallel);
    command.add(FlagUse::attention_data_parallel);
    command.add(FlagUse::expert_parallel, d.target->expert_parallel);
    if (is_dspark(d)) command.add(FlagUse::shared_head);
  }
  if (d.target->kv_bits < 16.0) command.add(FlagUse::keys, "fp8_e4m3");
  add_offload(command, *d.target);
  if (const double all = asked.batch * d.target->expert_parallel; draft_length > 0 && all > cost::kSglangRunsSpeculating)
    command.add(FlagUse::requests, all);
  if (is_dflash(d)) {
    // DFlash's block counts the token before the drafts, DSpark's does not.
    command.add(FlagUse::speculation, is_dspark(d) ? "DSPARK" : "DFLASH");
    command.add(FlagUse::draft_model, path_of(*d.draft));
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
    command.add(FlagUse::speculation, is_eagle3(d) ? "EAGLE3" : is_head(d) ? "EAGLE" : "STANDALONE");
    if (!is_module(d)) command.add(FlagUse::draft_model, path_of(*d.draft));
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

// Devices of llama.cpp's CUDA backend: so many after the first ones.
std::string devices(double first, double count) {
  std::string list;
  for (double i = first; i < first + count; i += 1.0) list += fmt::format("{}CUDA{:g}", list.empty() ? "" : ",", i);
  return list;
}

EngineCommand llama_cpp(const Deployment& d, const RequiredSettings& asked) {
  EngineCommand own = command_of(llama_cpp_flags());
  const int draft_length = asked.draft_length;
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
  if (is_module(d)) own.notes.emplace_back("the target's file must contain the module, which some conversions drop");
  // By default llama-server places a model's layers on one GPU after the other.
  ServerCommand command(llama_cpp_flags());
  command.add(FlagUse::model, path_of(*d.target));
  if (d.target->tensor_parallel > 1.0) command.add(FlagUse::tensor_parallel, "tensor");
  if (d.target->kv_bits < 16.0) {
    command.add(FlagUse::keys, "q8_0");
    command.add(FlagUse::values, "q8_0");
  }
  command.add(FlagUse::context, *fit.context);  // of all sequences together
  if (asked.batch > 1.0) command.add(FlagUse::requests, asked.batch);
  if (d.draft) {
    // --draft-max and --draft-min were removed. p-min 0: unlikely drafts are not suppressed, since the plan counts every one.
    // draft-mtp without its own model uses the target's file (common_speculative_init_result).
    command.add(FlagUse::speculation, is_module(d)   ? "draft-mtp"
                                      : is_dspark(d) ? "draft-dspark"
                                      : is_dflash(d) ? "draft-dflash"
                                      : is_head(d)   ? "draft-eagle3"
                                                     : "draft-simple");
    if (!is_module(d)) command.add(FlagUse::draft_model, path_of(*d.draft));
    if (d.draft_place) {
      command.add(FlagUse::device, devices(0, d.target->tensor_parallel));
      command.add(FlagUse::draft_device, devices(d.target->tensor_parallel, d.draft->tensor_parallel));
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
  for (const std::string& why : {unfit_gpu(d, kAmpere), unplaced(d, asked.draft_length)}) {
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
  ServerCommand command(tensorrt_flags());
  command.add_word(path_of(*d.target));
  if (const double gpus = gpus_of(d); gpus > 1.0) command.add(FlagUse::tensor_parallel, gpus);
  if (shares_experts(d)) command.add(FlagUse::expert_parallel, d.target->expert_parallel);
  command.add(FlagUse::requests, asked.batch);
  if (fit.context) command.add(FlagUse::context, *fit.context);
  std::vector<std::string> options;
  if (shares_experts(d)) options.emplace_back("enable_attention_dp: true");
  if (d.target->kv_bits < 16.0) options.emplace_back("kv_cache_config: {dtype: fp8}");
  if (asked.draft_length > 0)
    options.push_back(fmt::format("speculative_config: {{{}, max_draft_len: {}{}}}", draft, asked.draft_length,
                                  table_tensorrt(asked.by_batch)));
  const char* const file = asked.draft_length > 0 ? "speculative.yaml" : "options.yaml";
  if (!options.empty()) command.add(FlagUse::options_file, file);
  own.command =
      options.empty() ? command.text() : fmt::format("echo '{{{}}}' > {} && {}", fmt::join(options, ", "), file, command.text());
  return own;
}

struct Server {
  std::string_view name;
  std::string_view engine;  // its engine presets and its library of kernels begin with this word
  bool takes_lengths;       // draft lengths by batch
  bool that_rise;           // and lengths that rise with the batch
  EngineCommand (*command)(const Deployment&, const RequiredSettings&);
};
constexpr std::array kServers = {Server{"vLLM", "vllm", true, true, vllm}, Server{"SGLang", "sglang", false, false, sglang},
                                 Server{"llama.cpp", "llama_cpp", false, false, llama_cpp},
                                 Server{"TensorRT-LLM", "trtllm", true, false, tensorrt}};

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

bool takes_lengths_by_batch(const std::string& engine) {
  const Server* const server = find_server(engine);
  return server != nullptr && server->takes_lengths;
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

// The target in the name of a head: eagle3-TARGET, TARGET-mtp; "" if it names none.
std::string named_target(const std::string& head) {
  std::string rest = head;
  for (const std::string_view prefix : {"eagle3-", "p-eagle-", "dflash-", "dspark-"})
    if (rest.starts_with(prefix)) rest = rest.substr(prefix.size());
  if (rest.ends_with("-mtp")) rest.resize(rest.size() - 4);
  return rest == head ? "" : preset_called(rest);
}

}  // namespace

std::vector<std::string> pair_warnings(const cost::Deployment& deployment) {
  std::vector<std::string> list;
  if (!deployment.target) return list;
  if (is_head(deployment)) {
    const std::string own = named_target(deployment.draft->name);
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
