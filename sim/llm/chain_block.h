// A chain that real models drafted, as the rules for blocks see it.
#pragma once

#include "sim/llm/drafter.h"
#include "sim/verify/block_rule.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace specsim::llm {

class ChainBlock final : public verify::Block {
 public:
  // Where a round's random numbers live. Position i of the chain has the accept word that a rule for positions would take.
  struct Address {
    rng::Key key;
    std::uint32_t round = 0;
    std::uint64_t sequence = 0;
  };
  // `target`: a law for each token of the chain and one more. All must outlive the block.
  ChainBlock(std::span<const double> target, const Proposal& proposal, const verify::BlockRule& rule, const Address& address);

  [[nodiscard]] const draft::Tree& tree() const override { return tree_; }
  [[nodiscard]] draft::Siblings siblings() const override { return draft::Siblings::independent; }
  int children(int node) override { return node < tree_.drafted() ? 1 : 0; }
  Token token(int node) override { return proposal_.tokens[static_cast<std::size_t>(node) - 1]; }
  double remaining(int /*node*/) override { return 1.0; }
  const math::RatioTable& laws(int node) override;
  const verify::NodePlan* plan(int node) override;
  bool accept(int node, verify::Odds odds) override { return verify::accepts(rng::to_unit(accept_word(node - 1)), odds); }
  Token choose(int node, const verify::Pickable& law) override { return law.pick(accept_word(node)); }
  Token pick(int node, const verify::Pickable& law) override;

 private:
  [[nodiscard]] std::uint64_t accept_word(int position) const;

  std::span<const double> target_;
  const Proposal& proposal_;
  const verify::BlockRule& rule_;
  Address address_;
  draft::Tree tree_;
  std::vector<std::optional<math::RatioTable>> laws_;     // [node], made when first asked for
  std::vector<std::unique_ptr<verify::NodePlan>> plans_;  // [node], likewise
};

}  // namespace specsim::llm
