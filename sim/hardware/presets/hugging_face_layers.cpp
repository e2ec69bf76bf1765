// Reads the layers of a Hugging Face config.json one by one. Unknown keys are refused, because they would otherwise be ignored
// silently.
#include "sim/foundation/config/arguments.h"
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
#include <utility>

namespace specsim::cost {

namespace {

using config::Value;
using Mixer = FileLayer::Mixer;
using FeedForward = FileLayer::FeedForward;

const Value* find(const Value& text, std::string_view key) {
  const Value* value = text.find(key);
  const Value* moe = text.find("moe");  // Mistral's params.json has keys of experts in a map
  if (value == nullptr && moe != nullptr && moe->is_map()) value = moe->find(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}
const Value* find_first(const Value& text, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const Value* value = find(text, key)) return value;
  return nullptr;
}

// The words of layer_types and layers_block_type.
struct LayerWord {
  std::string_view word;
  Mixer mixer;
};
constexpr std::array<LayerWord, 25> kWords = {{{"full_attention", Mixer::full},
                                               {"full", Mixer::full},
                                               {"attention", Mixer::full},
                                               {"attn", Mixer::full},
                                               {"global", Mixer::full},
                                               {"global_attention", Mixer::full},
                                               {"full_causal_attention", Mixer::full},
                                               {"deepseek_sparse_attention", Mixer::full},
                                               {"sparse_attention", Mixer::full},
                                               {"compressed_sparse_attention", Mixer::full},
                                               {"heavily_compressed_attention", Mixer::full},
                                               {"hybrid", Mixer::full},
                                               {"sliding_attention", Mixer::windowed},
                                               {"sliding_window_attention", Mixer::windowed},
                                               {"sliding_window", Mixer::windowed},
                                               {"sliding", Mixer::windowed},
                                               {"local", Mixer::windowed},
                                               {"local_attention", Mixer::windowed},
                                               {"chunked_attention", Mixer::chunked},
                                               {"linear_attention", Mixer::state},
                                               {"linear", Mixer::state},
                                               {"mamba", Mixer::state},
                                               {"mamba2", Mixer::state},
                                               {"conv", Mixer::state},
                                               {"short_conv", Mixer::state}}};

// The kinds of layers in a list of layers that have one part each (Nemotron-H): by word and by letter of hybrid_override_pattern.
struct Single {
  std::string_view word;
  char letter;
  Mixer mixer;
  FeedForward feed_forward;
};
constexpr std::array<Single, 4> kSingles = {{{"mamba", 'M', Mixer::state, FeedForward::none},
                                             {"attention", '*', Mixer::full, FeedForward::none},
                                             {"mlp", '-', Mixer::none, FeedForward::dense},
                                             {"moe", 'E', Mixer::none, FeedForward::mixture}}};

class LayerReader {
 public:
  LayerReader(const Value& text, std::string_view type, bool mixture, std::int64_t left_out, Diagnostics& diagnostics)
      : text_(text), type_(type), mixture_(mixture), left_out_(left_out), diagnostics_(diagnostics) {}

  std::vector<FileLayer> read() {
    const std::size_t before = diagnostics_.list().size();
    const std::optional<std::int64_t> told = count_of({"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, 1.0);
    if (diagnostics_.list().size() != before) return {};
    if (read_singles(told)) return std::move(layers_);
    std::size_t count = static_cast<std::size_t>(told.value_or(0));
    if (!told)
      if (const Value* list = find_first(text_, {"layer_types", "layers_block_type", "block_configs"});
          list != nullptr && list->is_list())
        count = list->items.size();
    if (count == 0) count = static_cast<std::size_t>(left_out_);
    if (count == 0) {
      diagnostics_.add(text_.where, "config.json lacks \"num_hidden_layers\", allowed: an integer of at least 1");
      return {};
    }
    layers_.resize(count);
    if (mixture_)
      for (FileLayer& layer : layers_) layer.feed_forward = FeedForward::mixture;
    read_mixers();
    read_sharing();
    if (mixture_) read_feed_forward();
    read_blocks();
    return std::move(layers_);
  }

 private:
  [[nodiscard]] bool is(std::string_view type) const { return type_.starts_with(type); }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(layers_.size()); }
  std::optional<std::int64_t> count_of(std::initializer_list<const char*> keys, double low = 0.0) {
    for (const char* key : keys)
      if (const Value* value = find(text_, key); value != nullptr && value->is_scalar())
        return config::read_integer(*value, config::between(low, 1e5), key, diagnostics_);
    return std::nullopt;
  }
  void refuse(const Value& at, const std::string& message) { diagnostics_.add(at.where, message); }

  void set(std::int64_t layer, Mixer mixer) { layers_[static_cast<std::size_t>(layer)].mixer = mixer; }
  template <class Which>
  void choose(const Which& full, Mixer others) {
    for (std::int64_t i = 0; i < size(); ++i) set(i, full(i) ? Mixer::full : others);
  }
  [[nodiscard]] bool right_size(const Value& list, const char* key) {
    if (list.items.size() == layers_.size()) return true;
    refuse(list,
           fmt::format("{} has {} layers, allowed: {}, the value of num_hidden_layers", key, list.items.size(), layers_.size()));
    return false;
  }

  // Layers of one part each: state space, attention or feed-forward (Nemotron-H).
  bool read_singles(const std::optional<std::int64_t>& told) {
    const Value* letters = find(text_, "hybrid_override_pattern");
    const Value* words = is("nemotron_h") ? find_first(text_, {"layers_block_type", "layer_types"}) : nullptr;
    const Value* at = letters != nullptr ? letters : words;
    if (at == nullptr) return false;
    const auto add = [&](const Value& where, std::string_view word) {
      const auto* one = std::find_if(kSingles.begin(), kSingles.end(), [&](const Single& single) {
        return single.word == word || (word.size() == 1 && single.letter == word.front());
      });
      if (one == kSingles.end()) {
        refuse(where, fmt::format("{} is {}, allowed: mamba (M), attention (*), mlp (-), moe (E)",
                                  letters != nullptr ? "a letter of hybrid_override_pattern" : "a layer of layers_block_type",
                                  config::quote_for_message(word)));
        return false;
      }
      layers_.push_back({one->mixer, one->feed_forward});
      return true;
    };
    if (letters != nullptr) {
      for (const char& letter : letters->text)
        if (letter != '|' && !add(*letters, std::string_view(&letter, 1))) return true;
    } else {
      for (const Value& layer : words->items)
        if (!add(layer, layer.text)) return true;
    }
    if (told && *told != size())
      refuse(*at, fmt::format("it has {} layers, allowed: {}, the value of num_hidden_layers", size(), *told));
    const bool moe = std::any_of(layers_.begin(), layers_.end(),
                                 [](const FileLayer& layer) { return layer.feed_forward == FeedForward::mixture; });
    if (moe && !mixture_) refuse(*at, "it has layers of experts, allowed: with a number of experts (n_routed_experts)");
    return true;
  }

  // Shapes of single layers (Llama-Nemotron of DeciLM).
  void read_blocks() {
    const Value* blocks = find(text_, "block_configs");
    if (blocks == nullptr || !blocks->is_list() || !right_size(*blocks, "block_configs")) return;
    const auto missing = [](const Value* part) {
      const Value* none = part != nullptr ? part->find("no_op") : nullptr;
      return none != nullptr && none->text == "true";
    };
    const auto hidden =
        config::as_number(find(text_, "hidden_size") != nullptr ? find(text_, "hidden_size")->text : "0").value_or(0.0);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const Value& block = blocks->items[i];
      const Value* ffn = block.find("ffn");
      for (const char* part : {"attention", "ffn"})
        if (const Value* inner = block.find(part); inner != nullptr)
          if (const Value* linear = inner->find("replace_with_linear"); linear != nullptr && linear->text == "true")
            refuse(*linear, fmt::format("{} is replaced by a product, allowed: a usual part or none (no_op)", part));
      if (missing(block.find("attention"))) layers_[i].mixer = Mixer::none;
      if (missing(ffn)) {
        layers_[i].feed_forward = FeedForward::none;
        continue;
      }
      if (ffn == nullptr) continue;
      constexpr double kMultiple = 256.0;
      if (const Value* width = ffn->find("intermediate_size"); width != nullptr && !width->is_null())
        layers_[i].width = config::as_number(width->text).value_or(0.0);
      else if (const Value* times = ffn->find("ffn_mult"); times != nullptr && !times->is_null())
        layers_[i].width =
            kMultiple * std::ceil(std::floor(2.0 * config::as_number(times->text).value_or(0.0) * hidden / 3.0) / kMultiple);
    }
  }

  bool read_words(const Value& list, const char* key) {
    if (!right_size(list, key)) return true;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const std::string& word = list.items[i].text;
      const auto* one = std::find_if(kWords.begin(), kWords.end(), [&](const LayerWord& known) { return known.word == word; });
      if (one == kWords.end()) {
        std::vector<std::string_view> allowed;
        for (const LayerWord& known : kWords) allowed.push_back(known.word);
        refuse(list.items[i], fmt::format("{} has {}, which is not known, allowed: {}", key, config::quote_for_message(word),
                                          fmt::join(allowed, ", ")));
        return true;
      }
      layers_[i].mixer = one->mixer;
    }
    return true;
  }

  // The layers in `list`, counted from `first`, attend.
  void choose_listed(const Value& list, std::int64_t first, Mixer listed, Mixer others) {
    for (FileLayer& layer : layers_) layer.mixer = others;
    for (const Value& item : list.items) {
      const auto at = config::read_integer(
          item, config::between(static_cast<double>(first), static_cast<double>(size() - 1 + first)), "a layer", diagnostics_);
      if (at) set(*at - first, listed);
    }
  }

  void read_mixers() {
    for (const char* key : {"layer_types", "layers_block_type"})
      if (const Value* list = find(text_, key); list != nullptr && list->is_list() && !list->items.empty()) {
        read_words(*list, key);
        return;
      }
    if (const Value* list = find(text_, "attn_type_list"); list != nullptr && list->is_list()) {  // MiniMax-01: 0 is linear
      if (right_size(*list, "attn_type_list"))
        choose([&](std::int64_t i) { return list->items[static_cast<std::size_t>(i)].text != "0"; }, Mixer::state);
      return;
    }
    if (const Value* linear = find(text_, "linear_attn_config"); linear != nullptr && linear->is_map()) {  // Kimi: from 1 on
      if (const Value* list = linear->find("full_attn_layers"); list != nullptr && list->is_list())
        choose_listed(*list, 1, Mixer::full, Mixer::state);
      else if (const Value* states = linear->find("kda_layers"); states != nullptr && states->is_list())
        choose_listed(*states, 1, Mixer::state, Mixer::full);
      else
        refuse(*linear, "linear_attn_config lacks full_attn_layers, allowed: a list of layers, from 1 on");
      return;
    }
    for (const char* key : {"full_attn_idxs", "attn_layer_indices", "full_attention_idxs"})
      if (const Value* list = find(text_, key); list != nullptr && list->is_list()) {
        choose_listed(*list, 0, Mixer::full, Mixer::state);
        return;
      }
    if (const Value* list = find(text_, "hybrid_layer_pattern");
        list != nullptr && list->is_list()) {  // MiMo-V2: 1 has the window
      if (right_size(*list, "hybrid_layer_pattern"))
        choose([&](std::int64_t i) { return list->items[static_cast<std::size_t>(i)].text == "0"; }, Mixer::windowed);
      return;
    }
    if (const auto period = count_of({"attn_layer_period"}, 1.0)) {
      const std::int64_t offset = count_of({"attn_layer_offset"}).value_or(0);
      choose([&](std::int64_t i) { return i % *period == offset % *period; }, Mixer::state);
      return;
    }
    if (const auto every = count_of({"full_attention_interval"}, 1.0)) {
      choose([&](std::int64_t i) { return (i + 1) % *every == 0; }, Mixer::state);
      return;
    }
    if (const auto group = count_of({"layer_group_size"}, 1.0); group && *group > 1) {  // Ring
      choose([&](std::int64_t i) { return (i + 1) % *group == 0 || i >= size() / *group * *group; }, Mixer::state);
      return;
    }
    read_windows();
  }

  void read_windows() {
    if (is("llama4")) {
      const Value* list = find(text_, "no_rope_layers");
      if (list != nullptr && list->is_list() && !list->items.empty()) {
        if (right_size(*list, "no_rope_layers"))
          choose([&](std::int64_t i) { return list->items[static_cast<std::size_t>(i)].text == "0"; }, Mixer::chunked);
        return;
      }
      const std::int64_t every = count_of({"no_rope_layer_interval"}).value_or(4);
      choose([&](std::int64_t i) { return every > 0 && (i + 1) % every == 0; }, Mixer::chunked);
      return;
    }
    const Value* pattern = find_first(text_, {"sliding_window_pattern", "_sliding_window_pattern"});
    if (pattern != nullptr && pattern->quoted) {  // EXAONE: LLLG, over and over
      const std::string& letters = pattern->text;
      if (letters.empty() || letters.find_first_not_of("LGSF") != std::string::npos) {
        refuse(*pattern,
               fmt::format("sliding_window_pattern is {}, allowed: a number of layers, or letters L (with the window) and G",
                           config::description_of_found(*pattern)));
        return;
      }
      choose(
          [&](std::int64_t i) {
            const char letter = letters[static_cast<std::size_t>(i) % letters.size()];
            return letter == 'G' || letter == 'F';
          },
          Mixer::windowed);
      return;
    }
    if (const Value* order = find(text_, "order_of_interleaved_layers"); order != nullptr && order->text != "local_attn_first")
      refuse(*order,
             fmt::format("order_of_interleaved_layers is {}, allowed: local_attn_first", config::description_of_found(*order)));
    std::optional<std::int64_t> every =
        count_of({"sliding_window_pattern", "_sliding_window_pattern", "layer_switch", "global_attn_every_n_layers"});
    if (!every && is("gemma3")) every = 6;
    if (!every && is("cohere2")) every = 4;
    if (every && *every > 0)  // one of this many layers attends to all tokens
      choose([&](std::int64_t i) { return (i + 1) % *every == 0; }, Mixer::windowed);
    else if (is("gemma2") || is("gpt_oss"))
      choose([](std::int64_t i) { return i % 2 == 1; }, Mixer::windowed);
    else if (is("qwen")) {
      const std::int64_t first = count_of({"max_window_layers"}).value_or(0);
      choose([&](std::int64_t i) { return i < first; }, Mixer::windowed);
    } else {
      choose([](std::int64_t) { return false; }, Mixer::windowed);  // with a window all have it
    }
  }

  void read_sharing() {
    if (const auto shared = count_of({"num_kv_shared_layers"}))
      for (std::int64_t i = std::max<std::int64_t>(0, size() - *shared); i < size(); ++i)
        layers_[static_cast<std::size_t>(i)].borrows = true;
    const Value* use = find(text_, "use_cla");
    if (const auto factor = count_of({"cla_share_factor"}); use != nullptr && use->text == "true" && factor && *factor > 1)
      for (std::int64_t i = 0; i < size(); ++i) layers_[static_cast<std::size_t>(i)].borrows = i % *factor != 0;  // Hunyuan-Large
  }

  void read_feed_forward() {
    const auto dense = [&](std::int64_t i) { layers_[static_cast<std::size_t>(i)].feed_forward = FeedForward::dense; };
    const auto only = [&](const auto& has_experts) {
      for (std::int64_t i = 0; i < size(); ++i)
        if (!has_experts(i)) dense(i);
    };
    if (const Value* list = find(text_, "mlp_layer_types"); list != nullptr && list->is_list() && !list->items.empty()) {
      if (!right_size(*list, "mlp_layer_types")) return;
      for (std::int64_t i = 0; i < size(); ++i) {
        const Value& word = list->items[static_cast<std::size_t>(i)];
        if (word.text != "dense" && word.text != "sparse" && word.text != "moe")
          refuse(word, fmt::format("mlp_layer_types has {}, allowed: dense, sparse", config::quote_for_message(word.text)));
        if (word.text == "dense") dense(i);
      }
      return;
    }
    if (const Value* list = find(text_, "moe_layers"); list != nullptr && list->is_list() && !list->items.empty()) {
      std::set<std::string> listed;
      for (const Value& item : list->items) listed.insert(item.text);
      only([&](std::int64_t i) { return listed.contains(std::to_string(i)); });
      return;
    }
    if (const Value* listed = find(text_, "moe_layers_enum"); listed != nullptr && listed->is_scalar()) {  // Step: "3,4,5"
      const std::string all = "," + listed->text + ",";
      only([&](std::int64_t i) { return all.find(fmt::format(",{},", i)) != std::string::npos; });
      return;
    }
    for (const char* key : {"moe_layer_freq", "is_moe_layer"})
      if (const Value* list = find(text_, key); list != nullptr && list->is_list()) {
        if (right_size(*list, key))
          only([&](std::int64_t i) {
            const std::string& word = list->items[static_cast<std::size_t>(i)].text;
            return word != "0" && word != "false";
          });
        return;
      }
    if (const auto period = count_of({"expert_layer_period"}, 1.0)) {
      const std::int64_t offset = count_of({"expert_layer_offset"}).value_or(0);
      only([&](std::int64_t i) { return i % *period == offset % *period; });
      return;
    }
    if (find_first(text_, {"moe_layer_start_index", "moe_layer_interval"}) != nullptr) {  // ERNIE 4.5
      const auto edge = [&](const char* key, std::int64_t fallback, bool least) {
        const Value* value = find(text_, key);
        if (value == nullptr) return fallback;
        std::vector<std::int64_t> all;
        for (const Value& item : value->is_list() ? value->items : std::vector<Value>{*value})
          if (const auto own = config::read_integer(item, config::between(-1, 1e5), key, diagnostics_)) all.push_back(*own);
        if (all.empty()) return fallback;
        const std::int64_t chosen = least ? *std::min_element(all.begin(), all.end()) : *std::max_element(all.begin(), all.end());
        return !least && chosen < 0 ? fallback : chosen;
      };
      const std::int64_t first = edge("moe_layer_start_index", 0, true);
      const std::int64_t last = edge("moe_layer_end_index", size() - 1, false);
      const std::int64_t every = count_of({"moe_layer_interval"}, 1.0).value_or(1);
      only([&](std::int64_t i) { return i >= first && i <= last && (i + 1) % every == 0; });
      return;
    }
    const std::int64_t first =
        count_of({"first_k_dense_replace", "num_dense_layers", "n_dense_layers", "moe_layer_num_skipped"}).value_or(0);
    const std::int64_t step =
        count_of({"interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_frequency"}, 1.0).value_or(1);
    const std::int64_t every = count_of({"moe_layer_freq"}, 1.0).value_or(1);
    only([&](std::int64_t i) { return i >= first && (i + 1) % step == 0 && i % every == 0; });
    if (const Value* list = find(text_, "mlp_only_layers"); list != nullptr && list->is_list())
      for (const Value& item : list->items) {
        const auto at = config::as_number(item.text);
        if (at && *at >= 0.0 && *at < static_cast<double>(size()) && *at == std::floor(*at))
          dense(static_cast<std::int64_t>(*at));
        else
          refuse(item, fmt::format("mlp_only_layers has {}, allowed: layers from 0 to {}", config::quote_for_message(item.text),
                                   size() - 1));
      }
  }

  const Value& text_;
  std::string_view type_;
  bool mixture_;
  std::int64_t left_out_;
  Diagnostics& diagnostics_;
  std::vector<FileLayer> layers_;
};

}  // namespace

std::vector<FileLayer> read_file_layers(const Value& text, std::string_view type, bool mixture, std::int64_t left_out,
                                        Diagnostics& diagnostics) {
  return LayerReader(text, type, mixture, left_out, diagnostics).read();
}

}  // namespace specsim::cost
