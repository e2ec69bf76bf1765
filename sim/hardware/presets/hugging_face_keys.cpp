// Keys of a config.json. Unknown keys are refused or reported, because they would otherwise be ignored silently.
#include "sim/foundation/config/arguments.h"
#include "sim/foundation/config/words.h"
#include "sim/hardware/presets/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

namespace specsim::cost {

namespace {

using config::Value;

// Keys about layers that this reader understands, or that do not affect what a pass reads and computes.
const std::vector<std::string_view> kUnderstood = config::words_of(
    "num_hidden_layers n_layer num_layers n_layers layer_types layers_block_type hybrid_override_pattern "
    "hybrid_layer_pattern block_configs attn_layer_period attn_layer_offset attn_layer_indices expert_layer_period "
    "expert_layer_offset full_attention_interval layer_group_size sliding_window_pattern _sliding_window_pattern "
    "layer_switch order_of_interleaved_layers global_attn_every_n_layers max_window_layers mlp_layer_types "
    "mlp_only_layers moe_layers moe_layers_enum moe_layer_freq moe_layer_frequency is_moe_layer moe_layer_start_index "
    "moe_layer_end_index moe_layer_interval moe_layer_num_skipped interleave_moe_layer_step num_dense_layers "
    "n_dense_layers num_kv_shared_layers num_hash_layers n_hash_layers hidden_size_per_layer_input "
    "vocab_size_per_layer_input num_nextn_predict_layers num_mtp_layers num_target_layers target_layer_ids "
    "aux_hidden_state_layer_ids eagle_aux_hidden_state_layer_ids transformer_layer_config medusa_num_layers "
    "activation_sparsity_pattern index_topk_pattern scale_attn_by_inverse_layer_idx apply_query_key_layer_scaling "
    "embd_layer first_k_dense_replace decoder_sparse_step n_routed_experts n_shared_experts index_skip_topk_offset");
// Parts of names of keys that hold for every layer equally, or do not affect its cost.
const std::vector<std::string_view> kHarmless = config::words_of(
    "norm dropout layerdrop layer_drop layer_scale lora vision audio rope mtp_ rotary swiglu init theta deepstack");
const std::vector<std::string_view> kSuspicious = config::words_of("layer pattern period interval block_type");

const Value* find_said(const Value& text, std::string_view key) {
  const Value* value = text.find(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

const std::vector<std::string_view> kTypes = config::words_of("bfloat16 float16 float32 float64 float half fp16 auto");

std::optional<double> number(const Value& text, const char* key) {
  const Value* value = find_said(text, key);
  return value != nullptr && value->is_scalar() && !value->quoted ? config::as_number(value->text) : std::nullopt;
}

// Whether a value is empty: null, false, 0, an empty text, list or map.
bool says_nothing(const Value& value) {
  if (value.is_null()) return true;
  if (value.is_list()) return value.items.empty();
  if (value.is_map()) return value.fields.empty();
  return value.text.empty() || value.text == "false" || config::as_number(value.text) == 0.0;
}

}  // namespace

std::vector<std::string> unread_layer_keys(const Value& text, const std::set<std::string>& read) {
  static const std::vector<std::string_view> kBesideCost = config::words_of(
      "architectures model_type hidden_act mlp_hidden_act initializer_range use_cache transformers_version torch_dtype "
      "dtype token_id attention_bias mlp_bias use_bias auto_map max_position scaling _name_or_path pretraining_tp "
      "seq_length router topk_method topk_group n_group scoring softcap output_ label chunk_size beam temperature "
      "penalty gradient quantization_config compression_config tokenizer bias activation qk_ _config sequence epsilon "
      "eps multiplier model_version ep_size aux_loss seq_aux time_step_ pdrop summary_ scale_attn top_k top_p typical_p "
      "return_dict max_length num_logits_to_keep use_mamba_kernels cache_implementation query_pre_attn_scalar "
      "index_topk_freq sink sinkhorn softmax_in_fp32 jitter_noise logit_scale");
  std::vector<std::string> keys;
  for (const config::Field& field : text.fields) {
    const auto contains = [&](std::string_view part) { return field.key.find(part) != std::string::npos; };
    if (says_nothing(field.value) || read.contains(field.key) || config::is_among(field.key, kUnderstood) ||
        std::any_of(kHarmless.begin(), kHarmless.end(), contains) ||
        std::any_of(kBesideCost.begin(), kBesideCost.end(), contains))
      continue;
    keys.push_back(field.key);
  }
  return keys;
}

void check_layer_keys(const Value& text, std::int64_t layers, std::vector<std::string>& assumed, Diagnostics& diagnostics) {
  static const std::vector<std::string_view> kLists = config::words_of(
      "attn_type_list indexer_types compress_ratios intermediate_size num_attention_heads num_key_value_heads moe_topk "
      "num_shared_expert moe_intermediate_size num_experts share_expert_dims head_dim");
  constexpr std::int64_t kFewLayers = 8;  // shorter lists may have the length of the layers by chance
  for (const config::Field& field : text.fields) {
    const std::string_view key = field.key;
    const auto contains = [&](std::string_view part) { return key.find(part) != std::string_view::npos; };
    if (says_nothing(field.value) || std::any_of(kHarmless.begin(), kHarmless.end(), contains)) continue;
    if (config::is_among(key, kUnderstood)) continue;
    const bool list = field.value.is_list() && layers >= kFewLayers &&
                      static_cast<std::int64_t>(field.value.items.size()) == layers && !config::is_among(key, kLists);
    if (std::any_of(kSuspicious.begin(), kSuspicious.end(), contains) || list)
      diagnostics.add(field.where,
                      fmt::format("{} is {}, a key about layers that is not understood, allowed: layers that known keys "
                                  "describe; a model's file in YAML may state means over the layers",
                                  field.key, config::description_of_found(field.value)));
  }
  const auto values = number(text, "linear_num_value_heads");
  const auto keys = number(text, "linear_num_key_heads");
  if (values && keys && *keys > 0.0 && std::fmod(*values, *keys) != 0.0)
    diagnostics.add(
        find_said(text, "linear_num_key_heads")->where,
        fmt::format("linear_num_key_heads is {:g}, allowed: a divisor of the {:g} of linear_num_value_heads", *keys, *values));
  for (const char* key : {"torch_dtype", "dtype"})
    if (const Value* type = find_said(text, key); type != nullptr && type->is_scalar()) {
      const std::string_view word = type->text;
      const std::string_view bare = word.starts_with("torch.") ? word.substr(6) : word;
      const bool quantized = bare.starts_with("float8_") && find_said(text, "quantization_config") != nullptr;
      if (!config::is_among(bare, kTypes) && !bare.starts_with("bf16") && !quantized)
        assumed.push_back(
            fmt::format("{} {} is not known: weights are estimated in 16 bits unless quantization_config gives another type", key,
                        config::quote_for_message(type->text)));
    }
  if (const Value* rank = text.find("kv_lora_rank");
      rank != nullptr && rank->is_null() && find_said(text, "index_topk") != nullptr)
    diagnostics.add(rank->where,
                    "kv_lora_rank is null with index_topk, allowed: a width, because the indexer selects latent vectors");
}

}  // namespace specsim::cost
