#include "sim/llm/model_config.h"

#include "sim/config/arguments.h"
#include "sim/config/json.h"

#include <fmt/format.h>

#include <optional>
#include <set>

namespace specsim::llm {

namespace {

// config.json has dozens of keys that say nothing of the forward pass; those that do are read by the tree's usual tables.
config::Value only(const config::Value& map, const std::vector<config::Parameter>& wanted) {
  config::Value kept = map;
  std::set<std::string> names;
  for (const config::Parameter& parameter : wanted) names.insert(parameter.name);
  std::erase_if(kept.fields, [&](const config::Field& field) { return !names.contains(field.key) || field.value.is_null(); });
  return kept;
}

config::Parameter count(const char* name, std::optional<std::string> fallback, double low, double high) {
  return {name, config::Type::integer, std::move(fallback), "", config::between(low, high), {}};
}

RopeScaling read_scaling(const config::Value& value, Diagnostics& diagnostics) {
  using config::Type;
  RopeScaling scaling;
  if (value.is_null()) return scaling;
  if (!value.is_map()) {
    diagnostics.add(value.where, fmt::format("rope_scaling is {}, allowed: a map or null", config::found_text(value)));
    return scaling;
  }
  const std::vector<config::Parameter> parameters = {
      {"rope_type", Type::text, "", "", {}, {"default", "linear", "llama3"}},
      {"type", Type::text, "", "", {}, {"default", "linear", "llama3"}},  // its name before 2024
      {"factor", Type::number, "1", "", config::between(1.0, 1e4), {}},
      {"low_freq_factor", Type::number, "1", "", config::between(1e-3, 1e4), {}},
      {"high_freq_factor", Type::number, "4", "", config::between(1e-3, 1e4), {}},
      {"original_max_position_embeddings", Type::integer, "8192", "", config::between(1, 1e9), {}}};
  const config::Arguments a = config::read_arguments(only(value, parameters), parameters, {}, "rope_scaling", diagnostics);
  const std::string type = a.has("rope_type") ? a.text("rope_type") : a.has("type") ? a.text("type") : "default";
  scaling.factor = a.number("factor");
  if (type == "linear") scaling.kind = RopeScaling::Kind::linear;
  if (type == "llama3") {
    scaling.kind = RopeScaling::Kind::llama3;
    scaling.low_frequency_factor = a.number("low_freq_factor");
    scaling.high_frequency_factor = a.number("high_freq_factor");
    scaling.trained_context = static_cast<double>(a.integer("original_max_position_embeddings"));
    if (!(scaling.low_frequency_factor < scaling.high_frequency_factor))
      diagnostics.add(a.where("high_freq_factor"),
                      fmt::format("high_freq_factor is {:g} and low_freq_factor {:g}, allowed: the first above the second",
                                  scaling.high_frequency_factor, scaling.low_frequency_factor));
  }
  return scaling;
}

}  // namespace

ModelConfig read_model_config(const std::string& path) {
  using config::Type;
  Diagnostics diagnostics;
  const config::Value root = config::parse_json_file(path, diagnostics);
  diagnostics.throw_if_any();
  if (!root.is_map()) throw BadInput({path, 1, 1}, "no JSON object, allowed: a model's config.json");
  const std::vector<config::Parameter> parameters = {{"model_type", Type::text, {}, "", {}, {"llama", "qwen2", "mistral"}},
                                                     {"hidden_act", Type::text, "silu", "", {}, {"silu"}},
                                                     count("vocab_size", {}, kMinVocab, kMaxVocab),
                                                     count("hidden_size", {}, 1, 65536),
                                                     count("num_hidden_layers", {}, 1, 1024),
                                                     count("num_attention_heads", {}, 1, 1024),
                                                     count("num_key_value_heads", "", 1, 1024),
                                                     count("head_dim", "", 2, 1024),
                                                     count("intermediate_size", {}, 1, 1 << 20),
                                                     count("max_position_embeddings", {}, 1, 1e7),
                                                     {"rms_norm_eps", Type::number, "1e-6", "", config::between(0.0, 0.1), {}},
                                                     {"rope_theta", Type::number, "10000", "", config::between(1.0, 1e9), {}},
                                                     {"rope_scaling", Type::value, "", "", {}, {}},
                                                     {"tie_word_embeddings", Type::boolean, "false", "", {}, {}},
                                                     {"attention_bias", Type::boolean, "false", "", {}, {}},
                                                     {"mlp_bias", Type::boolean, "false", "", {}, {}},
                                                     {"sliding_window", Type::integer, "", "", config::between(1, 1e9), {}},
                                                     {"use_sliding_window", Type::boolean, "true", "", {}, {}},
                                                     {"bos_token_id", Type::integer, "1", "", config::between(0, kMaxVocab), {}}};
  const config::Arguments a = config::read_arguments(only(root, parameters), parameters, {}, "config.json", diagnostics);
  const auto integer = [&](const char* name) { return static_cast<std::size_t>(a.integer(name)); };
  ModelConfig model;
  model.vocab = integer("vocab_size");
  model.hidden = integer("hidden_size");
  model.layers = integer("num_hidden_layers");
  model.heads = integer("num_attention_heads");
  model.kv_heads = a.has("num_key_value_heads") ? integer("num_key_value_heads") : model.heads;
  model.ffn = integer("intermediate_size");
  model.context = integer("max_position_embeddings");
  model.norm_epsilon = a.number("rms_norm_eps");
  model.rope_theta = a.number("rope_theta");
  if (a.has("rope_scaling")) model.rope_scaling = read_scaling(a.value("rope_scaling"), diagnostics);
  model.tied_embeddings = a.boolean("tie_word_embeddings");
  const bool qwen = a.has("model_type") && a.text("model_type") == "qwen2";
  model.qkv_bias = qwen || a.boolean("attention_bias");
  model.begin_token = static_cast<Token>(a.integer("bos_token_id"));
  if (!diagnostics.empty()) diagnostics.throw_if_any();

  if (a.boolean("attention_bias") && !qwen)
    diagnostics.add(a.where("attention_bias"),
                    "attention_bias is true, allowed: false (biases of queries, keys and values alone: model_type qwen2)");
  if (a.boolean("mlp_bias")) diagnostics.add(a.where("mlp_bias"), "mlp_bias is true, allowed: false");
  if (a.has("sliding_window") && a.boolean("use_sliding_window") && integer("sliding_window") < model.context)
    diagnostics.add(a.where("sliding_window"), fmt::format("sliding_window is {}, allowed: null, or the whole context of {}",
                                                           integer("sliding_window"), model.context));
  if (model.heads % model.kv_heads != 0)
    diagnostics.add(
        a.where("num_key_value_heads"),
        fmt::format("num_key_value_heads is {} of {} heads, allowed: a divisor of them", model.kv_heads, model.heads));
  model.head_dim = a.has("head_dim") ? integer("head_dim") : model.hidden / model.heads;
  if (model.head_dim == 0 || model.head_dim % 2 != 0)
    diagnostics.add(a.where("head_dim"), fmt::format("head_dim is {}, allowed: an even number", model.head_dim));
  if (model.begin_token >= model.vocab)
    diagnostics.add(a.where("bos_token_id"),
                    fmt::format("bos_token_id is {}, allowed: below the vocabulary's {}", model.begin_token, model.vocab));
  diagnostics.throw_if_any();
  return model;
}

ModelConfig config_of_shape(const cost::ModelShape& shape, std::size_t context) {
  if (shape.experts > 0.0 || !shape.gated || shape.fused_inputs > 0.0 || shape.shares_lm_head)
    throw BadInput({shape.name, 0, 0},
                   "it has experts, ungated layers or a draft head, allowed: a dense Llama-architecture model");
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
