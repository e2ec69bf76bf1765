#include "sim/hardware/model/model_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::cost {

double AttentionKind::seen(double context) const {
  if (!window || context <= *window) return context;
  return chunked ? 0.5 * *window : *window;
}

double AttentionKind::read(double context, double tokens) const {
  const double plain = seen(context) + tokens;
  if (!compression) return picked ? std::min(tokens * *picked, plain) : plain;
  const double entries = context / *compression;
  return plain + (picked ? std::min(tokens * *picked, entries) : entries);
}

double AttentionKind::looked_at(double context, double pairs) const {
  const double plain = pairs - (context - seen(context));
  if (!compression) return picked ? std::min(*picked, plain) : plain;
  const double entries = pairs / *compression;
  return std::min(*window, plain) + (picked ? std::min(*picked, entries) : entries);
}

double AttentionKind::kept(double tokens) const {
  return std::min(window.value_or(tokens), tokens) + (compression ? tokens / *compression : 0.0);
}

std::vector<AttentionKind> ModelShape::attention_kinds() const {
  if (compressed) {
    std::vector<AttentionKind> kinds;
    const auto add = [&](double count, std::optional<double> compression, std::optional<double> picked) {
      if (count <= 0.0) return;
      AttentionKind own{count, kv_heads, head_dim, kv_window};
      own.elements = (one_vector ? 1.0 : 2.0) * kv_heads * head_dim;
      own.picked = picked;
      own.compression = compression;
      own.heads = heads;
      own.value_dim = head_dim;
      kinds.push_back(own);
    };
    const CompressedAttention& own = *compressed;
    add(layers - own.picked_layers - own.heavy_layers, {}, {});
    add(own.picked_layers, own.picked_tokens, indexer ? std::optional(indexer->topk) : std::nullopt);
    add(own.heavy_layers, own.heavy_tokens, {});
    return kinds;
  }
  const double attending = layers - linear_layers - ffn_only_layers;
  const double windowed = kv_window ? window_layers.value_or(attending) : 0.0;
  const auto kind = [&](double count, bool window) {
    AttentionKind own;
    own.layers = count;
    if (window) own.window = kv_window;
    own.chunked = window && chunked;
    const bool global = !window && windowed > 0.0;
    own.heads = global ? global_heads.value_or(heads) : heads;
    own.kv_heads = global ? global_kv_heads.value_or(kv_heads) : kv_heads;
    own.head_dim = global ? global_head_dim.value_or(head_dim) : head_dim;
    own.value_dim = value_dim.value_or(own.head_dim);
    own.borrowing = window ? shared_window_layers : shared_kv_layers;
    own.one_value = global && global_one_value;
    if (indexer) own.picked = indexer->topk;
    own.elements = latent ? latent->width + latent->rope_dim : own.kv_heads * (own.head_dim + (one_vector ? 0.0 : own.value_dim));
    return own;
  };
  std::vector<AttentionKind> kinds;
  if (windowed > 0.0) kinds.push_back(kind(windowed, true));
  if (attending > windowed) kinds.push_back(kind(attending - windowed, false));
  return kinds;
}

double ModelShape::kv_shards(const AttentionKind& kind) const { return latent ? 1.0 : std::min(tensor_parallel, kind.kv_heads); }

namespace {

// A layer's projections. Weights of latent attention are absorbed: queries are projected into the latent space and values out of
// it, head by head, so that the cache is read as it is.
std::vector<Product> typed_projections(const ModelShape& model, const AttentionKind& kind, double shards) {
  const double width = model.attention_inputs * model.hidden;
  if (model.one_vector) {
    const double queries = model.heads * kind.head_dim;
    std::vector<Product> list = {
        {"latent", width, model.query_rank.value_or(0.0) + kind.kv_heads * kind.head_dim, Sharding::none}};
    list.push_back({"query", model.query_rank.value_or(width), queries});
    if (!model.squeezed_output) {
      list.push_back({"output", queries, model.hidden, Sharding::rows});
      return list;
    }
    const auto [groups, rank] = *model.squeezed_output;
    list.push_back({"squeeze_output", queries / groups, rank, Sharding::groups, groups, true});
    list.push_back({"output", groups * rank, model.hidden, Sharding::rows});
    return list;
  }
  const double values = kind.heads * kind.value_dim;
  if (!model.latent) {
    const double copies = shards / std::min(shards, kind.kv_heads);
    const double own = kind.layers > 0.0 ? 1.0 - kind.borrowing / kind.layers : 1.0;  // layers with keys and values of their own
    const double cached = kind.kv_heads * copies * (kind.head_dim + (kind.one_value ? 0.0 : kind.value_dim));
    return {{"qkv", width, kind.heads * kind.head_dim + (model.gated_attention ? values : 0.0) + own * cached},
            {"output", values, model.hidden, Sharding::rows}};
  }
  const double queries = kind.heads * kind.head_dim;
  const auto [latent, rope] = *model.latent;
  std::vector<Product> list = {{"latent", width, model.query_rank.value_or(0.0) + latent + rope, Sharding::none}};
  list.push_back({"query", model.query_rank.value_or(width), queries});
  list.push_back({"absorb_key", kind.head_dim - rope, latent, Sharding::groups, kind.heads});
  list.push_back({"absorb_value", latent, kind.value_dim, Sharding::groups, kind.heads});
  if (model.gated_attention) list.push_back({"gate", width, values});
  list.push_back({"output", values, model.hidden, Sharding::rows});
  return list;
}

std::vector<Product> projections(const ModelShape& model, const AttentionKind& kind, double shards) {
  std::vector<Product> list = typed_projections(model, kind, shards);
  for (Product& product : list) product.module = Module::attention;
  return list;
}

// Vectors per token that a compressor adds up into an entry: values and gates. Selected entries overlap and need both twice.
constexpr double kApart = 2.0;
constexpr double kOverlapping = 4.0;

// An indexer: its queries are computed from the squeezed queries of attention; its key and a weight for each of its heads are
// computed from the layer's input, in one product of 16 bits. Engines do not cut them (vLLM, SGLang: ReplicatedLinear,
// wk_weights_proj).
std::vector<Product> indexer_products(const ModelShape& model, const Indexer& indexer) {
  const double width = model.attention_inputs * model.hidden;
  const double key = (model.picks_entries() ? kOverlapping : 1.0) * indexer.head_dim;
  return {{"index_query", model.query_rank.value_or(width), indexer.heads * indexer.head_dim, Sharding::none, 1.0, false, false,
           Module::attention},
          {"index_key", width, key + indexer.heads, Sharding::none, 1.0, true, false, Module::attention}};
}

// The products that make a compressed entry: a vector and a gate of each token, twice if the tokens of neighbouring entries
// overlap.
LayerKind compressor(const ModelShape& model, double layers, double vectors) {
  return {layers, false, {{"compress", model.hidden, vectors * model.kv_heads * model.head_dim, Sharding::none, 1.0, true}}};
}

// The products of a layer with a state, listed by their inputs.
std::vector<Product> state_products(const ModelShape& model, const StateLayer& own) {
  using Kind = StateLayer::Kind;
  const double values = own.values();
  const double keys = own.keys();
  std::vector<Product> list;
  switch (own.kind) {
    case Kind::gated_deltanet:  // queries, keys, values, the output's gate, and two numbers for each head of values
      list.push_back({"linear_inputs", model.hidden, 2.0 * keys + 2.0 * values + 2.0 * own.value_heads});
      break;
    case Kind::kimi_delta:  // queries, keys, values, a number for each head; decay and gate are squeezed
      list.push_back({"linear_inputs", model.hidden,
                      2.0 * keys + values + own.value_heads + own.rank + (own.full_gate ? values : own.rank)});
      list.push_back({"linear_gates", own.rank, keys + (own.full_gate ? 0.0 : values)});
      break;
    case Kind::lightning:  // queries, keys, values, the output's gate
      list.push_back({"linear_inputs", model.hidden, 2.0 * keys + 2.0 * values});
      break;
    case Kind::mamba:  // channels and gate; then per channel the time step and the vectors written and read
      list.push_back({"linear_inputs", model.hidden, 2.0 * values});
      list.push_back({"state_inputs", values, own.rank + 2.0 * keys, Sharding::rows});
      list.push_back({"time_step", own.rank, values});
      break;
    case Kind::mamba2:  // channels, gate, vectors written and read by group, a time step for each head
      list.push_back({"linear_inputs", model.hidden, 2.0 * values + 2.0 * keys + own.value_heads});
      break;
    case Kind::convolution:  // two gates and the input of the convolution
      list.push_back({"linear_inputs", model.hidden, 3.0 * values});
      break;
  }
  list.push_back({"linear_output", values, model.hidden, Sharding::rows});
  for (Product& product : list) product.module = Module::state;
  return list;
}

}  // namespace

double StateLayer::state_elements() const { return kind == Kind::convolution ? 0.0 : value_heads * value_dim * key_dim; }

double StateLayer::channels() const {
  switch (kind) {
    case Kind::lightning:
      return 0.0;
    case Kind::mamba:
    case Kind::convolution:
      return values();
    default:
      return 2.0 * keys() + values();
  }
}

std::vector<LayerKind> ModelShape::layer_kinds(double shards) const {
  std::vector<AttentionKind> attention;
  for (const AttentionKind& kind : attention_kinds()) {
    AttentionKind* same = nullptr;  // products do not depend on the window
    for (AttentionKind& other : attention)
      if (other.heads == kind.heads && other.kv_heads == kind.kv_heads && other.head_dim == kind.head_dim &&
          other.one_value == kind.one_value)
        same = &other;
    if (same == nullptr) {
      attention.push_back(kind);
      continue;
    }
    same->layers += kind.layers;
    same->borrowing += kind.borrowing;
  }
  if (!state && linear_layers > 0.0) {
    if (attention.empty()) attention.push_back({0.0, kv_heads, head_dim, 0.0, false, 0.0, false, 0.0, 0.0, heads, head_dim});
    attention.front().layers += linear_layers;
  }
  std::vector<LayerKind> kinds;
  const double mixtures = mixture_layers();
  const bool paired = ffn_only_layers == 0.0 && mixer_only_layers == 0.0;  // each layer has both parts
  // Adds feed-forward parts of this many layers after the products of `first`.
  const auto add_ffn = [&](double count, const std::vector<Product>& first) {
    const double all = layers - mixer_only_layers;
    const auto add = [&](double of_layers, bool mixture, double width) {
      if (of_layers <= 0.0) return;
      LayerKind own{count * of_layers / all, mixture, first};
      const Module module = mixture ? Module::shared : Module::dense;
      if (width > 0.0) {
        own.products.push_back({"up", hidden, (gated ? 2.0 : 1.0) * width, Sharding::columns, 1.0, false, mixture, module});
        own.products.push_back({"down", width, hidden, Sharding::rows, 1.0, false, mixture, module});
      }
      if (mixture && expert_hidden) {
        own.products.push_back({"expert_input", hidden, *expert_hidden, Sharding::none, 1.0, false, false, module});
        own.products.push_back({"expert_output", *expert_hidden, hidden, Sharding::none, 1.0, false, false, module});
      }
      kinds.push_back(std::move(own));
    };
    add(all - mixtures, false, ffn);
    add(mixtures, true, shared_ffn);
  };
  const auto add_layers = [&](double count, const std::vector<Product>& first) {
    if (paired)
      add_ffn(count, first);
    else
      kinds.push_back({count, false, first});
  };
  for (const AttentionKind& kind : attention) add_layers(kind.layers, projections(*this, kind, shards));
  if (state && linear_layers > 0.0) add_layers(linear_layers, state_products(*this, *state));
  if (!paired) add_ffn(layers - mixer_only_layers, {});
  if (state && parallel_state) kinds.push_back({state_layers(), false, state_products(*this, *state)});
  if (indexer) kinds.push_back({indexers(), false, indexer_products(*this, *indexer)});
  if (picks_entries()) kinds.push_back(compressor(*this, compressed->picked_layers, kOverlapping));
  if (compressed && compressed->heavy_layers > 0.0) kinds.push_back(compressor(*this, compressed->heavy_layers, kApart));
  if (layer_embeddings) {
    LayerKind own{layers, false, {{"layer_inputs", hidden, 2.0 * layer_embeddings->width, Sharding::none}}};
    own.products.push_back({"layer_output", layer_embeddings->width, hidden, Sharding::none});
    if (layer_embeddings->rank > 0.0) {
      own.products.push_back({"low_rank_input", hidden, layer_embeddings->rank, Sharding::none});
      own.products.push_back({"low_rank_output", layer_embeddings->rank, hidden, Sharding::none});
    }
    kinds.push_back(std::move(own));
  }
  return kinds;
}

std::vector<TypeShare> ModelShape::types_of(Module module) const {
  if (const auto own = own_types.find(module); own != own_types.end()) return own->second;
  switch (module) {
    case Module::experts:
      return {{{expert_bits, expert_type}, 1.0}};
    case Module::head:
    case Module::embeddings:
      return {{{head_bits, {}}, 1.0}};
    default:
      return {{{weight_bits, product_type}, 1.0}};
  }
}

std::vector<Product> ModelShape::expert_products() const {
  if (experts == 0.0) return {};
  const double width = expert_hidden.value_or(hidden);
  return {{"up", width, (gated ? 2.0 : 1.0) * expert_ffn}, {"down", expert_ffn, width, Sharding::rows}};
}

double ModelShape::expert_parameters() const {
  double sum = 0.0;
  for (const Product& product : expert_products()) sum += mixture_layers() * experts * product.inner * product.outer;
  return sum;
}

double ModelShape::module_parameters(Module module) const {
  const double own_embeddings = tied_embeddings || shares_lm_head || shares_embeddings ? 0.0 : embedded() * hidden;
  switch (module) {
    case Module::experts:
      return expert_parameters();
    case Module::head:
      return shares_lm_head ? 0.0 : lm_heads() * vocab * hidden;
    case Module::embeddings:
      return own_embeddings + (layer_embeddings ? layers * embedded() * layer_embeddings->width : 0.0);
    default:
      break;
  }
  double sum = module == Module::dense ? (fused_inputs + head_matrices) * hidden * hidden : 0.0;
  for (const LayerKind& kind : layer_kinds())
    for (const Product& product : kind.products)
      if (product.module == module) sum += kind.layers * product.groups * product.inner * product.outer;
  return sum;
}

double ModelShape::layer_parameters() const {
  double sum = (fused_inputs + head_matrices) * hidden * hidden + expert_parameters();
  for (const LayerKind& kind : layer_kinds())
    for (const Product& product : kind.products) sum += kind.layers * product.groups * product.inner * product.outer;
  return sum;
}

double ModelShape::total_parameters() const {
  return layer_parameters() + markov_parameters() + (lm_heads() * vocab + (tied_embeddings ? 0.0 : embedded())) * hidden +
         (layer_embeddings ? layers * embedded() * layer_embeddings->width : 0.0);
}

double ModelShape::active_parameters() const {
  const double chosen = experts > 0.0 ? experts_per_token / experts : 0.0;
  return layer_parameters() - (1.0 - chosen) * expert_parameters() + (lm_heads() * hidden + markov_rank) * vocab;
}

double ModelShape::state_bytes() const {
  constexpr double kBytes = 2.0;
  const double vectors = fused_inputs > 2.0 ? fused_inputs : on_target() ? 1.0 : 0.0;
  return kBytes * vectors * hidden;
}

double ModelShape::own_parameters() const {
  return layer_parameters() + markov_parameters() + module_parameters(Module::head) + module_parameters(Module::embeddings);
}

namespace {

double mean_bits(const std::vector<TypeShare>& types) {
  double sum = 0.0;
  for (const TypeShare& one : types) sum += one.share * one.type.bits;
  return sum;
}

}  // namespace

double ModelShape::layer_bytes(double active) const {
  const double met = experts > 0.0 ? active / experts : 0.0;
  std::map<Module, double> bits;
  for (const Module module : {Module::attention, Module::state, Module::dense, Module::shared})
    bits[module] = mean_bits(types_of(module));
  double sum = (fused_inputs + head_matrices) * hidden * hidden * weight_bits;
  sum += met * expert_parameters() * mean_bits(types_of(Module::experts));
  for (const LayerKind& kind : layer_kinds())
    for (const Product& product : kind.products)
      sum += kind.layers * product.groups * product.inner * product.outer * (product.plain ? 16.0 : bits.at(product.module));
  return sum / 8.0;
}

double ModelShape::weight_bytes() const {
  double sum = layer_bytes(experts) + markov_parameters() * head_bits / 8.0;
  for (const Module module : {Module::head, Module::embeddings})
    sum += module_parameters(module) * mean_bits(types_of(module)) / 8.0;
  return sum;
}

double ModelShape::kv_bytes_per_token() const {
  double sum = 0.0;
  for (const AttentionKind& kind : attention_kinds())
    sum += (kind.layers - kind.borrowing) * kind.elements / kind.compression.value_or(1.0);
  return sum * kv_bits / 8.0 + indexers() * index_key_bytes();
}

double ModelShape::indexers() const {
  if (!indexer) return 0.0;
  return picks_entries() ? compressed->picked_layers : indexer->layers.value_or(layers - linear_layers);
}

// In 8 bits, with a scale of four bytes for each 128 (DeepSeek-V3.2 and V4 in vLLM and SGLang), whatever the type of the rest.
double ModelShape::index_key_bytes() const {
  constexpr double kScaled = 128.0;
  constexpr double kScaleBytes = 4.0;
  if (!indexer) return 0.0;
  return (indexer->head_dim + kScaleBytes * std::ceil(indexer->head_dim / kScaled)) / index_entry_tokens();
}

double ModelShape::recurrent_bytes() const {
  constexpr double kConvolvedBytes = 2.0;  // the convolution's inputs are kept in the type they were computed in
  if (!state) return 0.0;
  return state_layers() * (state->state_elements() * state->state_bits / 8.0 +
                           state->channels() * std::max(0.0, state->convolved - 1.0) * kConvolvedBytes);
}

std::string made_for_another(const ModelShape& target, const ModelShape& draft) {
  constexpr double kPadding = 0.01;  // tolerance for vocabularies; families differ by more
  if (!draft.on_target() && !(draft.reads_target_cache() && draft.target_hidden)) return "";
  if (const double width = draft.target_hidden.value_or(draft.hidden); width != target.hidden)
    return fmt::format("the head reads features that are {:g} wide, the target's are {:g}", width, target.hidden);
  const std::optional<double> own = draft.shares_lm_head ? std::optional(draft.vocab) : draft.embedding_vocab;
  if (const auto vocab = draft.target_vocab ? draft.target_vocab : own;
      vocab && std::abs(*vocab - target.vocab) > kPadding * target.vocab)
    return fmt::format("the head was made for a vocabulary of {:.0f}, the target's has {:.0f}", *vocab, target.vocab);
  if (draft.target_layers && *draft.target_layers != target.layers)
    return fmt::format("the head was made for a target of {:g} layers, this one has {:g}", *draft.target_layers, target.layers);
  return "";
}

bool ModelShape::cuts_expert_blocks() const {
  // Fp8MoEMethod.create_weights in vllm/model_executor/layers/quantization/fp8.py and SGLang's file of the same name:
  // intermediate_size_per_partition % block_n. Blocks are 128 by 128 in every published checkpoint. vLLM's pull requests 39046
  // and 48173, which pad the slice, are not merged.
  constexpr double kBlock = 128.0;
  if (experts == 0.0 || tensor_parallel == 1.0 || std::fmod(expert_ffn / tensor_parallel, kBlock) == 0.0) return false;
  const std::vector<TypeShare> types = types_of(Module::experts);
  return std::any_of(types.begin(), types.end(), [](const TypeShare& one) { return one.type.kernel == "fp8_block"; });
}

double expected_experts(double experts, double per_token, double tokens) {
  if (tokens <= 0.0) return 0.0;  // also if every token takes every expert: 0 times log 0
  return experts * -std::expm1(tokens * std::log1p(-std::min(per_token / experts, 1.0)));
}

double largest_on_gpu(double mean, double spread, double gpus) {
  return mean + 0.564 * std::pow(std::log2(gpus), 0.84) * spread;  // 0.564 of 2 normal numbers, 1.01 of 4, 1.42 of 8
}

double met_experts(const ModelShape& model, double tokens) {
  const double gpus = model.expert_gpus();
  const double met = expected_experts(model.experts, model.experts_per_token, tokens);
  if (gpus <= 1.0) return met;
  const double share = met / model.experts;
  const double own = model.experts / gpus;
  const double spread = std::sqrt(own * share * (1.0 - share) * (1.0 - 1.0 / gpus));
  return std::min(own, largest_on_gpu(met / gpus, spread, gpus));
}

}  // namespace specsim::cost
