#include "sim/experiments/judge/acceptance_table.h"

#include "sim/experiments/judge/method.h"
#include "sim/foundation/base/index.h"
#include "sim/rounds/theory/multi_draft.h"
#include "sim/rounds/theory/round_chain.h"
#include "sim/rounds/theory/trees.h"

#include <algorithm>
#include <utility>

namespace specsim::judge {

namespace {

class NodeSums final : public CellTheory {
 public:
  std::vector<double> see(int /*context*/, int depth, const verify::PositionDistributions& distributions) override {
    if (depth > 0) return {};
    const auto ranks =
        std::count_if(distributions.drafted.begin(), distributions.drafted.end(), [](double q) { return q > 0.0; });
    acceptance_.push_back(theory::judge_top_ranked(distributions.target, distributions.drafted, static_cast<int>(ranks)).by_rank);
    return {};
  }

  [[nodiscard]] RoundTheory answer(const spec::Cell& cell) const override {
    theory::TreeShape whole = theory::chain_tree(draft_length(cell));
    if (!judges_positions(cell)) {
      whole = theory::TreeShape();
      const std::vector<tokens::Tree::Node>& nodes = blocks(cell).tree()->nodes;
      for (auto node = nodes.begin() + 1; node != nodes.end(); ++node) whole.add(node->parent, node->rank);
    }
    theory::RankAcceptance acceptance = acceptance_;
    const int ranks = whole.size() > 1 ? *std::max_element(whole.rank.begin(), whole.rank.end()) + 1 : 1;
    for (std::vector<double>& row : acceptance) row.resize(std::max(row.size(), index_of(ranks)), 0.0);
    while (static_cast<int>(acceptance.size()) < whole.depth()) acceptance.push_back(acceptance.back());
    RoundTheory result;
    const PolicyTheory* const policy = policy_of_lengths(cell);
    if (policy == nullptr) {
      result.distributions = {theory::tree_distribution(whole, acceptance)};
      return result;
    }
    std::vector<theory::RoundKernel> kernels;
    const std::vector<int> depths = whole.depths();
    for (int length = 0; length <= draft_length(cell); ++length) {
      theory::TreeShape tree;
      for (int node = 1; node < whole.size() && depths[index_of(node)] <= length; ++node)
        tree.add(whole.parent[index_of(node)], whole.rank[index_of(node)]);
      const theory::RoundDistribution distribution = theory::tree_distribution(tree, acceptance);
      theory::RoundKernel& kernel = kernels.emplace_back(1, length);
      for (int j = 0; j <= length; ++j) kernel.at(j, 0, 0) = distribution.accepted[index_of(j)];
    }
    result.sequence = [kernels = std::move(kernels), rule = policy->lengths(cell)](int rounds) {
      return theory::run_moments(kernels, &rule, std::vector<double>{1.0}, rounds);
    };
    return result;
  }

 private:
  static const PolicyTheory* policy_of_lengths(const spec::Cell& cell) {
    if (!has_policy(cell)) return nullptr;
    const PolicyTheory* const known = policy_theories().find(policy_name(cell));
    return known != nullptr && known->lengths ? known : nullptr;
  }

  theory::RankAcceptance acceptance_;  // [depth][rank]
};

}  // namespace

Coverage sum_over_nodes() { return {std::make_unique<NodeSums>(), ""}; }

}  // namespace specsim::judge
