// Trees from a block drafter's distributions, by hand: the drafted paths, how many of them pay, and the time of a block.
#include "sim/experiments/judge/rows.h"
#include "tests/support/cells.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace specsim::marginal_trees_test {

namespace {

struct Played {
  decode::Counts counts;
  double draft_ms = 0.0;
};

// Rounds of a draft of probabilities .6, .3 and .1 that equals the target, at .1 ms per pass and .01 ms per row. A tree has no
// more nodes than the vocabulary has tokens: nine of its twelve are never emitted.
Played played(const std::string& drafter) {
  const std::string distribution = "{family: explicit, probabilities: [0.6, 0.3, 0.1, 0, 0, 0, 0, 0, 0, 0, 0, 0]}";
  const tests::ReadyCell ready(fmt::format(
      "{{experiment: trees, rounds: 25600, theory: {{name: none}}, pair: {{vocab: 12, target: {0}, draft: {0}}}, decode: "
      "{{drafter: "
      "{1}, verifier: tree_point_mass}}, cost: {{model: affine, target_fixed_ms: 1, draft_fixed_ms: 0.1, draft_ms_per_token: "
      "0.01}}}}",
      distribution, drafter));
  const decode::Simulator simulator = ready.simulator();
  Played result{simulator.empty_counts(), 0.0};
  for (std::uint64_t chunk = 0; chunk * simulator.chunk_size() < ready.cell().work(); ++chunk)
    simulator.run(chunk, ready.cell().work(), result.counts);
  result.draft_ms = 1e3 * ready.cell().round_time(0.0, result.counts.drafted, result.counts.passes).draft.total();
  return result;
}

}  // namespace

TEST_CASE("ddtree: the likeliest paths by the product of their tokens, from one pass over the block") {
  // Paths have probabilities .6, .36, .3, .216, .18, ...: the best four reach depth 1 with .9, depth 2 with .36 and depth 3 with
  // .216.
  const Played four = played("{kind: ddtree, block_size: 4, nodes: 4}");
  const auto rounds = static_cast<double>(four.counts.rounds);
  CHECK(four.counts.drafted[4] == four.counts.rounds);
  CHECK(four.draft_ms == Approx(0.1 + 4 * 0.01).epsilon(1e-12));  // three positions and the text's last token
  double accepted = 0.0;
  for (const std::uint64_t count : four.counts.accepted) accepted += static_cast<double>(count);
  // The mean square is .9 + 3 .36 + 5 .216 = 3.06. Four standard errors; a tree of the first token's three siblings has 1.
  CHECK(accepted / rounds == Approx(1.476).margin(4 * std::sqrt((3.06 - 1.476 * 1.476) / rounds)));
  // A budget of 12 nodes holds all 3 + 9 paths of two positions.
  const Played all = played("{kind: ddtree, block_size: 3, nodes: 12}");
  CHECK(all.counts.drafted[12] == all.counts.rounds);
  CHECK(all.counts.accepted[1] == all.counts.rounds);
}

TEST_CASE("caddtree: nodes are added while they raise the expected tokens per time") {
  // (1 + .6 + .36 + ...) / (1.5 + .3 n): .667, .889, .933, .942 with three, .917 with four.
  const Played three = played("{kind: caddtree, block_size: 4, nodes: 10, draft_time: 0.5, row_time: 0.3}");
  CHECK(three.counts.drafted[3] == three.counts.rounds);
  CHECK(three.draft_ms == Approx(0.1 + 4 * 0.01).epsilon(1e-12));
  // One node adds .6, and takes as long as two passes without speculation.
  const Played none = played("{kind: caddtree, block_size: 4, nodes: 10, draft_time: 0.5, row_time: 2}");
  CHECK(none.counts.drafted[0] == none.counts.rounds);
  CHECK(none.counts.emitted == none.counts.rounds);
  // If rows are almost free, the budget decides.
  const Played most = played("{kind: caddtree, block_size: 4, nodes: 10, row_time: 0.000001}");
  CHECK(most.counts.drafted[10] == most.counts.rounds);
}

TEST_CASE("jetspec: the likeliest node gets all its children, and the budget may end among them") {
  // .6 and .3; then after the first .36 and .18: depth 1 is reached with .9, depth 2 with .6 of .9.
  const Played four = played("{kind: jetspec, depth: 3, width: 2, nodes: 4}");
  const auto rounds = static_cast<double>(four.counts.rounds);
  CHECK(four.counts.drafted[4] == four.counts.rounds);
  CHECK(four.draft_ms == Approx(0.1 + 4 * 0.01).epsilon(1e-12));
  const auto mean_accepted = [](const Played& one) {
    double accepted = 0.0;
    for (const std::uint64_t count : one.counts.accepted) accepted += static_cast<double>(count);
    return accepted / static_cast<double>(one.counts.rounds);
  };
  // The mean square is .36 + 4 .54. ddtree's best four paths are .6, .36, .3 and .216.
  CHECK(mean_accepted(four) == Approx(1.44).margin(4 * std::sqrt((2.52 - 1.44 * 1.44) / rounds)));
  // With three, only the first of the two children after the likeliest token remains.
  CHECK(mean_accepted(played("{kind: jetspec, depth: 3, width: 2, nodes: 3}")) ==
        Approx(1.26).margin(4 * std::sqrt((0.54 + 4 * 0.36 - 1.26 * 1.26) / rounds)));
}

// The example's text, compared with rmagur1203's measurement of a block drafter under vLLM (pull request 42910): after the
// likeliest token the next depth's likeliest is right 65 to 84 % of the time, after the second likeliest, once that was accepted,
// 22 %.
TEST_CASE("block_trees.yaml: after a sibling the block's next position is right as often as was measured") {
  std::ifstream file("configs/examples/methods/block_trees.yaml");
  const spec::Experiment experiment = tests::experiment_of(std::string(std::istreambuf_iterator<char>(file), {}));
  const spec::Cell& cell = experiment.cells.front();
  const decode::PreparationPlan plan = spec::plan_of(cell);
  std::vector<std::vector<double>> targets;
  std::vector<std::vector<double>> drafts;
  const auto keep = [&](int, int, const verify::PositionDistributions& own, const decode::OutputClasses&) {
    targets.emplace_back(own.target.begin(), own.target.end());
    drafts.emplace_back(own.draft_model.begin(), own.draft_model.end());
  };
  static_cast<void>(decode::prepare(plan, keep, false, nullptr));
  const families::ContextProcess& process = *cell.contexts->process;
  const auto next = [&](std::size_t context, std::size_t token) {
    return static_cast<std::size_t>(process.next(static_cast<std::uint32_t>(context), static_cast<Token>(token)));
  };
  double spine[2] = {0.0, 0.0};  // right, met
  double sibling[2] = {0.0, 0.0};
  for (std::size_t context = 0; context < targets.size(); ++context) {
    const std::vector<double>& draft = drafts[context];
    std::vector<double> marginal(draft.size(), 0.0);
    for (std::size_t x = 0; x < draft.size(); ++x)
      if (draft[x] > 1e-6)
        for (std::size_t y = 0; y < marginal.size(); ++y) marginal[y] += draft[x] * drafts[next(context, x)][y];
    const auto likeliest = static_cast<std::size_t>(std::max_element(marginal.begin(), marginal.end()) - marginal.begin());
    const auto first = static_cast<std::size_t>(std::max_element(draft.begin(), draft.end()) - draft.begin());
    std::vector<double> rest = draft;
    rest[first] = 0.0;
    const auto second = static_cast<std::size_t>(std::max_element(rest.begin(), rest.end()) - rest.begin());
    spine[0] += targets[context][first] * targets[next(context, first)][likeliest];
    spine[1] += targets[context][first];
    sibling[0] += targets[context][second] * targets[next(context, second)][likeliest];
    sibling[1] += targets[context][second];
  }
  INFO("spine " << spine[0] / spine[1] << ", sibling " << sibling[0] / sibling[1]);
  CHECK(spine[0] / spine[1] >= 0.65);
  CHECK(spine[0] / spine[1] <= 0.84);
  CHECK(sibling[0] / sibling[1] == Approx(0.22).margin(0.03));
}

}  // namespace specsim::marginal_trees_test
