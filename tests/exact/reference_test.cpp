// Cases from the test suites of servers and libraries that decode speculatively.
#include "tests/exact/exact_cells.h"

#include <numeric>

namespace specsim::reference_test {

using namespace specsim::tests;
using audit::audit_cell;
using audit::AuditReport;

namespace {

Distribution one_hot(std::size_t vocab, Token token) {
  Distribution distribution(vocab, 0.0);
  distribution[token] = 1.0;
  return distribution;
}

// Contexts are text positions: whatever is emitted, the next one follows.
std::vector<std::vector<std::uint32_t>> positions(std::size_t count, std::size_t vocab) {
  std::vector<std::vector<std::uint32_t>> next;
  for (std::size_t i = 0; i < count; ++i) next.emplace_back(vocab, static_cast<std::uint32_t>(std::min(i + 1, count - 1)));
  return next;
}

// The only possible first round, if draft and target are certain of every token.
std::vector<Token> certain_round(const std::vector<Token>& drafted, const std::vector<Token>& target,
                                 const std::string& verifier) {
  constexpr std::size_t kVocab = 8;
  std::vector<Distribution> targets;
  std::vector<Distribution> drafts;
  for (std::size_t i = 0; i < target.size(); ++i) {
    targets.push_back(one_hot(kVocab, target[i]));
    drafts.push_back(one_hot(kVocab, i < drafted.size() ? drafted[i] : 0));
  }
  const spec::Cell cell =
      listed_cell(targets, drafts, positions(target.size(), kVocab), static_cast<int>(drafted.size()), verifier);
  const AuditReport report = audit::audit_cell(cell, {.keep_rounds = true});
  REQUIRE(report.lossless());
  const std::vector<audit::AuditRound>& rounds = report.starts[0].rounds;
  REQUIRE(rounds.size() == 1);
  CHECK(rounds[0].probability == 1.0);
  return rounds[0].emitted;
}

Distribution softmax(const Distribution& logits) {
  Distribution distribution;
  for (const double logit : logits) distribution.push_back(std::exp(logit));
  const double sum = std::accumulate(distribution.begin(), distribution.end(), 0.0);
  for (double& p : distribution) p /= sum;
  return distribution;
}

}  // namespace

TEST_CASE("greedy targets: drafted against wanted, token for token") {
  using Tokens = std::vector<Token>;
  for (const char* verifier : {"greedy", "token", "sample_match"}) {
    INFO(verifier);
    CHECK(certain_round({1, 2, 3}, {1, 2, 3, 4}, verifier) == Tokens{1, 2, 3, 4});
    CHECK(certain_round({1, 5, 3}, {1, 2, 3, 4}, verifier) == Tokens{1, 2});
    CHECK(certain_round({}, {5}, verifier) == Tokens{5});
    CHECK(certain_round({1, 2}, {1, 2, 5}, verifier) == Tokens{1, 2, 5});
    CHECK(certain_round({3}, {3, 4}, verifier) == Tokens{3, 4});
    CHECK(certain_round({7, 7, 7}, {1, 2, 3, 4}, verifier) == Tokens{1});
  }
}

TEST_CASE("two candidates match and the third is replaced") {
  constexpr std::size_t kVocab = 10;
  const auto sure_of = [](Token token) {
    Distribution logits(kVocab, -10.0);
    logits[token] = 10.0;
    return softmax(logits);
  };
  const std::vector<Distribution> drafts = {sure_of(1), sure_of(4), sure_of(5), sure_of(0)};
  const auto next = positions(4, kVocab);
  {
    const AuditReport report = audit::audit_cell(
        listed_cell({sure_of(1), sure_of(4), sure_of(8), sure_of(0)}, drafts, next, 3, "token"), {.keep_rounds = true});
    CHECK(report.lossless());
    double expected_round = 0.0;
    for (const audit::AuditRound& round : report.starts[0].rounds)
      if (round.emitted == std::vector<Token>{1, 4, 8}) expected_round += round.probability;
    CHECK(expected_round > 1.0 - 1e-6);
    CHECK(report.starts[0].accepted_distribution[2] > 1.0 - 1e-6);
  }
  Distribution logits(kVocab, -10.0);
  logits[1] = 2.0;
  logits[3] = 1.0;
  logits[7] = -0.01;
  logits[8] = 2.0;
  const AuditReport report = audit::audit_cell(
      listed_cell({sure_of(1), sure_of(4), softmax(logits), sure_of(0)}, drafts, next, 3, "token"), {.keep_rounds = true});
  CHECK(report.lossless());
  Distribution third(kVocab, 0.0);
  for (const audit::AuditRound& round : report.starts[0].rounds)
    if (round.emitted.size() == 3) third[round.emitted[2]] += round.probability;
  CHECK(third[1] > third[3]);
  CHECK(third[3] > third[7]);
  CHECK(third[7] > 0.0);
  CHECK(third[1] == Approx(third[8]).epsilon(1e-9));
}

TEST_CASE("one-hot targets: every emitted token is the target's, the bonus too, and nothing follows a rejection") {
  for (const int vocab : {111, 32000, 128256}) {
    for (const int draft_length : {1, 3, 5, 7}) {
      for (const bool certain : {true, false}) {
        const std::string target =
            certain ? "{family: one_hot}" : "{from: {family: dirichlet, concentration: 0.1}, transform: top_k, value: 5}";
        const spec::Cell cell = cell_of(
            fmt::format("{{vocab: {}, target: {}, draft: {{from: target, transform: mix_noise, value: 0.3}}}}", vocab, target),
            "{process: markov, states: 8, sequence_rounds: 5}", chain(draft_length), "token");
        Run run;
        run_chunk(cell, 99 * 5, run);
        REQUIRE(run.rounds.lanes.size() == 99);
        std::vector<Distribution> targets;
        for (std::uint64_t c = 0; c < 8; ++c) {
          targets.emplace_back(static_cast<std::size_t>(vocab));
          cell.contexts->pair(c).draw_target({spec::distribution_key(cell), c}, targets.back());
        }
        std::uint64_t emitted = 0;
        std::size_t outside = 0;
        std::size_t too_long = 0;
        for (const std::vector<Recorder::Round>& lane : run.rounds.lanes) {
          std::uint32_t context = 0;
          for (const Recorder::Round& round : lane) {
            emitted += round.emitted.size();
            too_long += round.emitted.empty() || round.emitted.size() > static_cast<std::size_t>(draft_length) + 1 ? 1 : 0;
            for (const Token token : round.emitted) {
              REQUIRE(token < static_cast<Token>(vocab));
              outside += targets[context][token] > 0.0 ? 0 : 1;  // one-hot: the one token
              context = cell.contexts->process->next(context, token);
            }
            too_long += context == round.next_context ? 0 : 1;
          }
        }
        INFO("vocab " << vocab << ", draft_length " << draft_length << (certain ? ", one-hot" : ""));
        CHECK(outside == 0);
        CHECK(too_long == 0);
        CHECK(run.counts.emitted == emitted);
        CHECK(run.counts.rounds == 99 * 5);
      }
    }
  }
}

TEST_CASE("truncated targets: emitted tokens stay inside") {
  const std::string distributions =
      "target: {family: normal_logits, sigma: 2}, draft: {from: target, transform: logit_noise, value: 1}";
  std::vector<std::string> samplings;
  for (const int k : {1, 5, 99}) samplings.push_back(fmt::format("{{top_k: {}}}", k));
  for (const char* p : {"0.5", "0.9", "0.99"}) samplings.push_back(fmt::format("{{top_p: {}}}", p));
  samplings.push_back("{temperature: 0.7, top_k: 50, top_p: 0.9, min_p: 0.01}");
  for (const std::string& sampling : samplings) {
    for (const int vocab : {100, 8193}) {
      const spec::Cell cell = cell_of(fmt::format("{{vocab: {}, {}, target_sampling: {}}}", vocab, distributions, sampling),
                                      "{process: fixed, sequence_rounds: 50}", chain(3), "token");
      Distribution target(static_cast<std::size_t>(vocab));
      cell.contexts->pair(0).draw_target({spec::distribution_key(cell), 0}, target);
      const auto support = std::count_if(target.begin(), target.end(), [](double p) { return p > 0.0; });
      CHECK(support < vocab);
      Run run;
      run_chunk(cell, 100 * 50, run);
      std::size_t outside = 0;
      for (std::size_t lane = 0; lane < run.rounds.lanes.size(); ++lane)
        for (const Token token : run.rounds.text(lane)) outside += token < target.size() && target[token] > 0.0 ? 0 : 1;
      INFO(sampling << ", vocab " << vocab);
      CHECK(outside == 0);
    }
    // And every branch of a small case.
    const spec::Cell small = cell_of(fmt::format("{{vocab: 6, {}, target_sampling: {}}}", distributions, sampling),
                                     "{process: markov}", chain(3), "token");
    const AuditReport report = audit::audit_cell(small);
    INFO(sampling);
    CHECK(report.lossless());
    CHECK(report.impossible == 0.0);
  }
}

TEST_CASE("replacement tokens are in range, whatever the tail of the vocabulary") {
  for (const int vocab : {100, 8193, 10000, 151936}) {
    const spec::Cell cell =
        cell_of(fmt::format("{{vocab: {}, target: {{family: uniform}}, draft: {{family: one_hot, token: 0}}}}", vocab),
                "{process: fixed, sequence_rounds: 100}", chain(1), "token");
    Run run;
    run_chunk(cell, 256 * 100, run);
    Token largest = 0;
    std::size_t wrong = 0;
    for (const std::vector<Recorder::Round>& lane : run.rounds.lanes) {
      for (const Recorder::Round& round : lane) {
        for (const Token token : round.emitted) largest = std::max(largest, token);
        wrong += round.emitted.size() == 1 && round.emitted[0] == 0 ? 1 : 0;  // the rejected token itself
      }
    }
    INFO("vocab " << vocab);
    CHECK(wrong == 0);
    CHECK(largest < static_cast<Token>(vocab));
    CHECK(largest > static_cast<Token>(vocab) - static_cast<Token>(vocab) / 500 - 2);  // the tail is reached
  }
}

TEST_CASE("a sequence does not depend on its batch mates, and repeats itself") {
  for (const int draft_length : {1, 3, 5}) {
    const spec::Cell cell = cell_of(
        "{vocab: 1000, target: {family: dirichlet, concentration: 0.1}, draft: {from: target, transform: logit_noise, value: 1}}",
        "{process: markov, states: 16, sequence_rounds: 20}", chain(draft_length), "token");
    Run full;
    run_chunk(cell, 256 * 20, full);
    for (const std::uint64_t batch : {1, 4, 8}) {
      Run part;
      run_chunk(cell, batch * 20, part);
      REQUIRE(part.rounds.lanes.size() == batch);
      for (std::size_t lane = 0; lane < batch; ++lane) CHECK(part.rounds.text(lane) == full.rounds.text(lane));
    }
    CHECK(full.rounds.text(0) != full.rounds.text(1));
  }
}

TEST_CASE("acceptance set beforehand: all of it, none of it") {
  const spec::Cell all = cell_of(
      "{vocab: 7, target: {family: zipf, exponent: 1}, draft: {from: target, transform: overlap, value: 1, shape: "
      "disjoint_tail}}",
      "{process: fixed}", chain(4), "token");
  CHECK(audit::audit_cell(all).starts[0].accepted_distribution[4] == 1.0);
  CHECK(audit::audit_cell(all).starts[0].expected_emitted == 5.0);
  const spec::Cell none = cell_of(explicit_pair({0.0, 0.4, 0.6}, {1.0, 0.0, 0.0}), "{process: fixed}", chain(4), "token");
  CHECK(audit::audit_cell(none).starts[0].accepted_distribution[0] == 1.0);
  CHECK(audit::audit_cell(none).starts[0].expected_emitted == 1.0);
}

}  // namespace specsim::reference_test
