#include "sim/experiments/judge/cell_theory.h"
#include "sim/experiments/judge/method.h"
#include "sim/foundation/base/index.h"
#include "sim/rounds/theory/multi_draft.h"
#include "sim/rounds/theory/round_chain.h"
#include "sim/rounds/theory/trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace specsim::judge {

// To add a theory, add one line here and a function NAME_theory() in this folder.
#define SPECSIM_THEORIES(X) \
  X(recursive)              \
  X(matching)               \
  X(soft_argmax)            \
  X(block)                  \
  X(hsd)                    \
  X(traversal)              \
  X(without_replacement)    \
  X(kseq)                   \
  X(optimal_transport)      \
  X(typical)                \
  X(typical_medusa)         \
  X(lenience)               \
  X(top_k_match)            \
  X(gumbel)                 \
  X(relaxed_threshold)      \
  X(relaxed_top_n)          \
  X(speculative_cascade)    \
  X(judge_decoding)         \
  X(greedy_multi_path)      \
  X(spec_hub)               \
  X(dynamic_tree)           \
  X(opt_tree)               \
  X(marginal_trees)         \
  X(spec_exec)              \
  X(redrafter)              \
  X(cs_drafting)            \
  X(saguaro)                \
  X(dspark)                 \
  X(prompt_lookup)          \
  X(suffix)                 \
  X(suffix_decoding)        \
  X(sam_decoding)           \
  X(lookahead)              \
  X(sglang_ngram)           \
  X(ngram_simple)           \
  X(ngram_mod)              \
  X(ngram_cache)            \
  X(ngram_map_k)            \
  X(ngram_map_k4v)

// NAME_policy_theory() returns the entry of a length policy.
#define SPECSIM_POLICY_THEORIES(X) \
  X(additive)                      \
  X(table)                         \
  X(ema_tiers)                     \
  X(ratio_tiers)                   \
  X(goodput)                       \
  X(goodput_per_sequence)          \
  X(confidence)                    \
  X(entropy)                       \
  X(oracle)

#define SPECSIM_DECLARE(name) TheoryEntry name##_theory();
SPECSIM_THEORIES(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE
#define SPECSIM_DECLARE(name) PolicyTheory name##_policy_theory();
SPECSIM_POLICY_THEORIES(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE

config::Registry<TheoryEntry>& theories() {
#define SPECSIM_ENTRY(name) name##_theory(),
  static config::Registry<TheoryEntry> registry("theory", {SPECSIM_THEORIES(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

config::Registry<PolicyTheory>& policy_theories() {
#define SPECSIM_ENTRY(name) name##_policy_theory(),
  static config::Registry<PolicyTheory> registry("policy theory", {SPECSIM_POLICY_THEORIES(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

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

// The theory of cells whose context process is of kind by_rank: sums over the nodes of the tree.
Coverage sum_over_nodes() { return {std::make_unique<NodeSums>(), ""}; }

bool names(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

const TheoryEntry* theory_entry(const spec::Cell& cell, std::string& why) {
  const std::string& verifier = verifier_name(cell);
  // The drafter chooses its blocks in every round, or the distributions differ in every round.
  const bool chosen = !judges_positions(cell) && (blocks(cell).tree() == nullptr || spec::plan_of(cell).joins());
  bool verifier_known = false;
  for (const TheoryEntry& entry : theories().entries()) {
    if (!names(entry.verifiers, verifier)) continue;
    verifier_known = true;
    if (chosen ? names(entry.drafters, drafter_name(cell)) : entry.drafters.empty()) return &entry;
  }
  why = verifier_known ? fmt::format("none covers the choices of drafter {} under verifier {}", drafter_name(cell), verifier)
                       : fmt::format("none covers verifier {}", verifier);
  return nullptr;
}

Coverage cover(const spec::Cell& cell) {
  Coverage none;
  const TheoryEntry* entry = theory_entry(cell, none.missing);
  if (entry == nullptr) return none;
  if (has_policy(cell)) {
    const PolicyTheory* policy = policy_theories().find(policy_name(cell));
    if (policy == nullptr) return {nullptr, fmt::format("none covers policy {}", policy_name(cell))};
    if (policy->alone && batch(cell) > 1.0)
      return {nullptr,
              fmt::format("policy {} depends on all sequences of the batch, and its theory covers only one", policy_name(cell))};
  }
  if (context_shape(cell).kind == families::ContextShape::Kind::other)
    return {nullptr, fmt::format("none covers the transitions between contexts in process {}", cell.contexts->name)};
  if (context_shape(cell).kind == families::ContextShape::Kind::by_rank) return sum_over_nodes();
  return entry->cover(cell);
}

}  // namespace specsim::judge
