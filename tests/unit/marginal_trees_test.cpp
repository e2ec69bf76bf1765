// Trees out of a block drafter's distributions, by hand: which paths are drafted, how many pay, and what a block costs.
#include "sim/experiments/judge/rows.h"
#include "tests/support/cells.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <string>

namespace specsim::marginal_trees_test {

namespace {

struct Played {
  decode::Counts counts;
  double draft_ms = 0.0;
};

// Rounds of a draft of probabilities .6, .3 and .1 that is right about the target, at .1 ms a pass and .01 ms a row. A tree has
// no more nodes than the vocabulary has tokens: nine of its twelve are never emitted.
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

TEST_CASE("ddtree: the likeliest paths by the product of their tokens, out of one pass over the block") {
  // Paths are worth .6, .36, .3, .216, .18, ...: the best four reach depth 1 with .9, depth 2 with .36 and depth 3 with .216.
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
  // One node is worth .6, and costs twice a plain pass.
  const Played none = played("{kind: caddtree, block_size: 4, nodes: 10, draft_time: 0.5, row_time: 2}");
  CHECK(none.counts.drafted[0] == none.counts.rounds);
  CHECK(none.counts.emitted == none.counts.rounds);
  // Rows that cost next to nothing: the budget decides.
  const Played most = played("{kind: caddtree, block_size: 4, nodes: 10, row_time: 0.000001}");
  CHECK(most.counts.drafted[10] == most.counts.rounds);
}

}  // namespace specsim::marginal_trees_test
