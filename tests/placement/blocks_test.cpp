// Placements of trees, chosen blocks and block rules: the same round times as the cost model's, and the same events for any rule
// that judges a chain.
#include "tests/placement/batches.h"

#include <algorithm>
#include <numeric>

namespace specsim::blocks_test {

using namespace specsim::placement;
using specsim::tests::LineCost;

namespace {

tests::ReadyCell cell_of(const std::string& decode, const std::string& context = "{process: fixed}") {
  return tests::ReadyCell(fmt::format(
      "{{experiment: placed, seed: 20260701, pair: {{vocab: 50, target: {{family: zipf, exponent: 1.2}}, draft: {{from: target, "
      "transform: temperature, value: 1.4}}}}, context: {}, cost: {{model: ratio, cost_ratio: 0.1}}, decode: {}}}",
      context, decode));
}

Comparison placed(const tests::ReadyCell& cell, const std::string& kind, const cost::CostModel& cost, std::uint64_t batch,
                  std::uint64_t tokens, bool shrink = true) {
  PlacedBatch setting;
  setting.placement = tests::make_placement(kind);
  setting.batch = batch;
  setting.prompt_tokens = 100;
  setting.output_tokens = tokens;
  setting.vocab = 50;
  setting.shrink = shrink;
  return compare(setting, cost, {cell.preparation(), &cell.prepared(), cell.draw_key(), cell.cell().draft_length()});
}

// Time of the batch's recorded rounds by the cost model's own account of blocks, one after the other: batch 1.
Duration by_cost_model(const tests::ReadyCell& cell, const cost::CostModel& cost, std::uint64_t tokens) {
  const AcceptedCounts counts = record_accepted(
      {cell.preparation(), &cell.prepared(), cell.draw_key(), cell.cell().draft_length()}, decode::Bonus::emitted, 1, tokens - 1);
  const draft::BlockDrafter& drafter = *std::get<decode::BlockJudging>(cell.preparation().judging).drafter;
  Duration all = Duration::from_seconds(cost.pass(cost::Role::target, {1.0, 100.0, 0.0, 1.0}).total());
  const draft::BlockWork most = drafter.work(drafter.shape().nodes);
  if (!most.pass_rows.empty()) all += Duration::from_seconds(cost.pass(cost::Role::draft, {1.0, 100.0, 0.0, 1.0}).total());
  std::uint64_t emitted = 1;
  double full = 0.0;
  for (std::size_t round = 0; emitted < tokens; ++round) {
    const int nodes = counts.drafted.empty() ? drafter.shape().nodes : counts.drafted[0].at(round);
    const draft::BlockWork work = drafter.work(nodes);
    const double context = 100.0 + static_cast<double>(emitted) - 1.0;
    const cost::RoundTime time = cost::block_time(cost, {1.0, context}, work.pass_rows, work.verified_rows, full);
    // The two models' passes are rounded to picoseconds separately.
    all += Duration::from_seconds(time.draft.total()) + Duration::from_seconds(time.verify.total()) +
           Duration::from_seconds(time.overhead);
    full = counts.is_whole(0, round) ? 1.0 : 0.0;
    emitted += static_cast<std::uint64_t>(counts.of_sequence[0].at(round)) + 1;
  }
  return all;
}

const std::vector<std::string>& blocks() {
  static const std::vector<std::string> list = {
      "{drafter: {kind: chain, draft_length: 4}, verifier: block}",
      "{drafter: {kind: tree_static, branching: [3, 2, 1]}, verifier: multi_draft_recursive}",
      "{drafter: {kind: tree_static, branching: [3, 2, 1], siblings: top_k}, verifier: tree_point_mass}",
      "{drafter: {kind: tree_dynamic, depth: 3, width: 4, nodes: 12}, verifier: tree_point_mass}",
      "{drafter: {kind: chain, draft_length: 5}, verifier: token, policy: {kind: additive}}",
      "{drafter: {kind: eagle, branching: [1, 1, 1]}, verifier: token}",
      "{drafter: {kind: medusa, branching: [3, 2]}, verifier: tree_point_mass}",
  };
  return list;
}

}  // namespace

TEST_CASE("serial rounds of blocks take the time of the cost model for each, catching up where the path before ended at a leaf") {
  const LineCost cost({5.0, 0.31, 0.001}, {1.0, 0.17, 0.0003}, 0.5);
  for (const std::string& decode : blocks()) {
    INFO(decode);
    const tests::ReadyCell cell = cell_of(decode);
    const Comparison both = placed(cell, "{kind: serial}", cost, 1, 60);
    CHECK(both.run.end == by_cost_model(cell, cost, 60));
    CHECK(both.run.rounds < 59);  // something was accepted, or the test has little power
    CHECK(both.run.drafted >= both.run.accepted);
  }
  const tests::ReadyCell text =
      cell_of("{drafter: {kind: suffix_decoding}, verifier: tree_point_mass}", "{process: copy, prompt_tokens: 40}");
  CHECK(placed(text, "{kind: serial}", cost, 1, 60).run.end == by_cost_model(text, cost, 60));
}

TEST_CASE("a batch takes the time of its sequences' mean draft, and of finished sequences that keep their place") {
  // Only verified tokens cost, 1 us each: a batch takes the sum over its sequences, whatever each of them drafts.
  const LineCost cost({0.0, 1.0}, {0.0, 0.0});
  const tests::ReadyCell cell = cell_of("{drafter: {kind: chain, draft_length: 5}, verifier: token, policy: {kind: additive}}");
  const AcceptedCounts counts =
      record_accepted({cell.preparation(), &cell.prepared(), cell.draw_key(), 5}, decode::Bonus::emitted, 3, 39);
  double us = 3.0 * 100.0;
  std::vector<std::uint64_t> have(3, 1);
  for (std::size_t r = 0; std::any_of(have.begin(), have.end(), [](std::uint64_t n) { return n < 40; }); ++r)
    for (std::size_t i = 0; i < 3; ++i) {
      if (have[i] >= 40) continue;
      us += 1.0 + counts.drafted[i].at(r);
      have[i] += static_cast<std::uint64_t>(counts.of_sequence[i].at(r)) + 1;
    }
  const Comparison both = placed(cell, "{kind: serial}", cost, 3, 40);
  CHECK(std::abs(both.run.end.ps() - std::llround(1e6 * us)) <= 2 * static_cast<std::int64_t>(both.run.rounds));
  CHECK(placed(cell, "{kind: serial}", cost, 3, 40, false).run.end > both.run.end);
}

TEST_CASE("block verification of one draft token is the token rule, in every placement, with and without a bonus token") {
  const LineCost cost({5.0, 0.31, 0.001}, {1.0, 0.17, 0.0003}, 0.5);
  for (const char* kind : {"{kind: serial}", "{kind: two_gpus}", "{kind: shared, target_share: .75, draft_share: .5}",
                           "{kind: network, latency_ms: 1, gbit_per_second: 1}"}) {
    INFO(kind);
    double tokens_by_block = 0.0;
    double tokens_by_token = 0.0;
    for (const auto& [verifier, tokens] : {std::pair{"block", &tokens_by_block}, std::pair{"token", &tokens_by_token}}) {
      const tests::ReadyCell cell = cell_of(fmt::format("{{drafter: {{kind: chain, draft_length: 1}}, verifier: {}}}", verifier));
      const Result run = placed(cell, kind, cost, 64, 300).run;
      *tokens = static_cast<double>(run.emitted) / static_cast<double>(run.sequence_rounds);
      CHECK(run.accepted <= run.sequence_rounds);
    }
    // 19,000 tokens each, with a standard deviation below .5 per round: 4.4 standard errors of the difference are below .024. A
    // wrong token from rounds without a bonus would add alpha, about .7.
    CHECK(tokens_by_block == Approx(tokens_by_token).margin(0.024));
  }
}

TEST_CASE("what goes over the network of a tree") {
  // 12,000 bits per microsecond: .012 us per kilobit; nothing else takes time. 3 + 6 + 6 nodes of 4 bytes, 1 + 3 + 6
  // distributions.
  const LineCost cost({0.0}, {0.0});
  const auto network_of = [&](const std::string& siblings, const std::string& verifier, const std::string& send) {
    const tests::ReadyCell cell = cell_of(
        fmt::format("{{drafter: {{kind: tree_static, branching: [3, 2, 1], siblings: {}}}, verifier: {}}}", siblings, verifier));
    const Result run =
        placed(cell, fmt::format("{{kind: network, latency_ms: 0, gbit_per_second: 1, send: {}}}", send), cost, 1, 40).run;
    const double ns = 1e-3 * static_cast<double>(run.end.ps()) - 4 * 8;  // the first token's id arrived before
    return ns / static_cast<double>(run.rounds) / 8.0 - 8.0;             // bytes up a round
  };
  CHECK(network_of("sampled", "multi_draft_recursive", "ids") == Approx(15 * 4).epsilon(1e-9));
  CHECK(network_of("sampled", "multi_draft_recursive", "probabilities") == Approx(15 * 4 + 10 * 50 * 2).epsilon(1e-9));
  CHECK(network_of("top_k", "tree_point_mass", "probabilities") == Approx(15 * 4).epsilon(1e-9));
}

}  // namespace specsim::blocks_test
