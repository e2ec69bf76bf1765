// Reads descriptions of models.
#include "sim/hardware/model/element_types.h"
#include "sim/hardware/model/model_shape.h"
#include "sim/hardware/presets/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <variant>

namespace specsim::cost {

namespace {

using config::Parameter;
using config::Type;

// A model's shape with the raw values of a description's keys. Optional parts of the model are put together from them at the end.
struct Described : ModelShape {
  double index_topk = 0.0;
  double index_heads = 0.0;
  double index_dim = 0.0;
  double index_layers = 0.0;
  double linear_value_heads = 0.0;
  double linear_key_heads = 0.0;
  double linear_head_dim = 0.0;
  double linear_key_dim = 0.0;
  double linear_convolved = 0.0;
  double linear_rank = 0.0;
  bool linear_full_gate = false;
  double state_bits = 0.0;
  double latent_width = 0.0;
  double rope_dim = 0.0;
  double output_groups = 0.0;
  double output_rank = 0.0;
  double layer_embedding = 0.0;
  double layer_rank = 0.0;
  double picked_layers = 0.0;
  double picked_tokens = 0.0;
  double heavy_layers = 0.0;
  double heavy_tokens = 0.0;
};

// A key of a description and the member of the shape that it sets; a key without a member is read separately.
struct Key {
  Parameter parameter;
  std::variant<std::monostate, double Described::*, bool Described::*, std::optional<double> Described::*,
               std::string Described::*>
      member = {};
};

Key count(const char* name, double Described::*member, std::optional<std::string> fallback, const char* summary,
          double low = 1.0) {
  return {{name, Type::integer, std::move(fallback), summary, config::between(low, 1e7), {}}, member};
}

// A number that may be missing; 0 also means missing, as older files wrote it.
Key perhaps(const char* name, std::optional<double> Described::*member, const char* summary) {
  return {{name, Type::integer, "", summary, config::between(0, 1e7), {}}, member};
}

Key word(const char* name, std::string Described::*member, const char* summary) {
  return {{name, Type::text, "", summary, {}, {}}, member};
}

Key flag(const char* name, bool Described::*member, const char* fallback, const char* summary) {
  return {{name, Type::boolean, fallback, summary, {}, {}}, member};
}

const std::vector<Key>& model_keys() {
  static const std::vector<Key> keys = {
      {{"preset", Type::text, "", "a model's name, file or config.json; the other keys override its values", {}, {}}},
      {{"model", Type::text, "", "another name for preset", {}, {}}},
      {{"name", Type::text, "", "name that its authors gave it", {}, {}}},
      {{"aliases", Type::value_list, "", "other names of the same shape", {}, {}}},
      {{"source", Type::text, "", "where the figures come from", {}, {}}},
      flag("unverified", &ModelShape::unverified, "false", "figures from memory, not verified"),
      count("layers", &ModelShape::layers, {}, "transformer layers; 0: prediction heads alone", 0),
      count("hidden", &ModelShape::hidden, {}, "width"),
      count("heads", &ModelShape::heads, {}, "query heads"),
      count("kv_heads", &ModelShape::kv_heads, {}, "key and value heads"),
      count("head_dim", &ModelShape::head_dim, {}, "width of a head"),
      count("ffn", &ModelShape::ffn, {}, "width of the feed-forward part; ignored if there are experts", 0),
      flag("gated", &ModelShape::gated, "true", "gate and up projections, or up alone"),
      count("vocab", &ModelShape::vocab, {}, "rows of the LM head; fewer for a draft with a reduced vocabulary", 2),
      perhaps("embedding_vocab", &ModelShape::embedding_vocab,
              "tokens that have an embedding, if they are more than the LM head's rows"),
      flag("tied_embeddings", &ModelShape::tied_embeddings, "false", "embeddings and LM head are one matrix"),
      count("experts", &ModelShape::experts, "0", "experts of a layer; 0: dense", 0),
      count("experts_per_token", &ModelShape::experts_per_token, "0", "experts that each token uses", 0),
      count("expert_ffn", &ModelShape::expert_ffn, "0", "width of one expert", 0),
      count("shared_ffn", &ModelShape::shared_ffn, "0",
            "width that every token of a mixture's layer passes besides its experts; 0: nothing", 0),
      perhaps("expert_hidden", &ModelShape::expert_hidden,
              "width that routed experts work on, between two products, if it is not the model's (Nemotron 3's latent experts)"),
      count("dense_layers", &ModelShape::dense_layers, "0", "layers of a mixture without experts, ffn wide", 0),
      count("latent", &Described::latent_width, "0",
            "latent attention (MLA): width of the cached vector that keys and values are computed from; 0: none", 0),
      count("rope_dim", &Described::rope_dim, "0",
            "latent attention: rotated elements of a key, cached once for all heads; head_dim counts them", 0),
      perhaps("query_rank", &ModelShape::query_rank,
              "latent attention, and one_vector: width that queries are squeezed through; 0: none"),
      perhaps("value_dim", &ModelShape::value_dim, "width of a head's value, if it is not head_dim; 0: head_dim"),
      count("index_topk", &Described::index_topk, "0",
            "sparse attention (DSA): cached tokens that an indexer selects for each new token, which attends to these only; 0: "
            "it attends to all",
            0),
      count("index_heads", &Described::index_heads, "0", "sparse attention: heads of the indexer", 0),
      count("index_dim", &Described::index_dim, "0",
            "sparse attention: width of the indexer's heads, and of the key that it caches for a token in 8 bits", 0),
      count("index_layers", &Described::index_layers, "0",
            "sparse attention: layers with an indexer of their own; the others reuse the selection of an earlier layer; 0: all",
            0),
      count("picked_layers", &Described::picked_layers, "0",
            "compressed attention (DeepSeek-V4): layers that keep, besides the window's tokens, one entry per picked_tokens "
            "tokens, of which an indexer selects index_topk; 0: none",
            0),
      count("picked_tokens", &Described::picked_tokens, "0", "compressed attention: tokens per such entry", 0),
      count("heavy_layers", &Described::heavy_layers, "0",
            "compressed attention: layers that keep, besides the window's tokens, one entry per heavy_tokens tokens, and read "
            "all of them; 0: none",
            0),
      count("heavy_tokens", &Described::heavy_tokens, "0", "compressed attention: tokens per such entry", 0),
      flag("one_vector", &ModelShape::one_vector, "false", "one cached vector per head serves as key and value (DeepSeek-V4)"),
      count("output_groups", &Described::output_groups, "0",
            "groups of heads whose outputs are squeezed to output_rank before the output's projection; 0: no such step", 0),
      count("output_rank", &Described::output_rank, "0", "width that a group's output is squeezed to", 0),
      count("residual_streams", &ModelShape::residual_streams, "1",
            "residual vectors that hyper-connections mix before and after attention and feed-forward (DeepSeek-V4's 4)"),
      {{"fused_inputs", Type::number, "0", "hidden vectors that an EAGLE head joins; 0: none", config::between(0, 1e4), {}},
       &ModelShape::fused_inputs},
      {{"attention_inputs",
        Type::number,
        "1",
        "hidden vectors side by side that attention reads, as a mean over the layers; 2 in an EAGLE-3 head of one layer",
        config::between(1, 16),
        {}},
       &ModelShape::attention_inputs},
      count("prediction_heads", &ModelShape::prediction_heads, "0",
            "heads that guess one additional token each in the same pass, each with an LM head of its own (Medusa); 0: none", 0),
      count("head_matrices", &ModelShape::head_matrices, "0",
            "products of all these heads together before their LM heads, each hidden by hidden", 0),
      count("markov_rank", &ModelShape::markov_rank, "0",
            "width of a block drafter's Markov head (DSpark), which biases each position's logits by the token before; 0: none",
            0),
      {{"markov_matrices",
        Type::number,
        "0",
        "parameters of a Markov head's products at a position, besides those from and to the vocabulary (Domino's)",
        config::between(0, 1e12),
        {}},
       &ModelShape::markov_matrices},
      flag("markov_embeds", &ModelShape::markov_embeds, "true", "the Markov head has embeddings of its own"),
      word("drafter", &ModelShape::drafter,
           "kind of drafter, by which servers choose their method: eagle, eagle3, p_eagle, mtp, medusa, dflash, dspark, domino, "
           "pard, ...; default: from the shape"),
      perhaps("longest_draft", &ModelShape::longest_draft, "maximum number of tokens that a block drafter can draft"),
      perhaps("target_hidden", &ModelShape::target_hidden, "a head's: width of the target that it was made for"),
      perhaps("target_vocab", &ModelShape::target_vocab, "a head's: tokens of that target"),
      perhaps("target_layers", &ModelShape::target_layers, "a head's: layers of that target"),
      word("verifier", &ModelShape::verifier, "a head's: name of that target"),
      {{"context",
        Type::integer,
        "",
        "tokens of the longest sequence that servers accept by default (max_position_embeddings); 0: not known",
        config::between(0, 1e9),
        {}},
       &ModelShape::context},
      {{"alias_contexts",
        Type::value,
        "",
        "context of aliases that accept longer or shorter sequences: {llama-3-8b: 8192}",
        {},
        {}}},
      word("architecture", &ModelShape::architecture,
           "name of the architecture in config.json (model_type) or GGUF, where servers decide by it"),
      flag("shares_lm_head", &ModelShape::shares_lm_head, "false", "embeddings and LM head are the target's"),
      flag("shares_embeddings", &ModelShape::shares_embeddings, "false", "embeddings are the target's, the LM head is its own"),
      flag("one_pass", &ModelShape::one_pass, "false",
           "one pass over all positions drafts a whole round (DFlash, PARD); plan estimates it so"),
      flag("in_target_checkpoint", &ModelShape::in_target_checkpoint, "false",
           "a module (MTP) that is part of the target's own checkpoint, so that servers take no path for it"),
      {{"assumed", Type::value_list, "", "assumptions of the description, reported as a warning", {}, {}}},
      {{"unread", Type::value_list, "", "keys of the source file that were not used", {}, {}}},
      {{"stored",
        Type::value,
        "",
        "tensors, elements and bytes by part and type in the files of the weights, according to their headers",
        {},
        {}}},
      {{"dtype",
        Type::value,
        "",
        "types: a word for weights and the activations they are multiplied with (bf16, fp8, int8, int4, nvfp4, mxfp4), or "
        "{weights, activations, cache, experts, attention}",
        {},
        {}}},
      {{"checkpoints",
        Type::value,
        "",
        "dtype of checkpoints that are published in addition to it, by the word that benchmarks use: {fp8: fp8_block, fp4: "
        "{weights: nvfp4, attention: bf16}}",
        {},
        {}}},
      {{"weight_bits",
        Type::number,
        "16",
        "bits of a weight, for formats without a dtype word; overrides the types in dtype",
        config::between(1, 32),
        {}}},
      {{"head_bits",
        Type::number,
        "",
        "bits of a weight of LM head and embeddings; default: 16, or weight_bits if that is more",
        config::between(1, 32),
        {}}},
      {{"kv_bits", Type::number, "16", "bits of a cached key or value; overrides dtype's cache", config::between(1, 32), {}}},
      count("kv_window", &ModelShape::kv_window, "0", "newest cached tokens that attention reads and keeps; 0: all", 0),
      count("window_layers", &ModelShape::window_layers, "0", "layers that have the window; 0: all of them", 0),
      flag("chunked", &ModelShape::chunked, "false", "the window restarts with every chunk of its size (Llama 4)"),
      count("linear_layers", &ModelShape::linear_layers, "0", "layers without a cache that grows: linear attention, state spaces",
            0),
      {{"linear_kind",
        Type::text,
        "gated_deltanet",
        "kind of these layers: Gated DeltaNet (Qwen3-Next), Kimi Delta Attention, lightning attention (MiniMax-01), a state "
        "space (mamba, mamba2), or a gated convolution alone (LFM2)",
        {},
        {"gated_deltanet", "kimi_delta", "lightning", "mamba", "mamba2", "convolution"}}},
      count("linear_value_heads", &Described::linear_value_heads, "0",
            "in these layers: heads of values, channels of mamba, heads of mamba2; 0: latencies with attention's projections, "
            "and no state",
            0),
      count("linear_key_heads", &Described::linear_key_heads, "0", "in these layers: heads of keys, groups of mamba2", 0),
      count("linear_head_dim", &Described::linear_head_dim, "0",
            "in these layers: width of a head's value, and of its key unless linear_key_dim is given", 0),
      count("linear_key_dim", &Described::linear_key_dim, "0",
            "in these layers: width of a key, which is a state space's state per channel; 0: linear_head_dim", 0),
      count("linear_convolved", &Described::linear_convolved, "0", "in these layers: tokens in the window of the convolution", 0),
      count("linear_rank", &Described::linear_rank, "0",
            "in these layers: width that gates (Kimi) or time steps (mamba) are squeezed through", 0),
      flag("linear_full_gate", &Described::linear_full_gate, "false", "Kimi Delta Attention: the output's gate is not squeezed"),
      count("state_bits", &Described::state_bits, "32", "in these layers: bits of an element of the state", 8),
      flag("parallel_state", &ModelShape::parallel_state, "false",
           "every layer with attention also has such a state, in parallel (Falcon-H1)"),
      count("ffn_only_layers", &ModelShape::ffn_only_layers, "0", "layers with only a feed-forward part (Nemotron-H)", 0),
      count("mixer_only_layers", &ModelShape::mixer_only_layers, "0", "layers without a feed-forward part", 0),
      count("shared_kv_layers", &ModelShape::shared_kv_layers, "0",
            "layers without the window that read the keys and values of others and cache none", 0),
      count("shared_window_layers", &ModelShape::shared_window_layers, "0", "such layers with the window", 0),
      count("layer_embedding", &Described::layer_embedding, "0", "width of embeddings of each layer (Gemma 3n); 0: none", 0),
      count("layer_rank", &Described::layer_rank, "0", "width of the low-rank product in parallel with its attention; 0: none",
            0),
      flag("gated_attention", &ModelShape::gated_attention, "false",
           "attention's output is gated, by a projection as wide as the queries (Qwen3-Next)"),
      perhaps("global_head_dim", &ModelShape::global_head_dim, "width of a head in layers without the window; 0: head_dim"),
      perhaps("global_kv_heads", &ModelShape::global_kv_heads, "key and value heads of layers without the window; 0: kv_heads"),
      perhaps("global_heads", &ModelShape::global_heads, "query heads of layers without the window; 0: heads"),
      flag("global_one_value", &ModelShape::global_one_value, "false",
           "values of layers without the window are their keys' projection"),
      {{"offload",
        Type::value,
        "",
        "weights in the host's memory: {share: of the layers', link_gb_per_s: to each GPU}; a pass reads them over the link "
        "while it computes the layers before",
        {},
        {}}},
      {{"tensor_parallel", Type::integer, "1", "GPUs that share every layer", config::between(1, 64), {}},
       &ModelShape::tensor_parallel},
      {{"expert_parallel",
        Type::integer,
        "1",
        "GPUs that share a mixture's experts, each with attention, cache and sequences of its own (vLLM's data_parallel_size "
        "with enable_expert_parallel): tokens are gathered for the experts of each, and their sums scattered",
        config::between(1, 1024),
        {}},
       &ModelShape::expert_parallel},
      flag("whole_experts", &ModelShape::whole_experts, "false",
           "the GPUs of tensor_parallel hold whole experts each (vLLM's enable_expert_parallel, SGLang's and TensorRT-LLM's ep "
           "size), not a slice of every expert; servers do so where a slice would cut blocks of fp8_block")};
  return keys;
}

}  // namespace

const std::vector<Parameter>& model_parameters() {
  static const std::vector<Parameter> parameters = [] {
    std::vector<Parameter> list;
    for (const Key& key : model_keys()) list.push_back(key.parameter);
    return list;
  }();
  return parameters;
}

namespace {

// Checks layers of several kinds, and latent attention: keys that are only valid together.
void check_layers(const Described& shape, const config::Arguments& a, Diagnostics& diagnostics) {
  const auto at_most = [&](const char* key, double number, double allowed, const std::string& text) {
    if (number > allowed) diagnostics.add(a.where(key), fmt::format("{} is {:g}, allowed: {}", key, number, text));
  };
  if (shape.experts > 0.0)
    at_most("dense_layers", shape.dense_layers, shape.layers, fmt::format("at most the {:g} layers", shape.layers));
  else
    at_most("dense_layers", shape.dense_layers, 0.0, "0 in a model without experts");
  at_most("linear_layers", shape.linear_layers + shape.ffn_only_layers, shape.layers,
          fmt::format("at most the {:g} layers, with ffn_only_layers", shape.layers));
  at_most("mixer_only_layers", shape.mixer_only_layers + shape.dense_layers, shape.layers,
          fmt::format("at most the {:g} layers, with dense_layers", shape.layers));
  const double given = (shape.linear_value_heads > 0.0) + (shape.linear_key_heads > 0.0) + (shape.linear_head_dim > 0.0);
  if (given != 0.0 && given != 3.0)
    diagnostics.add(
        a.where(shape.linear_value_heads > 0.0 ? "linear_value_heads"
                : shape.linear_key_heads > 0.0 ? "linear_key_heads"
                                               : "linear_head_dim"),
        fmt::format("linear_value_heads is {:g}, linear_key_heads {:g}, linear_head_dim {:g}, allowed: all three above "
                    "0, or none of them",
                    shape.linear_value_heads, shape.linear_key_heads, shape.linear_head_dim));
  const double caching = shape.layers - shape.linear_layers - shape.ffn_only_layers;
  at_most("window_layers", shape.window_layers, caching, fmt::format("at most the {:g} layers that cache keys", caching));
  if (shape.window_layers > 0.0 && shape.kv_window == 0.0 && !a.given("kv_window"))
    diagnostics.add(a.where("window_layers"), "window_layers is given without kv_window, allowed: together with kv_window");
  if (shape.latent_width > 0.0 ? !shape.value_dim : shape.rope_dim > 0.0 || (shape.query_rank && !shape.one_vector))
    diagnostics.add(
        a.where(shape.latent_width > 0.0 ? "latent"
                : shape.query_rank       ? "query_rank"
                                         : "rope_dim"),
        fmt::format("latent is {:g}, rope_dim {:g}, query_rank {:g}, value_dim {:g}, allowed: latent and value_dim above 0 "
                    "(rope_dim and query_rank optional), or none of latent, rope_dim and query_rank",
                    shape.latent_width, shape.rope_dim, shape.query_rank.value_or(0.0), shape.value_dim.value_or(0.0)));
  if (shape.layers == 0.0 && (shape.prediction_heads == 0.0 || a.has("offload")))
    diagnostics.add(a.where("layers"), fmt::format("layers is 0{}, allowed: with prediction_heads, all weights on the GPU",
                                                   a.has("offload") ? " with offload" : ""));
  if (shape.prediction_heads == 0.0)
    at_most("head_matrices", shape.head_matrices, 0.0, "0 without prediction_heads");
  else if (shape.shares_lm_head)
    diagnostics.add(a.where("shares_lm_head"),
                    "shares_lm_head is true, allowed: false with prediction_heads, which have LM heads");
  const bool indexed = shape.index_topk > 0.0;
  if (indexed != (shape.index_heads > 0.0) || indexed != (shape.index_dim > 0.0) || (!indexed && shape.index_layers > 0.0) ||
      (indexed && shape.picked_layers == 0.0 && (shape.latent_width == 0.0 || shape.kv_window > 0.0)))
    diagnostics.add(
        a.where(indexed                   ? "index_topk"
                : shape.index_heads > 0.0 ? "index_heads"
                : shape.index_dim > 0.0   ? "index_dim"
                                          : "index_layers"),
        fmt::format(
            "index_topk is {:g}, index_heads {:g}, index_dim {:g}, index_layers {:g}, allowed: the first three above 0 in a "
            "model with latent attention and no window, or with picked_layers, or none of the four",
            shape.index_topk, shape.index_heads, shape.index_dim, shape.index_layers));
  at_most("index_layers", shape.index_layers, shape.layers, fmt::format("at most the {:g} layers", shape.layers));
  if (shape.latent_width > 0.0)
    at_most("rope_dim", shape.rope_dim, shape.head_dim - 1.0, fmt::format("less than head_dim, {:g}", shape.head_dim));
}

// Checks compressed attention: DeepSeek-V4's parts, which are only valid together.
void check_compressed(const Described& shape, const config::Arguments& a, Diagnostics& diagnostics) {
  const auto pair = [&](const char* first, double one, const char* second, double other) {
    if ((one > 0.0) != (other > 0.0))
      diagnostics.add(a.where(one > 0.0 ? first : second),
                      fmt::format("{} is {:g}, {} {:g}, allowed: both above 0, or neither", first, one, second, other));
  };
  pair("picked_layers", shape.picked_layers, "picked_tokens", shape.picked_tokens);
  pair("heavy_layers", shape.heavy_layers, "heavy_tokens", shape.heavy_tokens);
  pair("output_groups", shape.output_groups, "output_rank", shape.output_rank);
  const double compressed = shape.picked_layers + shape.heavy_layers;
  const char* const given = shape.picked_layers > 0.0 ? "picked_layers" : "heavy_layers";
  if (compressed > shape.layers)
    diagnostics.add(a.where(given), fmt::format("picked_layers is {:g}, heavy_layers {:g}, allowed: the {:g} layers together",
                                                shape.picked_layers, shape.heavy_layers, shape.layers));
  if (compressed > 0.0 && (shape.kv_window == 0.0 || shape.window_layers > 0.0 || shape.chunked || shape.linear_layers > 0.0 ||
                           shape.latent_width > 0.0 || shape.index_layers > 0.0))
    diagnostics.add(a.where(given), fmt::format("{} is {:g}, allowed: with kv_window, which all layers use, and without "
                                                "latent, window_layers, chunked, linear_layers and index_layers",
                                                given, shape.picked_layers > 0.0 ? shape.picked_layers : shape.heavy_layers));
  if (shape.picked_layers > 0.0 && shape.index_topk == 0.0)
    diagnostics.add(a.where("picked_layers"), fmt::format("picked_layers is {:g}, allowed: with index_topk, index_heads and "
                                                          "index_dim of the indexer that selects entries",
                                                          shape.picked_layers));
  if (shape.one_vector && shape.latent_width > 0.0)
    diagnostics.add(a.where("one_vector"), "one_vector is true, allowed: false with latent, which is one vector too");
  if (shape.output_groups > 0.0 && (!shape.one_vector || std::fmod(shape.heads, shape.output_groups) != 0.0))
    diagnostics.add(a.where("output_groups"),
                    fmt::format("output_groups is {:g}, allowed: with one_vector, a divisor of the {:g} heads",
                                shape.output_groups, shape.heads));
}

const char* word_of(Module module) {
  switch (module) {
    case Module::attention:
      return "attention";
    case Module::state:
      return "state";
    case Module::dense:
      return "dense";
    case Module::shared:
      return "shared";
    case Module::experts:
      return "experts";
    case Module::head:
      return "head";
    case Module::embeddings:
      return "embeddings";
  }
  return "";
}

// Sets the bytes of a part to those that its files hold. Two cases keep the description: weights in 32 bits, which engines serve
// in 16, and heads on a target, whose joining product is no part of its own.
void take_stored_bytes(ModelShape& shape) {
  constexpr double kSame = 1e-3;
  constexpr double kTold = 0.1;
  if (shape.on_target()) return;
  for (const Module module :
       {Module::attention, Module::state, Module::dense, Module::shared, Module::experts, Module::head, Module::embeddings}) {
    const double parameters = shape.module_parameters(module);
    double bytes = 0.0;
    double wide = 0.0;
    const auto add = [&](std::string_view part) {
      for (const StoredTensors& own : shape.stored)
        if (own.part == part) {
          bytes += own.bytes;
          if (own.type == "F32" || own.type == "F64") wide += own.bytes;
        }
    };
    add(word_of(module));
    if (module == Module::head && bytes == 0.0 && shape.tied_embeddings) add("embeddings");
    std::vector<TypeShare> types = shape.types_of(module);
    double described = 0.0;
    for (const TypeShare& one : types) described += one.share * parameters * one.type.bits / 8.0;
    if (parameters == 0.0 || bytes == 0.0 || (wide > 0.5 * bytes && !shape.gguf) || std::abs(bytes / described - 1.0) <= kSame)
      continue;
    const double ratio = bytes / described;
    if (std::abs(ratio - 1.0) > kTold)
      shape.assumed.push_back(
          fmt::format("{}: the weight files hold {:.2f} GB, the description amounts to {:.2f}; the files' figure is used",
                      word_of(module), 1e-9 * bytes, 1e-9 * described));
    for (TypeShare& one : types) one.type.bits *= ratio;
    if (module == Module::experts && types.size() == 1)
      shape.expert_bits = types.front().type.bits;
    else
      shape.own_types[module] = std::move(types);
  }
}

// The context of an alias, unless the config gives one for the model that it names.
void read_alias_contexts(const config::Arguments& a, ModelShape& shape, Diagnostics& diagnostics) {
  if (!a.has("alias_contexts") || (a.has("context") && a.where("context").file != a.where("alias_contexts").file)) return;
  std::vector<config::Parameter> parameters;
  if (a.has("aliases"))
    for (const config::Value& alias : a.value("aliases").items)
      parameters.push_back({alias.text, Type::integer, "", "context of this alias", config::between(1, 1e9), {}});
  const config::Arguments own = config::read_arguments(a.value("alias_contexts"), parameters, {}, "alias_contexts", diagnostics);
  for (const config::Parameter& alias : parameters)
    if (alias.name == shape.name && own.has(alias.name)) shape.context = static_cast<double>(own.integer(alias.name));
}

}  // namespace

std::vector<StoredTensors> read_stored(const config::Value& parts) {
  std::vector<StoredTensors> list;
  const auto number = [](const config::Value& map, const char* key) {
    const config::Value* value = map.find(key);
    return value != nullptr ? config::as_number(value->text).value_or(0.0) : 0.0;
  };
  for (const config::Field& part : parts.fields)
    for (const config::Field& type : part.value.fields)
      list.push_back(
          {part.key, type.key, number(type.value, "tensors"), number(type.value, "elements"), number(type.value, "bytes")});
  return list;
}

ModelShape read_model(const config::Value& spec, const std::string& what, Diagnostics& diagnostics) {
  Described shape;
  const std::size_t before = diagnostics.list().size();
  const config::Value value = resolve_preset(PresetKind::model, spec, diagnostics);
  if (diagnostics.list().size() != before) return shape;
  const config::Arguments a = config::read_arguments(value, model_parameters(), {}, what, diagnostics);
  if (diagnostics.list().size() != before) return shape;
  shape.name = a.has("name") ? a.text("name") : spec.text;
  // Uses the name that the user gave, because presets have several.
  const config::Value* asked = spec.is_scalar() ? &spec : spec.find(spec.find("preset") != nullptr ? "preset" : "model");
  if (asked != nullptr && a.has("aliases"))
    for (const config::Value& alias : a.value("aliases").items)
      if (alias.text == asked->text) shape.name = alias.text;
  for (const Key& key : model_keys()) {
    const std::string& name = key.parameter.name;
    if (const auto* const number = std::get_if<double Described::*>(&key.member))
      shape.*(*number) = key.parameter.type == Type::number ? a.number(name) : static_cast<double>(a.integer(name));
    else if (const auto* const truth = std::get_if<bool Described::*>(&key.member))
      shape.*(*truth) = a.boolean(name);
    else if (const auto* const perhaps = std::get_if<std::optional<double> Described::*>(&key.member)) {
      if (a.has(name) && a.integer(name) > 0) shape.*(*perhaps) = static_cast<double>(a.integer(name));
    } else if (const auto* const text = std::get_if<std::string Described::*>(&key.member)) {
      if (a.has(name)) shape.*(*text) = a.text(name);
    }
  }
  read_alias_contexts(a, shape, diagnostics);
  if (a.has("assumed"))
    for (const config::Value& text : a.value("assumed").items) shape.assumed.push_back(text.text);
  if (a.has("unread"))
    for (const config::Value& key : a.value("unread").items) shape.unread.push_back(key.text);
  if (a.has("stored")) shape.stored = read_stored(a.value("stored"));
  if (a.has("dtype")) read_element_types(a.value("dtype"), shape, diagnostics);
  if (a.has("checkpoints"))
    for (const config::Field& field : a.value("checkpoints").fields) {
      ModelShape other;  // reports errors in it
      read_element_types(field.value, other, diagnostics);
      shape.checkpoints[field.key] = config::to_flow_text(field.value);
    }
  if (!a.has("dtype") || a.given("weight_bits")) {
    shape.own_types.clear();
    shape.weight_bits = shape.expert_bits = a.number("weight_bits");
    shape.product_type = shape.expert_type = "";
  }
  shape.head_bits = a.has("head_bits") ? a.number("head_bits") : std::max(shape.head_bits, shape.weight_bits);
  if (!a.has("dtype") || a.given("kv_bits")) shape.kv_bits = a.number("kv_bits");
  if (a.has("offload")) {
    static const std::vector<Parameter> parameters = {
        {"share", Type::number, {}, "share of the layers' weights that are in the host's memory", config::between(0, 1), {}},
        {"link_gb_per_s", Type::number, {}, "rate of the link from that memory to a GPU", config::between(0.01, 5000), {}}};
    const config::Arguments o = config::read_arguments(a.value("offload"), parameters, {}, "offload", diagnostics);
    shape.offload = Offload{o.number("share"), 1e9 * o.number("link_gb_per_s")};
    if (shape.offload->share == 0.0) shape.offload.reset();
  }
  if (shape.heads < shape.kv_heads)
    diagnostics.add(a.where("kv_heads"),
                    fmt::format("kv_heads is {} of {} heads, allowed: at most as many as heads", shape.kv_heads, shape.heads));
  else if (shape.kv_heads > 0.0 && std::fmod(shape.heads, shape.kv_heads) != 0.0)
    diagnostics.add(a.where("kv_heads"), fmt::format("kv_heads is {} of {} heads, allowed: a divisor, because each serves "
                                                     "equally many heads",
                                                     shape.kv_heads, shape.heads));
  if ((shape.experts > 0.0) != (shape.experts_per_token > 0.0) || (shape.experts > 0.0) != (shape.expert_ffn > 0.0) ||
      shape.experts_per_token > shape.experts)
    diagnostics.add(
        a.where(shape.experts_per_token > shape.experts ? "experts_per_token" : "experts"),
        fmt::format("experts is {}, experts_per_token {}, expert_ffn {}, allowed: all three above 0 with at most as many "
                    "experts_per_token as experts, or none of them",
                    shape.experts, shape.experts_per_token, shape.expert_ffn));
  check_layers(shape, a, diagnostics);
  check_compressed(shape, a, diagnostics);
  if (std::fmod(shape.heads, shape.tensor_parallel) != 0.0)
    diagnostics.add(a.where("tensor_parallel"),
                    fmt::format("tensor_parallel is {}, allowed: a divisor of the {} heads", shape.tensor_parallel, shape.heads));
  if (shape.expert_parallel > 1.0 && (std::fmod(shape.experts, shape.expert_parallel) != 0.0 || shape.experts == 0.0 ||
                                      shape.tensor_parallel > 1.0 || shape.offload))
    diagnostics.add(
        a.where("expert_parallel"),
        fmt::format("expert_parallel is {:g} with {:g} experts, tensor_parallel {:g}{}, allowed: a divisor of the "
                    "experts, with tensor_parallel 1 and all weights on the GPUs",
                    shape.expert_parallel, shape.experts, shape.tensor_parallel, shape.offload ? " and offload" : ""));
  if (shape.whole_experts && (shape.experts == 0.0 || std::fmod(shape.experts, shape.tensor_parallel) != 0.0 || shape.offload))
    diagnostics.add(
        a.where("whole_experts"),
        fmt::format("whole_experts with {:g} experts, tensor_parallel {:g}{}, allowed: a tensor_parallel that divides "
                    "the experts, and all weights on the GPUs",
                    shape.experts, shape.tensor_parallel, shape.offload ? " and offload" : ""));
  if ((shape.experts == 0.0 || shape.dense_layers > 0.0) && shape.ffn == 0.0 && shape.layers > 0.0)
    diagnostics.add(a.where("ffn"), shape.experts == 0.0 ? "ffn is 0 in a dense model, allowed: its width"
                                                         : "ffn is 0 with dense_layers, allowed: the width of theirs");
  if (shape.index_topk > 0.0) {
    shape.indexer = Indexer{shape.index_topk, shape.index_heads, shape.index_dim, {}};
    if (shape.index_layers > 0.0) shape.indexer->layers = shape.index_layers;
  }
  if (shape.linear_value_heads > 0.0) {
    constexpr std::array kKinds = {"gated_deltanet", "kimi_delta", "lightning", "mamba", "mamba2", "convolution"};
    const auto kind = std::find(kKinds.begin(), kKinds.end(), a.text("linear_kind")) - kKinds.begin();
    shape.state = StateLayer{static_cast<StateLayer::Kind>(kind),
                             shape.linear_value_heads,
                             shape.linear_key_heads,
                             shape.linear_head_dim,
                             shape.linear_key_dim > 0.0 ? shape.linear_key_dim : shape.linear_head_dim,
                             shape.linear_convolved,
                             shape.linear_rank,
                             shape.linear_full_gate,
                             shape.state_bits};
  }
  if (shape.latent_width > 0.0) shape.latent = LatentVector{shape.latent_width, shape.rope_dim};
  if (shape.picked_layers + shape.heavy_layers > 0.0)
    shape.compressed = CompressedAttention{shape.picked_layers, shape.picked_tokens, shape.heavy_layers, shape.heavy_tokens};
  if (shape.output_groups > 0.0) shape.squeezed_output = SqueezedOutput{shape.output_groups, shape.output_rank};
  if (shape.layer_embedding > 0.0) shape.layer_embeddings = LayerEmbeddings{shape.layer_embedding, shape.layer_rank};
  if (!shape.stored.empty() && !a.given("weight_bits") && diagnostics.list().size() == before) take_stored_bytes(shape);
  return shape;
}

ModelShape read_model(const PresetChoice& choice, const std::string& what, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  const config::Value spec = to_config(choice, diagnostics);
  return diagnostics.list().size() == before ? read_model(spec, what, diagnostics) : ModelShape();
}

}  // namespace specsim::cost
