// Every built-in verifier, every branch: the joint distribution of the first draft_length + 1 tokens, compared with the target
// and with an enumeration that shares no code with it.
#include "tests/exact/exact_cells.h"
#include "tests/support/acceptance_bounds.h"
#include "tests/support/mutants.h"
#include "tests/support/sanitizers.h"

#include "sim/rounds/verify/recursive_rule.h"

#include <numeric>

namespace specsim::audit_verifiers_test {

using namespace specsim::tests;
using audit::audit_cell;
using audit::AuditReport;
using audit::AuditStart;

namespace {

constexpr double kExact = 1e-12;

struct Setting {
  std::string pair;
  std::string context;
};

// Pairs with dense distributions, zeros on either side, disjoint supports, point masses, equal and nearly equal distributions.
std::vector<Setting> settings(int vocab, const std::string& sampling) {
  const auto size = static_cast<std::size_t>(vocab);
  Distribution low(size, 0.0);
  Distribution high(size, 0.0);
  for (std::size_t x = 0; x < size; ++x) (x < (size + 1) / 2 ? low : high)[x] = static_cast<double>(x + 1);
  for (Distribution* distribution : {&low, &high}) {
    const double sum = std::accumulate(distribution->begin(), distribution->end(), 0.0);
    for (double& p : *distribution) p /= sum;
  }
  const std::vector<std::pair<std::string, std::string>> distributions = {
      {"{family: dirichlet, concentration: 0.7}", "{from: target, transform: logit_noise, value: 1.5}"},
      {"{family: uniform_logits, range: 3}", "{from: target, transform: temperature, value: 0.5}"},
      {"{family: zipf, exponent: 1.1}", "{from: target, transform: permute, value: 1}"},
      {"{from: {family: dirichlet, concentration: 1}, transform: top_k, value: 2}", "{family: geometric, ratio: 0.6}"},
      {"{family: geometric, ratio: 0.4}", "{from: target, transform: reduced_vocab, value: 1}"},
      {explicit_distribution(low), explicit_distribution(high)},
      {"{family: one_hot}", "{from: target, transform: argmax_agreement, value: 0.5}"},
      {"{family: one_hot}", "{family: dirichlet, concentration: 1}"},
      {"{family: dirichlet, concentration: 1}", "{from: target, transform: interpolate, value: 1}"},
      {"{family: dirichlet, concentration: 1}", "{from: target, transform: mix_noise, value: 1e-9}"},
  };
  std::vector<Setting> all;
  for (const auto& [target, draft] : distributions) {
    const std::string pair = fmt::format("{{vocab: {}, target: {}, draft: {}{}}}", vocab, target, draft, sampling);
    all.push_back({pair, "{process: fixed}"});
    all.push_back({pair, "{process: markov, order: 1}"});
    all.push_back(
        {pair,
         fmt::format("{{process: by_depth, drafts: [{}, {{family: uniform}}, {{family: geometric, ratio: 0.3}}]}}", draft)});
  }
  return all;
}

std::string needed_sampling(const verify::VerifierEntry& entry) {
  return entry.demands.one_hot_target ? ", target_sampling: {temperature: 0}" : "";
}

}  // namespace

TEST_CASE("known pairs: expected accepted, and the joint distribution exactly the target's") {
  const AuditReport first = audit::audit_cell(first_pair(2));
  CHECK(first.starts[0].expected_accepted == Approx(10.0 / 9.0).epsilon(0).margin(kExact));
  CHECK(first.starts[0].expected_emitted == Approx(19.0 / 9.0).epsilon(0).margin(kExact));
  CHECK(first.starts[0].alpha == Approx(2.0 / 3.0).epsilon(0).margin(kExact));
  CHECK(first.lossless());
  CHECK(largest_difference(first.starts[0].accepted_distribution, {3.0 / 9.0, 2.0 / 9.0, 4.0 / 9.0}) < kExact);

  const AuditReport second = audit::audit_cell(second_pair(2));
  CHECK(second.starts[0].expected_accepted == Approx(65.0 / 64.0).epsilon(0).margin(kExact));
  CHECK(second.starts[0].alpha == Approx(5.0 / 8.0).epsilon(0).margin(kExact));
  CHECK(second.lossless());
  CHECK(second.impossible == 0.0);

  // The text is kept only while the target's own sample matches: alpha 4/9 on the first pair.
  CHECK(audit::audit_cell(first_pair(2, "sample_match")).starts[0].alpha == Approx(4.0 / 9.0).epsilon(0).margin(kExact));
}

namespace {

void hold_lossless_verifiers(int largest_vocab) {
  std::size_t audits = 0;
  for (const verify::VerifierEntry& entry : verify::verifiers().entries()) {
    if (!entry.lossless) continue;
    const bool witnessed = witness_rule(entry.info.name).has_value();
    for (int vocab = 2; vocab <= largest_vocab; ++vocab) {
      for (const Setting& setting : settings(vocab, needed_sampling(entry))) {
        for (int draft_length = 0; draft_length <= 4; ++draft_length) {
          for (const bool argmax : {false, true}) {
            if (entry.demands.argmax_draft && !argmax) continue;
            if (!entry.make && (vocab > 3 || draft_length > 3)) continue;  // blocks: all outcomes of a round, see blocks_test.cpp
            const spec::Cell cell = cell_of(setting.pair, setting.context, chain(draft_length, argmax), entry.info.name,
                                            1000 + static_cast<std::uint64_t>(vocab));
            const AuditReport report = audit::audit_cell(cell);
            ++audits;
            INFO(entry.info.name << ", draft_length " << draft_length << (argmax ? ", argmax, " : ", ") << setting.context << ", "
                                 << setting.pair);
            REQUIRE(report.largest_difference <= kExact);
            REQUIRE(report.impossible == 0.0);
            if (witnessed) REQUIRE(witness_difference(cell, report) <= kExact);
          }
        }
      }
    }
  }
  CHECK(audits >= 3 * static_cast<std::size_t>(largest_vocab - 1) * 30 * 5 * 2);
}

}  // namespace

TEST_CASE(
    "every lossless verifier is lossless, and agrees with the independent enumeration, vocabularies to 4, 3 under sanitizers") {
  hold_lossless_verifiers(kSanitized ? 3 : 4);
}
TEST_CASE("every lossless verifier is lossless, and agrees with the independent enumeration, vocabularies to 6", "[.slow]") {
  hold_lossless_verifiers(6);
}

TEST_CASE("a lossless verifier on contexts of any shape, without sharing what positions have in common") {
  InputNumbers numbers(11);
  for (const verify::VerifierEntry& entry : verify::verifiers().entries()) {
    if (!entry.lossless) continue;
    for (int i = 0; i < 12; ++i) {
      const std::size_t vocab = 2 + numbers.below(2);
      const std::size_t contexts = 1 + numbers.below(4);
      std::vector<Distribution> targets;
      std::vector<Distribution> drafts;
      std::vector<std::vector<std::uint32_t>> next(contexts);
      for (std::size_t c = 0; c < contexts; ++c) {
        targets.push_back(numbers.distribution(vocab, 0.2));
        if (entry.demands.one_hot_target) {
          const int best = theory::argmax(targets.back());
          targets.back().assign(vocab, 0.0);
          targets.back()[static_cast<std::size_t>(best)] = 1.0;
        }
        drafts.push_back(numbers.distribution(vocab, 0.2));
        for (std::size_t x = 0; x < vocab; ++x) next[c].push_back(static_cast<std::uint32_t>(numbers.below(contexts)));
      }
      const spec::Cell cell = listed_cell(targets, drafts, next, 2, entry.info.name);
      const AuditReport shared = audit::audit_cell(cell);
      const AuditReport alone = audit::audit_cell(cell, {.share = false});
      CHECK(shared.lossless());
      CHECK(alone.lossless());
      for (std::size_t c = 0; c < contexts; ++c) {
        CHECK(largest_difference(shared.starts[c].joint, alone.starts[c].joint) < 1e-15);
        CHECK(largest_difference(shared.starts[c].accepted_distribution, alone.starts[c].accepted_distribution) < 1e-15);
      }
      if (witness_rule(entry.info.name)) CHECK(witness_difference(cell, shared) <= kExact);
    }
  }
}

TEST_CASE("the distribution of one round over its tokens and next context") {
  const spec::Cell cell =
      cell_of("{vocab: 3, target: {family: dirichlet, concentration: 1}, draft: {family: dirichlet, concentration: 1}}",
              "{process: markov}", chain(2), "token");
  const AuditReport report = audit::audit_cell(cell, {.keep_rounds = true});
  theory::Automaton automaton = automaton_of(cell);
  for (const AuditStart& start : report.starts) {
    const std::vector<theory::RoundOutcome> witness =
        theory::round_outcomes(automaton, {theory::Rule::token, 2, theory::Drafting::sampled}, static_cast<int>(start.context));
    double sum = 0.0;
    std::size_t found = 0;
    for (const audit::AuditRound& round : start.rounds) {
      sum += round.probability;
      for (const theory::RoundOutcome& outcome : witness) {
        if (!std::equal(outcome.emitted.begin(), outcome.emitted.end(), round.emitted.begin(), round.emitted.end(),
                        [](int a, Token b) { return a == static_cast<int>(b); }))
          continue;
        ++found;
        CHECK(round.probability == Approx(outcome.probability).epsilon(0).margin(kExact));
        CHECK(static_cast<int>(round.next_context) == outcome.end_state);
      }
    }
    CHECK(found == start.rounds.size());
    CHECK(found == witness.size());
    CHECK(sum == Approx(1.0).epsilon(0).margin(1e-15));
  }
}

TEST_CASE("soft_argmax is biased by exactly what theory predicts") {
  InputNumbers numbers(5);
  double largest_bias = 0.0;
  for (int i = 0; i < 60; ++i) {
    const Distribution target = numbers.distribution(2 + numbers.below(5), 0.2);
    const Distribution draft = numbers.distribution(target.size(), 0.2);
    const spec::Cell cell = cell_of(explicit_pair(target, draft), "{process: fixed}", chain(1 + i % 3, true), "soft_argmax");
    const AuditReport report = audit::audit_cell(cell);
    const double bias = theory::soft_argmax_bias(target, draft);
    INFO(cell.index << ": " << explicit_pair(target, draft));
    CHECK(largest_difference(report.starts[0].first_token, theory::soft_argmax_distribution(target, draft)) <= kExact);
    CHECK(report.first_token_variation == Approx(bias).epsilon(0).margin(kExact));
    CHECK(report.starts[0].alpha == Approx(theory::soft_argmax_alpha(target, draft)).epsilon(0).margin(kExact));
    CHECK(report.joint_variation >= bias - kExact);
    if (bias > 1e-6) CHECK_FALSE(report.lossless());
    CHECK(witness_difference(cell, report) <= kExact);
    largest_bias = std::max(largest_bias, bias);
  }
  CHECK(largest_bias > 0.3);
}

TEST_CASE("a lossy verifier of the registry is caught") {
  for (const verify::VerifierEntry& entry : verify::verifiers().entries()) {
    if (entry.lossless) continue;
    // With its defaults, or with its example if the defaults are lossless.
    const std::string verifier =
        entry.info.example.empty() ? entry.info.name : "{kind: " + entry.info.name + ", " + entry.info.example + "}";
    const AuditReport report = audit::audit_cell(
        cell_of(explicit_pair(kSecondTarget, kSecondDraft), "{process: fixed}", chain(2, entry.demands.argmax_draft), verifier));
    INFO(verifier);
    CHECK_FALSE(report.lossless());
    CHECK(audit::to_text(report).find("verdict: not lossless") != std::string::npos);
  }
}

TEST_CASE("settings that an audit refuses, with their place") {
  const auto refused = [](const spec::Cell& cell) {
    try {
      audit::audit_cell(cell);
    } catch (const BadInput& bad) {
      REQUIRE(bad.list().size() == 1);
      CHECK(bad.list()[0].where.line == 1);
      CHECK(bad.list()[0].where.column > 1);
      return bad.list()[0].message;
    }
    FAIL("not refused");
    return std::string();
  };
  const std::string uniform = "target: {family: uniform}, draft: {family: uniform}}";
  CHECK(refused(cell_of("{vocab: 11, " + uniform, "{process: fixed}", chain(1), "token")) ==
        "vocab is 11, allowed in an audit: at most 10");
  CHECK(refused(cell_of("{vocab: 2, " + uniform, "{process: fixed}", chain(7), "token")) ==
        "draft_length is 7, allowed in an audit: at most 6");
  // A tree's config has no draft_length.
  CHECK(refused(cell_of("{vocab: 2, " + uniform, "{process: fixed}", "{kind: spec_exec, budget: 8, max_depth: 7, width: 1}",
                        "tree_point_mass")) == "the drafter's longest path is 7, allowed in an audit: at most 6");
  CHECK(refused(cell_of("{vocab: 10, " + uniform, "{process: fixed}", chain(6), "token")) ==
        "contexts * vocab^(draft_length + 1) is 10000000, allowed in an audit: at most 5000000");
}

TEST_CASE("what cannot be enumerated is not audited, with the reason") {
  const std::string pair = "{vocab: 4, target: {family: uniform}, draft: {family: uniform}}";
  for (const char* verifier : {"token", "block"})
    CHECK_THROWS_WITH(audit::audit_cell(cell_of(pair, "{process: iid, pool: 8}", chain(2), verifier)),
                      Catch::Contains("change at random"));
}

TEST_CASE(
    "fresh distributions: every lossless verifier of positions keeps the target's distribution, every mutant of a rule loses "
    "it") {
  const std::string pair =
      "{vocab: 3, target: {family: dirichlet, concentration: 0.7}, draft: {from: target, transform: logit_noise, value: 1.5}";
  for (const verify::VerifierEntry& entry : verify::verifiers().entries()) {
    if (!entry.make || !entry.info.parameters.empty()) continue;
    for (int draft_length = 0; draft_length <= 3; ++draft_length) {
      const spec::Cell cell = cell_of(pair + needed_sampling(entry) + "}", "{process: iid, fresh: true}",
                                      chain(draft_length, entry.demands.argmax_draft), entry.info.name);
      const AuditReport report = audit::audit_cell(cell);
      INFO(entry.info.name << ", draft_length " << draft_length << ", difference " << report.largest_difference);
      if (entry.lossless || draft_length == 0)
        CHECK(report.lossless());
      else
        CHECK_FALSE(report.lossless());
    }
  }
  const spec::Cell cell = cell_of(pair + "}", "{process: iid, fresh: true}", chain(2), "token");
  CHECK(audit::audit_cell(cell, TokenLikeRule()).lossless());
  for (const Mutant& mutant : mutants()) {
    if (mutant.loop || mutant.name == "bonus token from the draft") continue;  // it remembers the table of its last call
    INFO(mutant.name);
    CHECK_FALSE(audit::audit_cell(cell, *mutant.rule()).lossless());
  }
  // Alpha of the first position is the overlap there, by hand.
  const AuditReport one = audit::audit_cell(cell_of(pair + "}", "{process: iid, fresh: true}", chain(1), "token"));
  const decode::PreparationPlan plan = spec::plan_of(cell);
  const decode::DistributionDrawer drawer(plan);
  Distribution target;
  Distribution model;
  Distribution drafted;
  drawer.target(0, decode::fresh_context(0, 0), target);
  drawer.draft(0, decode::fresh_context(0, 0), 0, target, model, drafted);
  CHECK(one.starts[0].alpha == Approx(math::overlap(target, drafted)).epsilon(0).margin(kExact));
}

namespace {

// A rule that is right for blocks and wrong for several chains, the case that only production code runs.
class WrongInLanes final : public verify::ChainRule {
 public:
  explicit WrongInLanes(const verify::ChainRule& rule) : rule_(rule) {}
  verify::AcceptedPath verify(verify::Block& block) const override { return rule_.verify(block); }
  void verify_lanes(verify::ChainLanes& chains) const override {
    rule_.verify_lanes(chains);
    for (std::uint32_t lane = 0; lane < chains.lanes; ++lane)
      if (chains.accepted[lane] == 1) chains.accepted[lane] = 0;
  }

 private:
  const verify::ChainRule& rule_;
};

// The same for siblings: the second one is never accepted.
class WrongInSiblingLanes final : public verify::RecursiveRule {
 public:
  void judge_lanes(const verify::SiblingLanes& siblings, std::uint32_t* accepted) const override {
    RecursiveRule::judge_lanes(siblings, accepted);
    if (siblings.earlier_siblings == 1) std::fill_n(accepted, siblings.count, 0U);
  }
};

}  // namespace

TEST_CASE("the audit reaches the production code: it finds a mistake in runs without a sink, or only in lanes") {
  const std::unique_ptr<verify::BlockRule> block = verify::verifiers().find("block")->make_block({});
  const auto& lanes = dynamic_cast<const verify::ChainRule&>(*block);
  const spec::Cell cell = second_pair(2, "block");
  CHECK(audit::audit_cell(cell, *block).lossless());
  CHECK_THROWS_AS(audit::audit_cell(cell, WrongInLanes(lanes)), InvariantBroken);
  const spec::Cell tree = cell_of(explicit_pair(kSecondTarget, kSecondDraft), "{process: fixed}",
                                  "{kind: tree_static, branching: [2], siblings: sampled}", "multi_draft_recursive");
  CHECK(audit::audit_cell(tree, verify::RecursiveRule()).lossless());
  CHECK_THROWS_AS(audit::audit_cell(tree, WrongInSiblingLanes()), InvariantBroken);

  const audit::RoundLoop unwatched = [](const decode::RoundSetup& setup, const decode::ChunkPlan& chunk,
                                        decode::BitSource& random_bits, decode::Counts& counts, decode::RoundSink* sink) {
    const audit::RoundLoop loop = sink != nullptr ? loop_of<decode::ShippedBehaviour>() : loop_of<BonusDropped>();
    loop(setup, chunk, random_bits, counts, sink);
  };
  CHECK_THROWS_AS(audit::audit_cell(second_pair(2), TokenLikeRule(), unwatched), InvariantBroken);
}

TEST_CASE("the report contains its findings") {
  const std::string text = audit::to_text(audit::audit_cell(first_pair(2)));
  INFO(text);
  CHECK(text.find("expected accepted:                    1.111111111111\n") != std::string::npos);
  CHECK(text.find("expected emitted:                     2.111111111111\n") != std::string::npos);
  CHECK(text.find("largest difference:") != std::string::npos);
  CHECK(text.find("\n      0  0.333333333333  0.333333333333") != std::string::npos);
  CHECK(text.find("verdict: lossless to 1e-12\n") != std::string::npos);
}

}  // namespace specsim::audit_verifiers_test
