// The registry of drafters, and the interface of drafters of blocks.
#pragma once

#include "sim/foundation/base/token.h"
#include "sim/foundation/config/registry.h"
#include "sim/rounds/tokens/tree.h"

#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

namespace specsim::draft {

// A drafted chain: `draft_length` tokens on one path.
struct Chain {
  int draft_length = 0;
  bool argmax = false;  // takes the draft model's argmax instead of sampling from its distribution
};

// A token and its probability under the draft's distribution.
struct Ranked {
  Token token = 0;
  double probability = 0.0;
};

// A block whose tokens are chosen before the round.
struct ChosenBlock {
  tokens::Tree tree;
  std::vector<Token> tokens;  // [node]; the root has no token, and its entry is unused

  int add(int parent, Token token, int rank = 0) {
    tokens.resize(tree.nodes.size());
    tokens.push_back(token);
    return tree.add(parent, rank);
  }
  // Like add(), but in any order, for candidates that no verifier sees: only parent, depth and rank of their nodes are set.
  int add_candidate(int parent, Token token, int rank) {
    tokens.resize(tree.nodes.size());
    tokens.push_back(token);
    tree.nodes.push_back({parent, tree.nodes[static_cast<std::size_t>(parent)].depth + 1, rank, 0, 0});
    return static_cast<int>(tree.nodes.size()) - 1;
  }
};

// The information that a drafter can use while it chooses a block.
class DrafterInput {
 public:
  DrafterInput() = default;
  DrafterInput(const DrafterInput&) = delete;
  DrafterInput& operator=(const DrafterInput&) = delete;
  virtual ~DrafterInput() = default;
  // Announces that these nodes of `block` are asked about next; their parents were asked about before. One draft pass gives all
  // of them.
  virtual void prepare(const ChosenBlock& /*block*/, std::span<const int> /*nodes*/) {}
  // The draft's likeliest tokens after a node of `block`, in decreasing order, as many as Shape::ranks, or all; ties: the lower
  // token first.
  virtual std::span<const Ranked> likeliest(const ChosenBlock& block, int node) = 0;
  // Draws a token after a node of `block` from the draft's distribution without `earlier_siblings`; `number` counts the draws of
  // the round, from 1. Probability 0: there is no further token to draw. Only if Shape::draws is set.
  virtual Ranked draw_child(const ChosenBlock& /*block*/, int /*node*/, std::span<const Token> /*earlier_siblings*/,
                            int /*number*/) {
    return {};
  }
  // Number of tokens of the vocabulary.
  [[nodiscard]] virtual std::size_t vocab() const = 0;
  // Prompt and text so far.
  [[nodiscard]] virtual std::span<const Token> text() const = 0;
  // Number of prompt tokens among them; 0 if unknown.
  [[nodiscard]] virtual std::size_t prompt_tokens() const { return 0; }
  // A random token of the text, each place with equal probability; without text, of the vocabulary. The same index gives the same
  // place.
  virtual Token random_token(std::uint32_t index) = 0;

  // A place that the text may reach.
  struct Prefix {
    std::uint32_t context = 0;
    int depth = 0;  // tokens after the text's end
  };
  [[nodiscard]] virtual Prefix end_of_text() = 0;
  [[nodiscard]] virtual Prefix after(Prefix prefix, Token token) = 0;
  // The target's likeliest next token at each prefix, from one pass; ties: the lower token.
  virtual std::vector<Token> target_argmax(std::span<const Prefix> prefixes) = 0;
  // The target's likeliest tokens at a prefix, in decreasing order, as many as Shape::target_ranks; ties: the lower token first.
  virtual std::span<const Token> target_likeliest(Prefix /*prefix*/) { return {}; }
};

// The passes that drafting and verifying a block takes, in rows: tokens per sequence.
struct BlockWork {
  std::vector<double> pass_rows;  // [pass]: the draft model's passes, one after the other
  double verified_rows = 1.0;     // the target's pass
  double reused = 0.0;            // share of the target's layers that drafting has computed already, for all rows but one
  // [pass]: rows of the draft model's passes that prepare the next round, on a GPU of its own while the target verifies this one.
  std::vector<double> meanwhile_rows = {};
};

class BlockDrafter {
 public:
  struct Shape {
    tokens::Siblings siblings = tokens::Siblings::independent;
    int draft_length = 0;           // tokens on the longest path
    int nodes = 0;                  // most drafted tokens, over all paths
    int target_ranks = 0;           // how many of the target's likeliest tokens it asks for
    int ranks = 0;                  // how many of the draft's likeliest tokens it uses
    bool whole_vocabulary = false;  // a vocabulary of fewer tokens is enough: `ranks` follows from a budget
    int distribution_depths =
        1;                   // draft distributions per context that alter_distribution() makes; deeper depths use the last one
    bool from_root = false;  // every position is predicted from the text before the block, not from the drafted tokens
    // A chain from one pass: every position is predicted from the text before the block and from the token drafted before it.
    // join() combines the two.
    bool joins = false;
    bool joins_whole = false;  // and that token carries all information that the text before the block does not
    bool joins_path = false;   // from all tokens drafted before it, not from the last one alone
    bool argmax = false;       // each token of its chain is the draft's argmax, a point mass
    bool reads_text = false;
    bool branches = false;  // its blocks may have siblings, though one path may hold all of their nodes
    bool on_target_state =
        false;  // guesses from the target's hidden state at the end of the text, left by the target's pass over it
    bool looks_past_block = false;  // asks DrafterInput::target_argmax about places after its block
    bool ranks_model = false;       // ranks by the draft model's own distribution, whatever draft_sampling is set to
    bool alters = false;            // whether alter_distribution() changes the configured distribution
    bool ranks_unaltered = false;   // DrafterInput::likeliest() ranks by the configured distribution, not by the altered one
    bool draws = false;             // whether it chooses its block with tokens that it draws
    // The number of nodes does not determine the number of draft passes. A round takes the passes that DrafterInput::prepare was
    // called for; work() gives the maximum.
    bool counts_passes = false;
  };

  // State that is kept per sequence from round to round.
  struct Memory {
    Memory() = default;
    Memory(const Memory&) = default;
    Memory& operator=(const Memory&) = delete;
    virtual ~Memory() = default;
    [[nodiscard]] virtual std::unique_ptr<Memory> copy() const = 0;
    // The drawn tokens that later rounds depend on, beyond the text and the rounds that emitted it.
    [[nodiscard]] virtual std::vector<Token> drawn() const { return {}; }
  };

  BlockDrafter() = default;
  BlockDrafter(const BlockDrafter&) = delete;
  BlockDrafter& operator=(const BlockDrafter&) = delete;
  virtual ~BlockDrafter() = default;

  [[nodiscard]] virtual const Shape& shape() const = 0;
  // The block's tree if it is the same in every round; shape() defines how its tokens are drawn or ranked. Otherwise nullptr.
  [[nodiscard]] virtual const tokens::Tree* tree() const { return nullptr; }
  // The memory at the start of a sequence; nullptr for a drafter without memory.
  [[nodiscard]] virtual std::unique_ptr<Memory> start() const { return nullptr; }
  // Called at the start of a round: updates the memory from the text of the sequence and from the block chosen last. choose()
  // does so by itself. A caller that asks several drafters in turn calls update_memory() on all of them, since not every one
  // chooses in every round. A second call in the same round changes nothing.
  virtual void update_memory(const DrafterInput& /*input*/, Memory* /*memory*/) const {}
  // Chooses the round's block if tree() is nullptr. `block` is empty at first; `memory` is the sequence's own, from start().
  virtual void choose(DrafterInput& /*input*/, Memory* /*memory*/, ChosenBlock& /*block*/) const {}
  // Turns the configured draft distribution at a depth of the block into the one that the drafter uses. `chance`: uniform in [0,
  // 1), one per context and depth, for effects that only some contexts have.
  virtual void alter_distribution(int /*depth*/, double /*chance*/, std::span<const double> /*target*/,
                                  std::span<double> /*draft*/) const {}
  // Only if shape().joins is set. `known` comes in as the draft model's distribution in the context after the previous draft
  // token, `before` is the one in the context before the block. Replaces `known` by the distribution of a draft that sees both
  // contexts.
  virtual void join(std::span<const double> /*before*/, std::span<double> /*known*/) const {}
  // The work of a round that drafted `nodes` nodes.
  [[nodiscard]] virtual BlockWork work(int nodes) const = 0;
};

// The most passes of a drafter whose passes are counted; 0 for other drafters.
inline int counted_passes(const BlockDrafter& drafter) {
  return drafter.shape().counts_passes ? static_cast<int>(drafter.work(drafter.shape().nodes).pass_rows.size()) : 0;
}

// Whether a drafter prepares the next round on a GPU of its own, while the target verifies.
inline bool prepares_meanwhile(const BlockDrafter& drafter) {
  return !drafter.work(drafter.shape().nodes).meanwhile_rows.empty();
}

// The drafter's output: a chain, token by token, or blocks of its own.
using Blocks = std::shared_ptr<const BlockDrafter>;
using Draft = std::variant<Chain, Blocks>;

// The chain, or the longest path of the blocks.
inline Chain longest_path(const Draft& draft) {
  if (const auto* const blocks = std::get_if<Blocks>(&draft)) return {(*blocks)->shape().draft_length, (*blocks)->shape().argmax};
  return std::get<Chain>(draft);
}

struct DrafterEntry {
  config::PartInfo info;
  // After a reported error the result must not be used: it may be a chain of no tokens.
  std::function<Draft(const config::Arguments&, Diagnostics&)> make;
  // True if it works with real models as they are: it needs no special head, exit or distribution.
  bool on_models = false;
};

config::Registry<DrafterEntry>& drafters();

// The chain as a block, for verifiers that judge blocks. A chain of argmaxes has the point mass as its draft distribution.
std::shared_ptr<const BlockDrafter> chain_block(int draft_length);

}  // namespace specsim::draft
