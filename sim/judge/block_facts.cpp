#include "sim/judge/block_rounds.h"

#include "sim/base/index.h"

#include <algorithm>
#include <utility>

namespace specsim::judge {

namespace {

using Kind = families::ContextShape::Kind;

class MissingFacts final : public BlockFacts {
 public:
  explicit MissingFacts(std::string why) : why_(std::move(why)) {}
  std::vector<double> add(int /*context*/, int /*depth*/, const verify::PositionDistributions& /*distributions*/) override {
    return {};
  }
  [[nodiscard]] BlockTheory answer() const override {
    BlockTheory none;
    none.missing = why_;
    return none;
  }

 private:
  std::string why_;
};

std::optional<theory::LengthRule> length_rule(const spec::Cell& cell) {
  if (cell.policy() == nullptr) return std::nullopt;
  const config::Arguments& own = cell.policy()->arguments;
  if (cell.policy()->name() == "additive")
    return theory::additive_rule(static_cast<int>(own.integer("first")), static_cast<int>(own.integer("up")),
                                 static_cast<int>(own.integer("down")), cell.draft_length());
  if (cell.policy()->name() == "ema_tiers") {
    std::vector<int> tiers;
    for (const double tier : own.numbers("tiers")) tiers.push_back(static_cast<int>(tier));
    return theory::ema_tiers_rule(std::move(tiers), own.number("weight"), own.number("up"), own.number("down"));
  }
  if (cell.policy()->name() == "goodput")
    return theory::goodput_rule(own.number("first_alpha"), own.number("weight"), cell.policy()->round_times);
  return std::nullopt;  // the oracle drafts what is accepted: its rounds go as without a policy
}

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
      shape(&of_cell.contexts->process->shape()),
      drafter(&of_cell.block()->drafter->shape()),
      by_context(sure_next() || shape->kind == Kind::regimes || shape->kind == Kind::requests),
      states(by_context ? shape->contexts : 1) {
  if (const tokens::Tree* drafted = cell->block()->drafter->tree()) {
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
  return static_cast<int>(cell->contexts->process->next(static_cast<std::uint32_t>(context), static_cast<Token>(token)));
}

bool BlockRounds::is_block() const {
  return cell->verifier().info.name == "block" || (cell->verifier().info.name == "traversal" && tree.size() == tree.depth() + 1);
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

BlockTheory BlockRounds::theory_of(const std::function<theory::RoundKernel(int draft_length)>& kernel_of_length) const {
  BlockTheory result;
  const int longest = cell->draft_length();
  const std::optional<theory::LengthRule> lengths = length_rule(*cell);
  std::vector<theory::RoundKernel> kernels;
  for (int length = lengths ? 0 : longest; length <= longest; ++length) {
    kernels.push_back(kernel_of_length(length));
    theory::RoundKernel& kernel = kernels.back();
    if (!by_context && kernel.states > 1) {  // an iid pool's rounds are alike
      std::vector<theory::RoundDistribution> distributions;
      for (int s = 0; s < kernel.states; ++s) distributions.push_back(kernel.distribution(s));
      kernel = kernel_of(mean_of(distributions));
    }
  }
  if (!lengths)
    for (int s = 0; s < states; ++s) result.distributions.push_back(kernels[0].distribution(s));
  if (lengths || sure_next() || shape->kind == Kind::regimes)
    result.sequence = [kernels = std::move(kernels), lengths, start = by_context ? start() : std::vector<double>{1.0}](
                          int rounds) { return theory::run_moments(kernels, lengths ? &*lengths : nullptr, start, rounds); };
  return result;
}

std::unique_ptr<BlockFacts> block_facts(const spec::Cell& cell) {
  BlockRounds rounds(cell);
  const bool enumerates = rounds.tree.size() != rounds.drafter->nodes + 1 || cell.verifier().info.name == "block" ||
                          cell.verifier().info.name == "traversal" || (rounds.drafter->from_root && rounds.shape->contexts > 1) ||
                          (cell.verifier().info.name == "typical" && rounds.tree.size() > rounds.tree.depth() + 1);
  std::string missing = enumerates ? why_not_enumerated(rounds) : why_not_walked(rounds);
  if (!missing.empty()) return std::make_unique<MissingFacts>(std::move(missing));
  return enumerates ? enumerated_facts(std::move(rounds)) : walked_facts(std::move(rounds));
}

}  // namespace specsim::judge
