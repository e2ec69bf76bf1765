// One round over a drafted block: tokens drawn when the rule asks for them, contexts followed down the tree.
#pragma once

#include "sim/decode/block_tables.h"
#include "sim/draft/length_policy.h"
#include "sim/families/context_process.h"

#include <cstdint>
#include <span>
#include <vector>

namespace specsim::decode {

// Where a round's random choices come from: addressed words in a simulation, every outcome in turn in an audit.
class ChoiceSource {
 public:
  // What is chosen at a node: its token (redraft: a second try), one of its children, the token after it.
  enum class Use { token, redraft, child, final_token };

  ChoiceSource() = default;
  ChoiceSource(const ChoiceSource&) = delete;
  ChoiceSource& operator=(const ChoiceSource&) = delete;
  virtual ~ChoiceSource() = default;
  virtual Token pick(Use use, int node, int depth, const verify::Pickable& law) = 0;
  virtual bool accept(int node, verify::Odds odds) = 0;
};

class BlockRound final : public verify::Block, private draft::Sight {
 public:
  BlockRound(const BlockTables& tables, const families::ContextProcess& process, rng::Key key, const draft::BlockDrafter& drafter,
             const draft::LengthPolicy* policy);

  struct Start {
    std::uint64_t sequence = 0;
    std::uint32_t context = 0;
    std::uint32_t text_position = 0;
    std::span<const Token> text;    // for a drafter that reads it
    int longest = kMaxDraftLength;  // no deeper node is drafted
  };
  struct Outcome {
    std::vector<Token> emitted;           // the accepted tokens and the final one
    std::vector<std::uint32_t> contexts;  // before each of them, and after the last
    bool whole = false;                   // the accepted path ends where the draft does
  };
  // A round by `rule`; valid until the next one.
  const Outcome& play(const verify::BlockRule& rule, const Start& start, ChoiceSource& choices);
  // The drafted nodes of this round, whether looked at or not; may draw what was not.
  int drafted();

  [[nodiscard]] const draft::Tree& tree() const override { return *tree_; }
  [[nodiscard]] draft::Siblings siblings() const override { return shape_->siblings; }
  int children(int node) override;
  Token token(int node) override;
  double remaining(int node) override;
  const math::RatioTable& laws(int node) override { return entry(node).laws; }
  const verify::NodePlan* plan(int node) override;
  bool accept(int node, verify::Odds odds) override { return choices_->accept(node, odds); }
  Token choose(int node, const verify::Pickable& law) override {
    return choices_->pick(ChoiceSource::Use::child, node, at(node).depth, law);
  }
  Token pick(int node, const verify::Pickable& law) override {
    return choices_->pick(ChoiceSource::Use::final_token, node, at(node).depth, law);
  }

 private:
  struct State {
    std::uint32_t round = 0;  // in which the fields below were set
    bool has_token = false;
    bool has_context = false;
    Token token = 0;
    std::uint32_t context = 0;
    double remaining = 1.0;
  };

  [[nodiscard]] const draft::Tree::Node& at(int node) const { return tree_->nodes[static_cast<std::size_t>(node)]; }
  void begin(const Start& start, ChoiceSource& choices);
  // The context after `node`, or after `token` behind it.
  std::uint32_t context(int node);
  std::uint32_t context_after(int node, Token token);
  // From the context before a token that stands `depth` positions into the block.
  [[nodiscard]] std::uint32_t step(std::uint32_t context, int depth, Token token) const;
  State& state(int node);
  const BlockTables::Entry& entry(int node) { return tables_->at(context(node), at(node).depth); }
  void draw(int node, State& own);
  std::span<const draft::Ranked> likeliest(const draft::ChosenBlock& block, int node) override;
  [[nodiscard]] std::span<const Token> text() const override { return start_.text; }

  const BlockTables* tables_;
  const families::ContextProcess* process_;
  bool moves_;
  rng::Key key_;
  const draft::BlockDrafter* drafter_;
  const draft::LengthPolicy* policy_;  // that looks at the tokens; nullptr: none
  const draft::BlockDrafter::Shape* shape_;
  const draft::Tree* tree_;
  draft::ChosenBlock chosen_;
  std::vector<std::uint32_t> chosen_contexts_;  // after each node of a block that is being chosen
  Outcome outcome_;
  Start start_;
  ChoiceSource* choices_ = nullptr;
  std::uint32_t round_ = 0;
  std::vector<State> states_;
  std::vector<Token> elders_;
};

}  // namespace specsim::decode
