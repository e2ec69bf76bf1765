#include "sim/rounds/theory/block.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/foundation/math/series.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace specsim::theory {
namespace {

struct Atom {
  double value = 0.0;
  double weight = 0.0;
};

// Sorts, and merges atoms that differ only by rounding: the same ratios multiplied in another order.
void merge(std::vector<Atom>& atoms) {
  constexpr double kRounding = 64.0 * std::numeric_limits<double>::epsilon();
  constexpr std::size_t kMost = std::size_t{1} << 20U;
  std::sort(atoms.begin(), atoms.end(), [](const Atom& a, const Atom& b) { return a.value < b.value; });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < atoms.size(); ++i) {
    if (atoms[i].value - atoms[kept].value <= kRounding * atoms[i].value) {
      atoms[kept].weight += atoms[i].weight;
    } else {
      atoms[++kept] = atoms[i];
    }
  }
  if (!atoms.empty()) atoms.resize(kept + 1);
  SPECSIM_CHECK(atoms.size() <= kMost, "{} values of the ratio product are too many", atoms.size());
}

const std::vector<Branch>& branches_at(const BlockContext& context, int position, int state) {
  const std::size_t last = context.branches.size() - 1;
  return context.branches[std::min(index_of(position), last)][index_of(state)];
}

void check_context(const BlockContext& context, int draft_length) {
  SPECSIM_CHECK(draft_length >= 0, "draft_length = {}", draft_length);
  SPECSIM_CHECK(context.states >= 1, "{} states", context.states);
  SPECSIM_CHECK(context.branches.size() == 1 || context.branches.size() >= index_of(draft_length),
                "{} draft positions for draft_length {}", context.branches.size(), draft_length);
  for (const auto& position : context.branches) {
    SPECSIM_CHECK(position.size() == index_of(context.states), "{} states of {}", position.size(), context.states);
    for (const std::vector<Branch>& branches : position) {
      math::CompensatedSum target;
      math::CompensatedSum draft;
      for (const Branch& branch : branches) {
        SPECSIM_CHECK(branch.target >= 0.0 && branch.draft >= 0.0, "target {}, draft {}", branch.target, branch.draft);
        SPECSIM_CHECK(branch.next >= 0 && branch.next < context.states, "successor = {}", branch.next);
        target += branch.target;
        draft += branch.draft;
      }
      SPECSIM_CHECK(std::abs(target.value() - 1.0) < 1e-9 && std::abs(draft.value() - 1.0) < 1e-9,
                    "distributions sum to {} and {}", target.value(), draft.value());
    }
  }
}

void check_pair(const WeightedPair& pair) {
  SPECSIM_CHECK(pair.target.size() == pair.draft.size(), "target has {} tokens, draft {}", pair.target.size(), pair.draft.size());
  SPECSIM_CHECK(pair.weight > 0.0, "weight = {}", pair.weight);
}

// Rows of the kernel for one start state.
std::vector<std::vector<double>> kernel_from(const BlockContext& context, int draft_length, int start) {
  const std::size_t states = index_of(context.states);
  std::vector<std::vector<double>> rows;
  std::vector<std::vector<Atom>> carries(states);
  carries[index_of(start)] = {{1.0, 1.0}};
  for (int j = 0; j <= draft_length; ++j) {
    std::vector<math::CompensatedSum> row(states);
    std::vector<std::vector<Atom>> longer(states);
    for (int s = 0; s < context.states; ++s) {
      if (j == draft_length) {  // the next token is the target's, whatever the carry
        math::CompensatedSum kept;
        for (const Atom& atom : carries[index_of(s)]) kept.add(atom.weight * atom.value);
        for (const Branch& branch : branches_at(context, j, s)) row[index_of(branch.next)].add(kept.value() * branch.target);
        continue;
      }
      for (const Branch& branch : branches_at(context, j, s)) {
        const std::size_t next = index_of(branch.next);
        for (const Atom& atom : carries[index_of(s)]) {
          const double carried = atom.value * branch.target;
          if (carried > branch.draft) row[next].add(atom.weight * (carried - branch.draft));
          if (branch.draft > 0.0 && carried > 0.0)
            longer[next].push_back({std::min(1.0, carried / branch.draft), atom.weight * branch.draft});
        }
      }
    }
    for (std::vector<Atom>& atoms : longer) merge(atoms);
    carries = std::move(longer);
    rows.emplace_back();
    for (const math::CompensatedSum& entry : row) rows.back().push_back(entry.value());
  }
  return rows;
}

// Rounds from one start that keep the whole block by its joint ratio, path by path.
class JointRatioWalk {
 public:
  using End = std::function<void(std::span<const int> kept, const std::vector<Branch>& branches, std::span<const double> final)>;
  JointRatioWalk(const BlockContext& context, int draft_length, End end)
      : context_(&context), draft_length_(draft_length), end_(std::move(end)) {}

  void from(int start) {
    const double left = walk(0, start, {1.0, 1.0, 1.0});
    SPECSIM_CHECK(left < 1e-12, "{} of the rounds end nowhere", left);
  }

 private:
  struct Prefix {
    double target = 1.0;  // joint probabilities
    double draft = 1.0;
    double largest = 1.0;  // largest ratio of the two along the path
  };

  // Returns the mass of drafted paths with this prefix that keep fewer tokens than the prefix has.
  double walk(int length, int state, const Prefix& prefix) {
    const std::vector<Branch>& branches = branches_at(*context_, length, state);
    if (length == draft_length_) {
      const double stays = std::min(prefix.target, prefix.draft);
      std::vector<double> final;
      for (const Branch& branch : branches) final.push_back(stays * branch.target);
      end_(kept_, branches, final);
      return prefix.draft - stays;
    }
    math::CompensatedSum back;
    for (std::size_t i = 0; i < branches.size(); ++i) {
      const Branch& branch = branches[i];
      if (branch.draft == 0.0) continue;
      Prefix longer{prefix.target * branch.target, prefix.draft * branch.draft, 0.0};
      longer.largest = std::max(prefix.largest, longer.target / longer.draft);
      kept_.push_back(static_cast<int>(i));
      back += walk(length + 1, branch.next, longer);
      kept_.pop_back();
    }
    // As joint masses: the mass that the target may still emit here, over the drafted mass.
    const double may = prefix.target / prefix.largest;
    math::CompensatedSum lacking;
    math::CompensatedSum excess;
    for (const Branch& branch : branches) {
      const double gap = may * branch.target - prefix.draft * branch.draft;
      (gap > 0.0 ? lacking : excess) += std::abs(gap);
    }
    if (!(back.value() > 0.0) || !(lacking.value() > 0.0)) return back.value();
    const double stays = length == 0 ? back.value() : back.value() * std::min(1.0, lacking.value() / excess.value());
    std::vector<double> final;
    for (const Branch& branch : branches)
      final.push_back(stays * std::max(may * branch.target - prefix.draft * branch.draft, 0.0) / lacking.value());
    end_(kept_, branches, final);
    return back.value() - stays;
  }

  const BlockContext* context_;
  int draft_length_;
  End end_;
  std::vector<int> kept_;  // branches of the prefix
};

// Sums values >= 0 by cell. Cells have equal width in value / (1 + value), so that large ratios have cells too.
class Cells {
 public:
  explicit Cells(int count) : cells_(index_of(count)) {}

  void add(double value, double weight) {
    const double place = value / (1.0 + value) * static_cast<double>(cells_.size());
    Cell& cell = cells_[std::min(static_cast<std::size_t>(place), cells_.size() - 1)];
    cell.low = std::min(cell.low, value);
    cell.high = std::max(cell.high, value);
    cell.weight += weight;
    cell.moment += weight * value;
  }

  // One atom per cell at its mean, or two at its ends with the same mean.
  [[nodiscard]] std::vector<Atom> atoms(bool spread) const {
    std::vector<Atom> list;
    for (const Cell& cell : cells_) {
      if (cell.weight == 0.0) continue;
      const double mean = std::clamp(cell.moment / cell.weight, cell.low, cell.high);
      if (!spread || cell.low == cell.high) {
        list.push_back({mean, cell.weight});
        continue;
      }
      const double upper = cell.weight * (mean - cell.low) / (cell.high - cell.low);
      list.push_back({cell.low, cell.weight - upper});
      list.push_back({cell.high, upper});
    }
    return list;
  }

 private:
  struct Cell {
    double low = std::numeric_limits<double>::infinity();
    double high = 0.0;
    double weight = 0.0;
    double moment = 0.0;
  };
  std::vector<Cell> cells_;
};

std::vector<double> rounded_tails(const Cells& ratios, int draft_length, int cells, bool spread) {
  const std::vector<Atom> steps = ratios.atoms(spread);
  std::vector<Atom> carries = {{1.0, 1.0}};
  std::vector<double> tails;
  for (int i = 0; i < draft_length; ++i) {
    Cells next(cells);
    for (const Atom& carry : carries) {
      for (const Atom& step : steps) next.add(std::min(1.0, carry.value * step.value), carry.weight * step.weight);
    }
    carries = next.atoms(spread);
    math::CompensatedSum mean;
    for (const Atom& carry : carries) mean.add(carry.value * carry.weight);
    tails.push_back(mean.value());
  }
  return tails;
}

}  // namespace

BlockContext block_context(const Automaton& automaton) {
  check_automaton(automaton, 0);
  BlockContext context;
  context.states = automaton.states;
  for (const auto& drafts : automaton.draft) {
    auto& position = context.branches.emplace_back(index_of(automaton.states));
    for (std::size_t s = 0; s < position.size(); ++s) {
      for (std::size_t x = 0; x < index_of(automaton.vocab); ++x)
        position[s].push_back({automaton.target[s][x], drafts[s][x], automaton.next[s * index_of(automaton.vocab) + x]});
    }
  }
  return context;
}

BlockContext block_context(std::span<const WeightedPair> pool) {
  math::CompensatedSum total;
  for (const WeightedPair& pair : pool) {
    check_pair(pair);
    total += pair.weight;
  }
  BlockContext context;
  context.branches = {{{}}};
  for (const WeightedPair& pair : pool) {
    const double share = pair.weight / total.value();
    for (std::size_t x = 0; x < pair.target.size(); ++x)
      context.branches[0][0].push_back({share * pair.target[x], share * pair.draft[x], 0});
  }
  return context;
}

BlockContext block_context(std::span<const WeightedPair> pairs, const std::vector<double>& transition) {
  SPECSIM_CHECK(transition.size() == pairs.size() * pairs.size(), "{} transition entries for {} states", transition.size(),
                pairs.size());
  BlockContext context;
  context.states = static_cast<int>(pairs.size());
  context.branches.emplace_back(pairs.size());
  for (std::size_t s = 0; s < pairs.size(); ++s) {
    check_pair(pairs[s]);
    for (int next = 0; next < context.states; ++next) {
      const double move = transition[s * pairs.size() + index_of(next)];
      if (move == 0.0) continue;
      for (std::size_t x = 0; x < pairs[s].target.size(); ++x)
        context.branches[0][s].push_back({move * pairs[s].target[x], move * pairs[s].draft[x], next});
    }
  }
  return context;
}

std::vector<std::vector<double>> block_kernel(const BlockContext& context, int draft_length) {
  check_context(context, draft_length);
  std::vector<std::vector<double>> kernel(index_of(draft_length) + 1);
  for (int s = 0; s < context.states; ++s) {
    const auto rows = kernel_from(context, draft_length, s);
    for (std::size_t j = 0; j < kernel.size(); ++j) kernel[j].insert(kernel[j].end(), rows[j].begin(), rows[j].end());
  }
  return kernel;
}

std::vector<std::vector<double>> joint_ratio_kernel(const BlockContext& context, int draft_length) {
  check_context(context, draft_length);
  std::vector<std::vector<double>> kernel(index_of(draft_length) + 1);
  for (int s = 0; s < context.states; ++s) {
    std::vector<std::vector<math::CompensatedSum>> sums(kernel.size(),
                                                        std::vector<math::CompensatedSum>(index_of(context.states)));
    JointRatioWalk(context, draft_length,
                   [&](std::span<const int> kept, const std::vector<Branch>& branches, std::span<const double> final) {
                     for (std::size_t i = 0; i < final.size(); ++i) sums[kept.size()][index_of(branches[i].next)] += final[i];
                   })
        .from(s);
    for (std::size_t j = 0; j < kernel.size(); ++j)
      for (const math::CompensatedSum& sum : sums[j]) kernel[j].push_back(sum.value());
  }
  return kernel;
}

void each_joint_ratio_end(const BlockContext& context, int draft_length, int state,
                          const std::function<void(std::span<const int> kept, std::span<const double> final)>& f) {
  check_context(context, draft_length);
  JointRatioWalk(
      context, draft_length,
      [&](std::span<const int> kept, const std::vector<Branch>& /*branches*/, std::span<const double> final) { f(kept, final); })
      .from(state);
}

RoundDistribution block_distribution(const BlockContext& context, int draft_length, int state) {
  check_context(context, draft_length);
  SPECSIM_CHECK(state >= 0 && state < context.states, "state = {}", state);
  RoundDistribution distribution;
  for (const std::vector<double>& row : kernel_from(context, draft_length, state)) {
    math::CompensatedSum sum;
    for (const double entry : row) sum += entry;
    distribution.accepted.push_back(sum.value());
  }
  return distribution;
}

std::vector<Bracket> block_tails(std::span<const WeightedPair> pool, int draft_length, int cells) {
  SPECSIM_CHECK(cells >= 2, "cells = {}", cells);
  const BlockContext context = block_context(pool);
  check_context(context, draft_length);
  Cells ratios(cells);
  for (const Branch& branch : context.branches[0][0]) {
    if (branch.draft > 0.0) ratios.add(branch.target / branch.draft, branch.draft);
  }
  const std::vector<double> low = rounded_tails(ratios, draft_length, cells, true);
  const std::vector<double> high = rounded_tails(ratios, draft_length, cells, false);
  std::vector<Bracket> tails;
  for (std::size_t i = 0; i < low.size(); ++i) tails.push_back({low[i], high[i]});
  return tails;
}

}  // namespace specsim::theory
