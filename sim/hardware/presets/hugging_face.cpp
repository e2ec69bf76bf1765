#include "sim/hardware/presets/hugging_face.h"

#include "sim/foundation/config/arguments.h"
#include "sim/foundation/config/json.h"
#include "sim/hardware/presets/hugging_face_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace specsim::cost {

namespace {

using config::Value;
namespace fs = std::filesystem;

using Keys = std::vector<const char*>;

class ConfigJson {
 public:
  ConfigJson(const std::string& path, const Value& root, const WeightTypeSources& beside, bool module, Diagnostics& diagnostics)
      : path_(path), root_(root), side_(beside.quantization), types_(beside.dtype), module_(module), diagnostics_(diagnostics) {}

  Value model() {
    find_language_part();
    if (!diagnostics_.empty()) return {};
    type_ = word("model_type");
    if (type_.empty() && text_ != &root_ && root_.find("model_type") != nullptr) type_ = root_.find("model_type")->text;
    if (!refuse()) return {};
    drafter_ = read_drafter(root_, *text_, diagnostics_);
    if (!diagnostics_.empty()) return {};
    look_up();
    put_text("name", name());
    const std::string architecture = word("gguf_architecture");
    if (const std::string& own = architecture.empty() ? type_ : architecture; !own.empty()) put_text("architecture", own);
    if (drafter_ && drafter_->heads_alone) return finish();
    widths_.hidden = required(kHidden);
    widths_.dense_and_experts = is("gemma4");
    put_number("hidden", widths_.hidden, where(kHidden));
    mixture_ = count_experts();
    layers_ = read_file_layers(*text_, type_, mixture_, default_layers(), diagnostics_);
    if (!diagnostics_.empty()) return {};
    if (module_) keep_module();
    if (!diagnostics_.empty()) return {};
    put_number("layers", layer_count(), where({"num_hidden_layers", "n_layer", "num_layers", "n_layers"}));
    read_attention();
    read_feed_forward();
    read_windows();
    read_head();
    if (!drafter_) read_context();
    if (!diagnostics_.empty()) return {};
    read_types();
    check_layer_keys(*text_, file_layers_, assumed_, diagnostics_);
    return finish();
  }

 private:
  using Mixer = FileLayer::Mixer;
  using FeedForward = FileLayer::FeedForward;
  inline static const Keys kHidden = {"hidden_size", "n_embd", "d_model", "dim", "model_dim"};

  Value finish() {
    if (drafter_)
      for (config::Field& field : drafter_->fields)
        if (std::none_of(fields_.begin(), fields_.end(), [&](const config::Field& own) { return own.key == field.key; }))
          fields_.push_back(std::move(field));
    if (drafter_) assumed_.insert(assumed_.end(), drafter_->assumed.begin(), drafter_->assumed.end());
    if (drafter_) read_.insert(drafter_->read.begin(), drafter_->read.end());
    put_list("assumed", assumed_);
    put_list("unread", unread_layer_keys(*text_, read_));
    Value model = config::map({}, root_.where);
    model.fields = std::move(fields_);
    return diagnostics_.empty() ? model : Value();
  }

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
                         fmt::format("the language model's part is {}, allowed: a map", config::description_of_found(*inner)));
        return;
      }
      text_ = inner;
    }
  }

  // Refuses a model whose passes cannot be estimated; returns whether it did.
  bool refuse() {
    const auto no = [&](const Value& value, const std::string& what) {
      diagnostics_.add(value.where, what);
      return false;
    };
    if (const Value* value = root_.find("is_encoder_decoder"); value != nullptr && value->text == "true")
      return no(*value, "is_encoder_decoder is true, allowed: a decoder-only model");
    for (const Refused& one : kRefused)
      if (const Value* value = find_anywhere(one.key)) return no(*value, fmt::format("{} {}", one.key, one.text));
    for (const RefusedType& one : kRefusedTypes)
      for (const std::string_view beginning : config::words_of(one.types))
        if (type_.starts_with(beginning)) {
          const Value* value = find_anywhere("model_type");
          return no(value != nullptr ? *value : root_, fmt::format("model_type {} {}", type_, one.text));
        }
    return true;
  }

  void look_up() {
    for (const Architecture& one : architectures())
      if (type_.starts_with(one.type) && (architecture_ == nullptr || architecture_->type.size() < one.type.size()))
        architecture_ = &one;
    for (const std::string_view other : kOthers)
      if (type_.starts_with(other)) architecture_ = nullptr;
    if (type_.empty() && find({"dim"}) != nullptr && find({"n_layers"}) != nullptr) {  // params.json of Meta and Mistral
      static constexpr Architecture kParams{"params", true, false};
      architecture_ = &kParams;
      if (find({"moe"}) != nullptr && find({"moe"})->is_map()) parts_.push_back(find({"moe"}));
    }
    if (const Value* linear = find({"linear_attn_config"}); linear != nullptr && linear->is_map()) linear_ = linear;
    if (const Value* other = find({"attention_other_setting"}); other != nullptr && other->is_map()) other_ = other;
    if (architecture_ == nullptr && !(drafter_ && drafter_->heads_alone))
      assumed_.push_back(fmt::format("{} is not known: estimated as a decoder with the keys that its config.json has",
                                     type_.empty() ? "a model without model_type" : "model_type " + type_));
  }
  [[nodiscard]] bool is(std::string_view type) const { return type_.starts_with(type); }

  // The default of transformers if the file does not give the number of layers; 0: none.
  std::int64_t default_layers() {
    if (find({"num_hidden_layers", "n_layer", "num_layers", "n_layers", "layer_types", "layers_block_type", "block_configs"}))
      return 0;
    return optional({"num_hidden_layers"}).value_or(0);
  }

  // The value of the first of these keys that exists and is not null.
  [[nodiscard]] const Value* find(const Keys& keys) const {
    for (const char* key : keys) {
      read_.insert(key);
      if (const Value* value = text_->find(key); value != nullptr && !value->is_null()) return value;
      for (const Value* part : parts_)
        if (const Value* value = part->find(key); value != nullptr && !value->is_null()) return value;
    }
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

  // A number, or a list with one for each layer: all must be equal, or for widths their mean is used.
  std::int64_t integer(const Value& value, const std::string& key, double low = 0.0, double high = 1e9) {
    if (!value.is_list() || value.items.empty())
      return config::read_integer(value, config::between(low, high), key, diagnostics_).value_or(0);
    double sum = 0.0;
    bool alike = true;
    for (const Value& item : value.items) {
      const auto one = config::read_integer(item, config::between(low, high), key, diagnostics_);
      if (!one) return 0;
      alike = alike && item.text == value.items.front().text;
      sum += static_cast<double>(*one);
    }
    const double mean = sum / static_cast<double>(value.items.size());
    if (alike) return std::llround(mean);
    if (key.find("heads") != std::string::npos || key.find("num_") != std::string::npos) {
      diagnostics_.add(value.where,
                       fmt::format("{} differs by layer, allowed: the same number for all; a model's file in YAML may state "
                                   "means over the layers",
                                   key));
      return 0;
    }
    assumed_.push_back(fmt::format("{} differs by layer: modelled by its mean, {:.0f}", key, mean));
    return std::llround(mean);
  }
  std::optional<std::int64_t> optional(const Keys& keys) {
    if (const Value* value = find(keys)) return integer(*value, keys.front());
    for (const LeftOut& one : kLeftOut)
      if (is(one.type) && one.key == keys.front() && (text_ != &root_ || one.anywhere)) {
        assumed_.push_back(fmt::format("{} is not in config.json: {}, the default of {}", one.key, one.value, type_));
        return one.value;
      }
    return std::nullopt;
  }
  std::int64_t required(const Keys& keys) {
    if (const Value* value = find(keys)) return integer(*value, keys.front(), 1.0, 1e7);  // as a shape's
    if (const auto value = optional(keys)) return *value;
    diagnostics_.add(text_->where, fmt::format("config.json lacks \"{}\"{}, allowed: an integer of at least 1", keys.front(),
                                               text_ == &root_ ? "" : " in the language model's part"));
    return 1;
  }
  // A number in one of the file's maps.
  std::int64_t in(const Value& map, const char* key, std::int64_t fallback) {
    const Value* value = map.find(key);
    return value != nullptr && !value->is_null() ? integer(*value, key) : fallback;
  }
  // The place of the first of the keys that exists, else of the language part.
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
  void put_above_zero(const char* key, std::int64_t number, const Keys& keys) {
    if (number > 0) put_number(key, number, where(keys));
  }
  void put_list(const char* key, const std::vector<std::string>& texts) {
    if (texts.empty()) return;
    Value list;
    list.kind = config::Kind::list;
    list.where = text_->where;
    for (const std::string& text : texts) list.items.push_back(config::scalar(text, text_->where));
    put(key, std::move(list));
  }
  void put_truth(const char* key, bool value) { put(key, config::scalar(value ? "true" : "false", text_->where)); }

  [[nodiscard]] std::string name() const {
    constexpr std::size_t kLongest = 120;
    if (const Value* own = root_.find("_name_or_path"))
      if (own->is_scalar() && !own->text.empty() && own->text.front() != '/' && own->text.front() != '.' &&
          own->text.size() <= kLongest && std::none_of(own->text.begin(), own->text.end(), [](unsigned char c) {
            return c < ' ' || c == 0x7f;  // removed because it would be printed to a terminal and used in commands
          }))
        return own->text;
    const std::string folder = fs::absolute(path_).parent_path().filename().string();
    const std::string file = fs::path(path_).filename().string();
    return (file == "config.json" || file == "params.json") && !folder.empty() ? folder : file;
  }

  [[nodiscard]] std::int64_t layer_count() const { return static_cast<std::int64_t>(layers_.size()); }
  template <class Which>
  [[nodiscard]] std::int64_t count(const Which& which) const {
    return std::count_if(layers_.begin(), layers_.end(), which);
  }
  [[nodiscard]] std::int64_t count(Mixer mixer) const {
    return count([&](const FileLayer& layer) { return layer.mixer == mixer; });
  }

  // Whether the model has experts; keys of a mixture without their number are refused.
  bool count_experts() {
    file_layers_ = find({"num_hidden_layers"}) != nullptr ? optional({"num_hidden_layers"}).value_or(0) : 0;
    const Keys count = {"num_local_experts", "num_experts",        "n_routed_experts", "moe_num_experts",
                        "num_moe_experts",   "num_routed_experts", "n_experts",        "num_total_experts"};
    if (word("enable_moe_block") == "false") return false;
    widths_.experts = optional(count).value_or(0);
    experts_where_ = where(count);
    if (find(count) == nullptr)
      for (const char* key :
           {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_intermediate_size", "moe_topk", "moe_top_k",
            "moe_k", "n_shared_experts", "num_shared_experts", "expert_ffn_hidden_size"})
        if (const Value* value = find({key}); value != nullptr && value->text != "0" && value->text != "false") {
          diagnostics_.add(value->where, fmt::format("{} is given without a number of experts, allowed: with one of {}", key,
                                                     fmt::join(count, ", ")));
          return false;
        }
    return widths_.experts > 1;
  }

  // Replaces the model by the MTP module in its checkpoint: a layer like its last ones.
  void keep_module() {
    const Keys key = {"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "num_mtp_layers", "mtp_num_layers"};
    const std::int64_t count = optional(key).value_or(0);
    if (count < 1) {
      diagnostics_.add(text_->where,
                       fmt::format("config.json has no MTP module, allowed: one of {} above 0", fmt::join(key, ", ")));
      return;
    }
    file_layers_ = layer_count();
    FileLayer last;
    for (const FileLayer& layer : layers_)
      if (layer.mixer != Mixer::state && layer.mixer != Mixer::none && layer.feed_forward != FeedForward::none) last = layer;
    if (std::any_of(layers_.begin(), layers_.end(),
                    [](const FileLayer& layer) { return layer.feed_forward == FeedForward::none; })) {
      last.feed_forward = mixture_ ? FeedForward::mixture : FeedForward::dense;  // Nemotron 3: attention, then experts
      last.mixer = Mixer::full;
    }
    layers_.assign(1, last);
    drafter_ = FileDrafter{"mtp", {}, false, false, {}, {}};
    const auto add = [&](const char* name, const std::string& text) {
      drafter_->fields.push_back({name, text_->where, config::scalar(text, text_->where)});
    };
    add("drafter", "mtp");
    add("fused_inputs", "2");
    add("shares_lm_head", "true");
    add("in_target_checkpoint", "true");
  }

  void read_attention() {
    const Keys heads = {"num_attention_heads", "n_head", "num_heads", "n_heads"};
    const Keys kv = {"num_key_value_heads",   "num_kv_heads",     "n_head_kv",           "n_kv_heads",
                     "multi_query_group_num", "num_query_groups", "num_attention_groups"};
    widths_.heads = required(heads);
    const bool one = truth("multi_query") && !truth("new_decoder_architecture");
    widths_.kv_heads = one ? 1 : optional(kv).value_or(block_heads().value_or(widths_.heads));
    const bool gate = truth("attention_output_gate") || truth("attn_output_gate") || truth("mla_use_output_gate") ||
                      truth("use_gated_attention") || is("afmoe");
    if (gate) put_truth("gated_attention", true);
    read_state();
    if (const auto latent = optional({"kv_lora_rank"}); latent && *latent > 0) {
      widths_.latent = *latent;
      widths_.rope = required({"qk_rope_head_dim"});
      widths_.head_dim = required({"qk_nope_head_dim"}) + widths_.rope;
      widths_.query_rank = optional({"q_lora_rank"}).value_or(0);
      widths_.value_dim = required({"v_head_dim"});
      put_number("heads", widths_.heads, where(heads));
      put_number("kv_heads", widths_.kv_heads, where(kv));
      put_number("head_dim", widths_.head_dim, where({"qk_nope_head_dim"}));
      put_number("latent", widths_.latent, where({"kv_lora_rank"}));
      put_number("rope_dim", widths_.rope, where({"qk_rope_head_dim"}));
      put_number("query_rank", widths_.query_rank, where({"q_lora_rank"}));
      put_number("value_dim", widths_.value_dim, where({"v_head_dim"}));
      read_indexer();
      return;
    }
    read_compressed();
    if (const Value* sparse = find({"sparse_attention_config"}); sparse != nullptr && sparse->is_map())
      assumed_.emplace_back(
          "sparse attention by blocks (sparse_attention_config) is estimated as attention over all cached tokens");
    const Keys width = {"head_dim", "attention_head_dim", "kv_channels"};
    if (const auto head_dim = optional(width); head_dim && *head_dim > 0)
      widths_.head_dim = *head_dim;
    else if (widths_.hidden % std::max<std::int64_t>(widths_.heads, 1) == 0)
      widths_.head_dim = widths_.hidden / std::max<std::int64_t>(widths_.heads, 1);
    else
      diagnostics_.add(text_->where,
                       fmt::format("config.json lacks \"head_dim\", and hidden_size {} is no multiple of the {} heads, "
                                   "allowed: an integer of at least 1",
                                   widths_.hidden, widths_.heads));
    widths_.value_dim = optional({"v_head_dim"}).value_or(widths_.head_dim);
    // Layers with the window may have their own number of heads; the other layers are then described as the exception.
    std::int64_t windowed_heads = optional({"swa_num_attention_heads"}).value_or(widths_.heads);
    std::int64_t windowed_kv = optional({"swa_num_key_value_heads"}).value_or(widths_.kv_heads);
    std::int64_t windowed_dim = optional({"swa_head_dim"}).value_or(widths_.head_dim);
    if (other_ != nullptr) {
      windowed_heads = in(*other_, "num_attention_heads", widths_.heads);
      windowed_kv = in(*other_, "num_attention_groups", widths_.kv_heads);
      windowed_dim = in(*other_, "head_dim", widths_.head_dim);
    }
    if (const auto other = optional({"swa_v_head_dim"}); other && *other != widths_.value_dim)
      diagnostics_.add(where({"swa_v_head_dim"}),
                       fmt::format("swa_v_head_dim is {}, allowed: the same as v_head_dim, {}", *other, widths_.value_dim));
    if (count(Mixer::windowed) == 0) {
      windowed_heads = widths_.heads;
      windowed_kv = widths_.kv_heads;
      windowed_dim = widths_.head_dim;
    }
    put_number("heads", windowed_heads, where(heads));
    put_number("kv_heads", windowed_kv, where(kv));
    put_number("head_dim", windowed_dim, where(width));
    if (widths_.value_dim != windowed_dim || widths_.value_dim != widths_.head_dim)
      put_number("value_dim", widths_.value_dim, where({"v_head_dim"}));
    if (windowed_heads != widths_.heads) put_number("global_heads", widths_.heads, where(heads));
    const auto global_dim = optional({"global_head_dim"});
    if (global_dim && *global_dim > 0)
      put_number("global_head_dim", *global_dim, where({"global_head_dim"}));
    else if (windowed_dim != widths_.head_dim)
      put_number("global_head_dim", widths_.head_dim, where(width));
    const auto global_kv = optional({"num_global_key_value_heads"});
    if (global_kv && *global_kv > 0)
      put_number("global_kv_heads", *global_kv, where({"num_global_key_value_heads"}));
    else if (windowed_kv != widths_.kv_heads)
      put_number("global_kv_heads", widths_.kv_heads, where(kv));
    if (truth("attention_k_eq_v")) put_truth("global_one_value", true);
    if (const auto inputs = optional({"hidden_size_per_layer_input"}); inputs && *inputs > 0) {
      put_number("layer_embedding", *inputs, where({"hidden_size_per_layer_input"}));
      put_above_zero("layer_rank", optional({"laurel_rank"}).value_or(0), {"laurel_rank"});
      if (find({"altup_num_inputs"}) != nullptr)
        assumed_.emplace_back(
            "AltUp's products between parallel inputs (altup_num_inputs), below 1 % of the weights, are left out");
    }
  }

  // Query heads of each key and value head, if the layers' shapes give it.
  std::optional<std::int64_t> block_heads() {
    const Value* blocks = find({"block_configs"});
    if (blocks == nullptr) return std::nullopt;
    std::optional<std::int64_t> found;
    for (const Value& block : blocks->items)
      if (const Value* attention = block.find("attention"); attention != nullptr && attention->is_map()) {
        const Value* group = attention->find("n_heads_in_group");
        const Value* own = attention->find("num_key_value_heads");
        std::optional<std::int64_t> kv;
        if (own != nullptr && !own->is_null())
          kv = integer(*own, "num_key_value_heads");
        else if (group != nullptr && !group->is_null())
          kv = widths_.heads / std::max<std::int64_t>(1, integer(*group, "n_heads_in_group"));
        if (!kv) continue;
        if (found && *found != *kv)
          diagnostics_.add(block.where,
                           "key and value heads differ by layer, allowed: the same number for all; a model's file in YAML may "
                           "state means over the layers");
        found = kv;
      }
    return found;
  }

  // DeepSeek-V4's three kinds of layers: with the window alone (0); with entries of a few tokens, from which an indexer selects;
  // and with entries of many tokens.
  void read_compressed() {
    const Keys key = {"compress_ratios"};
    const Value* list = find(key);
    if (list == nullptr || !list->is_list() || list->items.empty()) return;
    std::map<std::int64_t, std::int64_t> layers;  // [tokens per entry]; the module's ratios may come after the layers'
    for (std::size_t i = 0; i < list->items.size() && i < layers_.size(); ++i)
      ++layers[integer(list->items[i], "compress_ratios")];
    layers.erase(0);
    if (list->items.size() < layers_.size() || layers.size() > 2) {
      diagnostics_.add(list->where,
                       fmt::format("compress_ratios has {} layers and {} ratios above 0, allowed: at least the {} layers "
                                   "of num_hidden_layers, one or two ratios",
                                   list->items.size(), layers.size(), layers_.size()));
      return;
    }
    widths_.one_vector = true;
    widths_.query_rank = optional({"q_lora_rank"}).value_or(0);
    put_truth("one_vector", true);
    put_number("query_rank", widths_.query_rank, where({"q_lora_rank"}));
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

  // DeepSeek Sparse Attention; in GLM-5.2 most layers reuse the selection of an earlier one.
  void read_indexer() {
    const Keys picked = {"index_topk"};
    if (find(picked) == nullptr) return;
    put_number("index_topk", required(picked), where(picked));
    put_number("index_heads", required({"index_n_heads"}), where({"index_n_heads"}));
    put_number("index_dim", required({"index_head_dim"}), where({"index_head_dim"}));
    if (module_) return;
    if (const Value* types = find({"indexer_types"}); types != nullptr && types->is_list() && !types->items.empty())
      put_number("index_layers",
                 std::count_if(types->items.begin(), types->items.end(), [](const Value& one) { return one.text == "full"; }),
                 types->where);
    else if (const auto every = optional({"index_topk_freq"}); every && *every > 1) {
      const std::int64_t first = std::min(layer_count(), optional({"index_skip_topk_offset"}).value_or(0));
      put_number("index_layers", std::max<std::int64_t>(1, first + (layer_count() - first) / *every), where({"index_topk_freq"}));
    }
  }

  // Layers with a state, by the keys that the file has for one.
  void read_state() {
    const std::int64_t layers = count(Mixer::state);
    widths_.parallel = is("falcon_h1") || truth("mamba_parallel_attention");
    put_above_zero("ffn_only_layers", count(Mixer::none), {"layers_block_type", "hybrid_override_pattern", "block_configs"});
    put_above_zero("linear_layers", layers, {"layer_types", "layers_block_type"});
    if (widths_.parallel) put_truth("parallel_state", true);
    if (layers == 0 && !widths_.parallel) return;
    const auto tell = [&](const char* kind, std::int64_t value_heads, std::int64_t key_heads, std::int64_t dim,
                          std::int64_t key_dim, std::int64_t convolved, std::int64_t rank) {
      widths_.state_inner = value_heads * dim;
      if (kind != std::string_view("gated_deltanet")) put_text("linear_kind", kind);
      put_number("linear_value_heads", value_heads, text_->where);
      put_number("linear_key_heads", key_heads, text_->where);
      put_number("linear_head_dim", dim, text_->where);
      if (key_dim != dim) put_number("linear_key_dim", key_dim, text_->where);
      put_above_zero("linear_convolved", convolved, {});
      put_above_zero("linear_rank", rank, {});
      for (const char* key : {"mamba_ssm_dtype", "mamba_ssm_cache_dtype"})
        if (word(key) == "bfloat16" || word(key) == "float16") {
          put_number("state_bits", 16, text_->where);
          break;
        }
    };
    if (find({"linear_num_value_heads"}) != nullptr) {  // Qwen3-Next and later
      tell("gated_deltanet", required({"linear_num_value_heads"}), required({"linear_num_key_heads"}),
           required({"linear_value_head_dim"}), optional({"linear_key_head_dim"}).value_or(required({"linear_value_head_dim"})),
           optional({"linear_conv_kernel_dim"}).value_or(4), 0);
      if (find({"attn_output_gate"}) == nullptr) put_truth("gated_attention", true);
    } else if (linear_ != nullptr) {
      const std::int64_t heads = in(*linear_, "num_heads", widths_.heads);
      const std::int64_t dim = in(*linear_, "head_dim", 128);
      tell("kimi_delta", heads, heads, dim, dim, in(*linear_, "short_conv_kernel_size", 4), dim);
      const Value* full = linear_->find("use_full_rank_gate");
      if (full != nullptr && full->text == "true") put_truth("linear_full_gate", true);
    } else if (find({"conv_L_cache"}) != nullptr || is("lfm2")) {
      const std::int64_t width = optional({"conv_dim"}).value_or(widths_.hidden);
      tell("convolution", 1, 1, width, width, optional({"conv_L_cache"}).value_or(3), 0);
    } else if (find({"mamba_num_heads", "mamba_n_heads"}) != nullptr) {
      const std::int64_t heads = required({"mamba_num_heads", "mamba_n_heads"});
      const std::int64_t inner =
          optional({"mamba_d_ssm"}).value_or(optional({"mamba_expand", "expand"}).value_or(2) * widths_.hidden);
      const Keys dim = {"mamba_head_dim", "mamba_d_head"};
      const bool stated = find(dim) != nullptr && find(dim)->text != "auto";
      tell("mamba2", heads, optional({"n_groups", "mamba_n_groups"}).value_or(1),
           stated ? required(dim) : inner / std::max<std::int64_t>(1, heads),
           optional({"ssm_state_size", "mamba_d_state", "state_size"}).value_or(128),
           optional({"conv_kernel", "mamba_d_conv"}).value_or(4), 0);
    } else if (find({"mamba_d_state"}) != nullptr) {  // Jamba
      const std::int64_t inner = optional({"mamba_expand"}).value_or(2) * widths_.hidden;
      const Value* rank = find({"mamba_dt_rank"});
      tell("mamba", inner, 1, 1, required({"mamba_d_state"}), optional({"mamba_d_conv"}).value_or(4),
           rank != nullptr && rank->text != "auto" ? required({"mamba_dt_rank"}) : (widths_.hidden + 15) / 16);
    } else if (is("minimax") || is("bailing") || find({"layer_group_size"}) != nullptr) {
      const std::int64_t dim = optional({"head_dim"}).value_or(widths_.hidden / std::max<std::int64_t>(1, widths_.heads));
      tell("lightning", widths_.heads, widths_.heads, dim, dim, 0, 0);
    } else {
      assumed_.push_back(fmt::format("{} layers without full attention are estimated with its projections and no cache", layers));
    }
  }

  void read_feed_forward() {
    const Keys wide = {"intermediate_size", "ffn_dim",  "n_inner",    "ffn_hidden_size",
                       "inner_dim",         "ffn_size", "hidden_dim", "block_ff_dim"};
    std::int64_t usual = optional(wide).value_or(0);
    if (usual == 0) usual = block_width();
    if (is("qwen") && !is("qwen2") && !is("qwen3")) usual /= 2;  // two products of half the width
    if (find({"block_auto_adjust_ff_dim"}) != nullptr ? truth("block_auto_adjust_ff_dim") : type_ == "lfm2")
      usual = adjusted(2 * usual / 3, "block_ffn_dim_multiplier", "block_multiple_of");
    if (usual == 0 && find({"multiple_of"}) != nullptr)
      usual = adjusted(2 * (4 * widths_.hidden) / 3, "ffn_dim_multiplier", "multiple_of");  // Meta's
    const bool gated = architecture_ != nullptr ? architecture_->gated || word("feed_forward_proj").starts_with("gated")
                                                : !word("hidden_act").starts_with("relu") && word("hidden_act") != "xielu";
    put_truth("gated", gated);
    widths_.gated = gated;
    if (architecture_ == nullptr)
      assumed_.emplace_back(gated ? "the feed-forward part has gate and up projections" : "the feed-forward part has no gate");
    const std::int64_t none = count([](const FileLayer& layer) { return layer.feed_forward == FeedForward::none; });
    put_above_zero("mixer_only_layers", none, {"layers_block_type", "hybrid_override_pattern", "block_configs"});
    const std::int64_t dense = count([](const FileLayer& layer) { return layer.feed_forward == FeedForward::dense; });
    if (!mixture_) {
      std::int64_t ffn = usual;
      if (is("granitemoehybrid") && find({"shared_intermediate_size"}) != nullptr) ffn = required({"shared_intermediate_size"});
      if (ffn == 0 && architecture_ != nullptr && !architecture_->gated) ffn = 4 * widths_.hidden;  // GPT-2, Falcon, BLOOM
      if (ffn == 0) ffn = required(wide);
      if (truth("use_double_wide_mlp"))  // Gemma 4: layers whose keys and values are another layer's
        ffn += ffn * count([](const FileLayer& layer) { return layer.borrows; }) / std::max<std::int64_t>(1, layer_count());
      widths_.ffn = ffn;
      put_number("ffn", ffn, where(wide));
      return;
    }
    put_number("experts", widths_.experts, experts_where_);
    const Keys chosen = {
        "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_topk", "moe_top_k", "moe_k"};
    put_number("experts_per_token", required(chosen), where(chosen));
    const Keys expert = {"moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_hidden_size",
                         "expert_hidden_dim"};
    widths_.expert_ffn = find(expert) != nullptr ? required(expert) : usual > 0 ? usual : required(wide);
    put_number("expert_ffn", widths_.expert_ffn, where(find(expert) != nullptr ? expert : wide));
    put_above_zero("expert_hidden", optional({"moe_latent_size", "routed_expert_hidden_size"}).value_or(0),
                   {"moe_latent_size", "routed_expert_hidden_size"});
    read_shared(usual);
    if (dense > 0) put_number("dense_layers", dense, text_->where);
    const Keys dense_wide = {"intermediate_size_mlp", "dense_intermediate_size"};
    widths_.ffn = optional(dense_wide).value_or(usual);
    if (const auto given = block_width(); given > 0) widths_.ffn = given;
    put_number("ffn", widths_.ffn, where(find(dense_wide) != nullptr ? dense_wide : wide));
  }

  // The mean width of layers that give their own.
  [[nodiscard]] std::int64_t block_width() const {
    double sum = 0.0;
    double layers = 0.0;
    for (const FileLayer& layer : layers_)
      if (layer.width > 0.0) {
        sum += layer.width;
        ++layers;
      }
    return layers > 0.0 ? std::llround(sum / layers) : 0;
  }
  // A width times a factor of the file, rounded up to a multiple.
  std::int64_t adjusted(std::int64_t width, const char* factor, const char* multiple) {
    double times = 1.0;
    if (const Value* value = find({factor}))
      times = config::read_number(*value, config::between(0.01, 100), factor, diagnostics_).value_or(1.0);
    const std::int64_t of = std::max<std::int64_t>(1, optional({multiple}).value_or(256));
    const auto scaled = static_cast<std::int64_t>(times * static_cast<double>(width));
    return of * ((scaled + of - 1) / of);
  }

  void read_shared(std::int64_t usual) {
    const Keys shared = {"shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size",
                         "share_expert_dim", "share_expert_dims"};
    const Keys number = {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"};
    std::int64_t sum = optional(shared).value_or(0);
    if (sum == 0) sum = optional(number).value_or(0) * widths_.expert_ffn;
    if (sum == 0 && (is("llama4") || is("gemma4") || truth("residual_moe")))
      sum = usual;  // in parallel with the experts in every layer
    if (sum == 0 && is("arctic") && truth("use_residual")) sum = widths_.hidden;
    widths_.shared_ffn = sum;
    if (sum > 0) put_number("shared_ffn", sum, where(find(shared) != nullptr ? shared : number));
  }

  void read_windows() {
    const Keys key = {"sliding_window", "attention_window_size", "window_size", "sliding_window_size"};
    std::int64_t window = find(key) != nullptr ? integer(*find(key), key.front()) : 0;
    const std::int64_t chunk = optional({"attention_chunk_size"}).value_or(0);
    const std::int64_t longest = optional({"max_position_embeddings", "n_positions", "max_seq_len"}).value_or(0);
    if (find({"use_sliding_window"}) != nullptr && !truth("use_sliding_window")) window = 0;
    if (longest > 0 && window >= longest) window = 0;
    const std::int64_t windowed = count(Mixer::windowed);
    const std::int64_t chunked = count(Mixer::chunked);
    const std::int64_t attending = windowed + chunked + count(Mixer::full);
    const auto borrowing = [&](bool with_window) {
      return count([&](const FileLayer& layer) {
        return layer.borrows && (layer.mixer == Mixer::full || layer.mixer == Mixer::windowed) &&
               with_window == (layer.mixer == Mixer::windowed && window > 0);
      });
    };
    if (drafter_ && drafter_->word == std::string_view("gemma_assistant"))
      for (FileLayer& layer : layers_) layer.borrows = true;
    put_above_zero("shared_kv_layers", borrowing(false), {"num_kv_shared_layers", "cla_share_factor"});
    put_above_zero("shared_window_layers", borrowing(true), {"num_kv_shared_layers", "cla_share_factor"});
    if (chunked > 0 && chunk > 0 && (longest == 0 || chunk < longest)) {
      put_number("kv_window", chunk, where({"attention_chunk_size"}));
      put_truth("chunked", true);
      put_number("window_layers", chunked, where({"attention_chunk_size"}));
    } else if (widths_.one_vector && window > 0) {
      put_number("kv_window", window, where(key));
    } else if (window > 0 && windowed != 0) {
      put_number("kv_window", window, where(key));
      if (windowed < attending) put_number("window_layers", windowed, where(key));
    }
  }

  // The context that servers derive from the file unless a flag sets it: _get_and_verify_max_len of vllm/config/model.py.
  void read_context() {
    const auto read = [](const Value* value) -> std::optional<double> {
      constexpr double kMost = 1e9;
      const std::optional<double> own =
          value != nullptr && value->is_scalar() ? config::as_number(value->text) : std::optional<double>();
      return own && *own > 0.0 && *own <= kMost ? own : std::nullopt;
    };
    std::optional<double> least;
    Location at = text_->where;
    for (const char* key : {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
                            "max_target_positions", "max_sequence_length", "max_seq_length", "seq_len"})
      if (const auto own = read(find({key})); own && (!least || *own < *least)) {
        least = own;
        at = find({key})->where;
      }
    const Value* rope = find({"rope_parameters", "rope_scaling"});
    if (!least) return;
    // Gemma 3's file and those of the other types give the length after scaling.
    if (rope != nullptr && rope->is_map() && !is("gemma3")) {
      const Value* kind = rope->find("rope_type") != nullptr ? rope->find("rope_type") : rope->find("type");
      const std::string type = kind != nullptr && kind->is_scalar() ? kind->text : "";
      if (type == "yarn") least = read(rope->find("original_max_position_embeddings")).value_or(*least);
      if (type != "su" && type != "longrope" && type != "llama3") *least *= read(rope->find("factor")).value_or(1.0);
    }
    put_number("context", std::llround(*least), at);
  }

  // Vocabulary and LM head; a draft head's own products.
  void read_head() {
    const Keys vocab = {"vocab_size", "padded_vocab_size"};
    const Value* tie = nullptr;
    for (const char* key : {"tie_word_embeddings", "tied_embeddings", "tie_embedding"})
      if (tie == nullptr) tie = find_anywhere(key);
    if (tie != nullptr && tie->text != "true" && tie->text != "false")
      diagnostics_.add(tie->where,
                       fmt::format("tie_word_embeddings is {}, allowed: true, false", config::description_of_found(*tie)));
    widths_.tied = tie != nullptr ? tie->text == "true" : architecture_ != nullptr && architecture_->tied;
    const auto says = [&](std::string_view key) {
      return drafter_ && std::any_of(drafter_->fields.begin(), drafter_->fields.end(),
                                     [&](const config::Field& field) { return field.key == key; });
    };
    if (says("vocab")) return;
    if (const Value* own = find(vocab);
        own != nullptr && own->text == "-1" && architecture_ != nullptr && architecture_->type == "params") {
      constexpr std::int64_t kLlama2 = 32000;
      assumed_.emplace_back("vocab_size is -1, so that the tokenizer determines it: 32,000 as in Llama and Llama 2");
      widths_.vocab = kLlama2;
    } else {
      widths_.vocab = required(vocab);
    }
    put_number("vocab", widths_.vocab, where(vocab));
    if (drafter_ && !drafter_->whole_model) return;
    const bool alone = layer_count() == 1 && !drafter_ && types_ == nullptr && architecture_ != nullptr && architecture_->gated;
    if (alone) {
      put_number("fused_inputs", 2, text_->where);
      put_truth("shares_lm_head", true);
      assumed_.emplace_back("a model of one layer is assumed to be an EAGLE head, which shares the target's LM head");
    } else {
      put_truth("tied_embeddings", widths_.tied);
    }
  }

  void read_types() {
    if (types_ != nullptr) {
      put("dtype", *types_);
      return;
    }
    const Value* quantization = nullptr;
    for (const char* key : {"quantization_config", "compression_config"})
      if (quantization == nullptr) quantization = find_anywhere(key);
    if (const Value* own = find_anywhere("quantization"); quantization == nullptr && own != nullptr && own->is_map())
      quantization = own;
    // Reads the file next to config.json if config.json has no quantisation, or only names a mixture of types without details.
    if (side_ != nullptr && (quantization == nullptr || quantization->find("quant_method") == nullptr || vague(*quantization)))
      quantization = side_;
    if (quantization == nullptr) {
      for (const char* key : {"torch_dtype", "dtype"})
        if (const Value* type = find_anywhere(key); type != nullptr && type->text == "float32")
          assumed_.emplace_back("weights that are stored in 32 bits are estimated in 16, as engines serve them");
      return;
    }
    Value dtype = dtype_of_quantization(*quantization,
                                        stored_matrices(layers_, widths_, module_ ? static_cast<std::size_t>(file_layers_) : 0),
                                        word("expert_dtype"), assumed_, diagnostics_);
    if (dtype.is_map() && is("deepseek_v4") && dtype.find("cache") == nullptr)  // engines keep it in no other type
      dtype.fields.push_back({"cache", quantization->where, config::scalar("fp8", quantization->where)});
    if (dtype.is_map()) put("dtype", std::move(dtype));
  }
  [[nodiscard]] static bool vague(const Value& quantization) {
    const Value* algorithm = quantization.find("quant_algo");
    return algorithm != nullptr && algorithm->text == "MIXED_PRECISION" && quantization.find("quantized_layers") == nullptr &&
           quantization.find("config_groups") == nullptr;
  }

  const std::string& path_;
  const Value& root_;
  const Value* side_;   // quantisation from a file next to config.json
  const Value* types_;  // dtype, if a GGUF file gives it
  bool module_;
  Diagnostics& diagnostics_;
  const Value* text_ = nullptr;         // the language model's part
  std::vector<const Value*> parts_;     // maps in it whose keys count as its own
  const Value* linear_ = nullptr;       // linear_attn_config
  const Value* other_ = nullptr;        // attention_other_setting
  mutable std::set<std::string> read_;  // keys that were looked for
  std::string type_;
  const Architecture* architecture_ = nullptr;  // none: not known
  std::optional<FileDrafter> drafter_;
  std::vector<FileLayer> layers_;
  std::int64_t file_layers_ = 0;  // that the file counts
  FileWidths widths_;
  Location experts_where_;
  bool mixture_ = false;
  std::vector<config::Field> fields_;
  std::vector<std::string> assumed_;
};

}  // namespace

Value model_of_config(const std::string& path, const Value& root, const WeightTypeSources& beside, bool module,
                      Diagnostics& diagnostics) {
  return ConfigJson(path, root, beside, module, diagnostics).model();
}

}  // namespace specsim::cost
