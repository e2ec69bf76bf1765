// The operations of a forward pass, each as one GPU of the deployment computes it. They are plain data: kernel_choice.h chooses
// the kernel that computes one and estimates its time. No operation knows engines.
#pragma once

#include "sim/hardware/gpu/kernels.h"
#include "sim/hardware/model/model_shape.h"

#include <cmath>
#include <string>
#include <string_view>
#include <variant>

namespace specsim::cost {

// How weights are stored, and in which type they are multiplied.
struct WeightType {
  double bits = 16.0;
  std::string_view name;      // a Dtype's name; empty: the kernel is chosen by the bits
  bool super_blocks = false;  // K-quants of GGUF: blocks of 256 weights with scales of scales
};

// `groups` matrix products in one kernel, each `rows` by `inner` times `inner` by `outer`.
struct ProductWork {
  double rows = 1.0;
  double inner = 1.0;
  double outer = 1.0;
  double groups = 1.0;
  WeightType type;
};

// The routed experts of one layer.
struct ExpertsWork {
  double tokens = 1.0;  // tokens of the pass that choose experts, of all GPUs that share them
  double alike = 1.0;   // each token after the first chooses like this many independent ones
  double rows = 1.0;    // rows of all experts' products on this GPU, padding included
  double met = 1.0;     // distinct experts on this GPU that the tokens choose, expected
  double hidden = 1.0;
  double width = 1.0;      // of one expert on one GPU
  double experts = 1.0;    // on this GPU
  double per_token = 1.0;  // experts per token on this GPU, on average
  bool gated = true;       // three matrices (SwiGLU), or two
  WeightType type;
};

// Experts come in whole numbers: interpolates the time between the two whole numbers around `met`.
template <class Seconds>
double over_whole_experts(double met, const Seconds& seconds) {
  const double fewer = std::floor(met);
  const double low = seconds(fewer);
  return met == fewer ? low : low + (met - fewer) * (seconds(fewer + 1.0) - low);
}

// Attention of one layer: `sequences` of equal length, each with `tokens` new tokens over `cached` ones.
struct AttentionWork {
  AttentionKind kind;
  double heads = 1.0;   // query heads of the whole model
  double latent = 0.0;  // width of the cached vector that replaces keys and values (MLA); 0: keys and values
  double rope_dim = 0.0;
  double value_dim = 0.0;
  bool one_vector = false;  // key and value of a head are one cached vector
  double cache_bits = 16.0;
  double shards = 1.0;        // GPUs that share the heads
  double cache_shards = 1.0;  // GPUs that share the cache
  double sequences = 0.0;
  double cached = 0.0;       // tokens of each sequence before the pass
  double tokens = 0.0;       // new tokens of each
  double pairs = 0.0;        // tokens that a new token attends to on average, itself included, if there were no window
  bool prompt = false;       // the new tokens are a prompt's
  bool with_prompt = false;  // the pass also holds a chunk of another sequence's prompt
  double unequal = 1.0;      // time over that of as many sequences of equal contexts: the longest one delays the kernel
  bool same_launch = false;  // computed in the same launch as the sequences before, so that its fixed time is not added again

  // Keys and values are one cached vector, which kernels for heads do not read.
  [[nodiscard]] bool over_one_vector() const { return latent > 0.0 || one_vector; }
  // Cached tokens that the newest token attends to within its window.
  [[nodiscard]] double seen() const { return kind.seen(cached); }
  // Bytes of the cache that one GPU reads: once per sequence, whatever the number of tokens that look at it.
  [[nodiscard]] double bytes() const {
    return kind.elements * cache_bits / 8.0 * sequences * kind.read(cached, tokens) / cache_shards;
  }
  // Operations of one head for a query and a key: their product, and the addition of the value. `expanded`: keys and values of
  // latent attention are recomputed from the cached vectors, as for prompts.
  [[nodiscard]] double operations_per_key(bool expanded) const {
    if (latent == 0.0) return 4.0 * kind.head_dim;
    return 2.0 * (expanded ? kind.head_dim + value_dim : 2.0 * latent + rope_dim);
  }
};

// Scores of a sparse attention's indexer for all cached tokens, and the selection of the best, in one layer.
struct IndexWork {
  double rows = 0.0;       // new tokens of all sequences
  double key_bytes = 0.0;  // index keys that are read
  double scored = 0.0;     // entries scored for each new token
  double heads = 0.0;
  double head_dim = 0.0;
};

// A sum over the GPUs that share a layer.
struct AllReduceWork {
  double gpus = 1.0;
  double bytes = 0.0;     // of the vector that is summed
  bool launched = false;  // launched by the host, not in a captured graph
};

// Rows that go to the experts of other GPUs, or sums that come back: one way.
struct ExchangeWork {
  double gpus = 1.0;
  double bytes = 0.0;
  bool launched = false;
};

// Elementwise kernels: bound by the bytes they move, with a fixed time on top.
struct StreamWork {
  double bytes = 0.0;
  double fixed_us = 0.0;
};

// Operations that may run at the same time as others of the layer: a shared expert on a second stream, in parallel with the
// routed ones.
enum class Stream { main, shared_expert, routed_experts };

// The part of PassTime to which an operation belongs.
enum class PassPart { products, attention, communication, small_kernels, sampling };

struct Operation {
  std::string_view name;
  double count = 1.0;  // how often in the pass: the number of layers that have it
  std::variant<ProductWork, ExpertsWork, AttentionWork, IndexWork, AllReduceWork, ExchangeWork, StreamWork> work;
  PassPart part = PassPart::products;
  Stream stream = Stream::main;
};

// The shape of its work: "8 x 4096 x 6144, fp8".
std::string describe(const Operation& operation);

}  // namespace specsim::cost
