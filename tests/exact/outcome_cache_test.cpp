// Drafter saguaro: its output is the target's, its rounds are ready as often as theory predicts, and they take the time of the
// passes that the target waits for.
#include "sim/rounds/theory/outcome_cache.h"
#include "tests/exact/exact_cells.h"
#include "tests/support/cells.h"

#include <array>

namespace specsim::outcome_cache_test {

using namespace specsim::tests;
using audit::audit_cell;

namespace {

constexpr double kExact = 1e-12;

const Distribution kTarget = {0.5, 0.3, 0.2};
const Distribution kDraft = {0.2, 0.5, 0.3};
const Distribution kSixTargets = {0.3, 0.2, 0.2, 0.1, 0.1, 0.1};
const Distribution kSixDrafts = {0.1, 0.3, 0.2, 0.2, 0.1, 0.1};

// Mutant: drafts the last round's tokens again, whose acceptance is partly known.
class Repeats final : public draft::BlockDrafter {
 public:
  struct Last final : Memory {
    [[nodiscard]] std::unique_ptr<Memory> copy() const override { return std::make_unique<Last>(*this); }
    [[nodiscard]] std::vector<Token> drawn() const override { return tokens; }
    std::vector<Token> tokens;
  };
  Repeats() {
    shape_.siblings = tokens::Siblings::independent;
    shape_.draft_length = 1;
    shape_.nodes = 1;
    shape_.reads_text = true;
    shape_.draws = true;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }
  [[nodiscard]] std::unique_ptr<Memory> start() const override { return std::make_unique<Last>(); }
  void choose(draft::DrafterInput& input, Memory* memory, draft::ChosenBlock& block) const override {
    auto& last = static_cast<Last&>(*memory);
    input.prepare(block, std::array{0});
    if (last.tokens.empty()) last.tokens = {input.draw_child(block, 0, {}, 1).token};
    static_cast<void>(block.add(0, last.tokens.front()));
  }
  [[nodiscard]] draft::BlockWork work(int nodes) const override { return {{1.0}, 1.0 + nodes}; }

 private:
  Shape shape_;
};

// The share of rounds that begin prepared, in the long run.
double ready_share(const theory::RoundKernel& rounds) {
  double stays = 0.0;
  double returns = 0.0;
  for (const theory::StateMatrix& moves : rounds.moves) {
    stays += moves[0];
    returns += moves[2];
  }
  return returns / (1.0 - stays + returns);
}

// Share of rounds that begin prepared, in sequences of `rounds` rounds of which the first is not.
double ready_in(const theory::RoundKernel& kernel, int rounds) {
  double ready = 0.0;
  double sum = 0.0;
  for (int round = 0; round < rounds; ++round) {
    sum += ready;
    double next = 0.0;
    for (const theory::StateMatrix& moves : kernel.moves) next += ready * moves[0] + (1.0 - ready) * moves[2];
    ready = next;
  }
  return sum / rounds;
}

struct Simulated {
  double ready = 0.0;
  double emitted = 0.0;
  double rounds = 0.0;
  int sequence_rounds = 0;
};

Simulated simulated(const std::string& context, const std::string& drafter) {
  const ReadyCell ready(
      fmt::format("{{experiment: cache, rounds: 262144, pair: {}, context: {}, decode: {{drafter: {}, verifier: token}}}}",
                  explicit_pair(kSixTargets, kSixDrafts), context, drafter));
  const decode::Simulator simulator = ready.simulator();
  decode::Counts counts = simulator.empty_counts();
  const std::uint64_t total = 8 * simulator.chunk_size();
  for (std::uint64_t chunk = 0; chunk < 8; ++chunk) simulator.run(chunk, total, counts);
  Simulated result;
  double accepted = 0.0;
  for (std::size_t i = 0; i < counts.accepted_distribution.size(); ++i) {
    result.rounds += static_cast<double>(counts.accepted_distribution[i]);
    accepted += static_cast<double>(i * counts.accepted_distribution[i]);
  }
  // Rounds that draft without a pass; without a second draft, no other rounds draft.
  const bool again = drafter.find("fallback: draft") != std::string::npos;
  result.ready = static_cast<double>(again ? counts.passes.rounds[0] : counts.drafted.back()) / result.rounds;
  result.emitted = 1.0 + accepted / result.rounds;
  result.sequence_rounds = static_cast<int>(ready.cell().sequence_rounds);
  return result;
}

double tokens_in(const theory::RoundKernel& kernel, int rounds) {
  return theory::run_moments({kernel}, nullptr, std::vector<double>{0.0, 1.0}, rounds)->emitted / rounds;
}

}  // namespace

TEST_CASE("chains that were prepared for an outcome leave the output the target's", "[outcome_cache]") {
  for (const std::string& pair : {explicit_pair(kTarget, kDraft), explicit_pair(kSecondTarget, kSecondDraft)})
    for (const char* context : {"{process: fixed}", "{process: markov, order: 1}"})
      for (const char* fallback : {"draft", "none"})
        for (const char* rescale : {"1", "0.3"})
          for (const char* verifier : {"token", "block", "sample_match"}) {
            const std::string drafter =
                fmt::format("{{kind: saguaro, draft_length: 2, fan_out: 1, rescale: {}, fallback: {}}}", rescale, fallback);
            INFO(pair << ", " << context << ", " << drafter << ", " << verifier);
            const audit::AuditReport report = audit_cell(cell_of(pair, context, drafter, verifier));
            CHECK(report.largest_difference <= kExact);
            CHECK(report.impossible == 0.0);
          }
  spec::Cell repeats =
      cell_of(explicit_pair(kTarget, kDraft), "{process: fixed}", "{kind: saguaro, draft_length: 1, fan_out: 1}", "token");
  std::get<spec::BlockMethod>(repeats.method).drafter.part = std::make_shared<Repeats>();
  CHECK_FALSE(audit_cell(repeats).lossless());
}

TEST_CASE("how often an outcome is prepared, by hand", "[outcome_cache]") {
  // Overlap .2 + .3 + .2. Rejected: token 1 with .2, token 2 with .1; then token 0 always follows.
  const theory::PreparedPosition two = theory::prepared_position(kTarget, kDraft, kDraft, 2);
  CHECK(two.accepted == Approx(0.7));
  CHECK(two.ready_rejected == Approx(0.3));  // after either one, token 0 is among the two others; mutant: the drafted one counts
  CHECK(theory::prepared_position(kTarget, kDraft, kDraft, 1).ready_rejected == 0.0);
  CHECK(theory::prepared_mass(kTarget, kDraft, 1) == Approx(0.3));
  CHECK(theory::prepared_mass(kTarget, kDraft, 2) == Approx(0.5));
  const theory::RoundKernel again = theory::prepared_rounds({two}, 0.5, 1.0, true);
  CHECK(ready_share(again) == Approx(0.3 + 0.7 * 0.5));
  // Without a second draft, a missed outcome is followed by one token alone: stays .65, returns .8.
  theory::RoundKernel alone = theory::prepared_rounds({two}, 0.5, 0.8, false);
  CHECK(ready_share(alone) == Approx(0.8 / (1.0 - 0.65 + 0.8)));
  CHECK(alone.at(0, 1, 0) + alone.at(0, 1, 1) == Approx(1.0));
}

TEST_CASE("the simulated cache is ready as often as theory predicts, and emits as many tokens", "[outcome_cache][statistical]") {
  for (const bool again : {true, false})
    for (const double rescale : {1.0, 0.4})
      for (const char* context : {"{process: fixed}", "{process: iid, pool: 8}"}) {
        INFO(again << ", " << rescale << ", " << context);
        const std::string drafter =
            fmt::format("{{kind: saguaro, draft_length: 3, fan_outs: [1, 1, 1, 2], rescale: {}, fallback: {}}}", rescale,
                        again ? "draft" : "none");
        const Simulated counted = simulated(context, drafter);
        Distribution drafted = kSixDrafts;
        for (const std::size_t x : {1U, 2U, 3U}) drafted[x] *= rescale;  // the likeliest, one more than the largest fan-out
        const double mass = 0.3 + 0.7 * rescale;
        for (double& p : drafted) p /= mass;
        const theory::PreparedPosition position = theory::prepared_position(kSixTargets, kSixDrafts, drafted, 1);
        const theory::RoundKernel kernel = theory::prepared_rounds({position, position, position},
                                                                   theory::prepared_mass(kSixTargets, kSixDrafts, 2), 0.9, again);
        const double share = ready_in(kernel, counted.sequence_rounds);
        CHECK(std::abs(counted.ready - share) < 5.0 * std::sqrt(share / counted.rounds));
        CHECK(std::abs(counted.emitted - tokens_in(kernel, counted.sequence_rounds)) < 5.0 * 1.5 / std::sqrt(counted.rounds));
        // Mutant: every outcome is prepared.
        CHECK(std::abs(counted.ready - 1.0) > 0.1);
      }
}

TEST_CASE("rescaling moves the draft towards unlikely tokens, and the theory follows", "[outcome_cache]") {
  // Two of four tokens are halved: (.4, .3, .2, .1) to (.2, .15, .2, .1) / .65. The ranks stay those of the draft.
  const Distribution target = {0.25, 0.25, 0.25, 0.25};
  const Distribution draft = {0.4, 0.3, 0.2, 0.1};
  const ReadyCell ready(
      fmt::format("{{experiment: cache, pair: {}, decode: {{drafter: {{kind: saguaro, draft_length: 1, fan_out: "
                  "1, rescale: 0.5}}, verifier: token}}}}",
                  explicit_pair(target, draft)));
  const decode::BlockTables::Entry& entry = ready.prepared().blocks->at(0, 0);
  CHECK(entry.distributions.draft(0) == Approx(0.2 / 0.65));
  CHECK(entry.distributions.draft(1) == Approx(0.15 / 0.65));
  CHECK(entry.distributions.draft(2) == Approx(0.2 / 0.65));
  CHECK(entry.distributions.draft(3) == Approx(0.1 / 0.65));
  REQUIRE(entry.likeliest.size() >= 2);
  CHECK(entry.likeliest[0].token == 0);
  CHECK(entry.likeliest[1].token == 1);  // mutant: ranks by the rescaled distribution, in which token 2 is second
}

TEST_CASE("a round takes the passes that the target waits for", "[outcome_cache]") {
  const auto time = [](double batch, double draft_ms, double ready) {
    const spec::Experiment experiment = experiment_of(fmt::format(
        "{{experiment: cache, pair: {{vocab: 8, target: {{family: uniform}}, draft: {{family: uniform}}}}, decode: {{drafter: "
        "{{kind: saguaro, draft_length: 2}}, verifier: token}}, cost: {{model: affine, target_fixed_ms: 10, draft_fixed_ms: "
        "{}}}, "
        "workload: {{batch: {}}}}}",
        draft_ms, batch));
    decode::PassCounts passes(2);
    const int prepared = static_cast<int>(1000 * ready);
    for (int i = 0; i < 1000; ++i) passes.add(i < prepared ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{1, 1});
    return 1e3 * experiment.cells[0].round_time(0.0, {0, 0, 1000}, passes).total();
  };
  CHECK(time(1, 2, 1.0) == Approx(10.0));        // three passes of 2 ms during the 10 of the target
  CHECK(time(1, 2, 0.5) == Approx(10.0 + 2.0));  // half of the rounds wait for two passes
  CHECK(time(2, 2, 0.5) == Approx(10.0 + 3.0));  // in a batch all wait for the one that missed: 1 - .5^2
  CHECK(time(1, 5, 1.0) == Approx(15.0));        // three passes of 5 ms are what a round takes
  CHECK(time(1, 5, 0.5) == Approx(20.0));
}

TEST_CASE("placement outcome_cache takes the same time as the estimate, and refuses other drafters", "[outcome_cache]") {
  const auto cell = [](const std::string& drafter, const std::string& placement) {
    return fmt::format(
        "{{experiment: cache, pair: {}, decode: {{drafter: {}, verifier: token}}, cost: {{model: affine, target_fixed_ms: 10, "
        "draft_fixed_ms: 2}}, workload: {{batch: 1, context_length: 16, output_tokens: 200}}, placement: {}}}",
        explicit_pair(kTarget, kDraft), drafter, placement);
  };
  const std::string saguaro = "{kind: saguaro, draft_length: 2, fan_out: 1}";
  CHECK_THROWS_AS(experiment_of(cell("{kind: chain, draft_length: 2}", "{kind: outcome_cache}")), BadInput);
  for (const char* placement : {"{kind: serial}", "{kind: two_gpus}", "{kind: shared}"})
    CHECK_THROWS_AS(experiment_of(cell(saguaro, placement)), BadInput);

  const ReadyCell ready(cell(saguaro, "{kind: outcome_cache}"));
  const placement::PlacedBatch& setting = ready.cell().placement->setting;
  const placement::RoundSource source{ready.preparation(), &ready.prepared(), ready.draw_key(), 2};
  const placement::Comparison compared = placement::compare(setting, ready.cell().cost(), source);
  const placement::AcceptedCounts counts = placement::record_accepted(source, decode::Bonus::emitted, 1, 199);
  std::uint64_t missed = 0;
  for (std::uint64_t round = 0; round < compared.run.rounds; ++round) missed += counts.pass_rows[0][round].empty() ? 0 : 1;
  REQUIRE(missed > 0);
  REQUIRE(missed < compared.run.rounds);
  // Prefills side by side, then 10 ms for each round and 4 ms for each that was not prepared.
  CHECK(1e3 * compared.run.end.seconds() ==
        Approx(10.0 + 10.0 * static_cast<double>(compared.run.rounds) + 4.0 * static_cast<double>(missed)));
}

}  // namespace specsim::outcome_cache_test
