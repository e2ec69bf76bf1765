// A block that real models drafted, in the form that rules for blocks expect.
#pragma once

#include "sim/lab/llm/proposer.h"
#include "sim/rounds/verify/block_rule.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace specsim::llm {

class DraftedBlock final : public verify::Block {
 public:
  // The address of a round's random numbers. Position i of a chain has the accept bits that a rule for positions would take.
  struct Address {
    rng::Key key;
    std::uint32_t round = 0;
    std::uint64_t sequence = 0;
    [[nodiscard]] auto bits(int node) const {
      return bits_at(key, rng::Purpose::draft_accept, static_cast<std::uint32_t>(node - 1), round, sequence);
    }
    // The random bits of a node: for its draw from the draft's distribution, and for the decision on it.
    [[nodiscard]] std::uint64_t draft_bits(int node) const { return bits(node).first; }
    [[nodiscard]] std::uint64_t accept_bits(int node) const { return bits(node).second; }
  };
  // `target`: [node], the target's distribution after it. All arguments must outlive the block.
  DraftedBlock(std::span<const double> target, const Proposal& proposal, const verify::BlockRule& rule, const Address& address);

  // Called for each node that a rule judges by itself, with the distributions that the node was drawn from.
  using Observer = std::function<void(int node, const verify::PositionDistributions& distributions, bool accepted)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

  verify::PositionDistributions numbers(int node) override;
  void judged(int node, const verify::PositionDistributions& distributions, bool accepted, Token emitted) override;
  Token choose(int node, const verify::Pickable& distribution) override;
  Token pick(int node, const verify::Pickable& distribution) override;

 protected:
  void draw(int node, Node& own) override;
  void place(int node, Node& own) override;
  bool stops(int node) override;
  bool decide(int node, verify::Odds odds) override;

 private:
  std::span<const double> target_;
  const Proposal& proposal_;
  const verify::BlockRule& rule_;
  Address address_;
  Observer observer_;
  std::vector<std::optional<math::RatioTable>> distributions_;  // [node], made when first needed
  std::vector<std::unique_ptr<verify::NodePlan>> plans_;        // [node], likewise
};

}  // namespace specsim::llm
