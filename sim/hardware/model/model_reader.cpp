// Reads descriptions of models.
#include "sim/foundation/config/fields.h"
#include "sim/hardware/model/element_types.h"
#include "sim/hardware/model/model_shape.h"
#include "sim/hardware/presets/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::cost {

namespace {

// Parts that a model may lack are always read; remove_absent_parts removes those that it lacks.
const config::Fields<ModelShape>& model_fields() {
  using M = ModelShape;
  using I = Indexer;
  using S = StateLayer;
  using C = CompressedAttention;
  using config::elsewhere, config::required, config::Value, config::whole;
  const config::Interval count = config::between(0, 1e7);
  const config::Interval some = config::between(1, 1e7);
  static const config::Fields<M> fields = {
      {"preset", elsewhere<std::string>, "a model's name, file or config.json; the other keys override its values"},
      {"model", elsewhere<std::string>, "another name for preset"},
      {"name", &M::name, "name that its authors gave it"},
      {"aliases", elsewhere<std::vector<std::string>>, "other names of the same shape"},
      {"source", elsewhere<std::string>, "where the figures come from"},
      {"unverified", &M::unverified, "figures from memory, not verified"},
      {"layers", &M::layers, "transformer layers; 0: prediction heads alone", count, whole, required},
      {"hidden", &M::hidden, "width", some, whole, required},
      {"heads", &M::heads, "query heads", some, whole, required},
      {"kv_heads", &M::kv_heads, "key and value heads", some, whole, required},
      {"head_dim", &M::head_dim, "width of a head", some, whole, required},
      {"ffn", &M::ffn, "width of the feed-forward part; ignored if there are experts", count, whole, required},
      {"gated", &M::gated, "gate and up projections, or up alone"},
      {"vocab", &M::vocab, "rows of the LM head; fewer for a draft with a reduced vocabulary", config::between(2, 1e7), whole,
       required},
      {"embedding_vocab", &M::embedding_vocab, "tokens that have an embedding, if they are more than the LM head's rows", count,
       whole, config::zero_is_none},
      {"tied_embeddings", &M::tied_embeddings, "embeddings and LM head are one matrix"},
      {"experts", &M::experts, "experts of a layer; 0: dense", count, whole},
      {"experts_per_token", &M::experts_per_token, "experts that each token uses", count, whole},
      {"expert_ffn", &M::expert_ffn, "width of one expert", count, whole},
      {"shared_ffn", &M::shared_ffn, "width that every token of a mixture's layer passes besides its experts; 0: nothing", count,
       whole},
      {"expert_hidden", &M::expert_hidden,
       "width that routed experts work on, between two products, if it is not the model's (Nemotron 3's latent experts)", count,
       whole, config::zero_is_none},
      {"dense_layers", &M::dense_layers, "layers of a mixture without experts, ffn wide", count, whole},
      {&M::latent,
       config::Fields<LatentVector>{
           {"latent", &LatentVector::width,
            "latent attention (MLA): width of the cached vector that keys and values are computed from; 0: none", count, whole},
           {"rope_dim", &LatentVector::rope_dim,
            "latent attention: rotated elements of a key, cached once for all heads; head_dim counts them", count, whole}}},
      {"query_rank", &M::query_rank, "latent attention, and one_vector: width that queries are squeezed through; 0: none", count,
       whole, config::zero_is_none},
      {"value_dim", &M::value_dim, "width of a head's value, if it is not head_dim; 0: head_dim", count, whole,
       config::zero_is_none},
      {&M::indexer,
       config::Fields<I>{
           {"index_topk", &I::topk,
            "sparse attention (DSA): cached tokens that an indexer selects for each new token, which attends to these only; 0: "
            "it attends to all",
            count, whole},
           {"index_heads", &I::heads, "sparse attention: heads of the indexer", count, whole},
           {"index_dim", &I::head_dim,
            "sparse attention: width of the indexer's heads, and of the key that it caches for a token in 8 bits", count, whole},
           {"index_layers", &I::layers,
            "sparse attention: layers with an indexer of their own; the others reuse the selection of an earlier layer; 0: all",
            count, whole, config::zero_is_none, config::Default{"0"}}}},
      {&M::compressed,
       config::Fields<C>{
           {"picked_layers", &C::picked_layers,
            "compressed attention (DeepSeek-V4): layers that keep, besides the window's tokens, one entry per picked_tokens "
            "tokens, of which an indexer selects index_topk; 0: none",
            count, whole},
           {"picked_tokens", &C::picked_tokens, "compressed attention: tokens per such entry", count, whole},
           {"heavy_layers", &C::heavy_layers,
            "compressed attention: layers that keep, besides the window's tokens, one entry per heavy_tokens tokens, and read "
            "all of them; 0: none",
            count, whole},
           {"heavy_tokens", &C::heavy_tokens, "compressed attention: tokens per such entry", count, whole}}},
      {"one_vector", &M::one_vector, "one cached vector per head serves as key and value (DeepSeek-V4)"},
      {&M::squeezed_output,
       config::Fields<SqueezedOutput>{
           {"output_groups", &SqueezedOutput::groups,
            "groups of heads whose outputs are squeezed to output_rank before the output's projection; 0: no such step", count,
            whole},
           {"output_rank", &SqueezedOutput::rank, "width that a group's output is squeezed to", count, whole}}},
      {"residual_streams", &M::residual_streams,
       "residual vectors that hyper-connections mix before and after attention and feed-forward (DeepSeek-V4's 4)", some, whole},
      {"fused_inputs", &M::fused_inputs, "hidden vectors that an EAGLE head joins; 0: none", config::between(0, 1e4)},
      {"attention_inputs", &M::attention_inputs,
       "hidden vectors side by side that attention reads, as a mean over the layers; 2 in an EAGLE-3 head of one layer",
       config::between(1, 16)},
      {"prediction_heads", &M::prediction_heads,
       "heads that guess one additional token each in the same pass, each with an LM head of its own (Medusa); 0: none", count,
       whole},
      {"head_matrices", &M::head_matrices, "products of all these heads together before their LM heads, each hidden by hidden",
       count, whole},
      {"markov_rank", &M::markov_rank,
       "width of a block drafter's Markov head (DSpark), which biases each position's logits by the token before; 0: none", count,
       whole},
      {"markov_matrices", &M::markov_matrices,
       "parameters of a Markov head's products at a position, besides those from and to the vocabulary (Domino's)",
       config::between(0, 1e12)},
      {"markov_embeds", &M::markov_embeds, "the Markov head has embeddings of its own"},
      {"drafter", &M::drafter,
       "kind of drafter, by which servers choose their method: eagle, eagle3, p_eagle, mtp, medusa, dflash, dspark, domino, "
       "pard, ...; default: from the shape"},
      {"longest_draft", &M::longest_draft, "maximum number of tokens that a block drafter can draft", count, whole,
       config::zero_is_none},
      {"target_hidden", &M::target_hidden, "a head's: width of the target that it was made for", count, whole,
       config::zero_is_none},
      {"target_vocab", &M::target_vocab, "a head's: tokens of that target", count, whole, config::zero_is_none},
      {"target_layers", &M::target_layers, "a head's: layers of that target", count, whole, config::zero_is_none},
      {"verifier", &M::verifier, "a head's: name of that target"},
      {"context", &M::context,
       "tokens of the longest sequence that servers accept by default (max_position_embeddings); 0: not known",
       config::between(0, 1e9), whole, config::zero_is_none},
      {"alias_contexts", elsewhere<Value>, "context of aliases that accept longer or shorter sequences: {llama-3-8b: 8192}"},
      {"architecture", &M::architecture,
       "name of the architecture in config.json (model_type) or GGUF, where servers decide by it"},
      {"shares_lm_head", &M::shares_lm_head, "embeddings and LM head are the target's"},
      {"shares_embeddings", &M::shares_embeddings, "embeddings are the target's, the LM head is its own"},
      {"one_pass", &M::one_pass, "one pass over all positions drafts a whole round (DFlash, PARD); plan estimates it so"},
      {"in_target_checkpoint", &M::in_target_checkpoint,
       "a module (MTP) that is part of the target's own checkpoint, so that servers take no path for it"},
      {"assumed", &M::assumed, "assumptions of the description, reported as a warning"},
      {"unread", &M::unread, "keys of the source file that were not used"},
      {"stored", elsewhere<Value>,
       "tensors, elements and bytes by part and type in the files of the weights, according to their headers"},
      {"dtype", elsewhere<Value>,
       "types: a word for weights and the activations they are multiplied with (bf16, fp8, int8, int4, nvfp4, mxfp4), or "
       "{weights, activations, cache, experts, attention}"},
      {"checkpoints", elsewhere<Value>,
       "dtype of checkpoints that are published in addition to it, by the word that benchmarks use: {fp8: fp8_block, fp4: "
       "{weights: nvfp4, attention: bf16}}"},
      {"weight_bits", &M::weight_bits, "bits of a weight, for formats without a dtype word; overrides the types in dtype",
       config::between(1, 32)},
      {"head_bits", elsewhere<double>, "bits of a weight of LM head and embeddings; default: 16, or weight_bits if that is more",
       config::between(1, 32)},
      {"kv_bits", &M::kv_bits, "bits of a cached key or value; overrides dtype's cache", config::between(1, 32)},
      {"kv_window", &M::kv_window, "newest cached tokens that attention reads and keeps; 0: all", count, whole,
       config::zero_is_none, config::Default{"0"}},
      {"window_layers", &M::window_layers, "layers that have the window; 0: all of them", count, whole, config::zero_is_none,
       config::Default{"0"}},
      {"chunked", &M::chunked, "the window restarts with every chunk of its size (Llama 4)"},
      {"linear_layers", &M::linear_layers, "layers without a cache that grows: linear attention, state spaces", count, whole},
      {&M::state,
       config::Fields<S>{
           {"linear_kind", &S::kind,
            "kind of these layers: Gated DeltaNet (Qwen3-Next), Kimi Delta Attention, lightning attention (MiniMax-01), a state "
            "space (mamba, mamba2), or a gated convolution alone (LFM2)",
            config::one_of<S::Kind>({{"gated_deltanet", S::Kind::gated_deltanet},
                                     {"kimi_delta", S::Kind::kimi_delta},
                                     {"lightning", S::Kind::lightning},
                                     {"mamba", S::Kind::mamba},
                                     {"mamba2", S::Kind::mamba2},
                                     {"convolution", S::Kind::convolution}})},
           {"linear_value_heads", &S::value_heads,
            "in these layers: heads of values, channels of mamba, heads of mamba2; 0: latencies with attention's projections, "
            "and no state",
            count, whole},
           {"linear_key_heads", &S::key_heads, "in these layers: heads of keys, groups of mamba2", count, whole},
           {"linear_head_dim", &S::value_dim,
            "in these layers: width of a head's value, and of its key unless linear_key_dim is given", count, whole},
           {"linear_key_dim", &S::key_dim,
            "in these layers: width of a key, which is a state space's state per channel; 0: linear_head_dim", count, whole},
           {"linear_convolved", &S::convolved, "in these layers: tokens in the window of the convolution", count, whole},
           {"linear_rank", &S::rank, "in these layers: width that gates (Kimi) or time steps (mamba) are squeezed through", count,
            whole},
           {"linear_full_gate", &S::full_gate, "Kimi Delta Attention: the output's gate is not squeezed"},
           {"state_bits", &S::state_bits, "in these layers: bits of an element of the state", config::between(8, 1e7), whole}}},
      {"parallel_state", &M::parallel_state, "every layer with attention also has such a state, in parallel (Falcon-H1)"},
      {"ffn_only_layers", &M::ffn_only_layers, "layers with only a feed-forward part (Nemotron-H)", count, whole},
      {"mixer_only_layers", &M::mixer_only_layers, "layers without a feed-forward part", count, whole},
      {"shared_kv_layers", &M::shared_kv_layers,
       "layers without the window that read the keys and values of others and cache none", count, whole},
      {"shared_window_layers", &M::shared_window_layers, "such layers with the window", count, whole},
      {&M::layer_embeddings,
       config::Fields<LayerEmbeddings>{
           {"layer_embedding", &LayerEmbeddings::width, "width of embeddings of each layer (Gemma 3n); 0: none", count, whole},
           {"layer_rank", &LayerEmbeddings::rank, "width of the low-rank product in parallel with its attention; 0: none", count,
            whole}}},
      {"gated_attention", &M::gated_attention,
       "attention's output is gated, by a projection as wide as the queries (Qwen3-Next)"},
      {"global_head_dim", &M::global_head_dim, "width of a head in layers without the window; 0: head_dim", count, whole,
       config::zero_is_none},
      {"global_kv_heads", &M::global_kv_heads, "key and value heads of layers without the window; 0: kv_heads", count, whole,
       config::zero_is_none},
      {"global_heads", &M::global_heads, "query heads of layers without the window; 0: heads", count, whole,
       config::zero_is_none},
      {"global_one_value", &M::global_one_value, "values of layers without the window are their keys' projection"},
      {"offload", elsewhere<Value>,
       "weights in the host's memory: {share: of the layers', link_gb_per_s: to each GPU}; a pass reads them over the link "
       "while it computes the layers before"},
      {"tensor_parallel", &M::tensor_parallel, "GPUs that share every layer", config::between(1, 64), whole},
      {"expert_parallel", &M::expert_parallel,
       "GPUs that share a mixture's experts, each with attention, cache and sequences of its own (vLLM's data_parallel_size "
       "with enable_expert_parallel): tokens are gathered for the experts of each, and their sums scattered",
       config::between(1, 1024), whole},
      {"whole_experts", &M::whole_experts,
       "the GPUs of tensor_parallel hold whole experts each (vLLM's enable_expert_parallel, SGLang's and TensorRT-LLM's ep "
       "size), not a slice of every expert; servers do so where a slice would cut blocks of fp8_block"}};
  return fields;
}

}  // namespace

const std::vector<config::Parameter>& model_parameters() { return model_fields().parameters(); }

namespace {

// Checks layers of several kinds, and latent attention: keys that are only valid together.
void check_layers(const ModelShape& shape, const config::Arguments& a, Diagnostics& diagnostics) {
  const StateLayer& state = *shape.state;
  const LatentVector& latent = *shape.latent;
  const Indexer& indexer = *shape.indexer;
  const double index_layers = indexer.layers.value_or(0.0);
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
  const double given = (state.value_heads > 0.0) + (state.key_heads > 0.0) + (state.value_dim > 0.0);
  if (given != 0.0 && given != 3.0)
    diagnostics.add(
        a.where(state.value_heads > 0.0 ? "linear_value_heads"
                : state.key_heads > 0.0 ? "linear_key_heads"
                                        : "linear_head_dim"),
        fmt::format("linear_value_heads is {:g}, linear_key_heads {:g}, linear_head_dim {:g}, allowed: all three above "
                    "0, or none of them",
                    state.value_heads, state.key_heads, state.value_dim));
  const double caching = shape.layers - shape.linear_layers - shape.ffn_only_layers;
  at_most("window_layers", shape.window_layers.value_or(0.0), caching,
          fmt::format("at most the {:g} layers that cache keys", caching));
  if (shape.window_layers && !shape.kv_window && !a.given("kv_window"))
    diagnostics.add(a.where("window_layers"), "window_layers is given without kv_window, allowed: together with kv_window");
  if (latent.width > 0.0 ? !shape.value_dim : latent.rope_dim > 0.0 || (shape.query_rank && !shape.one_vector))
    diagnostics.add(
        a.where(latent.width > 0.0 ? "latent"
                : shape.query_rank ? "query_rank"
                                   : "rope_dim"),
        fmt::format("latent is {:g}, rope_dim {:g}, query_rank {:g}, value_dim {:g}, allowed: latent and value_dim above 0 "
                    "(rope_dim and query_rank optional), or none of latent, rope_dim and query_rank",
                    latent.width, latent.rope_dim, shape.query_rank.value_or(0.0), shape.value_dim.value_or(0.0)));
  if (shape.layers == 0.0 && (shape.prediction_heads == 0.0 || a.has("offload")))
    diagnostics.add(a.where("layers"), fmt::format("layers is 0{}, allowed: with prediction_heads, all weights on the GPU",
                                                   a.has("offload") ? " with offload" : ""));
  if (shape.prediction_heads == 0.0)
    at_most("head_matrices", shape.head_matrices, 0.0, "0 without prediction_heads");
  else if (shape.shares_lm_head)
    diagnostics.add(a.where("shares_lm_head"),
                    "shares_lm_head is true, allowed: false with prediction_heads, which have LM heads");
  const bool indexed = indexer.topk > 0.0;
  if (indexed != (indexer.heads > 0.0) || indexed != (indexer.head_dim > 0.0) || (!indexed && index_layers > 0.0) ||
      (indexed && shape.compressed->picked_layers == 0.0 && (latent.width == 0.0 || shape.kv_window)))
    diagnostics.add(
        a.where(indexed                  ? "index_topk"
                : indexer.heads > 0.0    ? "index_heads"
                : indexer.head_dim > 0.0 ? "index_dim"
                                         : "index_layers"),
        fmt::format(
            "index_topk is {:g}, index_heads {:g}, index_dim {:g}, index_layers {:g}, allowed: the first three above 0 in a "
            "model with latent attention and no window, or with picked_layers, or none of the four",
            indexer.topk, indexer.heads, indexer.head_dim, index_layers));
  at_most("index_layers", index_layers, shape.layers, fmt::format("at most the {:g} layers", shape.layers));
  if (latent.width > 0.0)
    at_most("rope_dim", latent.rope_dim, shape.head_dim - 1.0, fmt::format("less than head_dim, {:g}", shape.head_dim));
}

// Checks compressed attention: DeepSeek-V4's parts, which are only valid together.
void check_compressed(const ModelShape& shape, const config::Arguments& a, Diagnostics& diagnostics) {
  const CompressedAttention& kept = *shape.compressed;
  const SqueezedOutput& output = *shape.squeezed_output;
  const auto pair = [&](const char* first, double one, const char* second, double other) {
    if ((one > 0.0) != (other > 0.0))
      diagnostics.add(a.where(one > 0.0 ? first : second),
                      fmt::format("{} is {:g}, {} {:g}, allowed: both above 0, or neither", first, one, second, other));
  };
  pair("picked_layers", kept.picked_layers, "picked_tokens", kept.picked_tokens);
  pair("heavy_layers", kept.heavy_layers, "heavy_tokens", kept.heavy_tokens);
  pair("output_groups", output.groups, "output_rank", output.rank);
  const double compressed = kept.picked_layers + kept.heavy_layers;
  const char* const given = kept.picked_layers > 0.0 ? "picked_layers" : "heavy_layers";
  if (compressed > shape.layers)
    diagnostics.add(a.where(given), fmt::format("picked_layers is {:g}, heavy_layers {:g}, allowed: the {:g} layers together",
                                                kept.picked_layers, kept.heavy_layers, shape.layers));
  if (compressed > 0.0 && (!shape.kv_window || shape.window_layers || shape.chunked || shape.linear_layers > 0.0 ||
                           shape.latent->width > 0.0 || shape.indexer->layers))
    diagnostics.add(a.where(given), fmt::format("{} is {:g}, allowed: with kv_window, which all layers use, and without "
                                                "latent, window_layers, chunked, linear_layers and index_layers",
                                                given, kept.picked_layers > 0.0 ? kept.picked_layers : kept.heavy_layers));
  if (kept.picked_layers > 0.0 && shape.indexer->topk == 0.0)
    diagnostics.add(a.where("picked_layers"), fmt::format("picked_layers is {:g}, allowed: with index_topk, index_heads and "
                                                          "index_dim of the indexer that selects entries",
                                                          kept.picked_layers));
  if (shape.one_vector && shape.latent->width > 0.0)
    diagnostics.add(a.where("one_vector"), "one_vector is true, allowed: false with latent, which is one vector too");
  if (output.groups > 0.0 && (!shape.one_vector || std::fmod(shape.heads, output.groups) != 0.0))
    diagnostics.add(
        a.where("output_groups"),
        fmt::format("output_groups is {:g}, allowed: with one_vector, a divisor of the {:g} heads", output.groups, shape.heads));
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

void remove_absent_parts(ModelShape& shape) {
  if (shape.indexer->topk == 0.0) shape.indexer.reset();
  if (shape.state->value_heads == 0.0)
    shape.state.reset();
  else if (shape.state->key_dim == 0.0)
    shape.state->key_dim = shape.state->value_dim;
  if (shape.latent->width == 0.0) shape.latent.reset();
  if (shape.compressed->picked_layers + shape.compressed->heavy_layers == 0.0) shape.compressed.reset();
  if (shape.squeezed_output->groups == 0.0) shape.squeezed_output.reset();
  if (shape.layer_embeddings->width == 0.0) shape.layer_embeddings.reset();
}

// The context of an alias, unless the config gives one for the model that it names.
void read_alias_contexts(const config::Arguments& a, ModelShape& shape, Diagnostics& diagnostics) {
  if (!a.has("alias_contexts") || (a.has("context") && a.where("context").file != a.where("alias_contexts").file)) return;
  std::vector<config::Parameter> parameters;
  if (a.has("aliases"))
    for (const config::Value& alias : a.value("aliases").items)
      parameters.push_back({alias.text, config::Type::integer, "", "context of this alias", config::between(1, 1e9), {}});
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
  const std::size_t before = diagnostics.list().size();
  const config::Value value = resolve_preset(PresetKind::model, spec, diagnostics);
  if (diagnostics.list().size() != before) return {};
  const config::Arguments a = config::read_arguments(value, model_fields(), {}, what, diagnostics);
  if (diagnostics.list().size() != before) return {};
  ModelShape shape = model_fields().read(a);
  if (!a.has("name")) shape.name = spec.text;
  // Uses the name that the user gave, because presets have several.
  const config::Value* asked = spec.is_scalar() ? &spec : spec.find(spec.find("preset") != nullptr ? "preset" : "model");
  if (asked != nullptr && a.has("aliases"))
    for (const config::Value& alias : a.value("aliases").items)
      if (alias.text == asked->text) shape.name = alias.text;
  read_alias_contexts(a, shape, diagnostics);
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
    static const config::Fields<Offload> fields = {
        {"share", &Offload::share, "share of the layers' weights that are in the host's memory", config::between(0, 1),
         config::required},
        {"link_gb_per_s", &Offload::bandwidth, "rate of the link from that memory to a GPU", config::between(0.01, 5000),
         config::times(1e9), config::required}};
    shape.offload = fields.read(config::read_arguments(a.value("offload"), fields, {}, "offload", diagnostics));
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
  remove_absent_parts(shape);
  if (!shape.stored.empty() && !a.given("weight_bits") && diagnostics.list().size() == before) take_stored_bytes(shape);
  return shape;
}

ModelShape read_model(const PresetChoice& choice, const std::string& what, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  const config::Value spec = to_config(choice, diagnostics);
  return diagnostics.list().size() == before ? read_model(spec, what, diagnostics) : ModelShape();
}

}  // namespace specsim::cost
