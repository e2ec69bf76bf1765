#include "sim/hardware/model/element_types.h"

#include "sim/foundation/config/choose.h"

#include "sim/foundation/config/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace specsim::cost {

namespace {

// Weights and activations that kernels multiply; the first row of a word is what it means alone. Bits count the scales: 16 bits
// for each 128 weights (int4) or 32 (int4_g32), 8 for each 16 (nvfp4) or 32 (mxfp4). Where a GGUF file stores some
// layers in more bits than others these are its mean, of Llama-2-70B (llama.cpp's README of quantize, commit b8c1476).
struct TypePair {
  const char* weights;
  const char* activations;
  const char* kernel;  // in kernels.h
  double bits;
};
constexpr std::array<TypePair, 25> kTypePairs = {{{"bf16", "bf16", "bfloat16", 16},
                                                  {"fp16", "fp16", "float16", 16},
                                                  {"fp8", "fp8", "fp8", 8},
                                                  {"fp8", "bf16", "int8_wo", 8},
                                                  {"fp8", "fp16", "int8_wo", 8},
                                                  {"fp8_block", "fp8", "fp8_block", 8},
                                                  {"int8", "int8", "sq", 8},
                                                  {"int8", "bf16", "int8_wo", 8},
                                                  {"int8", "fp16", "int8_wo", 8},
                                                  {"int4", "bf16", "int4_wo", 4.125},
                                                  {"int4", "fp16", "int4_wo", 4.125},
                                                  {"int4", "fp8", "w4a8", 4.125},
                                                  {"int4_g32", "bf16", "int4_wo", 4.5},
                                                  {"int4_g32", "fp16", "int4_wo", 4.5},
                                                  {"nvfp4", "nvfp4", "nvfp4", 4.5},
                                                  {"nvfp4", "bf16", "int4_wo", 4.5},
                                                  {"mxfp4", "bf16", "w4a16_mxfp4", 4.25},
                                                  {"mxfp4", "fp16", "w4a16_mxfp4", 4.25},
                                                  {"mxfp4", "fp8", "w4a8_mxfp4_mxfp8", 4.25},
                                                  {"fp8_block", "bf16", "int8_wo", 8},
                                                  {"q4_0", "int8", "int4_wo", 4.5},
                                                  {"q4_k_m", "int8", "int4_wo", 4.8},
                                                  {"q5_k_m", "int8", "int8_wo", 5.65},
                                                  {"q6_k", "int8", "int8_wo", 6.5625},
                                                  {"q8_0", "int8", "int8_wo", 8.5}}};

// GGUF's words say what LM head and embeddings have too: six bits at least.
constexpr double kLeastHeadBits = 6.5625;
bool is_gguf(const std::string& weights) { return weights.starts_with("q"); }

// Bits of a cached element.
struct CacheWord {
  const char* word;
  double bits;
};
constexpr std::array<CacheWord, 6> kCacheWords = {
    {{"bf16", 16}, {"fp16", 16}, {"fp8", 8}, {"int8", 8}, {"int4", 4.125}, {"nvfp4", 4.5}}};

std::vector<std::string> weight_words() {
  std::vector<std::string> words;
  for (const TypePair& pair : kTypePairs)
    if (std::find(words.begin(), words.end(), pair.weights) == words.end()) words.emplace_back(pair.weights);
  return words;
}

const TypePair* pair_of(const std::string& weights, const std::string& activations) {
  for (const TypePair& pair : kTypePairs)
    if (weights == pair.weights && (activations.empty() || activations == pair.activations)) return &pair;
  return nullptr;
}

config::Parameter type_word(const char* name, const char* summary, std::vector<std::string> choices) {
  return {name, config::Type::text, "", summary, {}, std::move(choices)};
}

}  // namespace

void read_element_types(const config::Value& dtype, ModelShape& shape, Diagnostics& diagnostics) {
  std::vector<std::string> cached;
  for (const CacheWord& one : kCacheWords) cached.emplace_back(one.word);
  const std::vector<config::Parameter> parameters = {
      type_word("weights", "type of the layers' weights", weight_words()),
      type_word("activations", "type of what they are multiplied with", {"bf16", "fp16", "fp8", "int8", "nvfp4"}),
      type_word("cache", "type of cached keys and values", cached),
      type_word("experts", "type of a mixture's experts, where they have another one", weight_words()),
      type_word("attention", "type of attention's projections, where they have another one", {"bf16"})};
  const config::Value map = config::spelled_out(dtype, "weights");
  const std::size_t before = diagnostics.list().size();
  const config::Arguments a = config::read_arguments(map, parameters, {}, "dtype", diagnostics);
  if (diagnostics.list().size() != before) return;
  shape.dtype_where = dtype.where;
  const std::string activations = a.has("activations") ? a.text("activations") : "";
  const std::string weights = a.has("weights") ? a.text("weights") : "bf16";
  const TypePair* pair = pair_of(weights, activations);
  if (pair == nullptr) {
    std::vector<std::string> allowed;
    for (const TypePair& one : kTypePairs)
      if (weights == one.weights) allowed.emplace_back(one.activations);
    diagnostics.add(a.where("activations"), fmt::format("activations are {} with weights of {}, allowed with them: {}",
                                                        activations, weights, fmt::join(allowed, ", ")));
    return;
  }
  shape.weight_bits = shape.expert_bits = pair->bits;
  shape.product_type = shape.expert_type = pair->kernel;
  shape.super_blocks = weights.find("_k") != std::string::npos;
  shape.gguf = is_gguf(weights);
  if (shape.gguf) shape.head_bits = std::max(kLeastHeadBits, pair->bits);
  if (a.has("experts")) {
    const TypePair* experts = pair_of(a.text("experts"), activations);
    if (experts == nullptr) experts = pair_of(a.text("experts"), "");
    shape.expert_bits = experts->bits;
    shape.expert_type = experts->kernel;
  }
  shape.plain_attention = a.has("attention");
  if (a.has("cache"))
    for (const CacheWord& one : kCacheWords)
      if (a.text("cache") == one.word) shape.kv_bits = one.bits;
}

void take_types_of_target(const ModelShape& target, const config::Value& described, ModelShape& draft) {
  const auto says = [&](const char* key) { return described.is_map() && described.find(key) != nullptr; };
  if (says("dtype") || says("weight_bits")) return;
  if (draft.shares_lm_head && !says("head_bits")) draft.head_bits = target.head_bits;
  if (!draft.in_target_checkpoint || !target.gguf) return;
  draft.weight_bits = draft.expert_bits = target.weight_bits;
  draft.product_type = draft.expert_type = target.product_type;
  draft.gguf = true;
  draft.super_blocks = target.super_blocks;
}

bool has_arithmetic(const Hardware& hardware, const std::string& dtype) {
  const Dtype* type = find_dtype(dtype);
  if (type == nullptr) return true;
  switch (type->arithmetic) {
    case Arithmetic::bf16:
      return hardware.has_bf16 || dtype != "bfloat16";
    case Arithmetic::fp8:
      return hardware.has_fp8;
    case Arithmetic::int8:
      return hardware.has_int8;
    case Arithmetic::fp4:
      return hardware.has_fp4;
  }
  return true;
}

void check_element_types(const ModelShape& shape, const std::string& what, const Hardware& hardware, Diagnostics& diagnostics) {
  const auto has = [&](const std::string& kernel) { return has_arithmetic(hardware, kernel); };
  for (const std::string& kernel : {shape.product_type, shape.expert_type}) {
    if (kernel.empty() || has(kernel)) continue;
    const TypePair* asked = nullptr;
    std::vector<std::string> allowed;
    for (const TypePair& pair : kTypePairs) {
      if (kernel == pair.kernel && asked == nullptr) asked = &pair;
      const bool bf16 = std::string(pair.activations) == "bf16";
      if (has(pair.kernel) && (hardware.has_bf16 || !bf16))
        allowed.push_back(fmt::format("{} with {}", pair.weights, pair.activations));
    }
    diagnostics.add(shape.dtype_where,
                    fmt::format("the {}'s weights of {} are multiplied with activations of {}, arithmetic that {} does not have, "
                                "allowed: weights of {}",
                                what, asked->weights, asked->activations, hardware.name.empty() ? "this GPU" : hardware.name,
                                fmt::join(allowed, ", ")));
    return;
  }
}

}  // namespace specsim::cost
