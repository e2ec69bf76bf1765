// Trees that are built at run time for a budget: their nodes, calculated by hand, and a round's latency, which is that of its
// passes.
#include "sim/experiments/judge/rows.h"
#include "tests/support/cells.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace specsim::budget_trees_test {

namespace {

struct Played {
  decode::Counts counts;
  double draft_ms = 0.0;
};

// Rounds of a draft of probabilities .6, .3 and .1 that equals the target, at .1 ms per pass and .01 ms per row.
Played played(const std::string& drafter, const std::string& verifier, const std::string& probabilities = "[0.6, 0.3, 0.1]") {
  const tests::ReadyCell ready(fmt::format(
      "{{experiment: trees, rounds: 25600, theory: {{name: none}}, pair: {{vocab: 3, target: {{family: explicit, probabilities: "
      "{}}}, "
      "draft: {{family: explicit, probabilities: {}}}}}, decode: {{drafter: {}, verifier: {}}}, cost: {{model: affine, "
      "target_fixed_ms: 1, draft_fixed_ms: 0.1, draft_ms_per_token: 0.01}}}}",
      probabilities, probabilities, drafter, verifier));
  const decode::Simulator simulator = ready.simulator();
  Played result{simulator.empty_counts(), 0.0};
  for (std::uint64_t chunk = 0; chunk * simulator.chunk_size() < ready.cell().work(); ++chunk)
    simulator.run(chunk, ready.cell().work(), result.counts);
  result.draft_ms = 1e3 * ready.cell().round_time(0.0, result.counts.drafted, result.counts.passes).draft.total();
  return result;
}

}  // namespace

TEST_CASE("opt_tree: layers while they add more than the threshold, and the pass that finds that they do not") {
  // Layer 1 has .6, .3, .1; layer 2 has .36, .18, .18, which lift the best three from 1 to 1.26.
  const Played stops = played("{kind: opt_tree, nodes: 3, threshold: 0.3, max_depth: 6}", "tree_point_mass");
  CHECK(stops.counts.passes.rounds[3] == stops.counts.rounds);
  CHECK(stops.counts.passes.mean_rows(3) == std::vector<double>{1.0, 3.0, 3.0});
  CHECK(stops.draft_ms == Approx(3 * 0.1 + 7 * 0.01).epsilon(1e-12));
  // The third layer adds nothing to .6, .36 and .3.
  const Played goes_on = played("{kind: opt_tree, nodes: 3, threshold: 0.2, max_depth: 6}", "tree_point_mass");
  CHECK(goes_on.counts.passes.rounds[4] == goes_on.counts.rounds);
  CHECK(goes_on.counts.accepted[2] == 0);
  // Accepted with .6 + .3, and .36: 1.26 in the mean, .3924 the variance of a round. Margin: four standard errors.
  const double accepted = static_cast<double>(goes_on.counts.accepted[0] + goes_on.counts.accepted[1]);
  CHECK(accepted / static_cast<double>(goes_on.counts.rounds) ==
        Approx(1.26).margin(4 * std::sqrt(0.3924 / static_cast<double>(goes_on.counts.rounds))));
  const Played cut = played("{kind: opt_tree, nodes: 3, threshold: 0, max_depth: 2}", "tree_point_mass");
  CHECK(cut.counts.passes.rounds[2] == cut.counts.rounds);
  CHECK(cut.counts.accepted.size() == 1);
}

TEST_CASE("spec_exec: open nodes together, children among the best of the budget, an end if there is none") {
  // Values .3, .15, .05 of the first level; of the second .09 alone is among the best three; below it .027 is not.
  const Played all = played("{kind: spec_exec, budget: 3, beams: 3, width: 3, decay: 0.5, max_depth: 6}", "tree_point_mass");
  CHECK(all.counts.passes.rounds[3] == all.counts.rounds);
  CHECK(all.counts.passes.mean_rows(3) == std::vector<double>{1.0, 3.0, 1.0});
  CHECK(all.draft_ms == Approx(3 * 0.1 + 5 * 0.01).epsilon(1e-12));
  CHECK(all.counts.accepted[1] > 0);
  CHECK(all.counts.drafted[3] == all.counts.rounds);
  // One open node at a time: the root, .3, then .15, whose children are not among the best.
  const Played one = played("{kind: spec_exec, budget: 3, beams: 1, width: 3, decay: 0.5, max_depth: 6}", "tree_point_mass");
  CHECK(one.counts.passes.rounds[3] == one.counts.rounds);
  CHECK(one.counts.passes.mean_rows(3) == std::vector<double>{1.0, 1.0, 1.0});
}

TEST_CASE("dyspec: a draft that is sure gives a chain, one that is not a wide tree") {
  const Played sure = played("{kind: dyspec, nodes: 4, max_depth: 8}", "without_replacement", "[1, 0, 0]");
  CHECK(sure.counts.accepted[3] == sure.counts.rounds);
  CHECK(sure.counts.passes.rounds[4] == sure.counts.rounds);
  CHECK(sure.draft_ms == Approx(4 * 0.11).epsilon(1e-12));
  // A third each: the root's three tokens have more probability than any grandchild's ninth, so one pass is enough.
  const std::string third = fmt::format("[{0}, {0}, {1}]", 1.0 / 3.0, 1.0 - 2.0 / 3.0);
  const Played flat = played("{kind: dyspec, nodes: 3, max_depth: 8, threshold: 0.2}", "without_replacement", third);
  CHECK(flat.counts.drafted[3] == flat.counts.rounds);
  CHECK(flat.counts.passes.rounds[1] == flat.counts.rounds);
  CHECK(flat.counts.accepted[0] == flat.counts.rounds);
  // Drafted trees differ from round to round if their draws do.
  const Played mixed = played("{kind: dyspec, nodes: 6, max_depth: 3, threshold: 0.25}", "without_replacement");
  std::size_t sizes = 0;
  for (const std::uint64_t rounds : mixed.counts.drafted) sizes += rounds > 0 ? 1 : 0;
  CHECK(sizes > 1);
}

namespace {

// DySpec's trees of a draft of three tokens by every draw, from algorithms 1 and 2 of its paper: the probabilities of the number
// of drafted tokens, and of the number of nodes with children, each [count].
struct Drawn {
  std::vector<double> tokens = std::vector<double>(16, 0.0);
  std::vector<double> parents = std::vector<double>(16, 0.0);
};

class EveryDraw {
 public:
  // `takes_off`: a sibling's probability is subtracted from the next one's estimate, as in the paper.
  EveryDraw(std::vector<double> draft, std::size_t nodes, int depth, double threshold, bool takes_off)
      : draft_(std::move(draft)), nodes_(nodes), depth_(depth), threshold_(threshold), takes_off_(takes_off) {}

  [[nodiscard]] Drawn all() {
    go({{1.0, 0, 0}}, 1.0);
    return found_;
  }

 private:
  struct Node {
    double estimate;  // the estimate of its next child
    int depth;
    unsigned children;  // tokens that are drawn, as bits
  };

  void go(std::vector<Node> tree, double probability) {
    const auto open = [&](const Node& own) { return own.depth < depth_ && own.children != 7U && own.estimate > threshold_; };
    std::size_t best = tree.size();
    for (std::size_t i = 0; i < tree.size() && tree.size() - 1 < nodes_; ++i) {
      if (!open(tree[i])) continue;
      // In layers: the first place of the first layer. Otherwise: the place of the highest estimate, with ties to the earlier
      // node.
      if (best == tree.size() || (threshold_ > 0.0 ? tree[i].depth < tree[best].depth : tree[i].estimate > tree[best].estimate))
        best = i;
    }
    if (best == tree.size()) {
      found_.tokens[tree.size() - 1] += probability;
      found_.parents[static_cast<std::size_t>(
          std::count_if(tree.begin(), tree.end(), [](const Node& own) { return own.children != 0U; }))] += probability;
      return;
    }
    double left = 0.0;
    for (std::size_t x = 0; x < draft_.size(); ++x) left += (tree[best].children >> x & 1U) == 0U ? draft_[x] : 0.0;
    for (std::size_t x = 0; x < draft_.size(); ++x) {
      if ((tree[best].children >> x & 1U) != 0U) continue;
      const double own = draft_[x] / left;
      std::vector<Node> next = tree;
      next.push_back({next[best].estimate * own, next[best].depth + 1, 0U});
      if (takes_off_) next[best].estimate *= 1.0 - own;
      next[best].children |= 1U << x;
      go(std::move(next), probability * own);
    }
  }

  std::vector<double> draft_;
  std::size_t nodes_;
  int depth_;
  double threshold_;
  bool takes_off_;
  Drawn found_;
};

}  // namespace

TEST_CASE("dyspec: its trees are as large, and take as many passes, as its algorithms say, by every draw") {
  const auto farthest = [](const std::vector<std::uint64_t>& counts, double rounds, const std::vector<double>& wanted) {
    double most = 0.0;  // standard deviations
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double count = i < counts.size() ? static_cast<double>(counts[i]) : 0.0;
      const double variance = rounds * wanted[i] * (1.0 - wanted[i]);
      const double off = std::abs(count - rounds * wanted[i]);
      most = std::max(most, variance > 1e-6 ? off / std::sqrt(variance) : off < 0.5 ? 0.0 : 1e9);
    }
    return most;
  };
  const std::vector<double> draft = {0.6, 0.3, 0.1};
  for (const auto& [nodes, depth, threshold] : {std::tuple{6, 3, 0.25}, {8, 3, 0.2}, {5, 4, 0.0}, {4, 2, 0.0}}) {
    INFO(nodes << " nodes, " << depth << " deep, threshold " << threshold);
    const Played own = played(fmt::format("{{kind: dyspec, nodes: {}, max_depth: {}, threshold: {}}}", nodes, depth, threshold),
                              "without_replacement");
    const auto rounds = static_cast<double>(own.counts.rounds);
    const Drawn wanted = EveryDraw(draft, static_cast<std::size_t>(nodes), depth, threshold, true).all();
    const Drawn wrong = EveryDraw(draft, static_cast<std::size_t>(nodes), depth, threshold, false).all();
    CHECK(farthest(own.counts.drafted, rounds, wanted.tokens) < 5.0);
    double mutant = farthest(own.counts.drafted, rounds, wrong.tokens);
    if (threshold == 0.0) {  // a pass for each node that gets children
      CHECK(farthest(own.counts.passes.rounds, rounds, wanted.parents) < 5.0);
      mutant = std::max(mutant, farthest(own.counts.passes.rounds, rounds, wrong.parents));
    }
    CHECK(mutant > 5.0);
  }
}

TEST_CASE("cs_drafting: a pass of the draft verifies the copied tokens, and adds one more") {
  // A draft that is sure of token 0. The first round's text is empty: nothing to copy for 0 and for 00, then one token that
  // follows the first 0. Later rounds copy one token per pass, because the longest match ends one place before the end.
  const Played sure = played("{kind: cs_drafting, draft_length: 4}", "token", "[1, 0, 0]");
  CHECK(sure.counts.accepted[3] == sure.counts.rounds);
  CHECK(sure.counts.passes.rounds[3] == sure.counts.sequences);
  CHECK(sure.counts.passes.rounds[2] == sure.counts.rounds - sure.counts.sequences);
  CHECK(sure.counts.passes.mean_rows(2) == std::vector<double>{2.0, 2.0});
  CHECK(sure.counts.passes.mean_rows(3) == std::vector<double>{1.0, 1.0, 2.0});
  // Without copies it is a chain: a pass of one row for each token.
  const Played plain = played("{kind: cs_drafting, draft_length: 4, copied: 0}", "token");
  CHECK(plain.counts.passes.rounds[4] == plain.counts.rounds);
  CHECK(plain.counts.passes.mean_rows(4) == std::vector<double>{1.0, 1.0, 1.0, 1.0});
  CHECK(plain.draft_ms == Approx(4 * 0.11).epsilon(1e-12));
  // A copy that differs from the draft's draw ends the pass. Mutant: copies are accepted unchecked, so no round takes four
  // passes.
  const Played mixed = played("{kind: cs_drafting, draft_length: 4}", "token");
  CHECK(mixed.counts.passes.rounds[4] > 0);
  CHECK(mixed.counts.passes.rounds[2] > 0);
}

}  // namespace specsim::budget_trees_test
