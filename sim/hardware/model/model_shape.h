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

// How the GPUs that share a layer divide one of its products: by columns, by rows, by whole products of a group, or not at all,
// so that each GPU computes it.
enum class Sharding { columns, rows, groups, none };

// Which part of a model a matrix belongs to: checkpoints store parts in types of their own.
enum class Module { attention, state, dense, shared, experts, head, embeddings };

// How weights are stored, and the type they are multiplied in.
struct StoredType {
  double bits = 16.0;
  std::string kernel;  // a Dtype's name; empty: the kernel is chosen by the bits
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
  bool plain = false;        // in 16 bits, whatever the type of the others
  bool in_parallel = false;  // a shared expert's, which engines may run in parallel with the others
  Module module = Module::dense;
};

// Layers with equal attention.
struct AttentionKind {
  double layers = 0.0;
  double kv_heads = 0.0;
  double head_dim = 0.0;
  std::optional<double> window = {};  // newest cached tokens that attention reads; none: all
  bool chunked = false;               // the window restarts with every chunk of this many tokens
  double elements = 0.0;              // cached for a token in one layer
  bool one_value = false;             // values are the projection of keys
  std::optional<double> picked = {};  // cached entries that an indexer selects for a new token; none: there is no indexer
  // Besides the window's tokens, one entry per this many tokens is kept for the whole context, and entries are selected from
  // these; none: entries are tokens.
  std::optional<double> compression = {};
  double heads = 0.0;      // query heads
  double value_dim = 0.0;  // width of a head's value
  double borrowing = 0.0;  // of these layers, the number that read the keys and values of others and cache none
  // How many of `context` cached tokens, uncompressed, a new token attends to; with chunks the mean over the places in one.
  [[nodiscard]] double seen(double context) const;
  // How many entries the `tokens` new tokens of a sequence read of `context` cached tokens and their own; and how many each
  // attends to that would attend to `pairs` tokens without a window. Several tokens may select different entries, but never more
  // than exist.
  [[nodiscard]] double read(double context, double tokens) const;
  [[nodiscard]] double looked_at(double context, double pairs) const;
  // How many entries the cache of `tokens` tokens keeps.
  [[nodiscard]] double kept(double tokens) const;
};

// Layers with equal products.
struct LayerKind {
  double layers = 0.0;
  bool mixture = false;           // every token also goes through some of the experts
  std::vector<Product> products;  // the part that every token passes, fused as engines fuse it
};

// Sparse attention (DSA). An indexer scores all cached tokens for each new one, with keys of its own, one for all of its heads.
// The new token attends to the best `topk` only.
struct Indexer {
  double topk = 0.0;
  double heads = 0.0;
  double head_dim = 0.0;
  std::optional<double> layers;  // with an indexer of their own; the others reuse the selection of an earlier layer; none: all
};

// A layer whose memory does not grow with the context: linear attention with a state per head, a state space, or a convolution
// alone. Each pass reads and writes the state.
struct StateLayer {
  enum class Kind { gated_deltanet, kimi_delta, lightning, mamba, mamba2, convolution };
  Kind kind = Kind::gated_deltanet;
  double value_heads = 0.0;  // heads of values; of a state space its channels (mamba) or heads (mamba2)
  double key_heads = 0.0;    // heads of keys, and of queries; groups of mamba2
  double value_dim = 0.0;    // width of a head's value
  double key_dim = 0.0;      // width of a head's key; the state's width per channel
  double convolved = 0.0;    // tokens in the window of the convolution before it
  double rank = 0.0;         // width that gates or time steps are squeezed through
  bool full_gate = false;    // the output's gate is not squeezed (Kimi K3)
  double state_bits = 32.0;  // bits of an element of the state
  [[nodiscard]] double values() const { return value_heads * value_dim; }
  [[nodiscard]] double keys() const { return key_heads * key_dim; }
  [[nodiscard]] double state_elements() const;  // of one layer and sequence
  [[nodiscard]] double channels() const;        // channels that the convolution covers
};

// Multi-head latent attention: keys and values are computed from a vector of `width` that is cached in their place, together with
// `rope_dim` rotated elements that all heads share. The model's head_dim is that of a query, rope_dim included.
struct LatentVector {
  double width = 0.0;
  double rope_dim = 0.0;
};

// Compressed attention (DeepSeek-V4). All layers read the window. Besides it, some layers keep one entry per picked_tokens
// tokens, of which an indexer selects some; others keep one entry per heavy_tokens tokens and read all of them.
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
  double rank = 0.0;  // of the low-rank product in parallel with attention (LAuReL)
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
  std::optional<double> embedding_vocab;  // tokens that have an embedding, if they are more than the LM head's
  bool tied_embeddings = false;
  double experts = 0.0;  // per layer; 0: dense
  double experts_per_token = 0.0;
  double expert_ffn = 0.0;
  // width of the part that every token of a mixture's layer passes besides its experts; 0: none
  double shared_ffn = 0.0;
  double dense_layers = 0.0;            // layers of a mixture that have no experts and are `ffn` wide
  std::optional<double> expert_hidden;  // width that routed experts work on, if it is not the model's
  std::optional<LatentVector> latent;
  std::optional<double> query_rank;  // width that queries are squeezed through
  std::optional<double> value_dim;   // width of a head's value, if it is not head_dim
  std::optional<Indexer> indexer;    // sparse attention
  std::optional<CompressedAttention> compressed;
  bool one_vector = false;  // one cached vector per head serves as key and value
  std::optional<SqueezedOutput> squeezed_output;
  double residual_streams = 1.0;  // number of residual vectors that hyper-connections mix at a layer's two parts
  // Attention by layer.
  std::optional<double> kv_window;      // newest cached tokens that attention reads; none: all
  std::optional<double> window_layers;  // layers that have the window; none: all of them
  bool chunked = false;                 // in these the window restarts with every chunk
  double linear_layers = 0.0;           // layers that cache no keys: linear attention, state spaces
  std::optional<StateLayer> state;      // in these; none: they have attention's projections, and no state
  bool parallel_state = false;          // also in every layer with attention, in parallel (Falcon-H1)
  double ffn_only_layers = 0.0;         // layers with only a feed-forward part (Nemotron-H)
  double mixer_only_layers = 0.0;       // layers without a feed-forward part
  double shared_kv_layers = 0.0;        // layers that read the keys and values of others and cache none, without the window
  double shared_window_layers = 0.0;    // and with the window
  std::optional<LayerEmbeddings> layer_embeddings;
  bool gated_attention = false;           // attention's output is gated, by a projection as wide as the queries
  std::optional<double> global_head_dim;  // head_dim in layers without the window, if different
  std::optional<double> global_kv_heads;  // kv_heads in layers without the window, if different
  std::optional<double> global_heads;     // heads in layers without the window, if different
  bool global_one_value = false;          // their values are the projection of keys
  // A head on top of a target.
  double fused_inputs = 0.0;      // number of hidden vectors that an EAGLE head joins first; 0: no such product
  double attention_inputs = 1.0;  // hidden vectors side by side that attention's projections read; 2 in an EAGLE-3 head
  double prediction_heads = 0.0;  // heads that guess one additional token each in the same pass, each with its LM head; 0: none
  double head_matrices = 0.0;     // products of all these heads together before their LM heads, each hidden by hidden
  // A block drafter's Markov head (DSpark, Domino): after the pass over the block, position by position, the previous token,
  // embedded in this width, biases the logits of the next; 0: none.
  double markov_rank = 0.0;
  double markov_matrices = 0.0;  // parameters of its products at a position, besides those from and to the vocabulary
  bool markov_embeds = true;     // it has embeddings of its own
  // Kind of drafter, if servers depend on it (eagle, eagle3, p_eagle, mtp, dflash, dspark, domino, pard, ...); empty: from the
  // shape.
  std::string drafter;
  std::optional<double> longest_draft;  // most tokens that a block drafter can draft
  std::optional<double> target_hidden;  // width of the target that it was made for
  std::optional<double> target_vocab;   // tokens of that target
  std::optional<double> target_layers;  // layers of that target
  std::string verifier;                 // name of that target
  std::optional<double> context;        // tokens of the longest sequence that servers accept by default; none: not known
  // Name of the architecture in config.json (model_type) or GGUF; empty: not known, servers then decide by the shape.
  std::string architecture;
  bool shares_lm_head = false;        // LM head and embeddings are the target's: no bytes of its own, the same time
  bool shares_embeddings = false;     // only the embeddings are the target's
  bool one_pass = false;              // one pass over all positions drafts a whole round (DFlash, PARD)
  bool in_target_checkpoint = false;  // servers find the module in the target's own checkpoint and take no path for it
  std::vector<std::string> unread;    // keys of its file that were not used
  std::vector<std::string> assumed;   // assumptions of the description, for warnings
  std::vector<StoredTensors> stored;  // tensors in the files of its weights; empty: not known
  // Precision and sharing.
  double weight_bits = 16.0;
  double expert_bits = 16.0;  // bits of the experts' weights
  double head_bits = 16.0;    // bits of LM head and embeddings, which quantised checkpoints usually leave alone
  double kv_bits = 16.0;
  // Kernels of kernels.h that multiply the layers' weights, and the experts' only; empty: chosen by the bits.
  std::string product_type;
  std::string expert_type;
  // Parts whose weights are stored in other types: several if layers or projections differ.
  std::map<Module, std::vector<TypeShare>> own_types;
  // Types of checkpoints that others published of the model and servers load, by their usual word: fp8, fp4, bf16, int4.
  std::map<std::string, std::string> checkpoints;
  bool gguf = false;          // types of a GGUF file, which also holds the module in the same types (in_target_checkpoint)
  bool super_blocks = false;  // K-quants
  Location dtype_where;       // place in the config that sets these types, for messages
  std::optional<Offload> offload;
  double tensor_parallel = 1.0;
  double expert_parallel = 1.0;  // GPUs that share the experts, each with sequences and all other weights of its own
  bool whole_experts = false;    // the GPUs of tensor_parallel hold whole experts each, not a slice of every expert
  bool unverified = false;

  // It reads the target's hidden states and cannot run without the target.
  [[nodiscard]] bool on_target() const { return fused_inputs > 0.0 || prediction_heads > 0.0; }
  // Layers that read the target's cache (Gemma 4's assistants).
  [[nodiscard]] bool reads_target_cache() const { return drafter == "gemma_assistant"; }
  // Keys and values are one cached vector; fits of kernels for separate heads do not apply.
  [[nodiscard]] bool over_one_vector() const { return latent || one_vector; }
  // Tokens per entry of those that an indexer scores.
  [[nodiscard]] double index_entry_tokens() const { return picks_entries() ? compressed->picked_tokens : 1.0; }
  [[nodiscard]] bool picks_entries() const { return compressed && compressed->picked_layers > 0.0; }
  // Bytes of the target's hidden states that it reads per token; 0: it reads none. An EAGLE head joins one of them with the
  // token.
  [[nodiscard]] double state_bytes() const;
  [[nodiscard]] double lm_heads() const { return prediction_heads > 0.0 ? prediction_heads : 1.0; }
  // All layers, as one of `shards` GPUs sees them: key and value heads are copied if they are fewer than the GPUs.
  [[nodiscard]] std::vector<LayerKind> layer_kinds(double shards = 1.0) const;
  [[nodiscard]] std::vector<Product> expert_products() const;  // the products of one expert; empty for a dense model
  [[nodiscard]] std::vector<AttentionKind> attention_kinds() const;
  // The types in which the weights of a part are stored, with their shares.
  [[nodiscard]] std::vector<TypeShare> types_of(Module module) const;
  // Attention or a state, and feed-forward, each counted separately.
  [[nodiscard]] double parts() const { return 2.0 * layers - ffn_only_layers - mixer_only_layers; }
  // GPUs over which whole experts are spread; 1: every GPU has all of them, or a slice of each.
  [[nodiscard]] double expert_gpus() const { return whole_experts ? tensor_parallel : expert_parallel; }
  // Whether tensor_parallel would cut the blocks of 128 columns that share a scale, which servers refuse.
  [[nodiscard]] bool cuts_expert_blocks() const;
  [[nodiscard]] double mixture_layers() const { return experts > 0.0 ? layers - mixer_only_layers - dense_layers : 0.0; }
  [[nodiscard]] double state_layers() const { return !state ? 0.0 : parallel_state ? layers - ffn_only_layers : linear_layers; }
  // Number of GPUs that a layer's cache is divided among: a key and value head is not cut, nor is a latent vector.
  [[nodiscard]] double kv_shards(const AttentionKind& kind) const;
  // Parameters in the layers' matrices (all experts); those in experts; and with embeddings and LM head.
  [[nodiscard]] double layer_parameters() const;
  [[nodiscard]] double expert_parameters() const;
  [[nodiscard]] double total_parameters() const;
  // Parameters used for one token: with the experts that it chooses, without embeddings.
  [[nodiscard]] double active_parameters() const;
  [[nodiscard]] double embedded() const { return embedding_vocab.value_or(vocab); }
  [[nodiscard]] double markov_parameters() const {
    return markov_rank * ((markov_embeds ? embedded() : 0.0) + vocab) + markov_matrices;
  }
  // Parameters of a part, without those that it shares with the target.
  [[nodiscard]] double module_parameters(Module module) const;
  [[nodiscard]] double own_parameters() const;  // total less what it shares with the target
  [[nodiscard]] double weight_bytes() const;    // bytes of the same parameters
  // Bytes of the layers' matrices that a pass reads which uses `active` experts in a layer.
  [[nodiscard]] double layer_bytes(double active) const;
  [[nodiscard]] double kv_bytes_per_token() const;  // cached for one token by all layers that read it
  [[nodiscard]] double recurrent_bytes() const;     // the states of one sequence in all layers of linear attention
  [[nodiscard]] double indexers() const;            // layers with an indexer of their own
  [[nodiscard]] double index_key_bytes() const;     // cached by one of them for one token
};

// How the target that a head was made for differs from this one; empty: the head's description states no difference.
std::string made_for_another(const ModelShape& target, const ModelShape& draft);

// Distinct experts of `experts` that `tokens` tokens choose, `per_token` each, independently: N (1 - (1 - k/N)^n). The tokens are
// all those of the pass, also verified ones.
double expected_experts(double experts, double per_token, double tokens);
// The expectation of the largest of as many normal numbers as there are GPUs.
double largest_on_gpu(double mean, double spread, double gpus);
// Distinct experts of a layer that the tokens of a pass use on one GPU. If several GPUs share the experts, this is the GPU with
// the most, because the others wait for it.
double met_experts(const ModelShape& model, double tokens);

// The parameters of a model's description, for the reference page.
const std::vector<config::Parameter>& model_parameters();
// `spec` as resolve_preset takes it; `what` names it in messages. Reports errors; the shape is then not to be used.
ModelShape read_model(const config::Value& spec, const std::string& what, Diagnostics& diagnostics);
// {part: {type: {tensors, elements, bytes}}}, as the readers of weight files write it.
std::vector<StoredTensors> read_stored(const config::Value& parts);
ModelShape read_model(const PresetChoice& choice, const std::string& what, Diagnostics& diagnostics);

}  // namespace specsim::cost
