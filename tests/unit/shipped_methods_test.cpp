// Behaviour of programs where papers leave it open: Medusa's choice among paths, LayerSkip's reuse of the layers that drafted.
#include "sim/experiments/spec/spec.h"
#include "sim/rounds/decode/simulator.h"
#include "tests/support/cells.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <set>

namespace specsim::shipped_methods_test {

namespace {

class Emitted final : public decode::RoundSink {
 public:
  void round(std::uint32_t, std::uint32_t, std::span<const Token> emitted, std::uint32_t) override {
    seen.insert({emitted.begin(), emitted.end()});
  }
  std::set<std::vector<Token>> seen;
};

// All tokens emitted in 40 rounds of each of 256 sequences.
std::set<std::vector<Token>> emitted_by(const std::string& verifier) {
  // The draft proposes 2, which the target finds unlikely, before 0, its likeliest.
  const spec::Cell cell =
      tests::experiment_of(
          fmt::format(
              "{{experiment: paths, rounds: 10240, pair: {{vocab: 3, target: {{family: explicit, probabilities: [0.5, 0.3, "
              "0.2]}}, draft: {{family: explicit, probabilities: [0.3, 0.1, 0.6]}}}}, decode: {{drafter: {{kind: tree_static, "
              "branching: [2], siblings: top_k}}, verifier: {}}}}}",
              verifier))
          .cells.at(0);
  const decode::PreparationPlan plan = spec::plan_of(cell);
  const decode::Prepared prepared = decode::prepare(plan, {});
  const decode::Simulator simulator(plan, prepared, spec::draw_key(cell), cell.draft_length(), cell.sequence_rounds);
  decode::Counts counts = simulator.empty_counts();
  Emitted sink;
  simulator.run(0, 10240, counts, &sink);
  return sink.seen;
}

}  // namespace

TEST_CASE("of two paths of equal length, Medusa's program keeps the likelier, and continues with the argmax") {
  CHECK(emitted_by("{kind: typical_medusa, epsilon: 0.1, delta: 100}") == std::set<std::vector<Token>>{{0, 0}});
  CHECK(emitted_by("{kind: typical, epsilon: 0.1, delta: 100}") == std::set<std::vector<Token>>{{2, 0}, {2, 1}, {2, 2}});
  CHECK(emitted_by("{kind: typical_medusa, epsilon: 0.6, delta: 100}") == std::set<std::vector<Token>>{{0}});
}

TEST_CASE("verification does not repeat the layers of an early exit") {
  const auto verify_of = [](const std::string& drafter) {
    return tests::experiment_of(
               fmt::format(
                   "{{experiment: exit, pair: {{vocab: 2, target: {{family: uniform}}, draft: {{family: uniform}}}}, decode: "
                   "{{drafter: {}, verifier: token}}, cost: {{model: affine, target_fixed_ms: 10, target_ms_per_token: 1, "
                   "draft_fixed_ms: 4}}}}",
                   drafter))
        .cells.at(0)
        .round_time(0.0)
        .verify.total();
  };
  const double whole = verify_of("{kind: chain, draft_length: 3}");
  const double one = verify_of("{kind: chain, draft_length: 0}");
  CHECK(whole > one);
  CHECK(verify_of("{kind: early_exit, draft_length: 3, exit_share: 0.25}") == Approx(0.75 * whole + 0.25 * one));
}

}  // namespace specsim::shipped_methods_test
