// The hot loop compared with a plain one.
#include "sim/rounds/verify/recursive_rule.h"
#include "tests/parts/toys.h"
#include "tests/support/sanitizers.h"
#include "tests/unit/plain_loop.h"

namespace specsim::hot_path_test {

using namespace specsim::tests;

namespace {

// Runs with a sink go round by round, runs without one chain by chain if the rule supports it.
class EmptySink final : public decode::RoundSink {
 public:
  void round(std::uint32_t, std::uint32_t, std::span<const Token>, std::uint32_t) override {}
};

struct BothWays {
  decode::Counts side_by_side;
  decode::Counts one_by_one;
};

BothWays both(const decode::Simulator& simulator, std::uint64_t total) {
  EmptySink sink;
  BothWays counts{simulator.empty_counts(), simulator.empty_counts()};
  for (std::uint64_t i = 0; i * simulator.chunk_size() < total; ++i) {
    simulator.run(i, total, counts.side_by_side);
    simulator.run(i, total, counts.one_by_one, &sink);
  }
  return counts;
}

// Its answers for a whole batch differ from those one by one.
class TwoFaced final : public verify::ChainRule {
 public:
  verify::AcceptedPath verify(verify::Block& block) const override { return {0, block.pick_target(0)}; }
  void verify_lanes(verify::ChainLanes& chains) const override {
    chains.accepted.fill(1);
    chains.final_distribution.fill(math::Residual());
  }
};

}  // namespace

TEST_CASE("the hot loop equals a plain loop: every context process, every verifier", "[hot_path]") {
  int lively = 0;
  for (const Process& process : processes()) {
    for (const Decode& how : decodings()) {
      if (process.name == "trace" && how.one_hot_target) continue;  // recorded distributions take no sampling settings
      for (const int draft_length : {0, 1, 4, 9}) {
        if (tests::kSanitized && (draft_length == 1 || draft_length == 9)) continue;  // the same code as with the others
        const std::string yaml = yaml_of(process, how, draft_length);
        const tests::ReadyCell ready(yaml);
        for (const std::uint32_t sequence_rounds : {1U, 7U, 64U}) {
          // A whole chunk, then a last one that holds a few whole sequences and a part of another.
          const std::uint64_t total = ready.cell().contexts->process->shape().request_tokens > 0 ? 256 + 3 * sequence_rounds
                                      : draft_length == 4 && sequence_rounds < 64
                                          ? 256 * sequence_rounds + 5 * sequence_rounds + sequence_rounds / 2
                                          : 41 * sequence_rounds + sequence_rounds / 2;
          INFO(yaml << "\nsequence_rounds " << sequence_rounds << ", total " << total);
          lively += compare(ready, sequence_rounds, total) ? 1 : 0;
        }
        if (process.name == "trace") lively += compare(ready, 0, 300) ? 1 : 0;
      }
    }
  }
  // Of 12 processes x 8 decodings x 3 lengths (one under sanitizers) x 3: in most cells tokens are accepted and rejected.
  CHECK(lively > (tests::kSanitized ? 200 : 600));
}

TEST_CASE("chains judged side by side: the counts of chains judged one by one", "[hot_path]") {
  for (const char* pair :
       {"{vocab: 200, target: {family: zipf, exponent: 1.1}, draft: {from: target, transform: overlap, value: 0.7}}",
        // The draft draws tokens that the target cannot, with odds so long that no prefix of them is accepted.
        "{vocab: 9, target: {from: {family: geometric, ratio: 0.01}, transform: top_k, value: 7}, draft: "
        "{family: geometric, ratio: 0.99}}"}) {
    for (const int draft_length : {1, 5, 40}) {
      for (const char* contexts : {"{process: fixed}",
                                   "{process: by_depth, drafts: [{from: target, transform: overlap, value: 0.9}, {from: target, "
                                   "transform: overlap, value: 0.6}]}"}) {
        const std::string yaml = fmt::format(
            "{{experiment: chains, rounds: 1000, pair: {}, context: {}, decode: {{drafter: {{kind: chain, draft_length: "
            "{}}}, verifier: block}}}}",
            pair, contexts, draft_length);
        INFO(yaml);
        const tests::ReadyCell ready(yaml);
        for (const std::uint64_t total : {1, 63, 700, 64 * 256 + 130}) {
          const auto [side_by_side, one_by_one] = both(ready.simulator(), total);
          CHECK(side_by_side == one_by_one);
          CHECK(side_by_side.rounds == total);
        }
      }
    }
  }
  const tests::ReadyCell ready(
      "{experiment: chains, rounds: 1000, pair: {vocab: 20, target: {family: zipf, exponent: 1.1}, draft: {from: target, "
      "transform: "
      "overlap, value: 0.7}}, decode: {drafter: {kind: chain, draft_length: 3}, verifier: block}}");
  decode::PreparationPlan plan = ready.preparation();
  const TwoFaced two_faced;
  std::get<decode::BlockJudging>(plan.judging).rule = &two_faced;
  const auto [side_by_side, one_by_one] = both({plan, ready.prepared(), ready.draw_key(), 3, ready.cell().sequence_rounds}, 1000);
  CHECK(side_by_side.accepted[0] == 1000);
  CHECK(one_by_one.accepted[0] == 0);
}

namespace {

// Accepts the first of several siblings.
class TwoFacedSiblings final : public verify::RecursiveRule {
 public:
  void judge_lanes(const verify::SiblingLanes& siblings, std::uint32_t* accepted) const override {
    std::fill_n(accepted, siblings.count, 1U);
  }
};

}  // namespace

TEST_CASE("trees judged side by side: the counts of trees judged one by one", "[hot_path]") {
  const auto yaml_of_tree = [](const char* pair, const char* contexts, const std::string& drafter, const char* verifier) {
    return fmt::format("{{experiment: trees, rounds: 1000, pair: {}, context: {}, decode: {{drafter: {}, verifier: {}}}}}", pair,
                       contexts, drafter, verifier);
  };
  const char* const usual =
      "{vocab: 200, target: {family: zipf, exponent: 1.1}, draft: {from: target, transform: overlap, value: 0.7}}";
  for (const char* pair : {usual,
                           // Siblings for which the draft has hardly any token left.
                           "{vocab: 9, target: {family: geometric, ratio: 0.6}, draft: {family: geometric, ratio: 0.0001}}",
                           // The draft can draw fewer tokens than a node has children.
                           "{vocab: 6, target: {family: zipf, exponent: 0.7}, draft: {from: {family: zipf, exponent: 1}, "
                           "transform: top_k, value: 2}}",
                           "{vocab: 7, target: {family: zipf, exponent: 0.7}, draft: {family: uniform}}"}) {
    for (const char* contexts : {"{process: fixed}",
                                 "{process: by_depth, drafts: [{from: target, transform: overlap, value: 0.95}, {from: target, "
                                 "transform: overlap, value: 0.85}]}"}) {
      for (const bool without : {false, true}) {
        const std::string siblings = without ? "without_replacement" : "sampled";
        for (const std::string& drafter :
             {"{kind: tree_static, branching: [3], siblings: " + siblings + "}",
              "{kind: tree_static, branching: [4, 3, 2, 1], siblings: " + siblings + "}",
              "{kind: tree_static, branching: [1, 1, 5], siblings: " + siblings + "}",
              "{kind: tree_sequoia, budget: 13, depth: 4, acceptance: [0.6, 0.2, 0.1, 0.05], siblings: " + siblings + "}",
              std::string("{kind: chain, draft_length: 3}")}) {
          if (without && drafter.find("chain") != std::string::npos) continue;
          const std::string yaml =
              yaml_of_tree(pair, contexts, drafter, without ? "without_replacement" : "multi_draft_recursive");
          INFO(yaml);
          const tests::ReadyCell ready(yaml);
          for (const std::uint64_t total : {1, 63, 700, 64 * 256 + 130}) {
            const auto [side_by_side, one_by_one] = both(ready.simulator(), total);
            CHECK(side_by_side == one_by_one);
            CHECK(side_by_side.rounds == total);
          }
        }
      }
    }
  }
  const tests::ReadyCell ready(yaml_of_tree(
      usual, "{process: fixed}", "{kind: tree_static, branching: [2, 2], siblings: sampled}", "multi_draft_recursive"));
  decode::PreparationPlan plan = ready.preparation();
  const TwoFacedSiblings two_faced;
  std::get<decode::BlockJudging>(plan.judging).rule = &two_faced;
  const auto [side_by_side, one_by_one] = both({plan, ready.prepared(), ready.draw_key(), 2, ready.cell().sequence_rounds}, 1000);
  CHECK(side_by_side.accepted[1] == 1000);
  CHECK(one_by_one.accepted[1] < 1000);
}

TEST_CASE("the hot loop equals a plain loop over several chunks of full length", "[hot_path]") {
  for (const Process& process : processes()) {
    const tests::ReadyCell ready(yaml_of(process, {"token", false, false}, 4));
    for (const std::uint64_t total : {64 * 256 - 1, 64 * 256, 64 * 256 + 1}) {
      if (ready.cell().contexts->process->shape().request_tokens > 0 && total != 64 * 256) continue;
      const std::uint64_t work = ready.cell().contexts->process->shape().request_tokens > 0 ? 1000 : total;
      INFO(process.text << ", total " << work);
      CHECK(compare(ready, 64, work));
    }
  }
}

TEST_CASE("the hot loop equals a plain loop at a vocabulary of 5000, one lane and the longest draft", "[hot_path]") {
  const tests::ReadyCell large(yaml_of(process_with("iid", "pool: 3"), {"token", false, false}, 4, 5000));
  CHECK(compare(large, 16, 16 * 300));
  const tests::ReadyCell longest(yaml_of(process_with("markov", "order: 1"), {"token", false, false}, kMaxDraftLength));
  CHECK(compare(longest, 7, 7 * 300 + 3));
  const tests::ReadyCell single(yaml_of(kRegimes, {"sample_match", false, false}, 4));
  CHECK(compare(single, 64, 1) == false);
  CHECK(compare(single, 64, 63));
}

TEST_CASE("a context process of which nothing is known is stepped as a plain loop steps it", "[hot_path]") {
  const config::Registered<families::ContextEntry> drift(families::context_processes(),
                                                         context_process<DriftProcess>("toy_drift"));
  for (const Decode& how : decodings()) {
    const tests::ReadyCell ready(yaml_of(process_with("toy_drift", ""), how, 4));
    CHECK(ready.prepared().strata == 3);
    CHECK(compare(ready, 7, 256 * 7 + 40) != (how.one_hot_target && how.argmax));
  }
}

TEST_CASE("a shorter run is the beginning of a longer one", "[hot_path]") {
  // Rounds have addresses, so the first sequences of a long run equal those of a short one.
  const tests::ReadyCell ready(yaml_of(kRegimes, {"token", false, false}, 4));
  const decode::Simulator simulator = ready.simulator();
  Recorder short_run;
  Recorder long_run;
  decode::Counts counts = simulator.empty_counts();
  simulator.run(0, 64 * 10, counts, &short_run);
  simulator.run(0, 64 * 200, counts, &long_run);
  REQUIRE(short_run.rounds().size() == 640);
  for (const auto& [where, round] : short_run.rounds()) REQUIRE(long_run.rounds().at(where) == round);
}

TEST_CASE("cells that differ in decode draw the same first draft token and bonus words", "[hot_path]") {
  // Paired comparisons: token and sample_match see the same drafts, so if both accept, they emit the same tokens.
  const Process process = process_with("iid", "pool: 11");
  const tests::ReadyCell token(yaml_of(process, {"token", false, false}, 1));
  const tests::ReadyCell match(yaml_of(process, {"sample_match", false, false}, 1));
  Recorder by_token;
  Recorder by_match;
  const decode::Simulator first(token.preparation(), token.prepared(), token.draw_key(), 1, 1);
  const decode::Simulator second(match.preparation(), match.prepared(), match.draw_key(), 1, 1);
  decode::Counts counts = first.empty_counts();
  first.run(0, 256, counts, &by_token);
  second.run(0, 256, counts, &by_match);
  int both = 0;
  for (const auto& [where, round] : by_token.rounds()) {
    const Round& other = by_match.rounds().at(where);
    if (round.emitted.size() < 2 || other.emitted.size() < 2) continue;
    ++both;
    REQUIRE(round == other);
  }
  CHECK(both > 20);
}

}  // namespace specsim::hot_path_test
