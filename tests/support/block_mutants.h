// Wrong rules for blocks, one mistake each, by the verifier that they imitate.
#pragma once

#include "sim/foundation/rng/address.h"
#include "sim/rounds/verify/block_rule.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace specsim::tests {

// A rule from a function; a step from a function.
class FunctionRule final : public verify::BlockRule {
 public:
  explicit FunctionRule(std::function<verify::AcceptedPath(verify::Block&)> verify) : verify_(std::move(verify)) {}
  verify::AcceptedPath verify(verify::Block& block) const override { return verify_(block); }

 private:
  std::function<verify::AcceptedPath(verify::Block&)> verify_;
};

// Any rule, but a first child that it rejected remains.
class Credulous final : public verify::BlockRule {
 public:
  explicit Credulous(const verify::BlockRule& own) : own_(own) {}
  [[nodiscard]] std::unique_ptr<verify::NodePlan> plan(const math::RatioTable& pair, int children) const override {
    return own_.plan(pair, children);
  }
  verify::AcceptedPath verify(verify::Block& block) const override {
    verify::AcceptedPath path = own_.verify(block);
    if (path.node == 0 && block.children(0) > 0) path.node = block.tree().nodes[0].first_child;
    return path;
  }

 private:
  const verify::BlockRule& own_;
};

// (block, node, its children) -> the accepted child, or 0 with the final token.
using StepFunction = std::function<int(verify::Block&, int, const std::vector<int>&, Token&)>;

class StepRule final : public verify::NodeRule {
 public:
  explicit StepRule(StepFunction step) : step_(std::move(step)) {}

 protected:
  int step(verify::Block& block, int node, Token& final_token) const override {
    std::vector<int> children(static_cast<std::size_t>(block.children(node)));
    for (std::size_t i = 0; i < children.size(); ++i)
      children[i] = block.tree().nodes[static_cast<std::size_t>(node)].first_child + static_cast<int>(i);
    const int child = step_(block, node, children, final_token);
    return child > 0 ? child : kNone;
  }

 private:
  StepFunction step_;
};

// Block verification with every decision as a parameter.
struct BlockKnobs {
  bool capped = true;        // p at 1
  bool own_residual = true;  // (p target - draft)+, not (target - draft)+
  bool longest = true;       // the largest index that accepts, not the one before the first that does not
  bool through_z = true;     // Z / (Z + 1 - p) before the end, not p
  bool joint_whole = false;  // the whole block by the joint ratio, as hsd does
};

inline verify::AcceptedPath block_with(verify::Block& block, const BlockKnobs& knobs) {
  std::vector<double> p = {1.0};
  double joint = 1.0;
  int length = 0;
  for (; block.children(length) > 0; ++length) {
    const math::RatioTable& distributions = block.distributions(length);
    const Token x = block.token(length + 1);
    const double next = p.back() * distributions.target(x) / distributions.draft(x);
    joint *= distributions.target(x) / distributions.draft(x);
    p.push_back(knobs.capped ? std::min(next, 1.0) : next);
  }
  std::vector<bool> stays(p.size(), true);
  std::vector<math::Residual> cuts(p.size());
  for (int i = 0; i <= length; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i < length) cuts[at] = block.distributions(i).residual(knobs.own_residual ? 1.0 / std::max(p[at], 1e-300) : 1.0);
    if (i == 0) continue;
    const double z = i < length ? p[at] * block.distributions(i).residual(1.0 / std::max(p[at], 1e-300)).mass : 0.0;
    const double whole = knobs.joint_whole && i == length ? joint : p[at];
    stays[at] =
        i == length || !knobs.through_z ? block.accept(i, {whole, 1.0}) : block.accept(i, {z, z + 1.0 - std::min(p[at], 1.0)});
  }
  int last = 0;
  if (knobs.longest) {
    for (int i = 1; i <= length; ++i)
      if (stays[static_cast<std::size_t>(i)]) last = i;
  } else {
    while (last < length && stays[static_cast<std::size_t>(last) + 1]) ++last;
  }
  return {last, last == length ? block.pick_target(last) : block.pick_residual(last, cuts[static_cast<std::size_t>(last)])};
}

// Recursive rejection with every decision as a parameter.
struct RecursiveKnobs {
  bool updates = true;       // the residual follows each rejection
  bool normalises = true;    // by its own mass
  bool renormalises = true;  // the draft's distribution, without the siblings before
  bool own_final = true;     // from the remaining mass, not from the target
  double first_c = 0.0;
};

inline int recursive_with(verify::Block& block, int node, const std::vector<int>& children, Token& final_token,
                          const RecursiveKnobs& knobs) {
  const math::RatioTable& distributions = block.distributions(node);
  math::Residual cut = distributions.residual(knobs.first_c);
  math::Residual left = distributions.residual(1.0);
  for (const int child : children) {
    const Token x = block.token(child);
    const double remaining = knobs.renormalises ? block.remaining(child) : 1.0;
    const double mass = knobs.normalises ? cut.mass : 1.0;
    if (block.accept(child,
                     {(distributions.target(x) - cut.c * distributions.draft(x)) * remaining, mass * distributions.draft(x)}))
      return child;
    left = distributions.residual(cut.c + cut.mass / remaining);
    if (knobs.updates) cut = left;
  }
  final_token = knobs.own_final ? block.pick_residual(node, left) : block.pick_target(node);
  return 0;
}

inline int kseq_with(verify::Block& block, int node, const std::vector<int>& children, Token& final_token, double rho,
                     bool own_final) {
  const math::RatioTable& distributions = block.distributions(node);
  for (const int child : children)
    if (block.accept(child, {distributions.target(block.token(child)), rho * distributions.draft(block.token(child))}))
      return child;
  final_token = own_final ? block.pick_residual(node, distributions.residual(rho)) : block.pick_target(node);
  return 0;
}

// Uses the target's distribution alone: the likeliest token, ties to the lowest.
inline Token likeliest_target(const math::RatioTable& distributions) {
  Token best = 0;
  for (Token x = 1; x < distributions.vocab(); ++x)
    if (distributions.target(x) > distributions.target(best)) best = x;
  return best;
}

class OneToken final : public verify::Pickable {
 public:
  explicit OneToken(Token token) : token_(token) {}
  [[nodiscard]] Token pick(std::uint64_t) const override { return token_; }

 private:
  Token token_;
};

// One of `count` at random, with equal probability.
class AnyOf final : public verify::Pickable {
 public:
  explicit AnyOf(std::size_t count) : count_(count) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override {
    return static_cast<Token>(rng::to_unit(bits) * static_cast<double>(count_));
  }

 private:
  std::size_t count_;
};

// Traversal from the leaves up, with a mistake: the mass of a rejected leaf is lost.
inline verify::AcceptedPath traversal_without(verify::Block& block, bool update_probability, bool update_distribution) {
  struct Step {
    int node;
    double stays;
    math::Residual cut;
    int tried;
  };
  std::vector<Step> path = {{0, 1.0, math::Residual(), 0}};
  for (;;) {
    while (path.back().stays > 0.0 && path.back().tried < block.children(path.back().node)) {
      Step& above = path.back();
      const int child = block.tree().nodes[static_cast<std::size_t>(above.node)].first_child + above.tried++;
      const Token x = block.token(child);
      const math::RatioTable& distributions = block.distributions(above.node);
      const double weight = std::max(distributions.target(x) - above.cut.c * distributions.draft(x), 0.0);
      const double share = above.cut.mass > 0.0 ? weight / above.cut.mass : 0.0;
      path.push_back({child, std::min(1.0, above.stays * share / distributions.draft(x)), math::Residual(), 0});
    }
    const Step leaf = path.back();
    if (leaf.node == 0 || block.accept(leaf.node, {leaf.stays, 1.0}))
      return {leaf.node, block.pick_residual(leaf.node, leaf.cut)};
    path.pop_back();
    Step& above = path.back();
    if (!(above.cut.mass > 0.0)) continue;
    const math::Residual next = block.distributions(above.node).residual(above.cut.c + above.cut.mass / above.stays);
    const double z = above.stays * next.mass / above.cut.mass;
    if (update_probability && above.node != 0) above.stays = z > 0.0 ? z / (z + 1.0 - above.stays) : 0.0;
    if (update_distribution) above.cut = next;
  }
}

struct BlockMutant {
  std::string verifier;
  std::string mistake;
  std::function<std::unique_ptr<verify::BlockRule>()> make;
};

inline const std::vector<BlockMutant>& block_mutants() {
  using verify::Block;
  const auto whole = [](std::function<verify::AcceptedPath(Block&)> verify) {
    return [verify] { return std::make_unique<FunctionRule>(verify); };
  };
  const auto steps = [](StepFunction step) { return [step] { return std::make_unique<StepRule>(step); }; };
  const auto recursive = [&](RecursiveKnobs knobs) {
    return steps([knobs](Block& block, int node, const std::vector<int>& children, Token& last) {
      return recursive_with(block, node, children, last, knobs);
    });
  };
  const auto kseq = [&](double rho, bool own_final) {
    return steps([=](Block& block, int node, const std::vector<int>& children, Token& last) {
      return kseq_with(block, node, children, last, rho > 0.0 ? rho : static_cast<double>(children.size()), own_final);
    });
  };
  const auto knobs = [&](BlockKnobs own) { return whole([own](Block& block) { return block_with(block, own); }); };
  static const std::vector<BlockMutant> list = {
      {"block", "p is not capped at 1", knobs({.capped = false})},
      {"block", "residual (target - draft)+ instead of (p target - draft)+", knobs({.own_residual = false})},
      {"block", "stops at the first index that does not accept", knobs({.longest = false})},
      {"block", "accepts with p before the end", knobs({.through_z = false})},

      {"multi_draft_recursive", "every sibling is judged against the whole target", recursive({.updates = false})},
      {"multi_draft_recursive", "the residual is not normalised", recursive({.normalises = false})},
      {"multi_draft_recursive", "the final token comes from the target", recursive({.own_final = false})},

      {"without_replacement", "the draft's distribution is not normalised without the elder siblings",
       recursive({.renormalises = false})},
      {"without_replacement", "every sibling is judged against the whole target", recursive({.updates = false})},
      {"without_replacement", "the final token comes from the target", recursive({.own_final = false})},

      {"kseq", "rho is 1", kseq(1.0, true)},
      {"kseq", "rho is the number of siblings", kseq(0.0, true)},
      {"kseq", "the final token comes from the target", kseq(1.5, false)},

      {"optimal_transport", "the final token comes from the target",
       steps([](Block& block, int node, const std::vector<int>& children, Token& last) {
         return kseq_with(block, node, children, last, static_cast<double>(children.size()), false);
       })},
      {"optimal_transport", "any sibling is taken", steps([](Block& block, int node, const std::vector<int>& children, Token&) {
         return children[block.choose(node, AnyOf(children.size()))];
       })},
      {"optimal_transport", "the residual is (target - draft)+",
       steps([](Block& block, int node, const std::vector<int>& children, Token& last) {
         for (const int child : children)
           if (block.accept(child, {block.distributions(node).target(block.token(child)),
                                    2.0 * block.distributions(node).draft(block.token(child))}))
             return child;
         last = block.pick_residual(node, block.distributions(node).residual(1.0));
         return 0;
       })},

      {"tree_point_mass", "a chosen token is judged with its soft draft probability", recursive({})},
      {"tree_point_mass", "goes down to the first child whichever matched",
       steps([](Block& block, int node, const std::vector<int>& children, Token& last) {
         last = block.pick_target(node);
         for (const int child : children)
           if (block.token(child) == last) return children.front();
         return 0;
       })},
      {"tree_point_mass", "every child is tried against the whole target",
       steps([](Block& block, int node, const std::vector<int>& children, Token& last) {
         for (const int child : children)
           if (block.accept(child, {block.distributions(node).target(block.token(child)), 1.0})) return child;
         last = block.pick_target(node);
         return 0;
       })},

      {"greedy_tree", "takes the first child",
       steps([](Block&, int, const std::vector<int>& children, Token&) { return children.front(); })},
      {"greedy_tree", "the final token comes from the draft",
       steps([](Block& block, int node, const std::vector<int>& children, Token& last) {
         const Token best = likeliest_target(block.distributions(node));
         for (const int child : children)
           if (block.token(child) == best) return child;
         last = block.pick(node, OneToken(block.token(children.front())));
         return 0;
       })},
      {"greedy_tree", "a draft token is accepted with its draft probability",
       steps([](Block& block, int node, const std::vector<int>& children, Token& last) {
         last = block.pick_target(node);
         for (const int child : children)
           if (block.accept(child, {block.distributions(node).draft(block.token(child)), 1.0})) return child;
         return 0;
       })},

      {"traversal", "a rejected leaf leaves its parent's probability as it was",
       whole([](Block& block) { return traversal_without(block, false, true); })},
      {"traversal", "a rejected leaf leaves its parent's distribution as it was",
       whole([](Block& block) { return traversal_without(block, true, false); })},
      {"traversal", "a rejected leaf leaves no trace",
       whole([](Block& block) { return traversal_without(block, false, false); })},
  };
  return list;
}

}  // namespace specsim::tests
