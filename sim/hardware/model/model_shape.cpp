#include "sim/hardware/model/model_shape.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::cost {

double AttentionKind::seen(double context) const {
  if (window == 0.0 || context <= window) return context;
  return chunked ? 0.5 * window : window;
}

double AttentionKind::read(double context, double tokens) const {
  const double plain = seen(context) + tokens;
  if (compression == 0.0) return picked > 0.0 ? std::min(tokens * picked, plain) : plain;
  const double entries = context / compression;
  return plain + (picked > 0.0 ? std::min(tokens * picked, entries) : entries);
}

double AttentionKind::looked_at(double context, double pairs) const {
  const double plain = pairs - (context - seen(context));
  if (compression == 0.0) return picked > 0.0 ? std::min(picked, plain) : plain;
  const double entries = pairs / compression;
  return std::min(window, plain) + (picked > 0.0 ? std::min(picked, entries) : entries);
}

double AttentionKind::kept(double tokens) const {
  return (window > 0.0 ? std::min(window, tokens) : tokens) + (compression > 0.0 ? tokens / compression : 0.0);
}

std::vector<AttentionKind> ModelShape::attention_kinds() const {
  if (picked_layers + heavy_layers > 0.0) {
    std::vector<AttentionKind> kinds;
    const auto add = [&](double count, double compression, double picked) {
      if (count <= 0.0) return;
      AttentionKind own{count, kv_heads, head_dim, kv_window};
      own.elements = (one_vector ? 1.0 : 2.0) * kv_heads * head_dim;
      own.picked = picked;
      own.compression = compression;
      kinds.push_back(own);
    };
    add(layers - picked_layers - heavy_layers, 0.0, 0.0);
    add(picked_layers, picked_tokens, indexer ? indexer->topk : 0.0);
    add(heavy_layers, heavy_tokens, 0.0);
    return kinds;
  }
  const double attending = layers - linear_layers;
  const double windowed = kv_window == 0.0 ? 0.0 : window_layers == 0.0 ? attending : window_layers;
  const auto kind = [&](double count, bool window) {
    AttentionKind own;
    own.layers = count;
    own.window = window ? kv_window : 0.0;
    own.chunked = window && chunked;
    const bool global = !window && windowed > 0.0;
    own.kv_heads = global && global_kv_heads > 0.0 ? global_kv_heads : kv_heads;
    own.head_dim = global && global_head_dim > 0.0 ? global_head_dim : head_dim;
    own.one_value = global && global_one_value;
    own.picked = indexer ? indexer->topk : 0.0;
    own.elements = latent > 0.0 ? latent + rope_dim : (one_vector ? 1.0 : 2.0) * own.kv_heads * own.head_dim;
    return own;
  };
  std::vector<AttentionKind> kinds;
  if (windowed > 0.0) kinds.push_back(kind(windowed, true));
  if (attending > windowed) kinds.push_back(kind(attending - windowed, false));
  return kinds;
}

double ModelShape::kv_shards(const AttentionKind& kind) const {
  return latent > 0.0 ? 1.0 : std::min(tensor_parallel, kind.kv_heads);
}

namespace {

// A layer's projections. Weights of latent attention are absorbed: queries go into the latent space and values come out of it,
// head by head, so that the cache is read as it is.
std::vector<Product> typed_projections(const ModelShape& model, const AttentionKind& kind, double shards) {
  const double width = model.attention_inputs * model.hidden;
  if (model.one_vector) {
    const double queries = model.heads * kind.head_dim;
    std::vector<Product> list = {{"latent", width, model.query_rank + kind.kv_heads * kind.head_dim, Sharding::none}};
    list.push_back({"query", model.query_rank > 0.0 ? model.query_rank : width, queries});
    if (model.output_groups == 0.0) {
      list.push_back({"output", queries, model.hidden, Sharding::rows});
      return list;
    }
    list.push_back(
        {"squeeze_output", queries / model.output_groups, model.output_rank, Sharding::groups, model.output_groups, true});
    list.push_back({"output", model.output_groups * model.output_rank, model.hidden, Sharding::rows});
    return list;
  }
  if (model.latent == 0.0) {
    const double copies = shards / std::min(shards, kind.kv_heads);
    const double queries = (model.gated_attention ? 2.0 : 1.0) * model.heads;
    return {{"qkv", width, (queries + (kind.one_value ? 1.0 : 2.0) * kind.kv_heads * copies) * kind.head_dim},
            {"output", model.heads * kind.head_dim, model.hidden, Sharding::rows}};
  }
  const double queries = model.heads * kind.head_dim;
  std::vector<Product> list = {{"latent", width, model.query_rank + model.latent + model.rope_dim, Sharding::none}};
  list.push_back({"query", model.query_rank > 0.0 ? model.query_rank : width, queries});
  list.push_back({"absorb_key", kind.head_dim - model.rope_dim, model.latent, Sharding::groups, model.heads});
  list.push_back({"absorb_value", model.latent, model.value_dim, Sharding::groups, model.heads});
  list.push_back({"output", model.heads * model.value_dim, model.hidden, Sharding::rows});
  return list;
}

std::vector<Product> projections(const ModelShape& model, const AttentionKind& kind, double shards) {
  std::vector<Product> list = typed_projections(model, kind, shards);
  for (Product& product : list) product.plain = product.plain || model.plain_attention;
  return list;
}

// Vectors of a token that a compressor adds up into an entry: values and gates; those of picked entries overlap.
constexpr double kApart = 2.0;
constexpr double kOverlapping = 4.0;

// An indexer: its queries come of the squeezed ones that attention's come of, its key and a weight for each of its heads of the
// layer's input, in one product of 16 bits. Engines do not cut them (vLLM, SGLang: ReplicatedLinear, wk_weights_proj).
std::vector<Product> indexer_products(const ModelShape& model, const Indexer& indexer) {
  const double width = model.attention_inputs * model.hidden;
  const double key = (model.picked_layers > 0.0 ? kOverlapping : 1.0) * indexer.head_dim;
  return {{"index_query", model.query_rank > 0.0 ? model.query_rank : width, indexer.heads * indexer.head_dim, Sharding::none,
           1.0, model.plain_attention},
          {"index_key", width, key + indexer.heads, Sharding::none, 1.0, true}};
}

// What a compressed entry is made of: a vector and a gate of each token, twice where the tokens of neighbouring entries overlap.
LayerKind compressor(const ModelShape& model, double layers, double vectors) {
  return {layers, false, {{"compress", model.hidden, vectors * model.kv_heads * model.head_dim, Sharding::none, 1.0, true}}};
}

// A layer of Gated DeltaNet: queries, keys, values, the output's gate, and two numbers for each head of values.
std::vector<Product> linear_projections(const ModelShape& model, const DeltaNet& net) {
  const double values = net.value_heads * net.head_dim;
  const double keys = net.key_heads * net.head_dim;
  const bool plain = model.plain_attention;
  return {{"linear_inputs", model.hidden, 2.0 * keys + 2.0 * values + 2.0 * net.value_heads, Sharding::columns, 1.0, plain},
          {"linear_output", values, model.hidden, Sharding::rows, 1.0, plain}};
}

}  // namespace

std::vector<LayerKind> ModelShape::layer_kinds(double shards) const {
  std::vector<AttentionKind> attention;
  for (const AttentionKind& kind : attention_kinds()) {
    AttentionKind* same = nullptr;  // products do not know the window
    for (AttentionKind& other : attention)
      if (other.kv_heads == kind.kv_heads && other.head_dim == kind.head_dim && other.one_value == kind.one_value) same = &other;
    if (same == nullptr)
      attention.push_back(kind);
    else
      same->layers += kind.layers;
  }
  const bool own_products = delta_net.has_value();
  if (attention.empty() && !own_products) attention.push_back({0.0, kv_heads, head_dim});
  if (!own_products) attention.front().layers += linear_layers;
  std::vector<LayerKind> kinds;
  const double mixtures = experts > 0.0 ? layers - dense_layers : 0.0;
  const auto add_layers = [&](double count, const std::vector<Product>& first) {
    const auto add = [&](double of_layers, bool mixture, double width) {
      if (of_layers <= 0.0) return;
      LayerKind own{count * of_layers / layers, mixture, first};
      if (width > 0.0) {
        own.products.push_back({"up", hidden, (gated ? 2.0 : 1.0) * width, Sharding::columns, 1.0, false, mixture});
        own.products.push_back({"down", width, hidden, Sharding::rows, 1.0, false, mixture});
      }
      kinds.push_back(std::move(own));
    };
    add(layers - mixtures, false, ffn);
    add(mixtures, true, shared_ffn);
  };
  for (const AttentionKind& kind : attention) add_layers(kind.layers, projections(*this, kind, shards));
  if (own_products && linear_layers > 0.0) add_layers(linear_layers, linear_projections(*this, *delta_net));
  if (indexer) kinds.push_back({indexers(), false, indexer_products(*this, *indexer)});
  if (picked_layers > 0.0) kinds.push_back(compressor(*this, picked_layers, kOverlapping));
  if (heavy_layers > 0.0) kinds.push_back(compressor(*this, heavy_layers, kApart));
  return kinds;
}

std::vector<Product> ModelShape::expert_products() const {
  if (experts == 0.0) return {};
  return {{"up", hidden, (gated ? 2.0 : 1.0) * expert_ffn}, {"down", expert_ffn, hidden, Sharding::rows}};
}

double ModelShape::expert_parameters() const {
  double sum = 0.0;
  for (const Product& product : expert_products()) sum += (layers - dense_layers) * experts * product.inner * product.outer;
  return sum;
}

double ModelShape::layer_parameters() const {
  double sum = (fused_inputs + head_matrices) * hidden * hidden + expert_parameters();
  for (const LayerKind& kind : layer_kinds())
    for (const Product& product : kind.products) sum += kind.layers * product.groups * product.inner * product.outer;
  return sum;
}

double ModelShape::total_parameters() const {
  return layer_parameters() + markov_parameters() + (lm_heads() * vocab + (tied_embeddings ? 0.0 : embedded())) * hidden;
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
  return shares_lm_head ? layer_parameters() + markov_parameters()
                        : total_parameters() - (shares_embeddings ? embedded() * hidden : 0.0);
}

double ModelShape::layer_bytes(double active) const {
  const double experts_own = expert_parameters();
  const double met = experts > 0.0 ? active / experts : 0.0;
  double plain = 0.0;
  for (const LayerKind& kind : layer_kinds())
    for (const Product& product : kind.products)
      if (product.plain) plain += kind.layers * product.groups * product.inner * product.outer;
  return ((layer_parameters() - experts_own - plain) * weight_bits + 16.0 * plain + met * experts_own * expert_bits) / 8.0;
}

double ModelShape::weight_bytes() const {
  return layer_bytes(experts) + (own_parameters() - layer_parameters()) * head_bits / 8.0;
}

double ModelShape::kv_bytes_per_token() const {
  double sum = 0.0;
  for (const AttentionKind& kind : attention_kinds())
    sum += kind.layers * kind.elements / (kind.compression > 0.0 ? kind.compression : 1.0);
  return sum * kv_bits / 8.0 + indexers() * index_key_bytes();
}

double ModelShape::indexers() const {
  if (!indexer) return 0.0;
  return picked_layers > 0.0 ? picked_layers : indexer->layers.value_or(layers - linear_layers);
}

// In 8 bits, with a scale of four bytes for each 128 (DeepSeek-V3.2 and V4 in vLLM and SGLang), whatever the type of the rest.
double ModelShape::index_key_bytes() const {
  constexpr double kScaled = 128.0;
  constexpr double kScaleBytes = 4.0;
  if (!indexer) return 0.0;
  return (indexer->head_dim + kScaleBytes * std::ceil(indexer->head_dim / kScaled)) / index_entry_tokens();
}

double ModelShape::recurrent_bytes() const {
  constexpr double kConvolvedBytes = 2.0;  // what the convolution looks at is kept as it was computed
  if (!delta_net) return 0.0;
  const DeltaNet& net = *delta_net;
  const double state = net.value_heads * net.head_dim * net.head_dim * net.state_bits / 8.0;
  const double channels = (2.0 * net.key_heads + net.value_heads) * net.head_dim;
  return linear_layers * (state + channels * std::max(0.0, net.convolved - 1.0) * kConvolvedBytes);
}

double expected_experts(double experts, double per_token, double tokens) {
  if (tokens <= 0.0) return 0.0;  // also where every token takes every expert: 0 times log 0
  return experts * -std::expm1(tokens * std::log1p(-std::min(per_token / experts, 1.0)));
}

double met_experts(const ModelShape& model, double tokens) {
  const double gpus = model.expert_parallel;
  const double met = expected_experts(model.experts, model.experts_per_token, tokens);
  if (gpus <= 1.0) return met;
  const double share = met / model.experts;
  const double own = model.experts / gpus;
  const double spread = std::sqrt(own * share * (1.0 - share) * (1.0 - 1.0 / gpus));
  const double largest = 0.564 * std::pow(std::log2(gpus), 0.84);  // 0.564 of 2, 1.01 of 4, 1.42 of 8
  return std::min(own, met / gpus + largest * spread);
}

}  // namespace specsim::cost
