#include "sim/hardware/presets/hugging_face.h"

#include "sim/foundation/config/arguments.h"
#include "sim/foundation/config/json.h"
#include "sim/hardware/presets/hugging_face_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

namespace specsim::cost {

namespace {

using config::Value;
namespace fs = std::filesystem;

using Keys = std::vector<const char*>;

class ConfigJson {
 public:
  ConfigJson(const std::string& path, const Value& root, Diagnostics& diagnostics)
      : path_(path), root_(root), diagnostics_(diagnostics) {}

  Value model() {
    find_language_part();
    if (!diagnostics_.empty()) return {};
    type_ = word("model_type");
    if (type_.empty() && text_ != &root_ && root_.find("model_type") != nullptr) type_ = root_.find("model_type")->text;
    if (!refuse()) return {};
    look_up();
    put_text("name", name());
    read_layers();
    if (!diagnostics_.empty()) return {};
    read_attention();
    read_feed_forward();
    read_windows();
    read_head();
    read_types();
    check_layer_keys(*text_, layers_, mixture_, assumed_, diagnostics_);
    if (!assumed_.empty()) {
      Value list;
      list.kind = config::Kind::list;
      list.where = text_->where;
      for (const std::string& text : assumed_) list.items.push_back(config::scalar(text, text_->where));
      put("assumed", std::move(list));
    }
    Value model = config::map({}, root_.where);
    model.fields = std::move(fields_);
    return diagnostics_.empty() ? model : Value();
  }

 private:
  // A multimodal model has its language part under a key of its own.
  void find_language_part() {
    text_ = &root_;
    for (int depth = 0; depth < 3; ++depth) {
      const Value* inner = nullptr;
      for (const char* key :
           {"text_config", "llm_config", "language_config", "thinker_config", "transformer_layer_config", "model"})
        if (const Value* found = text_->find(key); inner == nullptr && found != nullptr && !found->is_null()) inner = found;
      if (inner == nullptr || (inner->is_scalar() && text_->find("model") == inner)) return;
      if (!inner->is_map()) {
        diagnostics_.add(inner->where,
                         fmt::format("the language model's part is {}, allowed: a map", config::found_text(*inner)));
        return;
      }
      text_ = inner;
    }
  }

  // Whether it is a model that passes can be priced of.
  bool refuse() {
    const auto no = [&](const Value& value, const std::string& what) {
      diagnostics_.add(value.where, what);
      return false;
    };
    if (const Value* value = root_.find("is_encoder_decoder"); value != nullptr && value->text == "true")
      return no(*value, "is_encoder_decoder is true, allowed: a decoder alone");
    for (const Refused& one : kRefused)
      if (const Value* value = find_anywhere(one.key)) return no(*value, fmt::format("{} {}", one.key, one.text));
    return true;
  }

  void look_up() {
    for (const Architecture& one : kArchitectures)
      if (type_.starts_with(one.type) && (architecture_ == nullptr || architecture_->type.size() < one.type.size()))
        architecture_ = &one;
    for (const std::string_view other : kOthers)
      if (type_.starts_with(other)) architecture_ = nullptr;
    if (architecture_ == nullptr)
      assumed_.push_back(fmt::format("{} is not known: priced as a decoder with the keys that its config.json has",
                                     type_.empty() ? "a model without model_type" : "model_type " + type_));
  }
  [[nodiscard]] bool is(std::string_view type) const { return type_.starts_with(type); }

  // The value of the first of these keys that is there and not null.
  [[nodiscard]] const Value* find(const Keys& keys) const {
    for (const char* key : keys)
      if (const Value* value = text_->find(key); value != nullptr && !value->is_null()) return value;
    return nullptr;
  }
  [[nodiscard]] const Value* find_anywhere(const char* key) const {
    if (const Value* value = find({key})) return value;
    const Value* value = root_.find(key);
    return value != nullptr && !value->is_null() ? value : nullptr;
  }
  [[nodiscard]] std::string word(const char* key) const {
    const Value* value = find({key});
    return value != nullptr && value->is_scalar() ? value->text : "";
  }
  [[nodiscard]] bool truth(const char* key) const { return word(key) == "true"; }

  std::int64_t integer(const Value& value, const std::string& key) {
    return config::read_integer(value, config::between(0, 1e9), key, diagnostics_).value_or(0);
  }
  std::optional<std::int64_t> optional(const Keys& keys) {
    if (const Value* value = find(keys)) return integer(*value, keys.front());
    for (const LeftOut& one : kLeftOut)
      if (is(one.type) && one.key == keys.front()) {
        if (one.key != "no_rope_layer_interval" && one.key != "interleave_moe_layer_step" && one.key != "sliding_window_pattern")
          assumed_.push_back(fmt::format("{} is not in config.json: {}, the default of {}", one.key, one.value, type_));
        return one.value;
      }
    return std::nullopt;
  }
  std::int64_t required(const Keys& keys) {
    if (const Value* value = find(keys))
      return config::read_integer(*value, config::between(1, 1e7), keys.front(), diagnostics_).value_or(0);  // as a shape's
    if (const auto value = optional(keys)) return *value;
    diagnostics_.add(text_->where, fmt::format("config.json lacks \"{}\"{}, allowed: an integer of at least 1", keys.front(),
                                               text_ == &root_ ? "" : " in the language model's part"));
    return 1;
  }
  // Where the first of the keys stands, or the language part.
  [[nodiscard]] const Location& where(const Keys& keys) const {
    const Value* value = find(keys);
    return value == nullptr ? text_->where : value->where;
  }

  void put(const char* key, Value value) {
    const Location at = value.where;
    fields_.push_back({key, at, std::move(value)});
  }
  void put_text(const char* key, const std::string& text) {
    Value value = config::scalar(text, text_->where);
    value.quoted = true;
    put(key, std::move(value));
  }
  void put_number(const char* key, std::int64_t number, const Location& at) {
    put(key, config::scalar(std::to_string(number), at));
  }
  void put_truth(const char* key, bool value) { put(key, config::scalar(value ? "true" : "false", text_->where)); }

  [[nodiscard]] std::string name() const {
    if (const Value* own = root_.find("_name_or_path"))
      if (own->is_scalar() && !own->text.empty() && own->text.front() != '/' && own->text.front() != '.') return own->text;
    const std::string folder = fs::absolute(path_).parent_path().filename().string();
    return fs::path(path_).filename() == "config.json" && !folder.empty() ? folder : fs::path(path_).filename().string();
  }

  void read_layers() {
    const Keys layers = {"num_hidden_layers", "n_layer", "num_layers", "n_layers"};
    const Keys hidden = {"hidden_size", "n_embd", "d_model", "dim", "model_dim"};
    layers_ = required(layers);
    hidden_ = required(hidden);
    put_number("layers", layers_, where(layers));
    put_number("hidden", hidden_, where(hidden));
  }

  void read_attention() {
    const Keys heads = {"num_attention_heads", "n_head", "num_heads", "n_heads"};
    const Keys kv = {"num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "num_query_groups"};
    const std::int64_t count = required(heads);
    put_number("heads", count, where(heads));
    const bool one = truth("multi_query") && !truth("new_decoder_architecture");
    const std::int64_t kv_heads = one ? 1 : optional(kv).value_or(count);
    put_number("kv_heads", kv_heads, where(kv));
    if (const auto latent = optional({"kv_lora_rank"}); latent && *latent > 0) {
      const std::int64_t rope = required({"qk_rope_head_dim"});
      put_number("head_dim", required({"qk_nope_head_dim"}) + rope, where({"qk_nope_head_dim"}));
      put_number("latent", *latent, where({"kv_lora_rank"}));
      put_number("rope_dim", rope, where({"qk_rope_head_dim"}));
      put_number("query_rank", optional({"q_lora_rank"}).value_or(0), where({"q_lora_rank"}));
      put_number("value_dim", required({"v_head_dim"}), where({"v_head_dim"}));
      read_indexer();
      return;
    }
    read_compressed();
    if (const Value* sparse = find({"sparse_attention_config"}); sparse != nullptr && sparse->is_map())
      assumed_.emplace_back("sparse attention by blocks (sparse_attention_config) is priced as attention over all cached tokens");
    if (const auto head_dim = optional({"head_dim", "attention_head_dim", "kv_channels"}))
      put_number("head_dim", *head_dim, where({"head_dim", "attention_head_dim", "kv_channels"}));
    else if (hidden_ % std::max<std::int64_t>(count, 1) == 0)
      put_number("head_dim", hidden_ / std::max<std::int64_t>(count, 1), where(heads));
    else
      diagnostics_.add(text_->where,
                       fmt::format("config.json lacks \"head_dim\", and hidden_size {} is no multiple of the {} heads, "
                                   "allowed: an integer of at least 1",
                                   hidden_, count));
    if (const auto global = optional({"global_head_dim"}); global && *global > 0)
      put_number("global_head_dim", *global, where({"global_head_dim"}));
    if (const auto global = optional({"num_global_key_value_heads"}); global && *global > 0)
      put_number("global_kv_heads", *global, where({"num_global_key_value_heads"}));
    if (truth("attention_k_eq_v")) put_truth("global_one_value", true);
    if (const auto shared = optional({"num_kv_shared_layers"}); shared && *shared > 0)
      assumed_.push_back(fmt::format("{} layers that read the cache of others are priced with one of their own", *shared));
    if (const auto inputs = optional({"hidden_size_per_layer_input"}); inputs && *inputs > 0)
      assumed_.emplace_back("embeddings of each layer are left out: their rows are looked up, not read whole");
  }

  // DeepSeek-V4: layers with the window alone (0), with entries of a few tokens that an indexer picks from, and of many.
  void read_compressed() {
    const Keys key = {"compress_ratios"};
    const Value* list = find(key);
    if (list == nullptr || !list->is_list() || list->items.empty()) return;
    std::map<std::int64_t, std::int64_t> layers;  // [tokens of an entry]; the module's ratios may follow the layers'
    for (std::size_t i = 0; i < list->items.size() && i < static_cast<std::size_t>(layers_); ++i)
      ++layers[integer(list->items[i], "compress_ratios")];
    layers.erase(0);
    if (static_cast<std::int64_t>(list->items.size()) < layers_ || layers.size() > 2) {
      diagnostics_.add(list->where,
                       fmt::format("compress_ratios has {} layers and {} ratios above 0, allowed: at least the {} layers "
                                   "of num_hidden_layers, one or two ratios",
                                   list->items.size(), layers.size(), layers_));
      return;
    }
    put_truth("one_vector", true);
    put_number("query_rank", optional({"q_lora_rank"}).value_or(0), where({"q_lora_rank"}));
    put_number("output_groups", required({"o_groups"}), where({"o_groups"}));
    put_number("output_rank", required({"o_lora_rank"}), where({"o_lora_rank"}));
    put_number("residual_streams", optional({"hc_mult"}).value_or(1), where({"hc_mult"}));
    if (layers.empty()) return;
    put_number("picked_tokens", layers.begin()->first, where(key));
    put_number("picked_layers", layers.begin()->second, where(key));
    read_indexer();
    if (layers.size() < 2) return;
    put_number("heavy_tokens", layers.rbegin()->first, where(key));
    put_number("heavy_layers", layers.rbegin()->second, where(key));
  }

  // DeepSeek Sparse Attention; in GLM-5.2 most layers take the picks of one before.
  void read_indexer() {
    const Keys picked = {"index_topk"};
    if (find(picked) == nullptr) return;
    put_number("index_topk", required(picked), where(picked));
    put_number("index_heads", required({"index_n_heads"}), where({"index_n_heads"}));
    put_number("index_dim", required({"index_head_dim"}), where({"index_head_dim"}));
    if (const Value* types = find({"indexer_types"}); types != nullptr && types->is_list() && !types->items.empty())
      put_number("index_layers",
                 std::count_if(types->items.begin(), types->items.end(), [](const Value& one) { return one.text == "full"; }),
                 types->where);
    else if (const auto every = optional({"index_topk_freq"}); every && *every > 1) {
      const std::int64_t first = std::min(layers_, optional({"index_skip_topk_offset"}).value_or(0));
      put_number("index_layers", std::max<std::int64_t>(1, first + (layers_ - first) / *every), where({"index_topk_freq"}));
    }
  }

  void read_feed_forward() {
    const Keys wide = {"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "inner_dim", "ffn_size", "hidden_dim"};
    const std::int64_t usual = optional(wide).value_or(0);
    const Keys count = {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts"};
    const bool blocked = word("enable_moe_block") == "false";
    const std::int64_t experts = blocked ? 0 : optional(count).value_or(0);
    const bool gated = architecture_ != nullptr ? architecture_->gated || word("feed_forward_proj").starts_with("gated")
                                                : !word("hidden_act").starts_with("relu");
    put_truth("gated", gated);
    if (architecture_ == nullptr)
      assumed_.emplace_back(gated ? "the feed-forward part has gate and up projections" : "the feed-forward part has no gate");
    if (experts <= 1) {
      std::int64_t ffn = usual;
      if (ffn == 0 && architecture_ != nullptr && !architecture_->gated) ffn = 4 * hidden_;  // GPT-2, Falcon, BLOOM
      if (ffn == 0) ffn = required(wide);
      put_number("ffn", ffn, where(wide));
      return;
    }
    mixture_ = true;
    put_number("experts", experts, where(count));
    const Keys chosen = {
        "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_topk", "moe_top_k", "moe_k"};
    put_number("experts_per_token", required(chosen), where(chosen));
    const Keys expert = {"moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size"};
    const std::int64_t width = find(expert) != nullptr ? required(expert) : required(wide);
    put_number("expert_ffn", width, where(find(expert) != nullptr ? expert : wide));
    read_shared(usual, width);
    const std::int64_t dense = dense_layers();
    if (dense > 0) put_number("dense_layers", std::min(dense, layers_), text_->where);
    const Keys dense_wide = {"intermediate_size_mlp", "intermediate_size"};
    put_number("ffn", optional(dense_wide).value_or(usual), where(dense_wide));
  }

  void read_shared(std::int64_t usual, std::int64_t width) {
    const Keys shared = {"shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size"};
    const Keys number = {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"};
    std::int64_t sum = optional(shared).value_or(0);
    if (sum == 0) sum = optional(number).value_or(0) * width;
    if (sum == 0 && (is("llama4") || is("gemma4"))) sum = usual;  // beside the experts in every layer
    if (sum > 0) put_number("shared_ffn", sum, where(find(shared) != nullptr ? shared : number));
  }

  // Layers of a mixture that have no experts.
  std::int64_t dense_layers() {
    if (const Value* list = find({"moe_layers"}); list != nullptr && list->is_list() && !list->items.empty())
      return layers_ - static_cast<std::int64_t>(list->items.size());
    if (const Value* list = find({"moe_layer_freq"}); list != nullptr && list->is_list())
      return std::count_if(list->items.begin(), list->items.end(), [](const Value& item) { return item.text == "0"; });
    const std::int64_t step = std::max<std::int64_t>(
        1, optional({"interleave_moe_layer_step"})
               .value_or(optional({"decoder_sparse_step"}).value_or(optional({"moe_layer_freq"}).value_or(1))));
    const std::int64_t first = std::min(layers_, optional({"first_k_dense_replace", "num_dense_layers"}).value_or(0));
    std::int64_t dense = first + (layers_ - first) - (layers_ - first) / step;
    if (const Value* list = find({"mlp_only_layers"})) dense += static_cast<std::int64_t>(list->items.size());
    return dense;
  }

  void read_windows() {
    const Keys key = {"sliding_window", "attention_window_size", "window_size"};
    std::int64_t window = find(key) != nullptr ? integer(*find(key), key.front()) : 0;
    const std::int64_t chunk = optional({"attention_chunk_size"}).value_or(0);
    const std::int64_t longest = optional({"max_position_embeddings", "n_positions", "max_seq_len"}).value_or(0);
    if (find({"use_sliding_window"}) != nullptr && !truth("use_sliding_window")) window = 0;
    if (longest > 0 && window >= longest) window = 0;
    std::int64_t windowed = -1;  // layers; all of them
    std::int64_t chunked = 0;
    std::int64_t linear = 0;
    if (const Value* types = find({"layer_types"}); types != nullptr && types->is_list() && !types->items.empty()) {
      windowed = 0;
      for (const Value& layer : types->items) {
        if (layer.text.starts_with("sliding") || layer.text.starts_with("local"))
          ++windowed;
        else if (layer.text.starts_with("chunked"))
          ++chunked;
        else if (!layer.text.starts_with("full") && !layer.text.starts_with("global") && layer.text != "attention")
          ++linear;
      }
      if (static_cast<std::int64_t>(types->items.size()) != layers_)
        diagnostics_.add(types->where, fmt::format("layer_types has {} layers, allowed: {}, as num_hidden_layers says",
                                                   types->items.size(), layers_));
    } else if (const Value* kinds = find({"attn_type_list"}); kinds != nullptr && kinds->is_list()) {  // MiniMax: 0 is linear
      for (const Value& layer : kinds->items) linear += layer.text == "0" ? 1 : 0;
    } else if (const auto every = optional({"full_attention_interval"}); every && *every > 0) {
      linear = layers_ - layers_ / *every;
    } else if (is("llama4")) {
      chunked = layers_ - full_of_llama4();
    } else if (const auto pattern = optional({"sliding_window_pattern", "_sliding_window_pattern"}); pattern && *pattern > 0) {
      windowed = layers_ - layers_ / *pattern;  // every so many layers one sees all
    } else if (is("gemma2") || is("gpt_oss")) {
      windowed = (layers_ + 1) / 2;  // the even ones
    } else if (is("qwen")) {
      windowed = layers_ - std::min(layers_, optional({"max_window_layers"}).value_or(0));
    }
    if (linear > 0) {
      put_number("linear_layers", linear, where({"layer_types"}));
      read_linear(linear);
    }
    if (chunked > 0 && chunk > 0 && (longest == 0 || chunk < longest)) {
      put_number("kv_window", chunk, where({"attention_chunk_size"}));
      put_truth("chunked", true);
      put_number("window_layers", chunked, where({"attention_chunk_size"}));
    } else if (window > 0 && windowed != 0) {
      put_number("kv_window", window, where(key));
      if (windowed > 0) put_number("window_layers", windowed, where(key));
    }
  }

  // Gated DeltaNet, as Qwen3-Next has it and those after it.
  void read_linear(std::int64_t layers) {
    const Keys values = {"linear_num_value_heads"};
    if (find(values) == nullptr) {
      assumed_.push_back(fmt::format("{} layers without full attention are priced with its projections and no cache", layers));
      return;
    }
    const Keys keys = {"linear_num_key_heads"};
    const Keys width = {"linear_value_head_dim"};
    const Keys convolved = {"linear_conv_kernel_dim"};
    put_number("linear_value_heads", required(values), where(values));
    put_number("linear_key_heads", required(keys), where(keys));
    const std::int64_t wide = required(width);
    put_number("linear_head_dim", wide, where(width));
    const std::size_t told = diagnostics_.list().size();
    if (const auto other = optional({"linear_key_head_dim"}); other && *other != wide && diagnostics_.list().size() == told)
      diagnostics_.add(where({"linear_key_head_dim"}),
                       fmt::format("linear_key_head_dim is {}, allowed: as linear_value_head_dim", *other));
    put_number("linear_convolved", optional(convolved).value_or(4), where(convolved));
    if (word("mamba_ssm_dtype") == "bfloat16" || word("mamba_ssm_dtype") == "float16") put_number("state_bits", 16, text_->where);
    const Value* gate = find({"attn_output_gate"});
    if (gate == nullptr || gate->text == "true") put_truth("gated_attention", true);
  }

  std::int64_t full_of_llama4() {
    const Value* list = find({"no_rope_layers"});
    if (list != nullptr && list->is_list() && !list->items.empty())
      return std::count_if(list->items.begin(), list->items.end(), [](const Value& item) { return item.text == "0"; });
    const std::int64_t every = optional({"no_rope_layer_interval"}).value_or(4);
    return every > 0 ? layers_ / every : 0;
  }

  // Vocabulary and LM head; a draft head's own products.
  void read_head() {
    const Keys vocab = {"vocab_size", "padded_vocab_size"};
    const Value* tie = find_anywhere("tie_word_embeddings");
    if (tie != nullptr && !tie->is_null() && tie->text != "true" && tie->text != "false")
      diagnostics_.add(tie->where, fmt::format("tie_word_embeddings is {}, allowed: true, false", config::found_text(*tie)));
    const bool tied = tie != nullptr ? tie->text == "true" : architecture_ != nullptr && architecture_->tied;
    std::string architectures;
    if (const Value* list = root_.find("architectures"))
      for (const Value& item : list->items) architectures += item.text + " ";
    const Value* own_vocab = find_anywhere("draft_vocab_size");  // beside its layer's keys where those are a part of their own
    const bool third = architectures.find("Eagle3") != std::string::npos || architectures.find("EAGLE3") != std::string::npos ||
                       own_vocab != nullptr;
    const Value* outer = root_.find("model_type");
    const bool eagle =
        third || is("eagle") || (outer != nullptr && outer->text == "eagle") || architectures.find("Eagle") != std::string::npos;
    if (third) {
      if (own_vocab != nullptr)
        put("vocab", *own_vocab);
      else
        put_number("vocab", required(vocab), where(vocab));
      put_truth(truth("reuse_target_lm_head") ? "shares_lm_head" : "shares_embeddings", true);
      put_number("attention_inputs", 2, text_->where);
      std::int64_t joined = 3;
      if (const Value* own = find_anywhere("eagle_config"))
        if (const Value* list = own->find("eagle_aux_hidden_state_layer_ids"); list != nullptr && !list->items.empty())
          joined = static_cast<std::int64_t>(list->items.size());
      const std::int64_t width = optional({"target_hidden_size"}).value_or(hidden_);
      put_number("fused_inputs", std::max<std::int64_t>(1, (joined * width + hidden_ / 2) / hidden_), text_->where);
      return;
    }
    put_number("vocab", required(vocab), where(vocab));
    const bool alone = layers_ == 1 && !eagle && architecture_ != nullptr && architecture_->gated;
    if (eagle || alone) {
      put_number("fused_inputs", 2, text_->where);
      put_truth("shares_lm_head", true);
      if (alone) assumed_.emplace_back("a model of one layer is taken for an EAGLE head, which shares the target's LM head");
    } else {
      put_truth("tied_embeddings", tied);
    }
  }

  void read_types() {
    if (const Value* quantization = find_anywhere("quantization_config")) {
      Value dtype = dtype_of_quantization(*quantization, mixture_, assumed_, diagnostics_);
      if (dtype.is_map() && word("expert_dtype") == "fp4" && dtype.find("experts") == nullptr)
        dtype.fields.push_back({"experts", where({"expert_dtype"}), config::scalar("mxfp4", where({"expert_dtype"}))});
      if (dtype.is_map() && is("deepseek_v4") && dtype.find("cache") == nullptr)  // engines keep it in no other type
        dtype.fields.push_back({"cache", quantization->where, config::scalar("fp8", quantization->where)});
      if (dtype.is_map()) put("dtype", std::move(dtype));
      return;
    }
    for (const char* key : {"torch_dtype", "dtype"})
      if (const Value* type = find_anywhere(key); type != nullptr && type->text == "float32")
        assumed_.emplace_back("weights that are stored in 32 bits are priced in 16, as engines serve them");
  }

  const std::string& path_;
  const Value& root_;
  Diagnostics& diagnostics_;
  const Value* text_ = nullptr;  // the language model's part
  std::string type_;
  const Architecture* architecture_ = nullptr;  // none: not known
  std::int64_t layers_ = 0;
  std::int64_t hidden_ = 0;
  bool mixture_ = false;
  std::vector<config::Field> fields_;
  std::vector<std::string> assumed_;
};

}  // namespace

std::optional<std::string> config_json_path(const std::string& text) {
  if (text.ends_with(".json")) return text;
  std::error_code ignored;
  const fs::path inside = fs::path(text) / "config.json";
  if (!text.empty() && fs::is_directory(text, ignored) && fs::exists(inside, ignored)) return inside.string();
  return std::nullopt;
}

Value read_config_json(const std::string& path, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  const Value root = config::parse_json_file(path, diagnostics);
  if (diagnostics.list().size() != before) return {};
  if (!root.is_map()) {
    diagnostics.add({path, 1, 1}, "no JSON object, allowed: a model's config.json");
    return {};
  }
  Diagnostics own;
  Value model = ConfigJson(path, root, own).model();
  for (const Diagnostic& mistake : own.list()) diagnostics.add(mistake.where, mistake.message);
  return own.empty() ? model : Value();
}

}  // namespace specsim::cost
