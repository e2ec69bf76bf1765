#include "sim/lab/llm/model_config.h"

#include "sim/foundation/config/fields.h"
#include "sim/foundation/config/json.h"
#include "sim/foundation/config/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

namespace specsim::llm {

namespace {

// Keys of config.json that do not affect the function of the model: training, generation, bookkeeping of transformers. With a
// space before and after each key.
constexpr std::string_view kIgnored =
    " "
    "_attn_implementation _attn_implementation_autoset _name_or_path add_cross_attention architecture_version "
    "architectures attention_dropout attn_implementation auto_map bad_words_ids begin_suppress_tokens cache_implementation "
    "chunk_size_feed_forward cross_attention_hidden_size decoder_start_token_id diversity_penalty do_sample dtype "
    "early_stopping embd_pdrop encoder_no_repeat_ngram_size eos_token_id exponential_decay_length_penalty finetuning_task "
    "forced_bos_token_id forced_eos_token_id gradient_checkpointing hidden_dropout id2label initializer_range is_decoder "
    "is_encoder_decoder keys_to_ignore_at_inference label2id length_penalty license max_length max_window_layers "
    "min_length model_max_length no_repeat_ngram_size num_beam_groups num_beams num_return_sequences output_attentions "
    "output_hidden_states output_scores pad_token_id prefix pretraining_tp problem_type pruned_heads remove_invalid_values "
    "repetition_penalty resid_pdrop return_dict return_dict_in_generate sep_token_id suppress_tokens task_specific_params "
    "temperature tf_legacy_loss tie_encoder_decoder tokenizer_class top_k top_p torch_dtype torchscript "
    "transformers.js_config transformers_version typical_p unk_token_id unsloth_fixed unsloth_version use_bfloat16 "
    "use_cache use_flash_attn use_return_dict ";

// Keys of other architectures, and the one value at which they do not change this forward pass; null never does.
struct Neutral {
  std::string_view keys;
  std::string_view value;
};
constexpr Neutral kNeutral[] = {
    {"partial_rotary_factor embedding_multiplier residual_multiplier attention_factor logits_scaling logit_scale "
     "scale_emb",
     "1"},
    {"attn_logit_softcapping final_logit_softcapping attention_multiplier scale_depth clip_qkv no_rope_layers "
     "mrope_section attention_chunk_size",
     "null"},
    {"use_qk_norm qk_layernorm attention_out_bias attn_output_gate alibi rope_interleaved", "false"},
    {"num_experts num_local_experts n_routed_experts", "0"},
};

bool equals(const config::Value& value, std::string_view wanted) {
  if (!value.is_scalar()) return false;
  const std::optional<double> number = config::as_number(value);
  return number && config::as_number(wanted) ? *number == *config::as_number(wanted) : value.text == wanted;
}

void refuse_quantised(const config::Value& value, Diagnostics& diagnostics) {
  const config::Value* const method = value.find("quant_method");
  diagnostics.add(value.where,
                  fmt::format("quantization_config{}, allowed: weights in F32, F16 or BF16, as the original model "
                              "has them, or a GGUF file of it instead of the directory",
                              method == nullptr ? "" : " with quant_method " + config::description_of_found(*method)));
}

// The keys of `map` that `wanted` reads and that have a value. Other keys are ignored if they do not change the function, and
// refused if they do or may.
config::Value only(const config::Value& map, const std::vector<config::Parameter>& wanted, Diagnostics& diagnostics) {
  config::Value kept = map;
  kept.fields.clear();
  for (const config::Field& field : map.fields) {
    const auto named = [&](const config::Parameter& parameter) { return parameter.name == field.key; };
    const auto* const neutral = std::ranges::find_if(
        kNeutral, [&](const Neutral& one) { return config::is_among(field.key, config::words_of(one.keys)); });
    if (field.value.is_null() || kIgnored.find(" " + field.key + " ") != std::string_view::npos) continue;
    if (std::any_of(wanted.begin(), wanted.end(), named))
      kept.fields.push_back(field);
    else if (field.key == "quantization_config" || field.key == "compression_config")
      refuse_quantised(field.value, diagnostics);
    else if (neutral == std::end(kNeutral))
      diagnostics.add(field.where, fmt::format("key {} is unknown and may change what the model computes, allowed: the keys of "
                                               "Llama, Mistral, Qwen2, Qwen3 and Gemma; remove it if it changes nothing",
                                               config::quote_for_message(field.key)));
    else if (!equals(field.value, neutral->value))
      diagnostics.add(field.value.where,
                      fmt::format("{} is {}, allowed: {}", field.key, config::description_of_found(field.value),
                                  neutral->value == "null" ? "null" : fmt::format("{} or null", neutral->value)));
  }
  return kept;
}

// rope_scaling as transformers 4 writes it, or rope_parameters of transformers 5, which includes the base.
void read_rope(const char* key, const config::Value& value, ModelConfig& model, Diagnostics& diagnostics) {
  if (!value.is_map()) {
    diagnostics.add(value.where, fmt::format("{} is {}, allowed: a map or null", key, config::description_of_found(value)));
    return;
  }
  // By kind of layer, if all layers are of one kind.
  if (const config::Value* full = value.find("full_attention"); full != nullptr && value.fields.size() == 1)
    return read_rope(key, *full, model, diagnostics);
  using config::elsewhere;
  const config::Words methods = config::one_of({"default", "linear", "llama3"});
  const config::Fields<RopeScaling> fields = {
      {"rope_theta", elsewhere<double>, "", config::between(1.0, 1e9)},
      {"rope_type", elsewhere<std::string>, "", methods},
      {"type", elsewhere<std::string>, "", methods},  // its name before 2024
      {"factor", &RopeScaling::factor, "", config::between(1.0, 1e4)},
      {"low_freq_factor", &RopeScaling::low_frequency_factor, "", config::between(1e-3, 1e4)},
      {"high_freq_factor", &RopeScaling::high_frequency_factor, "", config::between(1e-3, 1e4)},
      {"original_max_position_embeddings", &RopeScaling::trained_context, "", config::between(1, 1e9), config::whole}};
  const config::Arguments a = config::read_arguments(only(value, fields, diagnostics), fields, {}, key, diagnostics);
  const std::string type = a.has("rope_type") ? a.text("rope_type") : a.has("type") ? a.text("type") : "default";
  if (a.has("rope_theta")) model.rope_theta = a.number("rope_theta");
  RopeScaling& scaling = model.rope_scaling;
  scaling.factor = a.number("factor");
  if (type == "linear") scaling.method = RopeScaling::Method::linear;
  if (type == "llama3") {
    fields.read(a, scaling);
    scaling.method = RopeScaling::Method::llama3;
    if (!(scaling.low_frequency_factor < scaling.high_frequency_factor))
      diagnostics.add(
          a.where("high_freq_factor"),
          fmt::format("high_freq_factor is {:g} and low_freq_factor {:g}, allowed: high_freq_factor above low_freq_factor",
                      scaling.high_frequency_factor, scaling.low_frequency_factor));
  }
}

// Checks keys whose meaning depends on other keys.
void check_function(const config::Arguments& a, const ModelConfig& model, bool qwen, Diagnostics& diagnostics) {
  const auto refuse = [&](const char* key, const std::string& what) { diagnostics.add(a.where(key), what); };
  if (a.boolean("attention_bias") && a.text("model_type") != "qwen2")
    refuse("attention_bias",
           "attention_bias is true, allowed: false (only model_type qwen2 has biases, of queries, keys and values)");
  if (a.boolean("mlp_bias")) refuse("mlp_bias", "mlp_bias is true, allowed: false");
  const bool slides = a.has("use_sliding_window") ? a.boolean("use_sliding_window") : !qwen;
  const bool binds = a.has("sliding_window") && slides && static_cast<std::size_t>(a.integer("sliding_window")) < model.context;
  if (binds)
    refuse("sliding_window", fmt::format("sliding_window is {}, allowed: null, or the whole context of {}",
                                         a.integer("sliding_window"), model.context));
  if (a.has("layer_types"))
    for (const config::Value& layer : a.value("layer_types").items)
      if (layer.text != "full_attention" && (layer.text != "sliding_attention" || binds || !a.has("sliding_window"))) {
        diagnostics.add(layer.where,
                        fmt::format("layer_types has {}, allowed: full_attention", config::description_of_found(layer)));
        break;
      }
  const std::string activation = a.text(a.has("hidden_activation") ? "hidden_activation" : "hidden_act");
  if ((activation == "gelu_pytorch_tanh") != model.gelu_gate)
    refuse(a.has("hidden_activation") ? "hidden_activation" : "hidden_act",
           fmt::format("hidden_act is \"{}\", allowed for model_type {}: {}", activation, a.text("model_type"),
                       model.gelu_gate ? "gelu_pytorch_tanh" : "silu"));
  if (a.has("rope_parameters") && a.given("rope_theta") && a.number("rope_theta") != model.rope_theta)
    refuse("rope_theta", fmt::format("rope_theta is {:g} and that of rope_parameters {:g}, allowed: one of them, or the same",
                                     a.number("rope_theta"), model.rope_theta));
  if (a.has("rope_parameters") && a.has("rope_scaling"))
    refuse("rope_scaling", "both rope_scaling and rope_parameters, allowed: one of them");
  if (a.has("query_pre_attn_scalar") && a.number("query_pre_attn_scalar") != static_cast<double>(model.head_dim))
    refuse("query_pre_attn_scalar", fmt::format("query_pre_attn_scalar is {:g}, allowed: head_dim, {}",
                                                a.number("query_pre_attn_scalar"), model.head_dim));
  if (model.heads % model.kv_heads != 0)
    refuse("num_key_value_heads", fmt::format("num_key_value_heads is {} of {} heads, allowed: a divisor of the number of heads",
                                              model.kv_heads, model.heads));
  if (model.head_dim == 0 || model.head_dim % 2 != 0)
    refuse("head_dim", fmt::format("head_dim is {}, allowed: an even number", model.head_dim));
  if (model.begin_token >= model.vocab)
    refuse("bos_token_id", fmt::format("bos_token_id is {}, allowed: below the vocabulary's {}", model.begin_token, model.vocab));
}

}  // namespace

ModelConfig read_model_config(const std::string& path) {
  Diagnostics diagnostics;
  const config::Value root = config::parse_json_file(path, diagnostics);
  diagnostics.throw_if_any();
  if (!root.is_map()) throw BadInput({path, 1, 1}, "no JSON object, allowed: a model's config.json");
  static const std::vector<std::string> architectures = {"llama", "mistral", "qwen2", "qwen3", "gemma"};
  using M = ModelConfig;
  using config::elsewhere, config::required;
  const config::Words activations = config::one_of({"silu", "gelu_pytorch_tanh"});
  const config::Fields<M> fields = {{"model_type", elsewhere<std::string>, "", config::one_of(architectures), required},
                                    {"hidden_act", elsewhere<std::string>, "", activations, config::Default{"silu"}},
                                    {"hidden_activation", elsewhere<std::string>, "", activations},
                                    {"vocab_size", &M::vocab, "", config::between(kMinVocab, kMaxVocab), required},
                                    {"hidden_size", &M::hidden, "", config::between(1, 65536), required},
                                    {"num_hidden_layers", &M::layers, "", config::between(1, 1024), required},
                                    {"num_attention_heads", &M::heads, "", config::between(1, 1024), required},
                                    {"num_key_value_heads", &M::kv_heads, "", config::between(1, 1024), config::optional},
                                    {"head_dim", &M::head_dim, "", config::between(2, 1024), config::optional},
                                    {"intermediate_size", &M::ffn, "", config::between(1, 1 << 20), required},
                                    {"max_position_embeddings", &M::context, "", config::between(1, 1e7), required},
                                    {"rms_norm_eps", &M::norm_epsilon, "", config::between(0.0, 0.1), config::Default{"1e-6"}},
                                    {"rope_theta", &M::rope_theta, "", config::between(1.0, 1e9)},
                                    {"rope_scaling", elsewhere<config::Value>, ""},
                                    {"rope_parameters", elsewhere<config::Value>, ""},
                                    {"tie_word_embeddings", &M::tied_embeddings, "", config::optional},
                                    {"attention_bias", elsewhere<bool>, "", config::Default{"false"}},
                                    {"mlp_bias", elsewhere<bool>, "", config::Default{"false"}},
                                    {"sliding_window", elsewhere<std::int64_t>, "", config::between(1, 1e9)},
                                    {"use_sliding_window", elsewhere<bool>, ""},
                                    {"layer_types", elsewhere<std::vector<std::string>>, ""},
                                    {"query_pre_attn_scalar", elsewhere<double>, "", config::above(0.0)},
                                    {"bos_token_id", &M::begin_token, "", config::between(0, kMaxVocab)}};
  // For another architecture the other keys need no message.
  if (const config::Value* type = root.find("model_type"); type != nullptr && type->is_scalar())
    if (std::ranges::find(architectures, type->text) == architectures.end()) {
      diagnostics.add(type->where, fmt::format("model_type is {}, allowed: {}", config::description_of_found(*type),
                                               fmt::join(architectures, ", ")));
      diagnostics.throw_if_any();
    }
  const config::Arguments a = config::read_arguments(only(root, fields, diagnostics), fields, {}, "config.json", diagnostics);
  ModelConfig model = fields.read(a);
  if (!a.has("num_key_value_heads")) model.kv_heads = model.heads;
  for (const char* const key : {"rope_scaling", "rope_parameters"})
    if (a.has(key)) read_rope(key, a.value(key), model, diagnostics);
  const std::string type = a.has("model_type") ? a.text("model_type") : "";
  const bool qwen = type == "qwen2" || type == "qwen3";
  const bool gemma = type == "gemma";
  if (!a.has("tie_word_embeddings")) model.tied_embeddings = gemma;  // the default of transformers
  model.qkv_bias = type == "qwen2";
  model.qk_norm = type == "qwen3";
  model.gelu_gate = model.scaled_embeddings = model.norms_less_one = gemma;
  diagnostics.throw_if_any();

  if (!a.has("head_dim")) model.head_dim = model.hidden / model.heads;
  check_function(a, model, qwen, diagnostics);
  diagnostics.throw_if_any();
  return model;
}

ModelConfig config_of_shape(const cost::ModelShape& shape, std::size_t context) {
  if (shape.experts > 0.0 || !shape.gated || shape.fused_inputs > 0.0 || shape.shares_lm_head || shape.over_one_vector() ||
      shape.window_layers || shape.linear_layers > 0.0 || shape.mixer_only_layers > 0.0 || shape.value_dim)
    throw BadInput({shape.name, 0, 0},
                   "it has experts, ungated layers, latent attention, windows by layer or a draft head, allowed: a dense "
                   "Llama-architecture model");
  const auto whole = [](double x) { return static_cast<std::size_t>(x); };
  ModelConfig model;
  model.vocab = whole(shape.vocab);
  model.hidden = whole(shape.hidden);
  model.layers = whole(shape.layers);
  model.heads = whole(shape.heads);
  model.kv_heads = whole(shape.kv_heads);
  model.head_dim = whole(shape.head_dim);
  model.ffn = whole(shape.ffn);
  model.context = context;
  model.tied_embeddings = shape.tied_embeddings;
  return model;
}

}  // namespace specsim::llm
