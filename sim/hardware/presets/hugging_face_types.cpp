// quantization_config of a Hugging Face config.json.
#include "sim/foundation/config/arguments.h"
#include "sim/hardware/presets/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace specsim::cost {

namespace {

using config::Value;

std::string lower_text(const Value* value) {
  std::string text = value != nullptr && value->is_scalar() ? value->text : "";
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool truth(const Value* value) { return value != nullptr && value->text == "true"; }

// Weights and activations as `dtype` names them; empty where nothing is known.
struct TypeWords {
  std::string weights;
  std::string activations;
};

// Scales by groups of 32 are half a bit a weight, those of 128 an eighth.
std::string int4_of(const Value* group_size) { return group_size != nullptr && group_size->text == "32" ? "int4_g32" : "int4"; }

TypeWords of_weight_bits(const Value& bits, const Value* group_size, Diagnostics& diagnostics) {
  const auto number = config::read_integer(bits, config::between(1, 16), "bits", diagnostics);
  if (!number || *number == 16) return {};
  if (*number > 4) return {"int8", "bf16"};  // 5 and 6 bits are rare, and unpacked to 8
  return {int4_of(group_size), "bf16"};
}

// compressed-tensors: what the first group of layers has.
TypeWords of_groups(const Value& groups) {
  if (!groups.is_map() || groups.fields.empty()) return {};
  const Value& group = groups.fields.front().value;
  const Value* weights = group.find("weights");
  if (weights == nullptr) return {};
  const Value* bits = weights->find("num_bits");
  const bool eight = bits != nullptr && bits->text == "8";
  const Value* activations = group.find("input_activations");
  const bool both = activations != nullptr && activations->is_map();
  if (lower_text(weights->find("type")) == "float") {
    if (!eight) return {"nvfp4", both ? "nvfp4" : "bf16"};
    return {lower_text(weights->find("strategy")) == "block" ? "fp8_block" : "fp8", both ? "fp8" : "bf16"};
  }
  if (eight) return {"int8", both ? "int8" : "bf16"};
  if (both && lower_text(activations->find("type")) == "float") return {"int4", "fp8"};
  return {int4_of(weights->find("group_size")), "bf16"};
}

// modelopt's names of algorithms.
TypeWords of_algorithm(const std::string& name) {
  if (name == "fp8") return {"fp8", "fp8"};
  if (name == "fp8_pb_wo" || name == "fp8_block_scales") return {"fp8_block", "fp8"};
  if (name == "nvfp4") return {"nvfp4", "nvfp4"};
  if (name == "w4a16_awq") return {"int4", "bf16"};
  if (name == "w4a8_awq") return {"int4", "fp8"};
  if (name == "w8a16") return {"int8", "bf16"};
  if (name == "int8_sq" || name == "w8a8_sq_per_channel") return {"int8", "int8"};
  return {};
}

TypeWords of_method(const Value& quantization, const std::string& method, Diagnostics& diagnostics) {
  if (method == "fp8" || method == "fbgemm_fp8") {
    const Value* block = quantization.find("weight_block_size");
    return {block != nullptr && !block->is_null() ? "fp8_block" : "fp8", "fp8"};
  }
  if (method == "mxfp4") return {"mxfp4", "bf16"};
  if (method == "bitsandbytes") {
    if (truth(quantization.find("load_in_4bit")) || truth(quantization.find("_load_in_4bit"))) return {"int4", "bf16"};
    return {"int8", "bf16"};
  }
  if (const Value* groups = quantization.find("config_groups")) return of_groups(*groups);
  for (const char* key : {"bits", "w_bit", "wbits"})  // GPTQ, AWQ, AutoRound
    if (const Value* bits = quantization.find(key); bits != nullptr && !bits->is_null())
      return of_weight_bits(*bits, quantization.find("group_size"), diagnostics);
  const Value* inner = quantization.find("quantization");
  return of_algorithm(lower_text((inner == nullptr ? quantization : *inner).find("quant_algo")));
}

// Whether the layers' attention stays in 16 bits, so that a mixture's experts alone are quantised.
bool spares_attention(const Value& quantization) {
  for (const char* key : {"modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers"})
    if (const Value* list = quantization.find(key))
      for (const Value& item : list->items)
        if (item.text.find("self_attn") != std::string::npos) return true;
  return false;
}

bool narrow_cache(const Value& quantization) {
  if (const Value* scheme = quantization.find("kv_cache_scheme"); scheme != nullptr && scheme->is_map()) return true;
  const Value* inner = quantization.find("quantization");
  return lower_text((inner == nullptr ? quantization : *inner).find("kv_cache_quant_algo")) == "fp8";
}

}  // namespace

Value dtype_of_quantization(const Value& quantization, bool mixture, std::vector<std::string>& assumed,
                            Diagnostics& diagnostics) {
  if (!quantization.is_map()) {
    diagnostics.add(quantization.where,
                    fmt::format("quantization_config is {}, allowed: a map or null", config::found_text(quantization)));
    return {};
  }
  const Value* named = quantization.find("quant_method");
  const std::string method = lower_text(named);
  const TypeWords words = of_method(quantization, method, diagnostics);
  if (words.weights.empty()) {
    assumed.push_back(fmt::format("quantization_config {} is not known: weights are priced with 16 bits, dtype says it otherwise",
                                  method.empty() ? "without quant_method" : method));
    return {};
  }
  for (const char* key : {"bits", "w_bit", "wbits"})
    if (const Value* bits = quantization.find(key);
        bits != nullptr && !bits->is_null() && (words.weights.starts_with("int4") ? bits->text != "4" : bits->text != "8"))
      assumed.push_back(
          fmt::format("weights of {} bits are priced as {}; weight_bits says it otherwise", bits->text, words.weights));
  if (method == "bitsandbytes" && words.weights == "int4")
    assumed.emplace_back("weights of bitsandbytes, nf4 or fp4, are priced as int4; its own kernels are not measured");
  const Location& where = quantization.where;
  std::vector<std::pair<std::string, Value>> fields;
  const bool experts_alone = mixture && (method == "mxfp4" || spares_attention(quantization));
  fields.emplace_back(experts_alone ? "experts" : "weights", config::scalar(words.weights, where));
  if (!experts_alone) fields.emplace_back("activations", config::scalar(words.activations, where));
  if (narrow_cache(quantization)) fields.emplace_back("cache", config::scalar("fp8", where));
  return config::map(std::move(fields), where);
}

}  // namespace specsim::cost
