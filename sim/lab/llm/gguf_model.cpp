#include "sim/lab/llm/gguf_model.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/config/value.h"
#include "sim/foundation/config/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>

namespace specsim::llm {

namespace {

struct Rename {
  std::string_view ours;
  std::string_view theirs;
};
constexpr Rename kOfLayer[] = {
    {"input_layernorm.weight", "attn_norm.weight"},    {"post_attention_layernorm.weight", "ffn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},      {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},      {"self_attn.q_proj.bias", "attn_q.bias"},
    {"self_attn.k_proj.bias", "attn_k.bias"},          {"self_attn.v_proj.bias", "attn_v.bias"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight"}, {"self_attn.k_norm.weight", "attn_k_norm.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"}, {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},           {"mlp.down_proj.weight", "ffn_down.weight"}};
constexpr Rename kOfModel[] = {{"model.embed_tokens.weight", "token_embd.weight"},
                               {"lm_head.weight", "output.weight"},
                               {"model.norm.weight", "output_norm.weight"}};
constexpr const char* kRopeFactors = "rope_freqs.weight";

std::string gguf_name(const std::string& ours) {
  for (const Rename& one : kOfModel)
    if (ours == one.ours) return std::string(one.theirs);
  constexpr std::string_view kLayers = "model.layers.";
  const std::size_t dot = ours.find('.', kLayers.size());
  for (const Rename& one : kOfLayer)
    if (ours.substr(dot + 1) == one.ours)
      return fmt::format("blk.{}.{}", ours.substr(kLayers.size(), dot - kLayers.size()), one.theirs);
  return ours;
}

}  // namespace

bool is_gguf(const std::string& path) { return path.ends_with(".gguf"); }

GgufModel::GgufModel(const std::string& path) : file_(path) {
  check_gguf_types(file_);
  read_config();
}

void GgufModel::read_config() {
  const std::string* const architecture = file_.text("general.architecture");
  constexpr std::array<std::string_view, 4> kKnown = {"llama", "qwen2", "qwen3", "gemma"};
  if (architecture == nullptr || std::find(kKnown.begin(), kKnown.end(), *architecture) == kKnown.end())
    throw BadInput(
        {file_.path(), 0, 0},
        fmt::format("general.architecture is {}, allowed: {}",
                    architecture == nullptr ? "missing" : config::quote_for_message(*architecture), fmt::join(kKnown, ", ")));
  const std::string prefix = *architecture + ".";
  const auto count = [&](const char* key, std::size_t fallback, double low, double high) {
    return file_.count(prefix + key, fallback, low, high);
  };
  const auto needed = [&](const char* key, double low, double high) {
    if (!file_.metadata().contains(prefix + key))
      throw BadInput({file_.path(), 0, 0}, fmt::format("{}{} is missing, allowed: every key of the model's shape", prefix, key));
    return count(key, 0, low, high);
  };
  ModelConfig& c = config_;
  c.hidden = needed("embedding_length", 1, 65536);
  c.layers = needed("block_count", 1, 1024);
  c.heads = needed("attention.head_count", 1, 1024);
  c.kv_heads = count("attention.head_count_kv", c.heads, 1, 1024);
  c.ffn = needed("feed_forward_length", 1, 1 << 20);
  c.context = needed("context_length", 1, 1e7);
  c.head_dim = count("attention.key_length", c.hidden / c.heads, 2, 1024);
  c.norm_epsilon = file_.number(prefix + "attention.layer_norm_rms_epsilon", 1e-6, 0.0, 0.1);
  const auto embedding = file_.tensors().find("token_embd.weight");
  if (embedding == file_.tensors().end() || embedding->second.shape.size() != 2)
    throw BadInput({file_.path(), 0, 0},
                   "tensor \"token_embd.weight\" is missing or not a matrix, allowed: every tensor of the model");
  c.vocab = embedding->second.shape[0];
  if (c.vocab < static_cast<std::size_t>(kMinVocab) || c.vocab > static_cast<std::size_t>(kMaxVocab))
    throw BadInput({file_.path(), 0, 0}, fmt::format("{} embeddings, allowed: {} to {}", c.vocab, kMinVocab, kMaxVocab));
  c.tied_embeddings = !file_.tensors().contains("output.weight");
  c.qkv_bias = *architecture == "qwen2";
  c.qk_norm = *architecture == "qwen3";
  c.gelu_gate = c.scaled_embeddings = *architecture == "gemma";  // its norms are stored with one added
  interleaved_ = *architecture == "llama";
  c.begin_token = static_cast<Token>(
      file_.count("tokenizer.ggml.bos_token_id", std::min<std::size_t>(1, c.vocab - 1), 0, static_cast<double>(c.vocab - 1)));
  if (c.heads % c.kv_heads != 0 || c.head_dim % 2 != 0 || count("rope.dimension_count", c.head_dim, 1, 1e4) != c.head_dim ||
      count("attention.value_length", c.head_dim, 1, 1e4) != c.head_dim || count("expert_count", 0, 0, 1e6) != 0)
    throw BadInput(
        {file_.path(), 0, 0},
        fmt::format(
            "{} heads of {} with {} of keys and values, allowed: a number of key-value heads that divides the heads, an even "
            "width for keys and values that is rotated as a whole, no experts",
            c.heads, c.head_dim, c.kv_heads));
  read_rope(prefix);
  check_names(prefix);
}

void GgufModel::read_rope(const std::string& prefix) {
  config_.rope_theta = file_.number(prefix + "rope.freq_base", 1e4, 1.0, 1e9);
  RopeScaling& scaling = config_.rope_scaling;
  if (const std::string* type = file_.text(prefix + "rope.scaling.type"); type != nullptr && *type != "none") {
    if (*type != "linear")
      throw BadInput({file_.path(), 0, 0},
                     fmt::format("{}rope.scaling.type is {}, allowed: none, linear", prefix, config::quote_for_message(*type)));
    scaling.method = RopeScaling::Method::linear;
  }
  scaling.factor = file_.number(prefix + "rope.scaling.factor", 1.0, 1.0, 1e4);
  if (!file_.tensors().contains(kRopeFactors)) return;
  if (scaling.method != RopeScaling::Method::none)
    throw BadInput({file_.path(), 0, 0}, "both rope_freqs.weight and linear scaling, allowed: one of them");
  std::vector<float> factors(config_.head_dim / 2);
  rows(kRopeFactors, {factors.size()}).read(0, factors);
  scaling.method = RopeScaling::Method::factors;
  for (const float x : factors) {
    if (!(x > 0.0F && std::isfinite(x)))
      throw BadInput({file_.path(), 0, 0}, fmt::format("rope_freqs.weight holds {}, allowed: finite numbers above 0", x));
    scaling.factors.push_back(static_cast<double>(x));
  }
}

// Refuses unknown keys of the architecture and unknown tensors.
void GgufModel::check_names(const std::string& prefix) const {
  static const std::vector<std::string_view> kKeys = config::words_of(
      "attention.causal attention.head_count attention.head_count_kv attention.key_length "
      "attention.layer_norm_rms_epsilon attention.value_length block_count context_length embedding_length expert_count "
      "expert_used_count feed_forward_length rope.dimension_count rope.freq_base rope.scaling.factor "
      "rope.scaling.finetuned rope.scaling.original_context_length rope.scaling.type vocab_size");
  Diagnostics diagnostics;
  for (const auto& entry : file_.metadata())
    if (entry.first.starts_with(prefix) && !config::is_among(std::string_view(entry.first).substr(prefix.size()), kKeys))
      diagnostics.add({file_.path(), 0, 0}, fmt::format("key {} is unknown and may change what the model computes, allowed: {}",
                                                        config::quote_for_message(entry.first), fmt::join(kKeys, ", ")));
  std::set<std::string> names = {kRopeFactors};
  for (const Rename& one : kOfModel) names.insert(std::string(one.theirs));
  for (std::size_t layer = 0; layer < config_.layers; ++layer)
    for (const Rename& one : kOfLayer)
      if ((config_.qkv_bias || !one.theirs.ends_with(".bias")) &&
          (config_.qk_norm || !one.theirs.ends_with("_norm.weight") || one.theirs == "attn_norm.weight" ||
           one.theirs == "ffn_norm.weight"))
        names.insert(fmt::format("blk.{}.{}", layer, one.theirs));
  for (const auto& entry : file_.tensors())
    if (!names.contains(entry.first))
      diagnostics.add({file_.path(), 0, 0}, fmt::format("tensor {} is unknown and may change what the model computes, allowed: "
                                                        "those of the architecture",
                                                        config::quote_for_message(entry.first)));
  diagnostics.throw_if_any();
}

TensorRows GgufModel::rows(const std::string& name, const std::vector<std::size_t>& shape) const {
  const std::string theirs = gguf_name(name);
  const auto found = file_.tensors().find(theirs);
  if (found == file_.tensors().end())
    throw BadInput({file_.path(), 0, 0}, fmt::format("tensor \"{}\" is missing, allowed: every tensor of the model", theirs));
  const GgufTensor& tensor = found->second;
  if (tensor.shape != shape)
    throw BadInput({file_.path(), 0, 0}, fmt::format("tensor \"{}\" has shape [{}], allowed by the metadata: [{}]", theirs,
                                                     fmt::join(tensor.shape, ", "), fmt::join(shape, ", ")));
  const bool turned = interleaved_ && (name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight"));
  const std::size_t width = config_.head_dim;
  const std::string format = config::gguf_format(tensor.type)->name;
  const Precision precision = format == "F16" ? Precision::f16 : format == "BF16" ? Precision::bf16 : Precision::f32;
  return {file_.path(), precision, [this, &tensor, turned, width](std::size_t row, std::span<float> values) {
            const std::size_t at = row % width;
            read_gguf_row(file_, tensor, turned ? row - at + 2 * (at % (width / 2)) + at / (width / 2) : row, values);
          }};
}

}  // namespace specsim::llm
