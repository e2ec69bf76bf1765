// Records of real decoding: acceptance by its own distributions, errors, and traces that predict other decoding of the same
// prompts.
#include "sim/lab/llm/acceptance.h"

#include "sim/answers/plan/acceptance_curve.h"
#include "sim/rounds/verify/positions_in_turn.h"
#include "tests/llm/remembered.h"
#include "tests/support/temporary_file.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>

namespace specsim::acceptance_test {

namespace {

// Few short prompts of all kinds: the comparison is exact.
std::vector<llm::Prompt> some_prompts(const llm::ModelConfig& config) {
  std::vector<llm::Prompt> all = tests::held_out(config);
  std::vector<llm::Prompt> some;
  for (std::size_t i = 0; i < all.size(); i += 17) {
    all[i].tokens.resize(std::min<std::size_t>(all[i].tokens.size(), 24));
    some.push_back(std::move(all[i]));
  }
  return some;
}

struct Rule {
  explicit Rule(const std::string& name) : entry(*verify::verifiers().find(name)), rule(entry.make(config::Arguments())) {}
  const verify::VerifierEntry& entry;
  verify::PositionsInTurn rule;
};

double walked(const llm::MeasuredAcceptance& acceptance, int draft_length) {
  const tests::TemporaryFile file(llm::overlap_trace(acceptance));
  return plan::trace_acceptance(file.path(), draft_length).tokens_per_round.at(static_cast<std::size_t>(draft_length));
}

}  // namespace

TEST_CASE("at temperature 0 a trace predicts decoding at its draft length and at others exactly, to the last round",
          "[llm][acceptance]") {
  const tests::Pair pair;
  const std::vector<llm::Prompt> prompts = some_prompts(pair.target_weights->config);
  const Rule token("token");
  const llm::Method method{llm::Method::Chain::sampled, &token.rule};
  constexpr int kLongest = 6;
  constexpr std::size_t kTokens = 20;
  const auto measure = [&](int draft_length, std::size_t tokens) {
    return llm::measure_acceptance(*pair.target_model, pair.draft_model.get(), method, prompts,
                                   {.temperature = 0.0, .draft_length = draft_length, .tokens = tokens, .seed = 3}, {});
  };
  const llm::MeasuredAcceptance recorded = measure(kLongest, kTokens);
  for (const llm::RequestAcceptance& request : recorded.requests) CHECK(request.given_text.size() == kTokens + kLongest);
  CHECK(walked(recorded, kLongest) == Approx(recorded.tokens_per_round()).epsilon(1e-9));
  for (const int k : {1, 3}) {
    // The walk's rounds start wherever a complete round is on record.
    const std::size_t starts = kTokens + static_cast<std::size_t>(kLongest - k);
    CHECK(walked(recorded, k) == Approx(measure(k, starts).tokens_per_round()).epsilon(1e-9));
  }
  for (const llm::Tally& tally : recorded.by_depth) CHECK(tally.z() == 0.0);
  // If the context of 256 ends first: a round may start as long as there is room for its drafts. Mutants: the context is ignored;
  // one token less.
  const std::size_t context = pair.target_weights->config.context;
  std::vector<llm::Prompt> longest(1);
  while (longest[0].tokens.size() < context - 16)
    longest[0].tokens.insert(longest[0].tokens.end(), prompts[0].tokens.begin(), prompts[0].tokens.begin() + 8);
  const llm::MeasuredAcceptance cut =
      llm::measure_acceptance(*pair.target_model, pair.draft_model.get(), method, longest,
                              {.temperature = 0.0, .draft_length = kLongest, .tokens = kTokens, .seed = 3}, {});
  CHECK(cut.requests.at(0).given_text.size() == context - kLongest + 1 - longest[0].tokens.size());
  // Mutant: a record up to the end of the last counted round, which is further on if that round accepted more.
  llm::MeasuredAcceptance to_its_end = recorded;
  for (llm::RequestAcceptance& request : to_its_end.requests) request.given_text.resize(request.emitted);
  CHECK(std::abs(walked(to_its_end, kLongest) / recorded.tokens_per_round() - 1.0) > 1e-3);
}

TEST_CASE("a trace and the expected counts are the rule's own, by distributions that are worked out again", "[llm][acceptance]") {
  const tests::Pair pair;
  const std::vector<llm::Prompt> prompts = some_prompts(pair.target_weights->config);
  constexpr double kTemperature = 0.8;
  constexpr int kDraftLength = 3;
  constexpr std::size_t kTokens = 12;
  constexpr std::uint64_t kSeed = 11;
  const math::Sampling sampling{.temperature = kTemperature};
  llm::ModelDistributions target_distributions(*pair.target_model, sampling, 1);
  llm::ModelDistributions draft_distributions(*pair.draft_model, sampling, 1);
  tests::Remembered target(target_distributions);
  tests::Remembered draft(draft_distributions);
  struct Case {
    const char* name;
    llm::Method::Chain drafts;
  };
  for (const Case& of : {Case{"token", llm::Method::Chain::sampled}, Case{"token", llm::Method::Chain::argmax},
                         Case{"sample_match", llm::Method::Chain::sampled}, Case{"soft_argmax", llm::Method::Chain::argmax}}) {
    const char* name = of.name;
    const llm::Method::Chain drafts = of.drafts;
    const Rule rule(name);
    CAPTURE(name, drafts == llm::Method::Chain::argmax);
    const llm::Method method{drafts, &rule.rule, {}, rule.entry.lossless};
    const llm::MeasuredAcceptance recorded = llm::measure_acceptance(
        *pair.target_model, pair.draft_model.get(), method, prompts,
        {.temperature = kTemperature, .draft_length = kDraftLength, .tokens = kTokens, .seed = kSeed}, {});
    // The same decoding again, to get its texts.
    llm::RunningMethod again(*pair.target_model, pair.draft_model.get(), method, sampling, 1, kDraftLength,
                             rng::make_key(kSeed, rng::hash_text("acceptance")));
    double expected = 0.0;  // accepted at the first depth, given the distributions
    double gap = 0.0;       // acceptance by the distribution of the previous position
    double reversed = 0.0;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      again.decoder().start({{prompts[i].tokens, i}});
      const std::vector<Token>& text = again.decoder().texts()[0].tokens;
      const std::size_t length = prompts[i].tokens.size();
      const auto drafted_at = [&](std::size_t at) {
        std::vector<double> distribution = draft.distribution_of(std::span(text).first(at));
        if (drafts == llm::Method::Chain::argmax)
          math::point_mass(distribution, math::argmax(std::span<const double>(distribution)));
        return distribution;
      };
      const auto accepted_mass = [&](std::size_t at, Token x) {  // written out for each rule, independently of it
        const double t = target.distribution_of(std::span(text).first(at))[x];
        const double d = drafted_at(at)[x];
        if (std::string(name) == "sample_match") return d * t;
        if (std::string(name) == "soft_argmax") return d * std::min(1.0, t / draft.distribution_of(std::span(text).first(at))[x]);
        return std::min(d, t);
      };
      while (text.size() < length + kTokens) {
        const std::size_t at = text.size();
        again.decoder().round();
        for (Token x = 0; x < target.vocab(); ++x) expected += accepted_mass(at, x);
      }
      if (!rule.entry.lossless) {
        CHECK(recorded.requests[i].given_text.empty());  // its text is not the target's
        continue;
      }
      while (text.size() < length + kTokens + kDraftLength) again.decoder().round();
      REQUIRE(recorded.requests[i].given_text.size() == kTokens + kDraftLength);
      for (std::size_t j = 0; j < kTokens + kDraftLength; ++j) {
        const std::size_t at = length + j;
        const Token x = text[at];
        const double t = target.distribution_of(std::span(text).first(at))[x];
        CHECK(recorded.requests[i].given_text[j] == Approx(accepted_mass(at, x) / t).epsilon(1e-6));
        if (j > 0) gap = std::max(gap, std::abs(recorded.requests[i].given_text[j] - recorded.requests[i].given_text[j - 1]));
        reversed = std::max(reversed, std::abs(accepted_mass(at, x) / t - std::min(1.0, t / std::max(drafted_at(at)[x], 1e-12))));
      }
    }
    CHECK(recorded.by_depth[0].expected == Approx(expected).epsilon(1e-6));
    if (rule.entry.lossless) CHECK(gap > 0.1);       // mutant: one position off
    if (rule.entry.lossless) CHECK(reversed > 0.1);  // mutant: target / drafted
  }
}

TEST_CASE("tokens per round of requests, with their error by the delta method", "[llm][acceptance]") {
  llm::MeasuredAcceptance acceptance;
  for (const auto& [rounds, emitted] : {std::pair{4, 10}, {5, 10}, {3, 9}}) {
    llm::RequestAcceptance request;
    request.rounds = static_cast<std::uint64_t>(rounds);
    request.emitted = static_cast<std::uint64_t>(emitted);
    acceptance.requests.push_back(request);
  }
  CHECK(acceptance.tokens_per_round() == Approx(29.0 / 12.0));
  // Residuals of 29/12: 1/3, -25/12, 7/4. Mutant: n for n - 1.
  const double squares = 1.0 / 9.0 + 625.0 / 144.0 + 49.0 / 16.0;
  CHECK(acceptance.tokens_per_round_error() == Approx(std::sqrt(squares * 3.0 / 2.0) / 12.0).epsilon(1e-12));
}

TEST_CASE("outcomes compared with distributions: standard errors, and infinity if the outcome is certain", "[llm][acceptance]") {
  llm::Tally tally;
  tally.judged = 100;
  tally.accepted = 62;
  tally.expected = 50.0;
  tally.outcome_variance = 36.0;
  CHECK(tally.z() == Approx(2.0));
  tally.outcome_variance = 0.0;
  CHECK(tally.z() == INFINITY);  // mutant: 0, without the outcomes
  tally.accepted = 38;
  CHECK(tally.z() == -INFINITY);
  tally.expected = 38.0;
  CHECK(tally.z() == 0.0);
}

}  // namespace specsim::acceptance_test
