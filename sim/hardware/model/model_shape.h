// The shape of a decoder-only transformer: what its passes read and compute.
#pragma once

#include "sim/foundation/config/arguments.h"
#include "sim/hardware/presets/presets.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::cost {

// How the GPUs that share a layer divide one of its products: by its columns, its rows, whole products of a group, or not at all,
// so that each of them computes it.
enum class Sharding { columns, rows, groups, none };

// A matrix product of a layer: `rows` new tokens times `groups` matrices of `inner` by `outer`.
struct Product {
  std::string_view name;
  double inner = 0.0;
  double outer = 0.0;
  Sharding sharding = Sharding::columns;
  double groups = 1.0;
  bool plain = false;   // in 16 bits, whatever the type of the others
  bool beside = false;  // a shared expert's, which engines may run beside the others
};

// Layers whose attention is alike.
struct AttentionKind {
  double layers = 0.0;
  double kv_heads = 0.0;
  double head_dim = 0.0;
  double window = 0.0;     // newest cached tokens that are looked at; 0: all
  bool chunked = false;    // the window begins anew with every chunk of so many tokens
  double elements = 0.0;   // cached for a token in one layer
  bool one_value = false;  // values are the projection of keys
  double picked = 0.0;     // cached entries that an indexer picks for a new token; 0: none does
  // Beside the window's tokens an entry for so many tokens is kept of all, and picked from; 0: none, entries are tokens.
  double compression = 0.0;
  // How many of `context` cached tokens, as they are, a new one looks at; in chunks the mean over the places in one.
  [[nodiscard]] double seen(double context) const;
  // How many entries a sequence's `tokens` new ones read of `context` cached tokens and their own, and how many each looks at
  // that would look at `pairs` tokens without a window: picks of several may be others, but are no more than there are.
  [[nodiscard]] double read(double context, double tokens) const;
  [[nodiscard]] double looked_at(double context, double pairs) const;
  // How many entries stay in the cache of `tokens`.
  [[nodiscard]] double kept(double tokens) const;
};

// Layers whose products are alike.
struct LayerKind {
  double layers = 0.0;
  bool mixture = false;           // every token goes through some of the experts as well
  std::vector<Product> products;  // what every token goes through, fused as engines fuse them
};

// Sparse attention (DSA): an indexer scores all cached tokens for each new one by keys of its own, one for all of its heads, and
// the new one looks at the best `topk` alone.
struct Indexer {
  double topk = 0.0;
  double heads = 0.0;
  double head_dim = 0.0;
  std::optional<double> layers;  // with an indexer of their own, the others take the picks of one before; none: all
};

// Gated DeltaNet: linear attention with heads of values and of keys, alike in width, over a state of head by head, that each pass
// reads and writes; a convolution over the newest tokens before it.
struct DeltaNet {
  double value_heads = 0.0;
  double key_heads = 0.0;
  double head_dim = 0.0;
  double convolved = 0.0;    // tokens that the convolution looks at
  double state_bits = 32.0;  // an element of the state
};

// Weights in the host's memory, read over its link in every pass.
struct Offload {
  double share = 0.0;      // of the layers' weights
  double bandwidth = 0.0;  // of that link to each GPU, bytes per second
};

struct ModelShape {
  std::string name;
  double layers = 0.0;
  double hidden = 0.0;
  double heads = 0.0;
  double kv_heads = 0.0;
  double head_dim = 0.0;
  double ffn = 0.0;
  bool gated = true;             // gate and up projections (SwiGLU), or up alone
  double vocab = 0.0;            // rows of the LM head; a draft may have a reduced one
  double embedding_vocab = 0.0;  // tokens that have an embedding, where they are more than the LM head's; 0: as many
  bool tied_embeddings = false;
  double experts = 0.0;  // per layer; 0: dense
  double experts_per_token = 0.0;
  double expert_ffn = 0.0;
  double shared_ffn = 0.0;    // width of what every token of a mixture's layer passes beside its experts; 0: nothing
  double dense_layers = 0.0;  // layers of a mixture that have no experts and are `ffn` wide
  // Multi-head latent attention: keys and values are made of a vector of `latent` that is cached in their place, with `rope_dim`
  // rotated elements beside it that all heads share. head_dim is that of a query, rope_dim included. 0: keys and values.
  double latent = 0.0;
  double rope_dim = 0.0;
  double query_rank = 0.0;         // width that queries are squeezed through; 0: none
  double value_dim = 0.0;          // width of a head's value
  std::optional<Indexer> indexer;  // sparse attention
  // Compressed attention (DeepSeek-V4): all layers see the window; some keep an entry for each picked_tokens tokens beside it, of
  // which an indexer picks, some one for each heavy_tokens, of which all are looked at.
  double picked_layers = 0.0;
  double picked_tokens = 0.0;
  double heavy_layers = 0.0;
  double heavy_tokens = 0.0;
  bool one_vector = false;     // what is cached of a head is its key and its value at once
  double output_groups = 0.0;  // attention's output is squeezed to output_rank, group by group of heads, first; 0: it is not
  double output_rank = 0.0;
  double residual_streams = 1.0;  // hyper-connections mix so many at a layer's two parts
  // Attention by layer.
  double kv_window = 0.0;             // newest cached tokens that attention reads; 0: all
  double window_layers = 0.0;         // layers that have the window; 0: all of them
  bool chunked = false;               // in these the window begins anew with every chunk
  double linear_layers = 0.0;         // layers that cache no keys: linear attention, state spaces
  std::optional<DeltaNet> delta_net;  // in these; none: they have attention's projections, and no state
  bool gated_attention = false;       // attention's output is gated, by a projection as wide as the queries
  double global_head_dim = 0.0;       // head_dim in layers without the window, where it is another; 0: head_dim
  double global_kv_heads = 0.0;       // kv_heads in layers without the window, where they are others; 0: kv_heads
  bool global_one_value = false;      // their values are the projection of keys
  // A head on top of a target.
  double fused_inputs = 0.0;      // an EAGLE head joins so many hidden vectors first; 0: no such product
  double attention_inputs = 1.0;  // hidden vectors side by side that attention's projections read; 2 in an EAGLE-3 head
  double prediction_heads = 0.0;  // heads that guess one further token each in the same pass, each with its LM head; 0: none
  double head_matrices = 0.0;     // products of these heads before that, hidden by hidden, of all together
  // A block drafter's Markov head (DSpark): the token before, embedded so wide, biases the logits of the next, position by
  // position behind the pass over the block; 0: none.
  double markov_rank = 0.0;
  bool shares_lm_head = false;        // LM head and embeddings are the target's: no bytes of its own, the same time
  bool shares_embeddings = false;     // those alone
  bool one_pass = false;              // a round's drafts come of one pass over all of their positions (DFlash, PARD)
  bool in_target_checkpoint = false;  // servers find the module in the target's own checkpoint and take no path of it
  std::vector<std::string> assumed;   // what the description takes for granted, for warnings
  // How it is run.
  double weight_bits = 16.0;
  double expert_bits = 16.0;  // bits of the experts' weights
  double head_bits = 16.0;    // bits of LM head and embeddings, which quantised checkpoints usually leave alone
  double kv_bits = 16.0;
  // Kernels of kernels.h that multiply the layers' weights and the experts' alone; empty: by their bits.
  std::string product_type;
  std::string expert_type;
  bool plain_attention = false;  // attention's projections have 16 bits, whatever the other weights have
  // Types of checkpoints that others published of the model and servers load, by the word that they go by: fp8, fp4, bf16, int4.
  std::map<std::string, std::string> checkpoints;
  bool gguf = false;          // types of a GGUF file, which holds a module (in_target_checkpoint) in the same
  bool super_blocks = false;  // K-quants
  Location dtype_where;       // the place that asks for these types, for messages
  std::optional<Offload> offload;
  double tensor_parallel = 1.0;
  double expert_parallel = 1.0;  // GPUs that share the experts, each with sequences and all other weights of its own
  bool unverified = false;

  // It reads the target's hidden states and cannot stand alone.
  [[nodiscard]] bool on_target() const { return fused_inputs > 0.0 || prediction_heads > 0.0; }
  // Keys and values are one cached vector, which kernels of heads do not price.
  [[nodiscard]] bool over_one_vector() const { return latent > 0.0 || one_vector; }
  // Tokens that an entry stands for of those that an indexer scores.
  [[nodiscard]] double index_entry_tokens() const { return picked_tokens > 0.0 ? picked_tokens : 1.0; }
  // Bytes of the target's hidden states that it reads of a token; 0: it stands alone. An EAGLE head joins one with the token.
  [[nodiscard]] double state_bytes() const;
  [[nodiscard]] double lm_heads() const { return prediction_heads > 0.0 ? prediction_heads : 1.0; }
  // All layers, as one of `shards` GPUs sees them: key and value heads that are fewer than the GPUs are copied.
  [[nodiscard]] std::vector<LayerKind> layer_kinds(double shards = 1.0) const;
  [[nodiscard]] std::vector<Product> expert_products() const;  // the products of one expert; empty for a dense model
  [[nodiscard]] std::vector<AttentionKind> attention_kinds() const;
  // How many GPUs cut a layer's cache: a key and value head is not cut, nor is a latent vector.
  [[nodiscard]] double kv_shards(const AttentionKind& kind) const;
  // Parameters in the layers' matrices (all experts), of them in experts, and with embeddings and LM head.
  [[nodiscard]] double layer_parameters() const;
  [[nodiscard]] double expert_parameters() const;
  [[nodiscard]] double total_parameters() const;
  // Parameters that one token meets: with the experts that it chooses, without embeddings.
  [[nodiscard]] double active_parameters() const;
  [[nodiscard]] double embedded() const { return embedding_vocab > 0.0 ? embedding_vocab : vocab; }
  [[nodiscard]] double markov_parameters() const { return markov_rank * (embedded() + vocab); }
  [[nodiscard]] double own_parameters() const;  // total less what it shares with the target
  [[nodiscard]] double weight_bytes() const;    // bytes of the same parameters
  // Bytes of the layers' matrices that a pass reads which meets `active` experts in a layer.
  [[nodiscard]] double layer_bytes(double active) const;
  [[nodiscard]] double kv_bytes_per_token() const;  // cached for one token by all layers that look at it
  [[nodiscard]] double recurrent_bytes() const;     // the states of one sequence in all layers of linear attention
  [[nodiscard]] double indexers() const;            // layers with an indexer of their own
  [[nodiscard]] double index_key_bytes() const;     // cached by one of them for one token
};

// Distinct experts of `experts` that `tokens` tokens choose, `per_token` each, independently: N (1 - (1 - k/N)^n). The
// tokens are all those of the pass: verified ones too.
double expected_experts(double experts, double per_token, double tokens);
// Distinct experts of a layer that the tokens of a pass meet on one GPU. Where several GPUs share the experts, on the one that
// meets the most, for which the others wait: the mean, and the expectation of the largest of so many normal numbers.
double met_experts(const ModelShape& model, double tokens);

// The parameters of a model's description, for the reference page.
const std::vector<config::Parameter>& model_parameters();
// `spec` as resolve_preset takes it; `what` names it in messages. Reports what is wrong; the shape is then not to be used.
ModelShape read_model(const config::Value& spec, const std::string& what, Diagnostics& diagnostics);
ModelShape read_model(const PresetChoice& choice, const std::string& what, Diagnostics& diagnostics);

}  // namespace specsim::cost
