// One round over a drafted block: tokens drawn when the rule asks for them, contexts followed down the tree.
#pragma once

#include "sim/foundation/math/ratio_table.h"
#include "sim/foundation/rng/address.h"
#include "sim/rounds/decode/block_tables.h"
#include "sim/rounds/decode/random_bits.h"
#include "sim/rounds/draft/length_policy.h"
#include "sim/rounds/families/context_process.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace specsim::decode {

// Addressed random bits for the rounds of a group of sequences. Drawing them in batches takes a quarter of the time of single
// draws.

class GroupBits {
 public:
  static constexpr std::uint32_t kGroup = 64;

  // `source` must outlive it.
  GroupBits(BitSource& source, std::uint64_t first_sequence) : source_(&source), first_sequence_(first_sequence) {}
  void begin(std::uint32_t round) {
    round_ = round;
    ++generation_;
  }
  void set_lane(std::uint32_t lane) { lane_ = lane; }

  struct Draw {
    Token token = 0;
    double u = 0.0;  // uniform that decides whether the token is accepted
  };
  // A draft token at `node`. `common`: every lane has these distributions there.
  Draw draft(int node, const math::RatioTable& distributions, bool common) {
    if (node <= kBatchedNodes) {
      DraftBatch& batch = nodes_[static_cast<std::size_t>(node - 1)];
      if (batch.wants(generation_)) fill(batch, node, common ? &distributions : nullptr);
      if (batch.filled)
        return {common ? batch.tokens[lane_] : distributions.pick_draft(batch.random_bits[lane_]),
                rng::to_unit(batch.accept_bits[lane_])};
    }
    const rng::BitsPair random_bits = one(rng::Purpose::draft_accept, node - 1);
    return {distributions.pick_draft(random_bits.first), rng::to_unit(random_bits.second)};
  }
  double accept(int node) { return rng::to_unit(one(rng::Purpose::draft_accept, node - 1).second); }
  std::uint64_t final_token(int depth) {
    if (depth < kBatchedDepths) {
      Batch& batch = depths_[static_cast<std::size_t>(depth)];
      if (batch.wants(generation_)) fill(batch, rng::Purpose::final_token, depth, unused_.data());
      if (batch.filled) return batch.random_bits[lane_];
    }
    return one(rng::Purpose::final_token, depth).first;
  }
  [[nodiscard]] std::uint64_t single(rng::Purpose purpose, int node) const { return one(purpose, node).first; }

 private:
  static constexpr std::uint32_t kWorthwhile = 12;  // fewest lanes for which a batch pays; fewer are drawn singly
  // Only the first nodes and depths are visited so often that a batch pays.
  static constexpr int kBatchedNodes = 64;
  static constexpr int kBatchedDepths = 16;

  struct Batch {
    std::uint32_t generation = 0;
    bool filled = true;            // this round has a batch; otherwise bits are drawn singly
    std::uint32_t asked = kGroup;  // lanes that have asked for it in this round so far
    std::array<std::uint64_t, kGroup> random_bits;

    // Every lane that needs this batch calls this in each round. Returns true to the first caller if filling the batch pays; that
    // caller must fill it. The estimate assumes that as many lanes will ask as in the last round in which any did.
    bool wants(std::uint32_t now) {
      const bool first = generation != now;
      if (first) {
        generation = now;
        filled = asked >= kWorthwhile;
        asked = 0;
      }
      ++asked;
      return first && filled;
    }
  };
  struct DraftBatch : Batch {
    std::array<std::uint64_t, kGroup> accept_bits;
    std::array<Token, kGroup> tokens;  // if the distributions are common
  };

  [[nodiscard]] rng::BitsPair one(rng::Purpose purpose, int position) const;
  void fill(Batch& batch, rng::Purpose purpose, int position, std::uint64_t* second) const;
  void fill(DraftBatch& batch, int node, const math::RatioTable* common) const;

  BitSource* source_;
  std::uint64_t first_sequence_;
  std::uint32_t lane_ = 0;
  std::uint32_t round_ = 0;
  std::uint32_t generation_ = 0;
  std::array<DraftBatch, kBatchedNodes> nodes_;
  std::array<Batch, kBatchedDepths> depths_;
  std::array<std::uint64_t, kGroup> unused_;
};

// Decides the outcome of a round: by random bits of the group's lane that was set, or by a script of choices in an audit. Random
// bits are not part of the script's interface, since a virtual call per bit would cost more than the bit itself.
class RoundChoices {
 public:
  RoundChoices() = default;
  RoundChoices(GroupBits& random_bits) : random_bits_(&random_bits) {}  // NOLINT(google-explicit-constructor)
  RoundChoices(verify::ChoiceSource& script) : script_(&script) {}      // NOLINT(google-explicit-constructor)

  // The draft token of a node, and the uniform that decides on it; a negative uniform means that accept() must be called.
  // `common`: every lane of the group has these distributions at the node.
  GroupBits::Draw draft(int node, int depth, const math::RatioTable& distributions, bool common);
  // Picks a token of `distribution`; `use` is the purpose of the draw, see verify::ChoiceSource::pick. Not for draft tokens.
  Token pick(verify::ChoiceSource::Use use, int node, int depth, const verify::Pickable& distribution);
  bool accept(int node, verify::Odds odds);

 private:
  GroupBits* random_bits_ = nullptr;
  verify::ChoiceSource* script_ = nullptr;
};

class BlockRound final : public verify::Block, private draft::DrafterInput {
 public:
  BlockRound(const BlockTables& tables, const families::ContextProcess& process, rng::Key key, const draft::BlockDrafter& drafter,
             const draft::LengthPolicy* policy);

  struct Start {
    std::uint64_t sequence = 0;
    std::uint32_t context = 0;
    std::uint32_t text_position = 0;
    std::span<const Token> text;                                 // prompt and text so far, for a drafter that reads them
    int longest = kMaxDraftLength;                               // no deeper node is drafted
    draft::BlockDrafter::Memory* memory = nullptr;               // the drafter's memory of this sequence
    const draft::LengthPolicy::Memory* policy_memory = nullptr;  // memory of a policy that looks at the tokens
    // False: the next block is drafted after the first path of this one, and no token of the target comes between them.
    bool bonus = true;
  };
  struct RoundResult {
    std::vector<Token> emitted;           // the accepted tokens and the final one, if there is one
    std::vector<std::uint32_t> contexts;  // the context before each of them; empty if there is only one context
    std::uint32_t next_context = 0;
    std::size_t accepted = 0;
    bool whole = false;    // the accepted path ends at a leaf of the drafted block
    bool guessed = false;  // without a bonus token: the next block is drafted after that leaf, and nothing follows the leaf
  };
  // Plays a round by `rule`; the outcome is valid until the next one.
  const RoundResult& play(const verify::BlockRule& rule, const Start& start, RoundChoices choices);
  // Like play(), but in two steps, for a chain that a policy cuts before it is judged. draft() drafts all of it; forecasts[i] is
  // what is known of token i + 1 before it is drawn. Then only the first `longest` tokens are judged; the rest count as not
  // drafted.
  void draft(const Start& start, RoundChoices choices, std::span<draft::LengthPolicy::TokenForecast> forecasts);
  const RoundResult& judge(const verify::BlockRule& rule, int longest);
  // Number of nodes that this round drafted, whether the rule looked at them or not. Draws tokens if a policy's decision depends
  // on them.
  int drafted();
  // The block that is drafted before this round is verified. It continues the path of first children: each is the likeliest of
  // its siblings or the first that was drawn.
  struct Ahead {
    std::uint32_t depth = 0;             // that path's length; 0: nothing was drafted
    std::optional<std::uint32_t> nodes;  // how many `policy` allows if the whole path is accepted; nullopt: not known in advance
  };
  // `memory`: the policy's, before it observes this round. Draws tokens if a policy's decision depends on them.
  Ahead ahead(const draft::LengthPolicy* policy, const draft::LengthPolicy::Memory& memory);
  // Rows of each draft pass of this round, if the drafter chooses its blocks.
  [[nodiscard]] std::span<const std::uint32_t> pass_rows() const { return pass_rows_; }
  // The probabilities of the drafted() tokens under the draft's distributions; only under a policy that looks at them.
  std::span<const double> draft_probabilities();

  Token choose(int node, const verify::Pickable& distribution) override;
  Token pick(int node, const verify::Pickable& distribution) override;

 private:
  struct Place {
    std::uint32_t placement = 0;  // number of the round in which `context` was set
    std::uint32_t context = 0;
    const BlockTables::Entry* entry = nullptr;
  };

  [[nodiscard]] const tokens::Tree::Node& at(int node) const { return tree_->nodes[static_cast<std::size_t>(node)]; }
  void begin(const Start& start, RoundChoices choices);
  [[nodiscard]] int drafted_within(int depth) const;
  int first_path();
  [[nodiscard]] bool on_first_path(int node) const;
  // The context after `node`, or the one after `token`, which follows it.
  std::uint32_t context(int node);
  std::uint32_t context_after(int node, Token token);
  // The context after `token`, which is at position `depth` of the block and follows `context`.
  [[nodiscard]] std::uint32_t step(std::uint32_t context, int depth, Token token) const;
  const BlockTables::Entry& entry(int node) {
    placed(node);
    return *places_[static_cast<std::size_t>(node)].entry;
  }
  // Number of children of a node of a ranked tree to which the draft gives a positive probability.
  [[nodiscard]] int proposed(int node, const BlockTables::Entry& entry) const;
  // Sets a node's token: the drafter's own, the draft's likeliest, or one that is drawn.
  void draw(int node, Node& own) override;
  // Draws a draft token that differs from `siblings`, which were drawn before it. `number`: the node, or the draw's number.
  GroupBits::Draw draw_unlike(std::span<const Token> siblings, const math::RatioTable& distributions, int number, int depth);
  void place(int node, Node& own) override;
  bool stops(int node) override;
  bool decide(int node, verify::Odds odds) override;
  void prepare(const draft::ChosenBlock& /*block*/, std::span<const int> nodes) override {
    pass_rows_.push_back(static_cast<std::uint32_t>(nodes.size()));
  }
  std::span<const draft::Ranked> likeliest(const draft::ChosenBlock& block, int node) override;
  // Draws a token for a drafter that chooses its block.
  draft::Ranked draw_child(const draft::ChosenBlock& block, int node, std::span<const Token> siblings, int number) override;
  // The tables after a node of a block that is being chosen.
  const BlockTables::Entry& chosen_entry(const draft::ChosenBlock& block, int node);
  [[nodiscard]] std::size_t vocab() const override { return tables_->vocab(); }
  [[nodiscard]] std::span<const Token> text() const override { return start_.text; }
  [[nodiscard]] std::size_t prompt_tokens() const override { return process_->prompt().size(); }
  Token random_token(std::uint32_t index) override;
  Prefix end_of_text() override { return {start_.context, 0}; }
  Prefix after(Prefix prefix, Token token) override { return {step(prefix.context, prefix.depth, token), prefix.depth + 1}; }
  std::vector<Token> target_argmax(std::span<const Prefix> prefixes) override;
  std::span<const Token> target_likeliest(Prefix prefix) override { return tables_->target_likeliest(prefix.context); }

  const BlockTables* tables_;
  const families::ContextProcess* process_;
  bool one_context_;
  bool moves_;
  bool restarts_;  // every round begins in context 0
  bool chooses_;   // the drafter chooses a block each round
  rng::Key key_;
  const draft::BlockDrafter* drafter_;
  const draft::LengthPolicy* policy_;  // a policy that looks at the tokens; nullptr: none
  const draft::BlockDrafter::Shape* shape_;
  draft::ChosenBlock chosen_;
  std::vector<std::uint32_t> chosen_contexts_;  // after each node of a block that is being chosen
  std::vector<std::uint32_t> pass_rows_;
  std::vector<Place> places_;           // [node]
  std::vector<Token> siblings_before_;  // of the node that is drawn
  std::vector<double> probabilities_;
  RoundResult outcome_;
  Start start_;
  RoundChoices choices_;
};

}  // namespace specsim::decode
