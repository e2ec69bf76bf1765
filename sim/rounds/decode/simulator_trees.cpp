#include "sim/rounds/decode/lane_rounds.h"
#include "sim/rounds/decode/simulator.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <vector>

namespace specsim::decode {

namespace {

using Lanes = std::array<std::uint32_t, kLanes>;

// Walks down a tree of one shape in many sequences at once: depth by depth, and within a depth sibling by sibling.
class TreeWalk {
 public:
  TreeWalk(const BlockTables& tables, const tokens::Tree& tree, bool without_replacement, const verify::SiblingRule& rule,
           std::uint64_t first_sequence, BitSource& random_bits)
      : tree_(tree),
        without_replacement_(without_replacement),
        rule_(rule),
        first_sequence_(first_sequence),
        random_bits_(random_bits),
        path_((static_cast<std::size_t>(tree.height()) + 1) * kLanes) {
    for (int depth = 0; depth <= tree.height(); ++depth) {
      const BlockTables::Entry& entry = tables.at(0, depth);
      int most = 0;
      for (const tokens::Tree::Node& node : tree.nodes)
        if (node.depth == depth) most = std::max(most, node.children);
      // Without replacement there are no more children than tokens to draw.
      if (without_replacement) most = std::min(most, static_cast<int>(entry.distributions.draft_support()));
      depths_.push_back({&entry.distributions, entry.plans[static_cast<std::size_t>(most)].get(), most});
      fan_out_ = std::max(fan_out_, static_cast<std::size_t>(most));
    }
    if (without_replacement) siblings_.resize(kLanes * fan_out_);
  }

  void walk(std::uint32_t round, std::uint32_t live) {
    std::fill_n(node_.begin(), live, 0U);
    std::iota(arrived_.begin(), arrived_.begin() + live, 0U);
    std::uint32_t count = live;
    for (std::size_t depth = 0; count > 0; ++depth) {
      std::uint32_t open = 0;
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t lane = arrived_[i];
        const int children = std::min(tree_.nodes[node_[lane]].children, depths_[depth].most_children);
        children_[lane] = static_cast<std::uint32_t>(children);
        accepted_[lane] = static_cast<std::uint32_t>(depth);
        whole_[lane] = children == 0 ? 1 : 0;
        residual_[lane] = math::Residual();
        open_[open] = lane;
        open += children == 0 ? 0 : 1;
      }
      count = 0;
      for (std::uint32_t earlier = 0; open > 0; ++earlier) open = judge(round, depth, earlier, open, count);
    }
  }

  [[nodiscard]] LaneRounds::Verdicts verdicts() { return {path_.data(), accepted_.data(), whole_.data(), residual_.data()}; }

 private:
  // Judges the next sibling in the lanes of open_. Lanes that accept it move one depth down. Returns how many lanes have a
  // further sibling.
  std::uint32_t judge(std::uint32_t round, std::size_t depth, std::uint32_t earlier, std::uint32_t open, std::uint32_t& arrived) {
    const Depth& own = depths_[depth];
    for (std::uint32_t i = 0; i < open; ++i)
      position_[i] = static_cast<std::uint32_t>(tree_.nodes[node_[open_[i]]].first_child) + earlier - 1;
    random_bits_.batch_at(rng::Purpose::draft_accept, position_.data(), round, first_sequence_, open_.data(), open, draws_.bits(),
                          accept_bits_.data());
    draws_.draw(*own.distributions, open, tokens_.data());
    if (without_replacement_) draw_without(round, *own.distributions, earlier, open);
    rule_.judge_lanes({own.distributions, own.plan, earlier, open, open_.data(), tokens_.data(),
                       without_replacement_ ? remaining_.data() : nullptr, accept_bits_.data(), residual_.data()},
                      verdict_.data());
    Token* const path = path_.data() + depth * kLanes;
    std::uint32_t still = 0;
    for (std::uint32_t i = 0; i < open; ++i) {  // without a branch
      const std::uint32_t lane = open_[i];
      const std::uint32_t yes = verdict_[i];
      path[lane] = tokens_[i];
      node_[lane] ^= (node_[lane] ^ (position_[i] + 1)) & (0U - yes);
      arrived_[arrived] = lane;
      arrived += yes;
      open_[still] = lane;
      still += (1 - yes) & (children_[lane] > earlier + 1 ? 1U : 0U);
    }
    return still;
  }

  // Replaces tokens that an earlier sibling has by one of the remaining tokens: see BlockRound::draw_unlike.
  void draw_without(std::uint32_t round, const math::RatioTable& distributions, std::uint32_t earlier, std::uint32_t open) {
    for (std::uint32_t i = 0; i < open; ++i) {
      Token* const siblings = siblings_.data() + open_[i] * fan_out_;
      const std::span<const Token> drawn(siblings, earlier);
      remaining_[i] = distributions.draft_without(drawn);
      if (std::find(drawn.begin(), drawn.end(), tokens_[i]) != drawn.end()) {
        const rng::BitsPair bits = random_bits_.at(rng::Purpose::redraft, position_[i] + 1, round, first_sequence_ + open_[i]);
        tokens_[i] = distributions.pick_draft_without(drawn, rng::to_unit(bits.first));
      }
      siblings[earlier] = tokens_[i];
    }
  }

  struct Depth {
    const math::RatioTable* distributions;
    const verify::NodePlan* plan;  // for most_children
    int most_children;
  };

  const tokens::Tree& tree_;
  bool without_replacement_;
  const verify::SiblingRule& rule_;
  std::uint64_t first_sequence_;
  BitSource& random_bits_;
  std::vector<Depth> depths_;
  std::size_t fan_out_ = 0;
  LaneDraws draws_;

  // By lane.
  std::vector<Token> path_;      // [depth][lane]
  std::vector<Token> siblings_;  // [lane][fan_out_]
  Lanes node_;
  Lanes children_;
  Lanes accepted_;
  Lanes whole_;
  std::array<math::Residual, kLanes> residual_;
  // Lanes, and the inputs of their next siblings' judgement, in the order of open_.
  Lanes arrived_;
  Lanes open_;
  Lanes position_;  // the siblings' nodes, less 1
  std::array<Token, kLanes> tokens_;
  std::array<double, kLanes> remaining_;
  std::array<std::uint64_t, kLanes> accept_bits_;
  Lanes verdict_;
};

}  // namespace

const verify::SiblingRule* Simulator::sibling_rule(const BlockJudging& judging) const {
  const draft::BlockDrafter::Shape& shape = judging.drafter->shape();
  return judges_side_by_side(judging) &&
                 (shape.siblings == tokens::Siblings::independent || shape.siblings == tokens::Siblings::without_replacement)
             ? dynamic_cast<const verify::SiblingRule*>(judging.rule)
             : nullptr;
}

void Simulator::run_trees(const verify::SiblingRule& rule, const draft::BlockDrafter& drafter, const ChunkPlan& chunk,
                          BitSource& random_bits, Counts& counts) const {
  const tokens::Tree& tree = *drafter.tree();
  TreeWalk walk(*prepared_->blocks, tree, drafter.shape().siblings == tokens::Siblings::without_replacement, rule,
                chunk.first_sequence, random_bits);
  LaneRounds rounds(*prepared_, static_cast<std::uint32_t>(tree.height()), chunk, random_bits);
  rounds.run(walk.verdicts(), [&walk](std::uint32_t round, std::uint32_t live) { walk.walk(round, live); });
  rounds.add_to(counts, static_cast<std::size_t>(tree.drafted()));
}

}  // namespace specsim::decode
