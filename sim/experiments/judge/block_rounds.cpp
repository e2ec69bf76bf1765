#include "sim/experiments/judge/block_rounds.h"

#include "sim/experiments/judge/method.h"
#include "sim/foundation/base/index.h"

#include <algorithm>
#include <utility>

namespace specsim::judge {

namespace {

using Kind = families::ContextShape::Kind;

}  // namespace

theory::TreeSampling sampling_of(tokens::Siblings siblings) {
  return siblings == tokens::Siblings::independent           ? theory::TreeSampling::with_replacement
         : siblings == tokens::Siblings::without_replacement ? theory::TreeSampling::without_replacement
                                                             : theory::TreeSampling::top;
}

theory::RoundKernel kernel_of(const theory::RoundDistribution& distribution) {
  theory::RoundKernel kernel(1, distribution.draft_length());
  for (int j = 0; j <= distribution.draft_length(); ++j) kernel.at(j, 0, 0) = distribution.accepted[index_of(j)];
  return kernel;
}

theory::RoundDistribution mean_of(const std::vector<theory::RoundDistribution>& distributions) {
  theory::RoundDistribution mean{std::vector<double>(distributions.front().accepted.size(), 0.0)};
  for (const theory::RoundDistribution& distribution : distributions)
    for (std::size_t j = 0; j < distribution.accepted.size(); ++j)
      mean.accepted[j] += distribution.accepted[j] / static_cast<double>(distributions.size());
  return mean;
}

BlockRounds::BlockRounds(const spec::Cell& of_cell)
    : cell(&of_cell),
      shape(&context_shape(of_cell)),
      drafter(&blocks(of_cell).shape()),
      by_context(next_context_known() || shape->kind == Kind::regimes || shape->kind == Kind::requests),
      states(by_context ? shape->contexts : 1) {
  if (has_policy(of_cell)) {
    const PolicyTheory* known = policy_theories().find(policy_name(of_cell));
    if (known != nullptr && known->lengths) lengths = known;
    if (known != nullptr && known->stops) stops = known;
  }
  if (const tokens::Tree* drafted = blocks(of_cell).tree()) {
    for (auto node = drafted->nodes.begin() + 1; node != drafted->nodes.end(); ++node) tree.add(node->parent, node->rank);
    ranks.resize(index_of(drafted->height()));
    for (const tokens::Tree::Node& node : drafted->nodes)
      for (int child = 0; child < node.children; ++child) {
        int& most = ranks[index_of(node.depth)];
        most = std::max(most, drafted->nodes[index_of(node.first_child + child)].rank + 1);
      }
  }
}

int BlockRounds::next(int context, int token) const {
  if (shape->kind == Kind::trace) return (context + 1) % shape->contexts;
  return static_cast<int>(process(*cell).next(static_cast<std::uint32_t>(context), static_cast<Token>(token)));
}

bool BlockRounds::hidden() const {
  return shape->contexts > 1 && (shape->kind == Kind::iid_pool || shape->kind == Kind::regimes);
}

std::vector<double> BlockRounds::start() const {
  std::vector<double> start = shape->start;
  if (shape->kind == Kind::trace) {
    start.assign(index_of(shape->contexts), 0.0);
    for (const std::uint32_t first : shape->starts) start[first] += 1.0 / static_cast<double>(shape->starts.size());
  } else if (start.empty()) {
    start.assign(index_of(shape->contexts), 0.0);
    start[0] = 1.0;
  }
  if (shape->kind == Kind::iid_pool) start.assign(start.size(), 1.0 / static_cast<double>(start.size()));
  return start;
}

std::string BlockRounds::why_not() const {
  return (shape->kind == Kind::requests && (lengths != nullptr || stops != nullptr)) ||
                 (shape->kind == Kind::trace && lengths != nullptr)
             ? "theory does not cover requests whose rounds a policy shortens"
             : "";
}

RoundTheory BlockRounds::theory_of(const std::function<theory::RoundKernel(int draft_length)>& kernel_of_length) const {
  RoundTheory result;
  const int longest = draft_length(*cell);
  std::optional<theory::LengthRule> by_length;
  if (lengths != nullptr) by_length = lengths->lengths(*cell);
  std::vector<theory::RoundKernel> kernels;
  for (int length = by_length ? 0 : longest; length <= longest; ++length) {
    kernels.push_back(kernel_of_length(length));
    theory::RoundKernel& kernel = kernels.back();
    if (!by_context && kernel.states > 1) {  // rounds from an iid pool are identically distributed
      std::vector<theory::RoundDistribution> distributions;
      for (int s = 0; s < kernel.states; ++s) distributions.push_back(kernel.distribution(s));
      kernel = kernel_of(mean_of(distributions));
    }
  }
  if (!by_length)
    for (int s = 0; s < states; ++s) result.distributions.push_back(kernels[0].distribution(s));
  if (by_length || shape->kind == Kind::markov || shape->kind == Kind::regimes)
    result.sequence = [kernels = std::move(kernels), by_length, first = by_context ? start() : std::vector<double>{1.0}](
                          int rounds) { return theory::run_moments(kernels, by_length ? &*by_length : nullptr, first, rounds); };
  return result;
}

}  // namespace specsim::judge
