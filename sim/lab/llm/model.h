// The interface of a language model for decoding: tokens in, logits out, with a cache between calls. One implementation per
// device.
#pragma once

#include "sim/foundation/base/token.h"
#include "sim/lab/llm/model_config.h"
#include "sim/lab/llm/thread_team.h"
#include "sim/lab/llm/weights.h"

#include <boost/core/noncopyable.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace specsim::llm {

// Keys and values of the tokens that the sequences of a batch have read.
class Cache : boost::noncopyable {
 public:
  virtual ~Cache() = default;
  [[nodiscard]] virtual std::size_t length(std::size_t sequence) const = 0;
  // Drops everything after the first `length` tokens.
  virtual void rewind(std::size_t sequence, std::size_t length) = 0;
  // After a pass over a tree onto `length` tokens: keeps those and the tree's tokens at `path` (ascending, each the parent of the
  // next, the first without a parent in the tree).
  virtual void keep_path(std::size_t sequence, std::size_t length, std::span<const std::uint32_t> path) = 0;
};

// The tokens of one sequence in a pass: a chain that follows its cached tokens, or a tree. A tree may come level by level:
// `parents` then begins with those of the tree's earlier tokens (the last ones in the cache), and parents count from the first of
// them.
struct Extension {
  std::size_t sequence = 0;
  std::span<const Token> tokens;
  std::size_t logit_rows = 1;  // logits are computed after the last `logit_rows` tokens
  std::span<const int> parents =
      {};  // empty: a chain; else parents[i] < i is the index of token i's parent in the tree, -1: the text before it
};

class Model : boost::noncopyable {
 public:
  virtual ~Model() = default;
  [[nodiscard]] virtual const ModelConfig& config() const = 0;
  // Bytes of weights that every pass reads.
  [[nodiscard]] virtual std::size_t pass_bytes() const = 0;
  // `capacity`: most tokens of a sequence, including those of a rejected or unfinished pass.
  [[nodiscard]] virtual std::unique_ptr<Cache> make_cache(std::size_t sequences, std::size_t capacity) const = 0;
  // Runs the batch (a sequence at most once) and leaves all its tokens in the cache. `logits`: the requested rows, sequence by
  // sequence, vocab values each. A row depends only on the tokens before it: it is the same to the last bit in one pass over n
  // tokens, in n passes, in a tree, in any batch.
  virtual void forward(std::span<const Extension> batch, Cache& cache, std::span<float> logits) = 0;
};

// The angles of the rotary embedding, [position][pair of a head's coordinates].
struct RotaryTable {
  std::vector<float> cosines;
  std::vector<float> sines;
};
RotaryTable rotary_table(const ModelConfig& config);

// Bytes of a CPU's cache of `depth` layers.
std::size_t cpu_cache_bytes(const ModelConfig& config, std::size_t depth, std::size_t sequences, std::size_t capacity);
// The first `depth` layers, then the final norm and the LM head: all layers for the model itself, fewer for an early-exit draft.
std::unique_ptr<Model> make_cpu_model(std::shared_ptr<const Weights> weights, std::size_t depth,
                                      std::shared_ptr<ThreadTeam> team);

}  // namespace specsim::llm
