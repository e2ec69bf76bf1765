// What a Hugging Face config.json says of its layers one by one, checked: a word or number that means nothing there would be
// priced as if it did.
#include "sim/hardware/presets/hugging_face.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>

namespace specsim::cost {

namespace {

using config::Value;

// Beginnings of the words that transformers has in layer_types.
constexpr std::array<std::string_view, 15> kLayerTypes = {"full",   "sliding", "local",     "global",     "chunked",
                                                          "linear", "mamba",   "attention", "conv",       "recurrent",
                                                          "hybrid", "moe",     "mlp",       "compressed", "heavily"};
constexpr std::array<std::string_view, 8> kTypes = {"bfloat16", "float16", "float32", "float64", "float", "half", "fp16", "auto"};

const Value* find(const Value& text, const char* key) {
  const Value* value = text.find(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

std::optional<double> number(const Value& text, const char* key) {
  const Value* value = find(text, key);
  return value != nullptr && value->is_scalar() && !value->quoted ? config::as_number(value->text) : std::nullopt;
}

}  // namespace

void check_layer_keys(const Value& text, std::int64_t layers, bool mixture, std::vector<std::string>& assumed,
                      Diagnostics& diagnostics) {
  if (const Value* types = find(text, "layer_types"); types != nullptr && types->is_list()) {
    std::set<std::string> unknown;
    for (const Value& layer : types->items)
      if (std::none_of(kLayerTypes.begin(), kLayerTypes.end(),
                       [&](std::string_view known) { return layer.text.starts_with(known); }))
        unknown.insert(config::quote_for_message(layer.text));
    if (!unknown.empty())
      assumed.push_back(fmt::format("layer_types has {}, which is not known: priced as layers without a cache that grows",
                                    fmt::join(unknown, ", ")));
  }
  const auto every = [&](const char* key) {
    if (const auto x = number(text, key); x && *x == 0.0)
      diagnostics.add(find(text, key)->where, fmt::format("{} is 0, allowed: from 1 on, every so many layers", key));
  };
  every("full_attention_interval");
  if (mixture) every("decoder_sparse_step");
  if (const Value* list = find(text, "mlp_only_layers"); mixture && list != nullptr && list->is_list())
    for (const Value& layer : list->items)
      if (const auto x = config::as_number(layer.text); !x || *x < 0.0 || *x >= static_cast<double>(layers))
        diagnostics.add(layer.where, fmt::format("mlp_only_layers has {}, allowed: layers from 0 to {}",
                                                 config::quote_for_message(layer.text), layers - 1));
  const auto values = number(text, "linear_num_value_heads");
  const auto keys = number(text, "linear_num_key_heads");
  if (values && keys && *keys > 0.0 && std::fmod(*values, *keys) != 0.0)
    diagnostics.add(
        find(text, "linear_num_key_heads")->where,
        fmt::format("linear_num_key_heads is {:g}, allowed: a divisor of the {:g} of linear_num_value_heads", *keys, *values));
  for (const char* key : {"torch_dtype", "dtype"})
    if (const Value* type = find(text, key); type != nullptr && type->is_scalar()) {
      const std::string_view word = type->text;
      const std::string_view bare = word.starts_with("torch.") ? word.substr(6) : word;
      const bool quantized = bare.starts_with("float8_") && find(text, "quantization_config") != nullptr;
      if (std::find(kTypes.begin(), kTypes.end(), bare) == kTypes.end() && !bare.starts_with("bf16") && !quantized)
        assumed.push_back(
            fmt::format("{} {} is not known: weights are priced in 16 bits unless quantization_config says otherwise", key,
                        config::quote_for_message(type->text)));
    }
  if (const Value* rank = text.find("kv_lora_rank"); rank != nullptr && rank->is_null() && find(text, "index_topk") != nullptr)
    diagnostics.add(rank->where,
                    "kv_lora_rank is null beside index_topk, allowed: a width, for the indexer picks latent vectors");
}

}  // namespace specsim::cost
