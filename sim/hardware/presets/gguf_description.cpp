// Reads a GGUF file's metadata as the keys of a config.json. Properties that only the presence and shape of tensors show are
// taken from the tensors: layers with experts, layers that attend, gates, tied embeddings. Keys: ggml-org/llama.cpp,
// gguf-py/gguf/constants.py.
#include "sim/hardware/presets/weight_files.h"

#include "sim/foundation/config/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

namespace specsim::cost {

namespace {

using config::GgufFile;
using config::GgufTensor;
using config::GgufValue;
using config::Value;

constexpr std::size_t kLongestList = 4096;  // lists by layer are kept, vocabularies are not

std::optional<double> number_of(const GgufValue& value) {
  if (const auto* n = std::get_if<std::uint64_t>(&value.value)) return static_cast<double>(*n);
  if (const auto* n = std::get_if<std::int64_t>(&value.value)) return static_cast<double>(*n);
  if (const auto* x = std::get_if<double>(&value.value)) return *x;
  if (const auto* truth = std::get_if<bool>(&value.value)) return *truth ? 1.0 : 0.0;
  return std::nullopt;
}

// Architectures whose passes are not estimated from a GGUF file, and why.
struct RefusedArchitecture {
  std::string_view architecture;
  const char* why;
};
constexpr std::array<RefusedArchitecture, 13> kRefusedArchitectures = {
    {{"mamba", "has no attention, allowed: models with layers of attention"},
     {"mamba2", "has no attention, allowed: models with layers of attention"},
     {"rwkv6", "has no attention, allowed: models with layers of attention"},
     {"rwkv7", "has no attention, allowed: models with layers of attention"},
     {"bert", "is an encoder, allowed: decoders"},
     {"nomic-bert", "is an encoder, allowed: decoders"},
     {"t5", "has an encoder, allowed: a decoder-only model"},
     {"t5encoder", "is an encoder, allowed: decoders"},
     {"clip", "encodes images, allowed: a language model's file"},
     {"deepseek4", "compresses its cache, allowed: its config.json or a preset"},
     {"kimi-linear", "has states of an unknown kind, allowed: its config.json"},
     {"llama4", "has chunks by layer that the file does not describe, allowed: its config.json"},
     {"openelm", "has layers of different shapes, allowed: equal layers"}}};

std::string small_letters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

class GgufReader {
 public:
  GgufReader(std::vector<std::unique_ptr<GgufFile>> files, Diagnostics& diagnostics)
      : files_(std::move(files)), first_(*files_.front()), where_{first_.path(), 0, 0}, diagnostics_(diagnostics) {}

  std::optional<GgufDescription> read() {
    const std::size_t before = diagnostics_.list().size();
    const std::string* const architecture = first_.text("general.architecture");
    if (architecture == nullptr || architecture->empty()) {
      refuse("general.architecture is missing, allowed: a language model's GGUF file");
      return std::nullopt;
    }
    prefix_ = *architecture + ".";
    for (const RefusedArchitecture& one : kRefusedArchitectures)
      if (one.architecture == *architecture) refuse(fmt::format("general.architecture {} {}", *architecture, one.why));
    if (diagnostics_.list().size() != before) return std::nullopt;
    for (const auto& file : files_)
      for (const auto& [name, tensor] : file->tensors()) tensors_.emplace(name, &tensor);
    GgufDescription own;
    read_shape();
    read_attention();
    read_layers();
    read_state();
    read_feed_forward();
    if (diagnostics_.list().size() != before) return std::nullopt;
    own.config = config::map(std::move(fields_), where_);
    count_tensors(own);
    own.dtype = dtype_of(own.parts);
    return own;
  }

 private:
  void refuse(const std::string& what) { diagnostics_.add(where_, what); }
  void put(const char* key, double number) { fields_.emplace_back(key, config::scalar(fmt::format("{:.0f}", number), where_)); }
  void put_text(const char* key, const std::string& text) {
    Value value = config::scalar(text, where_);
    value.quoted = true;
    fields_.emplace_back(key, std::move(value));
  }
  void put_truth(const char* key, bool truth) { fields_.emplace_back(key, config::scalar(truth ? "true" : "false", where_)); }
  void put_words(const char* key, const std::vector<std::string>& words) {
    Value list;
    list.kind = config::Kind::list;
    list.where = where_;
    for (const std::string& word : words) {
      list.items.push_back(config::scalar(word, where_));
      list.items.back().quoted = true;
    }
    fields_.emplace_back(key, std::move(list));
  }

  [[nodiscard]] const GgufTensor* tensor(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second;
  }
  [[nodiscard]] const GgufTensor* in_layer(std::size_t layer, std::string_view name) const {
    return tensor(fmt::format("blk.{}.{}", layer, name));
  }
  // The tensor of the first layer that has it.
  [[nodiscard]] const GgufTensor* in_any_layer(std::string_view name) const {
    for (std::size_t layer = 0; layer < layers_; ++layer)
      if (const GgufTensor* own = in_layer(layer, name)) return own;
    return nullptr;
  }
  [[nodiscard]] static double rows(const GgufTensor& tensor) {
    return static_cast<double>(tensor.shape.size() < 2 ? 1 : tensor.shape[tensor.shape.size() - 2]);
  }

  // A whole number, or a list by layer whose numbers above 0 must be equal.
  std::optional<double> count(const std::string& key) {
    const auto found = first_.metadata().find(prefix_ + key);
    if (found == first_.metadata().end()) return std::nullopt;
    std::optional<double> number = number_of(found->second);
    if (const auto* list = std::get_if<GgufValue::List>(&found->second.value)) {
      for (const GgufValue& item : *list) {
        const std::optional<double> one = number_of(item);
        if (!one || *one == 0.0) continue;
        if (number && *number != *one) {
          refuse(fmt::format("{}{} differs by layer, allowed: the same number for all", prefix_, key));
          return std::nullopt;
        }
        number = one;
      }
      if (!number) return std::nullopt;
    }
    constexpr double kMost = 1e9;
    if (!number || !(*number >= 0.0 && *number <= kMost) || *number != std::floor(*number)) {
      refuse(fmt::format("{}{} is {}, allowed: a whole number from 0 to 1e9", prefix_, key,
                         number ? fmt::format("{:g}", *number) : "no number"));
      return std::nullopt;
    }
    return number;
  }
  double needed(const char* key) {
    const auto number = count(key);
    if (!number || *number == 0.0) {
      if (!first_.metadata().contains(prefix_ + key) || number)
        refuse(fmt::format("{}{} is missing or 0, allowed: every key of the model's shape", prefix_, key));
      return 1.0;
    }
    return *number;
  }

  void read_shape() {
    const std::string* const name = first_.text("general.name");
    put_text("model_type", in_type());
    put_text("gguf_architecture", prefix_.substr(0, prefix_.size() - 1));
    if (const auto context = count("context_length"); context && *context > 0.0) put("max_position_embeddings", *context);
    put_text("_name_or_path", name != nullptr && !name->empty() ? *name : std::filesystem::path(first_.path()).stem().string());
    const double blocks = needed("block_count");
    modules_ = count("nextn_predict_layers").value_or(0.0);
    constexpr double kMostLayers = 1e5;
    if (blocks > kMostLayers || modules_ >= blocks) {
      refuse(
          fmt::format("{}block_count is {:.0f} with {:.0f} MTP modules, allowed: a block_count above the "
                      "modules, at most {:.0f}",
                      prefix_, blocks, modules_, kMostLayers));
      return;
    }
    layers_ = static_cast<std::size_t>(blocks - modules_);
    put("num_hidden_layers", static_cast<double>(layers_));
    if (modules_ > 0.0) put("num_nextn_predict_layers", modules_);
    put("hidden_size", needed("embedding_length"));
    const GgufTensor* const embeddings = tensor("token_embd.weight");
    if (embeddings == nullptr || embeddings->shape.size() != 2)
      refuse("tensor \"token_embd.weight\" is missing or no matrix, allowed: every tensor of the model");
    else
      put("vocab_size", rows(*embeddings));
    put_truth("tie_word_embeddings", tensor("output.weight") == nullptr);
  }
  // The model type: gates are recognised from the tensors, so only two types are needed.
  [[nodiscard]] std::string in_type() const {
    for (const auto& [name, own] : tensors_)
      if (name.find("ffn_gate.") != std::string::npos || name.find("ffn_gate_exps.") != std::string::npos ||
          name.find("ffn_gate_up_exps.") != std::string::npos)
        return "gguf";
    const GgufTensor* up = tensor("blk.0.ffn_up.weight");  // Phi-3 and GLM join gate and up
    const GgufTensor* down = tensor("blk.0.ffn_down.weight");
    if (up != nullptr && down != nullptr && !down->shape.empty() && rows(*up) == 2.0 * static_cast<double>(down->shape.back()))
      return "gguf";
    return "gguf_plain";
  }

  void read_attention() {
    heads_ = needed("attention.head_count");
    put("num_attention_heads", heads_);
    const auto kv = count("attention.head_count_kv");
    if (const auto latent = count("attention.kv_lora_rank"); latent && *latent > 0.0) {
      const double rope = needed("rope.dimension_count");
      const auto key = count("attention.key_length_mla");
      const auto value = count("attention.value_length_mla");
      put("kv_lora_rank", *latent);
      if (const auto rank = count("attention.q_lora_rank"); rank && *rank > 0.0) put("q_lora_rank", *rank);
      put("qk_rope_head_dim", rope);
      put("qk_nope_head_dim", (key ? *key : needed("attention.key_length")) - rope);
      put("v_head_dim", value ? *value : needed("attention.value_length"));
      if (const auto picked = count("attention.indexer.top_k"); picked && *picked > 0.0) {
        put("index_topk", *picked);
        put("index_n_heads", needed("attention.indexer.head_count"));
        put("index_head_dim", needed("attention.indexer.key_length"));
      }
      return;
    }
    if (kv && *kv > 0.0) put("num_key_value_heads", *kv);
    const auto key = count("attention.key_length");
    if (key && *key > 0.0) {
      put("head_dim", *key);
      if (const auto value = count("attention.value_length"); value && *value != *key) put("v_head_dim", *value);
      if (const GgufTensor* queries = in_any_layer("attn_q.weight"))
        if (rows(*queries) == 2.0 * heads_ * *key) put_truth("attn_output_gate", true);
    }
    if (const auto narrow = count("attention.key_length_swa"); narrow && key && *narrow != *key) {
      put("swa_head_dim", *narrow);
    }
    if (const auto shared = count("attention.shared_kv_layers"); shared && *shared > 0.0) put("num_kv_shared_layers", *shared);
    if (const auto width = count("embedding_length_per_layer_input"); width && *width > 0.0) {
      put("hidden_size_per_layer_input", *width);
      if (const GgufTensor* laurel = in_any_layer("laurel_l.weight")) put("laurel_rank", rows(*laurel));
    }
  }

  // The kind of each layer, from its tensors and the pattern of windows.
  void read_layers() {
    std::vector<bool> windowed(layers_, false);
    if (const auto window = count("attention.sliding_window"); window && *window > 0.0) {
      put("sliding_window", *window);
      windowed = windows();
    }
    std::vector<std::string> mixers;
    std::vector<std::string> parts;
    bool singles = false;
    bool experts = false;
    for (std::size_t i = 0; i < layers_; ++i) {
      const bool attends = in_layer(i, "attn_q.weight") != nullptr || in_layer(i, "attn_qkv.weight") != nullptr ||
                           in_layer(i, "attn_q_a.weight") != nullptr || in_layer(i, "attn_kv_a_mqa.weight") != nullptr;
      const bool state = in_layer(i, "ssm_out.weight") != nullptr || in_layer(i, "ssm_in.weight") != nullptr ||
                         in_layer(i, "shortconv.in_proj.weight") != nullptr || in_layer(i, "ssm_conv1d.weight") != nullptr;
      const bool mixture = in_layer(i, "ffn_gate_exps.weight") != nullptr || in_layer(i, "ffn_up_exps.weight") != nullptr ||
                           in_layer(i, "ffn_gate_up_exps.weight") != nullptr;
      const bool dense = in_layer(i, "ffn_up.weight") != nullptr;
      if (!attends && !state && !mixture && !dense) {
        refuse(fmt::format("layer {} has no tensors of attention, state or feed-forward, allowed: the names of llama.cpp", i));
        return;
      }
      singles = singles || ((attends || state) && !mixture && !dense) || (!attends && !state);
      both_ = both_ || (mixture && dense);
      parallel_ = parallel_ || (attends && state && in_layer(i, "ssm_in.weight") != nullptr);
      experts = experts || mixture;
      has_state_ = has_state_ || state;
      // Qwen3-Next's linear attention has a joined product under attention's name.
      const bool is_state = state && !(parallel_ && attends);
      mixers.emplace_back(is_state ? "linear_attention" : windowed[i] ? "sliding_attention" : "full_attention");
      parts.emplace_back(mixture ? "sparse" : "dense");
      letters_ += !attends && !state ? (mixture ? 'E' : '-') : is_state ? 'M' : '*';
    }
    if (singles) {
      put_text("hybrid_override_pattern", letters_);
      return;
    }
    put_words("layer_types", mixers);
    if (experts) put_words("mlp_layer_types", parts);
  }

  // If the file has no pattern, uses that of its architecture (llama.cpp, llama-model.cpp: set_swa_pattern).
  std::vector<bool> windows() {
    std::vector<bool> windowed(layers_, true);
    const auto found = first_.metadata().find(prefix_ + "attention.sliding_window_pattern");
    if (found != first_.metadata().end()) {
      if (const auto* list = std::get_if<GgufValue::List>(&found->second.value)) {
        for (std::size_t i = 0; i < layers_ && i < list->size(); ++i) windowed[i] = number_of((*list)[i]).value_or(0.0) != 0.0;
        return windowed;
      }
      if (const auto every = number_of(found->second); every && *every >= 1.0) {
        for (std::size_t i = 0; i < layers_; ++i) windowed[i] = (i + 1) % static_cast<std::size_t>(*every) != 0;
        return windowed;
      }
    }
    struct Pattern {
      std::string_view architecture;
      std::size_t every;
    };
    constexpr std::array<Pattern, 9> kPatterns = {{{"gemma2.", 2},
                                                   {"gemma3.", 6},
                                                   {"gemma3n.", 5},
                                                   {"gpt-oss.", 2},
                                                   {"cohere2.", 4},
                                                   {"olmo2.", 4},
                                                   {"exaone4.", 4},
                                                   {"smallthinker.", 4},
                                                   {"afmoe.", 4}}};
    for (const Pattern& one : kPatterns)
      if (one.architecture == prefix_)
        for (std::size_t i = 0; i < layers_; ++i) windowed[i] = (i + 1) % one.every != 0;
    if (std::string_view(prefix_).starts_with("qwen")) windowed.assign(layers_, false);  // which llama.cpp does not use
    return windowed;
  }

  void read_state() {
    if (!has_state_) return;
    if (const GgufTensor* in = in_any_layer("shortconv.in_proj.weight")) {
      put("conv_dim", rows(*in) / 3.0);
      put("conv_L_cache", count("shortconv.l_cache").value_or(3.0));
      return;
    }
    const double inner = needed("ssm.inner_size");
    const double width = needed("ssm.state_size");
    const double heads = needed("ssm.time_step_rank");
    const double kernel = count("ssm.conv_kernel").value_or(4.0);
    if (in_any_layer("ssm_x.weight") != nullptr) {
      put("mamba_d_state", width);
      put("mamba_d_conv", kernel);
      put("mamba_dt_rank", heads);
      put("mamba_expand", inner / std::max(1.0, count("embedding_length").value_or(1.0)));
    } else if (in_any_layer("ssm_beta.weight") != nullptr || in_any_layer("ssm_ba.weight") != nullptr ||
               in_any_layer("ssm_alpha.weight") != nullptr) {
      put("linear_num_value_heads", heads);
      put("linear_num_key_heads", count("ssm.group_count").value_or(heads));
      put("linear_value_head_dim", inner / heads);
      put("linear_key_head_dim", width);
      put("linear_conv_kernel_dim", kernel);
    } else {
      put("mamba_n_heads", heads);
      put("mamba_n_groups", count("ssm.group_count").value_or(1.0));
      put("mamba_d_head", inner / heads);
      put("mamba_d_ssm", inner);
      put("mamba_d_state", width);
      put("mamba_d_conv", kernel);
      put_truth("mamba_parallel_attention", parallel_);
    }
  }

  void read_feed_forward() {
    double width = count("feed_forward_length").value_or(0.0);
    if (const GgufTensor* down = in_any_layer("ffn_down.weight"); down != nullptr && !down->shape.empty())
      width = static_cast<double>(down->shape.back());
    const auto experts = count("expert_count");
    if (!experts || *experts == 0.0) {
      put("intermediate_size", width);
      return;
    }
    put("num_experts", *experts);
    put("num_experts_per_tok", needed("expert_used_count"));
    const GgufTensor* down = in_any_layer("ffn_down_exps.weight");
    const auto told = count("expert_feed_forward_length");
    const double own = down != nullptr && !down->shape.empty() ? static_cast<double>(down->shape.back()) : told.value_or(width);
    put("moe_intermediate_size", own);
    put("intermediate_size", width > 0.0 ? width : own);
    const GgufTensor* shared = in_any_layer("ffn_down_shexp.weight");
    const double beside = shared != nullptr && !shared->shape.empty() ? static_cast<double>(shared->shape.back())
                          : both_                                     ? width
                                                                      : 0.0;
    if (beside > 0.0) put("shared_expert_intermediate_size", beside);
    if (const GgufTensor* latent = in_any_layer("ffn_latent_down.weight")) put("moe_latent_size", rows(*latent));
  }

  void count_tensors(GgufDescription& own) const {
    for (const auto& [name, tensor] : tensors_) {
      std::string part(part_of_tensor(name, tensor->shape.size(), layers_));
      if (both_ && part == "dense" && name.find("ffn_") != std::string::npos) part = "shared";
      if (part == "attention" && has_state_ && is_state_tensor(name)) part = "state";
      const config::GgufFormat& format = *config::gguf_format(tensor->type);
      TensorSum& sum = own.parts[part][format.name];
      ++sum.tensors;
      sum.elements += static_cast<double>(tensor->bytes / format.block_bytes) * static_cast<double>(format.block_values);
      sum.bytes += static_cast<double>(tensor->bytes);
    }
  }
  // Qwen3-Next's joined products of linear attention (attn_qkv, attn_gate).
  [[nodiscard]] bool is_state_tensor(const std::string& name) const {
    const std::size_t dot = name.find('.', 4);
    return name.starts_with("blk.") && dot != std::string::npos && tensors_.contains(name.substr(0, dot) + ".ssm_out.weight") &&
           !tensors_.contains(name.substr(0, dot) + ".attn_q.weight");
  }

  // Types by part, with their shares.
  [[nodiscard]] Value dtype_of(const StoredParts& parts) const {
    std::map<std::string, double> layers;  // [word] elements
    std::vector<std::pair<std::string, Value>> fields;
    for (const auto& [part, types] : parts) {
      if (part == "small" || part == "other" || part == "mtp") continue;
      double sum = 0.0;
      for (const auto& [type, tensors] : types) sum += tensors.elements;
      std::map<std::string, double> shares;
      for (const auto& [type, tensors] : types) {
        const std::string word = type == "F32" ? "32" : type == "F16" || type == "BF16" ? "bf16" : small_letters(type);
        shares[word] += tensors.elements / sum;
        if (part != "head" && part != "embeddings") layers[word] += tensors.elements;
      }
      std::vector<std::pair<std::string, Value>> own;
      for (const auto& [word, share] : shares) own.emplace_back(word, config::scalar(fmt::format("{:.12f}", share), where_));
      fields.emplace_back(part,
                          own.size() == 1 ? config::scalar(own.front().first, where_) : config::map(std::move(own), where_));
    }
    const auto most =
        std::max_element(layers.begin(), layers.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != layers.end()) fields.emplace_back("weights", config::scalar(most->first, where_));
    const auto has = [&](std::string_view part) {
      return std::any_of(fields.begin(), fields.end(), [&](const auto& field) { return field.first == part; });
    };
    if (!has("head") && has("embeddings"))  // tied
      for (std::size_t i = 0; i < fields.size(); ++i)
        if (fields[i].first == "embeddings") {
          fields.emplace_back("head", fields[i].second);
          break;
        }
    return config::map(std::move(fields), where_);
  }

  std::vector<std::unique_ptr<GgufFile>> files_;
  const GgufFile& first_;
  Location where_;
  Diagnostics& diagnostics_;
  std::string prefix_;
  std::map<std::string, const GgufTensor*> tensors_;
  std::size_t layers_ = 0;
  double modules_ = 0.0;
  double heads_ = 0.0;
  bool both_ = false;      // layers with a dense part in parallel with the experts
  bool parallel_ = false;  // a state space in parallel with attention
  bool has_state_ = false;
  std::string letters_;
  std::vector<std::pair<std::string, Value>> fields_;
};

// The files of a model that is split: NAME-00001-of-00003.gguf.
std::vector<std::string> split_files(const std::string& path) {
  constexpr std::string_view kForm = "-00001-of-00001.gguf";
  std::string_view end = path;
  if (end.size() <= kForm.size()) return {path};
  end.remove_prefix(end.size() - kForm.size());
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (std::isdigit(static_cast<unsigned char>(kForm[i])) != 0 ? std::isdigit(static_cast<unsigned char>(end[i])) == 0
                                                                : kForm[i] != end[i])
      return {path};
  const std::string count(end.substr(10, 5));
  std::vector<std::string> files;
  for (int i = 1; i <= std::stoi(count); ++i)
    files.push_back(fmt::format("{}-{:05}-of-{}.gguf", path.substr(0, path.size() - kForm.size()), i, count));
  return files;
}

}  // namespace

std::optional<GgufDescription> describe_gguf(const std::string& path, Diagnostics& diagnostics) {
  std::vector<std::unique_ptr<GgufFile>> files;
  try {
    for (const std::string& file : split_files(path)) files.push_back(std::make_unique<GgufFile>(file, kLongestList));
  } catch (const BadInput& bad) {
    for (const Diagnostic& mistake : bad.list()) diagnostics.add(mistake.where, mistake.message);
    return std::nullopt;
  }
  if (files.empty()) {
    diagnostics.add({path, 0, 0}, "it is part of 0, allowed: NAME-00001-of-00003.gguf");
    return std::nullopt;
  }
  return GgufReader(std::move(files), diagnostics).read();
}

}  // namespace specsim::cost
