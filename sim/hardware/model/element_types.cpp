#include "sim/hardware/model/element_types.h"

#include "sim/foundation/config/choose.h"

#include "sim/foundation/config/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace specsim::cost {

namespace {

// Types of weights and activations that kernels multiply; the first row of a word is its meaning without activations. Bits count
// the scales: 16 bits for each 128 weights (int4) or 32 (int4_g32), 8 for each 16 (nvfp4) or 32 (mxfp4). If a GGUF file stores
// some layers in more bits than others, these are its mean, of Llama-2-70B (llama.cpp's README of quantize, commit b8c1476).
struct TypePair {
  const char* weights;
  const char* activations;
  const char* kernel;  // in kernels.h
  double bits;
};
constexpr std::array<TypePair, 28> kTypePairs = {{{"bf16", "bf16", "bfloat16", 16},
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
                                                  {"q8_0", "int8", "int8_wo", 8.5},
                                                  {"int4_g64", "bf16", "int4_wo", 4.25},
                                                  {"int4_g64", "fp16", "int4_wo", 4.25},
                                                  {"mxfp8", "fp8", "fp8_block", 8.25}}};

// Types of ggml by their own names, for GGUF files that mix them; same format as the rows of q4_0 and after it above.
constexpr std::array<TypePair, 22> kGgmlTypes = {
    {{"q4_1", "int8", "int4_wo", 5},        {"q5_0", "int8", "int8_wo", 5.5},     {"q5_1", "int8", "int8_wo", 6},
     {"q8_1", "int8", "int8_wo", 9},        {"q2_k", "int8", "int4_wo", 2.625},   {"q3_k", "int8", "int4_wo", 3.4375},
     {"q4_k", "int8", "int4_wo", 4.5},      {"q5_k", "int8", "int8_wo", 5.5},     {"q8_k", "int8", "int8_wo", 9.125},
     {"iq1_s", "int8", "int4_wo", 1.5625},  {"iq1_m", "int8", "int4_wo", 1.75},   {"iq2_xxs", "int8", "int4_wo", 2.0625},
     {"iq2_xs", "int8", "int4_wo", 2.3125}, {"iq2_s", "int8", "int4_wo", 2.5625}, {"iq3_xxs", "int8", "int4_wo", 3.0625},
     {"iq3_s", "int8", "int4_wo", 3.4375},  {"iq4_nl", "int8", "int4_wo", 4.5},   {"iq4_xs", "int8", "int4_wo", 4.25},
     {"tq1_0", "int8", "int4_wo", 1.6875},  {"tq2_0", "int8", "int4_wo", 2.0625}, {"mxfp4", "int8", "int4_wo", 4.25},
     {"nvfp4", "int8", "int4_wo", 4.5}}};

// GGUF words give the LM head and the embeddings at least this many bits.
constexpr double kLeastHeadBits = 6.5625;
bool is_gguf(const std::string& weights) {
  return weights.starts_with("q") || weights.starts_with("iq") || weights.starts_with("tq");
}

// Words for the bits of a cached element.
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
  for (const TypePair& pair : kGgmlTypes)
    if (weights == pair.weights && (activations.empty() || activations == pair.activations)) return &pair;
  return nullptr;
}

// Methods of quantisation and other words for types, and ours.
constexpr std::array<std::array<std::string_view, 2>, 5> kMethods = {
    {{"awq", "int4"}, {"gptq", "int4"}, {"marlin", "int4"}, {"w4a16", "int4"}, {"fp4", "nvfp4 or mxfp4"}}};

// A word, WEIGHTS/ACTIVATIONS, or a number of bits.
std::optional<StoredType> stored_type(const std::string& text, const std::string& activations) {
  const std::size_t slash = text.find('/');
  const std::string weights = text.substr(0, slash);
  if (const auto bits = config::as_number(text); bits && *bits >= 1.0 && *bits <= 32.0) return StoredType{*bits, {}};
  const TypePair* pair = pair_of(weights, slash == std::string::npos ? activations : text.substr(slash + 1));
  if (pair == nullptr && slash == std::string::npos) pair = pair_of(weights, "");
  if (pair == nullptr) return std::nullopt;
  return StoredType{pair->bits, pair->bits == 16.0 ? std::string() : pair->kernel};
}

// The types of a part: a single type, or a map of types with the share of the part's parameters that each has.
std::vector<TypeShare> type_shares(const config::Value& value, const char* key, const std::string& activations,
                                   Diagnostics& diagnostics) {
  std::vector<TypeShare> list;
  const auto add = [&](const std::string& text, const Location& where, double share) {
    if (const auto type = stored_type(text, activations))
      list.push_back({*type, share});
    else
      diagnostics.add(where, fmt::format("{} is {}, allowed: {}, each with /ACTIVATIONS or without, or a number of bits", key,
                                         config::quote_for_message(text), fmt::join(weight_words(), ", ")));
  };
  if (!value.is_map()) {
    add(value.text, value.where, 1.0);
    return list;
  }
  double sum = 0.0;
  for (const config::Field& field : value.fields) {
    const auto share = config::read_number(field.value, config::between(0, 1), key, diagnostics);
    if (!share) return {};
    sum += *share;
    add(field.key, field.where, *share);
  }
  if (std::abs(sum - 1.0) > 1e-6)
    diagnostics.add(value.where, fmt::format("the shares of {} add up to {:g}, allowed: 1", key, sum));
  return list;
}

struct PartWord {
  const char* key;
  Module module;
  const char* summary;
};
constexpr std::array<PartWord, 7> kPartWords = {
    {{"experts", Module::experts, "type of a mixture's routed experts, if different"},
     {"attention", Module::attention, "type of attention's projections, and of layers with a state"},
     {"state", Module::state, "type of layers with a state (linear attention, state spaces)"},
     {"dense", Module::dense, "type of dense feed-forward parts"},
     {"shared", Module::shared, "type of a mixture's shared experts"},
     {"head", Module::head, "type of the LM head"},
     {"embeddings", Module::embeddings, "type of the embeddings"}}};

config::Parameter type_word(const char* name, const char* summary, std::vector<std::string> choices) {
  return {name, config::Type::text, "", summary, {}, std::move(choices)};
}

}  // namespace

void read_element_types(const config::Value& dtype, ModelShape& shape, Diagnostics& diagnostics) {
  std::vector<std::string> cached;
  for (const CacheWord& one : kCacheWords) cached.emplace_back(one.word);
  std::vector<config::Parameter> parameters = {
      {"weights", config::Type::value, "", "type of the layers' weights, or their bits", {}, {}},
      type_word("activations", "type of the activations that the weights are multiplied with",
                {"bf16", "fp16", "fp8", "int8", "nvfp4"}),
      type_word("cache", "type of cached keys and values", cached)};
  for (const PartWord& part : kPartWords) parameters.push_back({part.key, config::Type::value, "", part.summary, {}, {}});
  const config::Value map = config::spelled_out(dtype, "weights");
  const std::size_t before = diagnostics.list().size();
  const config::Arguments a = config::read_arguments(map, parameters, {}, "dtype", diagnostics);
  if (diagnostics.list().size() != before) return;
  shape.dtype_where = dtype.where;
  const std::string activations = a.has("activations") ? a.text("activations") : "";
  const std::string weights = a.has("weights") ? a.value("weights").text : "bf16";
  const std::optional<double> number = config::as_number(weights);
  const TypePair by_bits{"", "", "", number.value_or(16.0)};  // of formats without a word
  const TypePair* pair = number && *number >= 1.0 && *number <= 32.0 ? &by_bits : pair_of(weights, activations);
  if (pair == nullptr && pair_of(weights, "") == nullptr) {
    const auto other = std::find_if(kMethods.begin(), kMethods.end(), [&](const auto& one) { return one[0] == weights; });
    const std::string words = other == kMethods.end() ? config::unknown_name("weights is", weights, weight_words())
                                                      : fmt::format("weights is \"{}\", use {} instead; allowed: {}", weights,
                                                                    (*other)[1], fmt::join(weight_words(), ", "));
    diagnostics.add(a.where("weights"), words + ", or a number of bits");
    return;
  }
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
  for (const PartWord& part : kPartWords) {
    if (!a.has(part.key)) continue;
    std::vector<TypeShare> types = type_shares(a.value(part.key), part.key, activations, diagnostics);
    if (types.empty()) return;
    const auto most = std::max_element(types.begin(), types.end(),
                                       [](const TypeShare& one, const TypeShare& other) { return one.share < other.share; });
    if (part.module == Module::experts) {
      shape.expert_bits = most->type.bits;
      shape.expert_type = most->type.kernel.empty() && most->type.bits == 16.0 ? "bfloat16" : most->type.kernel;
      if (types.size() == 1) continue;
    }
    // Embeddings stay in 16 bits if only the LM head is given.
    if (part.module == Module::head && !a.has("embeddings") && !shape.tied_embeddings)
      shape.own_types[Module::embeddings] = {{{shape.head_bits, {}}, 1.0}};
    shape.own_types[part.module] = std::move(types);
    if (part.module == Module::attention && !a.has("state")) shape.own_types[Module::state] = shape.own_types[Module::attention];
  }
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
  draft.own_types.clear();
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
    // The same weights, unpacked for arithmetic that the GPU has, as Marlin's kernels do.
    const auto unpacked = std::find_if(kTypePairs.begin(), kTypePairs.end(), [&](const TypePair& pair) {
      return std::string_view(pair.weights) == asked->weights && std::string_view(pair.activations) == "bf16" &&
             hardware.has_bf16 && has(pair.kernel);
    });
    diagnostics.add(shape.dtype_where,
                    fmt::format("the {}'s weights of {} are multiplied with activations of {}, but {} does not have this "
                                "arithmetic, allowed: {}weights of {}",
                                what, asked->weights, asked->activations, hardware.name.empty() ? "this GPU" : hardware.name,
                                unpacked == kTypePairs.end()
                                    ? ""
                                    : fmt::format("the same weights with bf16, dtype {{weights: {}, activations: bf16}}, as "
                                                  "servers run them here; or ",
                                                  asked->weights),
                                fmt::join(allowed, ", ")));
    return;
  }
}

}  // namespace specsim::cost
