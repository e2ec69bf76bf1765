// How the context moves along a text: which pair of distributions applies at each text position.
#pragma once

#include "sim/foundation/base/token.h"
#include "sim/foundation/rng/address.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace specsim::families {

// The description of a process as data: theory and reports read this, never the code that steps.
struct ContextShape {
  // How contexts follow one another. `other`: only by the process's own step(); theory and the audit cannot cover it and report
  // that, but the process runs. by_rank: only by the position in the block; every round starts in context 0.
  enum class Kind { other, fixed, iid_pool, iid_fresh, markov, regimes, by_depth, requests, trace, by_rank };
  Kind kind = Kind::other;
  int contexts = 1;                // prepared pairs of distributions; 0 if each position draws its own
  int depths = 1;                  // draft distributions per context, by position in the block (later positions use the last one)
  std::vector<double> start;       // [contexts]: distribution of the context at text position 0; empty: context 0
  std::vector<double> transition;  // regimes: [contexts][contexts], row-major
  std::vector<std::uint32_t> starts;  // trace: first context of each request, each equally likely; contexts follow in order
  bool acceptance_only = false;       // trace: no distributions were recorded, but how likely each token was accepted
  bool drawn = false;                 // by_rank: acceptance of drawn drafts, not of the draft's likeliest tokens
  std::uint64_t request_tokens = 0;   // requests, regimes: tokens that each request emits; 0: unlimited

  // True: a sequence is a request, which ends by itself. requests, regimes: it ends after request_tokens, even in the middle of a
  // round. trace: it ends before the first round that its last recorded token could cut short, because leaving out only the
  // rounds that are cut would favour short ones.
  [[nodiscard]] bool ends() const { return request_tokens > 0 || kind == Kind::trace; }
  // Each round begins in context 0, wherever the previous one ended: contexts are positions in the block and not in the text.
  [[nodiscard]] bool restarts() const { return kind == Kind::by_rank; }
  // Whether tokens are counted and compared context by context. Contexts that are drawn independently for every token form one
  // mixture.
  [[nodiscard]] bool judged_separately() const { return contexts > 1 && kind != Kind::iid_pool; }
  // trace: tokens recorded of request number `i`.
  [[nodiscard]] std::uint64_t recorded_tokens(std::size_t i) const {
    return (i + 1 < starts.size() ? starts[i + 1] : static_cast<std::uint32_t>(contexts)) - starts[i];
  }
};

class ContextProcess {
 public:
  ContextProcess() = default;
  ContextProcess(const ContextProcess&) = delete;
  ContextProcess& operator=(const ContextProcess&) = delete;
  virtual ~ContextProcess() = default;

  [[nodiscard]] virtual const ContextShape& shape() const = 0;
  // Writes the context at text position 0 of the `count` sequences from first_sequence on.
  virtual void start(rng::Key key, std::uint64_t first_sequence, std::size_t count, std::uint32_t* context) const = 0;
  // False: the context of a sequence never changes, and step() is not called.
  [[nodiscard]] virtual bool moves() const = 0;
  // For each lane i of lanes[0..count): moves its text from position text_position[lane] to the next by token[i], and writes the
  // new context to context[lane]. The randomness belongs to (sequence, text position): a position that is drafted again after a
  // rejection has the same context.
  virtual void step(rng::Key key, std::uint64_t first_sequence, const std::uint32_t* lanes, std::size_t count,
                    const std::uint32_t* text_position, const Token* token, std::uint32_t* context) const = 0;
  // The prompt before every sequence's text; empty if the process has none.
  [[nodiscard]] virtual std::span<const Token> prompt() const { return {}; }
  // The part of the present context that an observer knows from `before` and the last token alone. It is the whole context if one
  // token determines it.
  [[nodiscard]] virtual std::uint32_t after_last(std::uint32_t /*before*/, std::uint32_t context) const { return context; }
  // The context after `token` in `context`, if tokens alone determine it (markov); otherwise a failed check.
  [[nodiscard]] virtual std::uint32_t next(std::uint32_t context, Token token) const;
};

}  // namespace specsim::families
