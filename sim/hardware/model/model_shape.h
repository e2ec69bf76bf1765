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

// Which part of a model a matrix belongs to: checkpoints store parts in types of their own.
enum class Module { attention, state, dense, shared, experts, head, embeddings };

// How weights are stored, and what multiplies them.
struct StoredType {
  double bits = 16.0;
  std::string kernel;  // a Dtype's name; empty: kernels go by the bits
  bool operator==(const StoredType&) const = default;
};
struct TypeShare {
  StoredType type;
  double share = 1.0;  // of the part's parameters
};

// A matrix product of a layer: `rows` new tokens times `groups` matrices of `inner` by `outer`.
struct Product {
  std::string_view name;
  double inner = 0.0;
  double outer = 0.0;
  Sharding sharding = Sharding::columns;
  double groups = 1.0;
  bool plain = false;   // in 16 bits, whatever the type of the others
  bool beside = false;  // a shared expert's, which engines may run beside the others
  Module module = Module::dense;
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
  double heads = 0.0;      // query heads
  double value_dim = 0.0;  // width of a head's value
  double borrowing = 0.0;  // of these layers, those that read the keys and values of others and cache none
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

// A layer whose memory does not grow with the context: linear attention over a state of head by head, a state space, or a
// convolution alone. Each pass reads and writes it.
struct StateLayer {
  enum class Kind { gated_deltanet, kimi_delta, lightning, mamba, mamba2, convolution };
  Kind kind = Kind::gated_deltanet;
  double value_heads = 0.0;  // heads of values; of a state space its channels (mamba) or heads (mamba2)
  double key_heads = 0.0;    // heads of keys, and of queries; groups of mamba2
  double value_dim = 0.0;    // width of a head's value
  double key_dim = 0.0;      // width of a head's key; the state's width per channel
  double convolved = 0.0;    // tokens that the convolution before it looks at
  double rank = 0.0;         // width that gates or time steps are squeezed through
  bool full_gate = false;    // the output's gate is not squeezed (Kimi K3)
  double state_bits = 32.0;  // an element of the state
  [[nodiscard]] double values() const { return value_heads * value_dim; }
  [[nodiscard]] double keys() const { return key_heads * key_dim; }
  [[nodiscard]] double state_elements() const;  // of one layer and sequence
  [[nodiscard]] double channels() const;        // that the convolution goes over
};

// Multi-head latent attention: keys and values are made of a vector of `width` that is cached in their place, with `rope_dim`
// rotated elements beside it that all heads share. The model's head_dim is that of a query, rope_dim included.
struct LatentVector {
  double width = 0.0;
  double rope_dim = 0.0;
};

// Compressed attention (DeepSeek-V4): all layers see the window; some keep an entry for each picked_tokens tokens beside it, of
// which an indexer picks, some one for each heavy_tokens, of which all are looked at.
struct CompressedAttention {
  double picked_layers = 0.0;
  double picked_tokens = 0.0;
  double heavy_layers = 0.0;
  double heavy_tokens = 0.0;
};

// Attention's output is squeezed to `rank`, group by group of heads, before its projection.
struct SqueezedOutput {
  double groups = 0.0;
  double rank = 0.0;
};

// Embeddings of each layer (Gemma 3n): rows that are looked up, and products that join them to the layer.
struct LayerEmbeddings {
  double width = 0.0;
  double rank = 0.0;  // of the low-rank product beside attention (LAuReL)
};

// Weights in the host's memory, read over its link in every pass.
struct Offload {
  double share = 0.0;      // of the layers' weights
  double bandwidth = 0.0;  // of that link to each GPU, bytes per second
};

// Tensors of one part and type in the files of a model's weights, by their headers.
struct StoredTensors {
  std::string part;  // as dtype names it; mtp, small, other
  std::string type;
  double tensors = 0.0;
  double elements = 0.0;
  double bytes = 0.0;
};

struct ModelShape {
  std::string name;
  double layers = 0.0;
  double hidden = 0.0;
  double heads = 0.0;
  double kv_heads = 0.0;
  double head_dim = 0.0;
  double ffn = 0.0;
  bool gated = true;                      // gate and up projections (SwiGLU), or up alone
  double vocab = 0.0;                     // rows of the LM head; a draft may have a reduced one
  std::optional<double> embedding_vocab;  // tokens that have an embedding, where they are more than the LM head's
  bool tied_embeddings = false;
  double experts = 0.0;  // per layer; 0: dense
  double experts_per_token = 0.0;
  double expert_ffn = 0.0;
  double shared_ffn = 0.0;              // width of what every token of a mixture's layer passes beside its experts; 0: nothing
  double dense_layers = 0.0;            // layers of a mixture that have no experts and are `ffn` wide
  std::optional<double> expert_hidden;  // width that routed experts work on, where it is not the model's
  std::optional<LatentVector> latent;
  std::optional<double> query_rank;  // width that queries are squeezed through
  std::optional<double> value_dim;   // width of a head's value, where it is not head_dim
  std::optional<Indexer> indexer;    // sparse attention
  std::optional<CompressedAttention> compressed;
  bool one_vector = false;  // what is cached of a head is its key and its value at once
  std::optional<SqueezedOutput> squeezed_output;
  double residual_streams = 1.0;  // hyper-connections mix so many at a layer's two parts
  // Attention by layer.
  double kv_window = 0.0;             // newest cached tokens that attention reads; 0: all
  double window_layers = 0.0;         // layers that have the window; 0: all of them
  bool chunked = false;               // in these the window begins anew with every chunk
  double linear_layers = 0.0;         // layers that cache no keys: linear attention, state spaces
  std::optional<StateLayer> state;    // in these; none: they have attention's projections, and no state
  bool parallel_state = false;        // and in every layer with attention, beside it (Falcon-H1)
  double ffn_only_layers = 0.0;       // layers that are a feed-forward part alone (Nemotron-H)
  double mixer_only_layers = 0.0;     // layers without a feed-forward part
  double shared_kv_layers = 0.0;      // layers that read the keys and values of others and cache none, without the window
  double shared_window_layers = 0.0;  // and with the window
  std::optional<LayerEmbeddings> layer_embeddings;
  bool gated_attention = false;           // attention's output is gated, by a projection as wide as the queries
  std::optional<double> global_head_dim;  // head_dim in layers without the window, where it is another
  std::optional<double> global_kv_heads;  // kv_heads in layers without the window, where they are others
  std::optional<double> global_heads;     // heads in layers without the window, where they are others
  bool global_one_value = false;          // their values are the projection of keys
  // A head on top of a target.
  double fused_inputs = 0.0;      // an EAGLE head joins so many hidden vectors first; 0: no such product
  double attention_inputs = 1.0;  // hidden vectors side by side that attention's projections read; 2 in an EAGLE-3 head
  double prediction_heads = 0.0;  // heads that guess one further token each in the same pass, each with its LM head; 0: none
  double head_matrices = 0.0;     // products of these heads before that, hidden by hidden, of all together
  // A block drafter's Markov head (DSpark, Domino): the token before, embedded so wide, biases the logits of the next, position
  // by position behind the pass over the block; 0: none.
  double markov_rank = 0.0;
  double markov_matrices = 0.0;  // parameters of its products at a position, besides those from and to the vocabulary
  bool markov_embeds = true;     // it has embeddings of its own
  // What drafts, where servers go by it (eagle, eagle3, p_eagle, mtp, dflash, dspark, domino, pard, ...); empty: by the shape.
  std::string drafter;
  std::optional<double> longest_draft;  // tokens that a block drafter can draft at most
  std::optional<double> target_hidden;  // width of the target that it was made for
  std::optional<double> target_vocab;   // tokens of that target
  std::optional<double> target_layers;  // layers of that target
  std::string verifier;                 // name of that target
  bool shares_lm_head = false;          // LM head and embeddings are the target's: no bytes of its own, the same time
  bool shares_embeddings = false;       // those alone
  bool one_pass = false;                // a round's drafts come of one pass over all of their positions (DFlash, PARD)
  bool in_target_checkpoint = false;    // servers find the module in the target's own checkpoint and take no path of it
  std::vector<std::string> unread;      // keys of its file that nothing was made of
  std::vector<std::string> assumed;     // what the description takes for granted, for warnings
  std::vector<StoredTensors> stored;    // what the files of its weights hold; empty: not known
  // How it is run.
  double weight_bits = 16.0;
  double expert_bits = 16.0;  // bits of the experts' weights
  double head_bits = 16.0;    // bits of LM head and embeddings, which quantised checkpoints usually leave alone
  double kv_bits = 16.0;
  // Kernels of kernels.h that multiply the layers' weights and the experts' alone; empty: by their bits.
  std::string product_type;
  std::string expert_type;
  // Parts whose weights are stored otherwise: several types where layers or projections differ.
  std::map<Module, std::vector<TypeShare>> own_types;
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
  [[nodiscard]] bool over_one_vector() const { return latent || one_vector; }
  // Tokens that an entry stands for of those that an indexer scores.
  [[nodiscard]] double index_entry_tokens() const { return picks_entries() ? compressed->picked_tokens : 1.0; }
  [[nodiscard]] bool picks_entries() const { return compressed && compressed->picked_layers > 0.0; }
  // Bytes of the target's hidden states that it reads of a token; 0: it stands alone. An EAGLE head joins one with the token.
  [[nodiscard]] double state_bytes() const;
  [[nodiscard]] double lm_heads() const { return prediction_heads > 0.0 ? prediction_heads : 1.0; }
  // All layers, as one of `shards` GPUs sees them: key and value heads that are fewer than the GPUs are copied.
  [[nodiscard]] std::vector<LayerKind> layer_kinds(double shards = 1.0) const;
  [[nodiscard]] std::vector<Product> expert_products() const;  // the products of one expert; empty for a dense model
  [[nodiscard]] std::vector<AttentionKind> attention_kinds() const;
  // The types in which the weights of a part are stored, with their shares.
  [[nodiscard]] std::vector<TypeShare> types_of(Module module) const;
  // Attention or a state, and feed-forward, each counted by itself.
  [[nodiscard]] double parts() const { return 2.0 * layers - ffn_only_layers - mixer_only_layers; }
  [[nodiscard]] double mixture_layers() const { return experts > 0.0 ? layers - mixer_only_layers - dense_layers : 0.0; }
  [[nodiscard]] double state_layers() const { return !state ? 0.0 : parallel_state ? layers - ffn_only_layers : linear_layers; }
  // How many GPUs cut a layer's cache: a key and value head is not cut, nor is a latent vector.
  [[nodiscard]] double kv_shards(const AttentionKind& kind) const;
  // Parameters in the layers' matrices (all experts), of them in experts, and with embeddings and LM head.
  [[nodiscard]] double layer_parameters() const;
  [[nodiscard]] double expert_parameters() const;
  [[nodiscard]] double total_parameters() const;
  // Parameters that one token meets: with the experts that it chooses, without embeddings.
  [[nodiscard]] double active_parameters() const;
  [[nodiscard]] double embedded() const { return embedding_vocab.value_or(vocab); }
  [[nodiscard]] double markov_parameters() const {
    return markov_rank * ((markov_embeds ? embedded() : 0.0) + vocab) + markov_matrices;
  }
  // Parameters of a part, as far as they are its own.
  [[nodiscard]] double module_parameters(Module module) const;
  [[nodiscard]] double own_parameters() const;  // total less what it shares with the target
  [[nodiscard]] double weight_bytes() const;    // bytes of the same parameters
  // Bytes of the layers' matrices that a pass reads which meets `active` experts in a layer.
  [[nodiscard]] double layer_bytes(double active) const;
  [[nodiscard]] double kv_bytes_per_token() const;  // cached for one token by all layers that look at it
  [[nodiscard]] double recurrent_bytes() const;     // the states of one sequence in all layers of linear attention
  [[nodiscard]] double indexers() const;            // layers with an indexer of their own
  [[nodiscard]] double index_key_bytes() const;     // cached by one of them for one token
};

// How the target that a head was made for differs from this one; empty: it does not, as far as the head says.
std::string made_for_another(const ModelShape& target, const ModelShape& draft);

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
// {part: {type: {tensors, elements, bytes}}}, as the readers of weight files write it.
std::vector<StoredTensors> read_stored(const config::Value& parts);
ModelShape read_model(const PresetChoice& choice, const std::string& what, Diagnostics& diagnostics);

}  // namespace specsim::cost
