// Rules in which the draft may replace the target: the emitted distribution at a drafted position, written from the papers.
#include "tests/exact/exact_cells.h"

#include <numeric>

namespace specsim::cascades_test {

using namespace specsim::tests;

namespace {

constexpr double kExact = 1e-12;

Distribution first_token(const Distribution& target, const Distribution& draft, const std::string& verifier) {
  return audit::audit_cell(cell_of(explicit_pair(target, draft), "{process: fixed}", chain(1), verifier)).starts[0].first_token;
}

// The tokens of a sample of the draft that the rule keeps; the others are replaced by samples of the target.
std::vector<bool> kept(const Distribution& target, const Distribution& draft, const std::string& rule, double alpha) {
  const double p = *std::max_element(target.begin(), target.end());
  const double q = *std::max_element(draft.begin(), draft.end());
  double variation = 0.0;
  for (std::size_t x = 0; x < target.size(); ++x) variation += 0.5 * std::abs(target[x] - draft[x]);
  std::vector<bool> keeps(target.size());
  for (std::size_t x = 0; x < target.size(); ++x)
    keeps[x] = rule == "chow"       ? !(q < 1.0 - alpha)
               : rule == "diff"     ? !(q < p - alpha)
               : rule == "opt"      ? !(q < p - alpha * variation)
               : rule == "token_v1" ? !(draft[x] < p - alpha)
               : rule == "token_v2" ? !(target[x] < p - alpha)
                                    : !(target[x] < (1.0 - alpha) * p);
  return keeps;
}

Distribution cascade(const Distribution& target, const Distribution& draft, const std::vector<bool>& keeps) {
  Distribution emitted(target.size(), 0.0);
  for (std::size_t x = 0; x < target.size(); ++x)
    for (std::size_t y = 0; y < target.size(); ++y) emitted[keeps[x] ? x : y] += draft[x] * target[y];
  return emitted;
}

}  // namespace

TEST_CASE("speculative cascades emit the distribution of their deferral rule, by position and by token") {
  InputNumbers numbers(181);
  double other_residual = 0.0;
  double other_rule = 0.0;
  for (int i = 0; i < 40; ++i) {
    const std::size_t vocab = 2 + numbers.below(3);
    const Distribution target = numbers.distribution(vocab, 0.1);
    const Distribution draft = numbers.distribution(vocab, 0.1);
    for (const char* rule : {"chow", "diff", "opt", "token_v1", "token_v2", "token_v3"}) {
      const double alpha = 0.6 * numbers.next();
      const std::string verifier = fmt::format("{{kind: speculative_cascade, rule: {}, alpha: {:.17g}}}", rule, alpha);
      INFO(explicit_pair(target, draft) << ", " << verifier);
      const Distribution own = first_token(target, draft, verifier);
      const Distribution pi = cascade(target, draft, kept(target, draft, rule, alpha));
      CHECK(largest_difference(own, pi) <= kExact);
      // Detectable mistakes: the residual of the target instead of the cascade's, and alpha left out.
      Distribution wrong(vocab);
      double accepted = 0.0;
      double mass = 0.0;
      for (std::size_t x = 0; x < vocab; ++x) {
        accepted += std::min(pi[x], draft[x]);
        mass += std::max(target[x] - draft[x], 0.0);
      }
      for (std::size_t x = 0; x < vocab; ++x)
        wrong[x] = std::min(pi[x], draft[x]) + (mass > 0.0 ? (1.0 - accepted) * std::max(target[x] - draft[x], 0.0) / mass : 0.0);
      other_residual = std::max(other_residual, largest_difference(own, wrong));
      other_rule = std::max(other_rule, largest_difference(own, cascade(target, draft, kept(target, draft, rule, 0.0))));
    }
  }
  CHECK(other_residual > 1e-2);
  CHECK(other_rule > 1e-2);
}

TEST_CASE("a cascade's ends: all is left to the target, or to the draft; the bonus token is the target's") {
  const Distribution target = {0.5, 0.3, 0.2};
  const Distribution draft = {0.2, 0.35, 0.45};
  for (const char* verifier :
       {"{kind: speculative_cascade, rule: chow, alpha: 0}", "{kind: speculative_cascade, rule: diff, alpha: -1}",
        "{kind: speculative_cascade, rule: opt, alpha: -1000}", "{kind: speculative_cascade, rule: token_v1, alpha: -1}",
        "{kind: speculative_cascade, rule: token_v2, alpha: -1}", "{kind: judge_decoding, rate: 0}"}) {
    INFO(verifier);
    CHECK(audit::audit_cell(cell_of(explicit_pair(target, draft), "{process: fixed}", chain(2), verifier)).lossless());
  }
  for (const char* verifier :
       {"{kind: speculative_cascade, rule: chow, alpha: 1}", "{kind: speculative_cascade, rule: diff, alpha: 1}",
        "{kind: speculative_cascade, rule: opt, alpha: 1000}", "{kind: speculative_cascade, rule: token_v1, alpha: 1}",
        "{kind: speculative_cascade, rule: token_v3, alpha: 1}", "{kind: judge_decoding, rate: 1}"}) {
    INFO(verifier);
    const audit::AuditReport report =
        audit::audit_cell(cell_of(explicit_pair(target, draft), "{process: fixed}", chain(1), verifier));
    CHECK(largest_difference(report.starts[0].first_token, draft) <= kExact);
    CHECK(report.starts[0].expected_accepted == Approx(1.0).epsilon(0).margin(kExact));
    for (std::size_t x = 0; x < target.size(); ++x)
      for (std::size_t y = 0; y < target.size(); ++y)
        CHECK(report.starts[0].joint[x * target.size() + y] == Approx(draft[x] * target[y]).epsilon(0).margin(kExact));
  }
}

TEST_CASE(
    "a judge that passes a share of the rejected tokens emits as much of the draft, and alpha grows by as much of the rest") {
  InputNumbers numbers(182);
  double unjudged_residual = 0.0;
  for (int i = 0; i < 40; ++i) {
    const std::size_t vocab = 2 + numbers.below(3);
    const Distribution target = numbers.distribution(vocab, 0.1);
    const Distribution draft = numbers.distribution(vocab, 0.1);
    const double rate = numbers.next();
    INFO(explicit_pair(target, draft) << ", " << rate);
    const audit::AuditReport report = audit::audit_cell(cell_of(explicit_pair(target, draft), "{process: fixed}", chain(1),
                                                                fmt::format("{{kind: judge_decoding, rate: {:.17g}}}", rate)));
    double overlap = 0.0;
    Distribution mixed(vocab);
    Distribution from_target(vocab);  // the mistake: after a rejection the target's own sample
    for (std::size_t x = 0; x < vocab; ++x) {
      overlap += std::min(target[x], draft[x]);
      mixed[x] = (1.0 - rate) * target[x] + rate * draft[x];
    }
    for (std::size_t x = 0; x < vocab; ++x)
      from_target[x] =
          std::min(target[x], draft[x]) + rate * std::max(draft[x] - target[x], 0.0) + (1.0 - rate) * (1.0 - overlap) * target[x];
    CHECK(largest_difference(report.starts[0].first_token, mixed) <= kExact);
    CHECK(report.starts[0].alpha == Approx(overlap + rate * (1.0 - overlap)).epsilon(0).margin(kExact));
    CHECK(report.first_token_variation == Approx(rate * (1.0 - overlap)).epsilon(0).margin(kExact));
    unjudged_residual = std::max(unjudged_residual, largest_difference(report.starts[0].first_token, from_target));
  }
  CHECK(unjudged_residual > 1e-2);
}

}  // namespace specsim::cascades_test
