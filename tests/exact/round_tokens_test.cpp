// Theory of the tokens that one round of a lossy rule emits, by class, compared with every round of the built-in rule.
#include "sim/experiments/judge/facts.h"
#include "sim/experiments/judge/prediction.h"
#include "sim/rounds/decode/output_classes.h"
#include "tests/exact/exact_cells.h"

#include <set>

namespace specsim::round_tokens_test {

using namespace specsim::tests;

namespace {

constexpr double kExact = 1e-12;

struct Moments {
  std::vector<double> mean;
  std::vector<double> covariance;
};

// Moments of the counts by class over all possible rounds.
Moments moments_of(const std::vector<audit::AuditRound>& rounds, const decode::OutputClasses& classes) {
  const auto count = static_cast<std::size_t>(classes.count);
  Moments moments{std::vector<double>(count, 0.0), std::vector<double>(count * count, 0.0)};
  for (const audit::AuditRound& round : rounds) {
    std::vector<double> own(count, 0.0);
    for (const Token x : round.emitted) own[classes.of_token[x]] += 1.0;
    for (std::size_t a = 0; a < count; ++a) {
      moments.mean[a] += round.probability * own[a];
      for (std::size_t b = 0; b < count; ++b) moments.covariance[a * count + b] += round.probability * own[a] * own[b];
    }
  }
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < count; ++b) moments.covariance[a * count + b] -= moments.mean[a] * moments.mean[b];
  return moments;
}

}  // namespace

TEST_CASE("lossy rules: the tokens of a round by class, in the mean and together, are those of every round that there is") {
  const std::string paths = "paths: [[0], [1], [2], [0, 0], [0, 1], [1, 0], [0, 0, 0]]";
  const std::string drawn = "{kind: tree_static, branching: [2, 1], siblings: sampled}";
  const std::string apart = "{kind: tree_static, paths: [[0], [1], [0, 0], [0, 1]], siblings: without_replacement}";
  const std::string chosen = fmt::format("{{kind: tree_static, {}, siblings: top_k}}", paths);
  const std::string typical = "{kind: typical, epsilon: 0.3, delta: 0.5}";
  const std::string medusa = "{kind: typical_medusa, epsilon: 0.3, delta: 0.5}";
  const std::vector<std::pair<std::string, std::string>> cells = {
      {chain(3), "hsd"},
      {chosen, "{kind: relaxed_threshold, single: 0.45, acc: 0.8}"},
      {chain(2, true), "{kind: relaxed_threshold, single: 1, acc: 0.7}"},
      {drawn, "{kind: top_k_match, k: 2}"},
      {apart, "{kind: top_k_match, k: 1}"},
      {chosen, "{kind: top_k_match, k: 2}"},
      {drawn, typical},
      {apart, typical},
      {chosen, typical},
      {chosen, medusa}};
  InputNumbers numbers(118);
  std::set<std::string> correlated;  // rules whose tokens are correlated beyond the counts of single tokens
  for (int i = 0; i < 12; ++i) {
    const Distribution target = numbers.distribution(4, 0.1);
    const Distribution draft = numbers.distribution(4, 0.0);
    for (const auto& [drafter, verifier] : cells) {
      INFO(explicit_pair(target, draft) << ", " << drafter << ", " << verifier);
      const spec::Cell cell = cell_of(explicit_pair(target, draft), "{process: fixed}", drafter, verifier);
      const judge::DistributionFacts facts = judge::gather_facts(cell, spec::plan_of(cell), nullptr);
      REQUIRE(facts.tokens_of_round);
      const audit::AuditReport report = audit::audit_cell(cell, {.keep_rounds = true});
      Distribution drafted = draft;
      if (drafter == chain(2, true)) {
        drafted.assign(draft.size(), 0.0);
        drafted[static_cast<std::size_t>(std::max_element(draft.begin(), draft.end()) - draft.begin())] = 1.0;
      }
      const Moments moments = moments_of(report.starts[0].rounds, decode::output_classes(target, drafted, true));
      CHECK(facts.tokens_of_round->mass() == Approx(1.0).epsilon(0).margin(kExact));
      CHECK(largest_difference(facts.tokens_of_round->mean(), moments.mean) <= kExact);
      CHECK(largest_difference(facts.tokens_of_round->covariance(), moments.covariance) <= kExact);
      const auto classes = moments.mean.size();
      for (std::size_t a = 0; a < classes; ++a)
        if (moments.covariance[a * classes + a] > moments.mean[a]) correlated.insert(verifier);
    }
  }
  CHECK(correlated.size() >= 3);  // cases where a multinomial covariance is wrong
}

TEST_CASE(
    "lossy rules on chains that are judged token by token, and lossless rules, have no such moments; nor have moving contexts") {
  const std::string pair = explicit_pair({0.5, 0.3, 0.2}, {0.2, 0.2, 0.6});
  const auto known = [&](const spec::Cell& cell) {
    return judge::gather_facts(cell, spec::plan_of(cell), nullptr).tokens_of_round.has_value();
  };
  CHECK(known(cell_of(pair, "{process: fixed}", chain(2), "hsd")));
  CHECK_FALSE(known(cell_of(pair, "{process: fixed}", chain(2), "block")));
  CHECK_FALSE(known(cell_of(pair, "{process: fixed}", chain(2), "{kind: typical, epsilon: 0.3}")));
  CHECK_FALSE(known(cell_of(pair, "{process: iid, pool: 2}", chain(2), "hsd")));
  CHECK_FALSE(known(cell_of(pair, "{process: markov}", chain(2), "hsd")));
}

TEST_CASE("typical_medusa: the program's entropy has 1e-5 within its logarithms, and the bar rises by it") {
  const Distribution target = {0.6, 0.3, 0.1};
  double entropy = 0.0;
  for (const double p : target) entropy -= p * std::log(p);
  // The last token, which is always drafted, lies a little above the bar of the exact entropy; 1e-5 raises that by three parts in
  // 100,000. Mutants: nothing within the logarithms, and 1e-2.
  const auto accepted = [&](const char* verifier, double below) {
    const spec::Cell cell =
        cell_of(explicit_pair(target, {0.0, 0.0, 1.0}), "{process: fixed}", chain(1),
                fmt::format("{{kind: {}, epsilon: 1, delta: {:.17g}}}", verifier, 0.1 * std::exp(entropy) * (1.0 - below)));
    const judge::Prediction prediction =
        judge::predict_exact(cell, judge::gather_facts(cell, spec::plan_of(cell), nullptr), 1000);
    const double expected = audit::audit_cell(cell).starts[0].expected_accepted;
    CHECK(prediction.tokens_per_round == Approx(1.0 + expected).epsilon(0).margin(kExact));
    return expected;
  };
  CHECK(accepted("typical", 1.5e-5) == Approx(1.0));
  CHECK(accepted("typical_medusa", 1.5e-5) == 0.0);
  CHECK(accepted("typical_medusa", 1e-3) == Approx(1.0));
}

// Two kinds of positions, each with two tokens; the next position's kind is drawn independently. Three drafted tokens are kept
// with min(1, r_1 r_2 r_3), else the first i with Z / (Z + 1 - p_i), from the end backwards. Positions after the final token keep
// their kinds in the next round. With two drafted tokens nothing would show: the second is judged by its own position alone.
TEST_CASE("hsd: the accepted tokens reveal positions after them, if contexts move by themselves") {
  struct Kind {
    Distribution target;
    Distribution draft;
  };
  const std::vector<Kind> kinds = {{{0.9, 0.1}, {0.5, 0.5}}, {{0.8, 0.2}, {0.1, 0.9}}};
  constexpr int kWindows = 8;
  const auto kind = [&](int window, int position) -> const Kind& {
    return kinds[static_cast<std::size_t>(window >> position & 1)];
  };
  double accepted[kWindows][4] = {};
  for (int window = 0; window < kWindows; ++window)
    for (int text = 0; text < 8; ++text) {
      double drafted = 1.0;
      double joint = 1.0;
      double p[4] = {1.0};
      for (int i = 0; i < 3; ++i) {
        const auto x = static_cast<std::size_t>(text >> i & 1);
        const double ratio = kind(window, i).target[x] / kind(window, i).draft[x];
        drafted *= kind(window, i).draft[x];
        joint *= ratio;
        p[i + 1] = std::min(1.0, p[i] * ratio);
      }
      accepted[window][3] += drafted * std::min(1.0, joint);
      double back = drafted * (1.0 - std::min(1.0, joint));
      for (int i = 2; i > 0; --i) {
        double z = 0.0;
        for (std::size_t x = 0; x < 2; ++x) z += std::max(0.0, p[i] * kind(window, i).target[x] - kind(window, i).draft[x]);
        const double stays = z > 0.0 ? z / (z + 1.0 - p[i]) : 0.0;
        accepted[window][i] += back * stays;
        back *= 1.0 - stays;
      }
      accepted[window][0] += back;
    }
  constexpr int kRoundsOfSequence = 7;
  double tokens = 0.0;
  double blind = 0.0;  // as if each round met positions that nobody has seen
  std::vector<double> windows(kWindows, 1.0 / kWindows);
  for (int round = 0; round < kRoundsOfSequence; ++round) {
    std::vector<double> next(kWindows, 0.0);
    for (int window = 0; window < kWindows; ++window)
      for (int j = 0; j < 4; ++j) {
        const double mass = windows[static_cast<std::size_t>(window)] * accepted[window][j];
        tokens += (j + 1.0) * mass;
        blind += (j + 1.0) * accepted[window][j] / kWindows;
        const int kept = std::max(0, 2 - j);  // positions that the next round meets again
        for (int other = 0; other < kWindows; ++other)
          if ((other & ((1 << kept) - 1)) == (window >> (j + 1) & ((1 << kept) - 1)))
            next[static_cast<std::size_t>(other)] += mass / (kWindows >> kept);
      }
    windows = next;
  }
  const auto one_kind = [&](const Kind& own) {
    return fmt::format("{{target: {}, draft: {}}}", explicit_distribution(own.target), explicit_distribution(own.draft));
  };
  const spec::Cell cell =
      cell_of("{vocab: 2, target: {family: uniform}, draft: {family: uniform}}",
              fmt::format("{{process: regimes, sequence_rounds: {}, states: [{}, {}], transition: [[0.5, 0.5], [0.5, 0.5]]}}",
                          kRoundsOfSequence, one_kind(kinds[0]), one_kind(kinds[1])),
              chain(3), "hsd");
  const judge::Prediction prediction =
      judge::predict_exact(cell, judge::gather_facts(cell, spec::plan_of(cell), nullptr), kRoundsOfSequence);
  REQUIRE(prediction.known);
  CHECK(prediction.tokens_per_round == Approx(tokens / kRoundsOfSequence).epsilon(0).margin(kExact));
  CHECK(std::abs(blind - tokens) / kRoundsOfSequence > 1e-3);
}

}  // namespace specsim::round_tokens_test
