#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <vector>

#include "sim/foundation/base/check.h"
#include "sim/rounds/theory/bounds.h"
#include "sim/rounds/theory/multi_draft.h"
#include "tests/support/linear_programme.h"
#include "tests/support/optimal_acceptance.h"
#include "tests/support/random_automata.h"
#include "tests/support/sanitizers.h"

namespace specsim::theory_multi_draft_test {

using namespace specsim::theory;
using namespace specsim::tests;

namespace {

using Distribution = std::vector<double>;

// Every ordered draw of `drafts` tokens with its probability; without replacement it ends early if no token is left.
struct Draw {
  std::vector<std::size_t> tokens;
  double probability = 1.0;
};
std::vector<Draw> all_draws(const Distribution& draft, int drafts, bool replacement) {
  std::vector<Draw> draws = {{}};
  for (int k = 0; k < drafts; ++k) {
    std::vector<Draw> longer;
    for (const Draw& draw : draws) {
      double left = 0.0;
      const auto free = [&](std::size_t x) {
        return replacement || std::find(draw.tokens.begin(), draw.tokens.end(), x) == draw.tokens.end();
      };
      for (std::size_t x = 0; x < draft.size(); ++x) left += free(x) ? draft[x] : 0.0;
      if (left == 0.0) longer.push_back(draw);
      for (std::size_t x = 0; x < draft.size(); ++x) {
        if (!free(x) || draft[x] == 0.0) continue;
        Draw next = draw;
        next.tokens.push_back(x);
        next.probability *= draft[x] / left;
        longer.push_back(next);
      }
    }
    draws = longer;
  }
  return draws;
}

// The recursive rule on each draw, implemented independently: judge, else take (target - draft)+ and continue.
MultiDraftJudgement recursive_by_draws(const Distribution& target, const Distribution& draft, int drafts, bool replacement) {
  const Distribution none(target.size(), 0.0);
  const auto count = static_cast<std::size_t>(drafts);
  MultiDraftJudgement result{Distribution(count, 0.0), std::vector<Distribution>(count, none), {none, none}};
  for (const Draw& draw : all_draws(draft, drafts, replacement)) {
    Distribution wanted = target;
    Distribution told = draft;
    double reach = draw.probability;
    for (std::size_t k = 0; k < draw.tokens.size() && reach > 0.0; ++k) {
      const std::size_t x = draw.tokens[k];
      const double accept = std::min(1.0, wanted[x] / told[x]);
      result.by_rank[k] += reach * accept;
      result.by_token[k][x] += reach * accept;
      result.judgement.accepted[x] += reach * accept;
      reach *= 1.0 - accept;
      double mass = 0.0;
      for (std::size_t y = 0; y < wanted.size(); ++y) mass += wanted[y] = std::max(0.0, wanted[y] - told[y]);
      for (double& share : wanted) share = mass > 0.0 ? share / mass : 0.0;
      if (replacement) continue;
      const double without = 1.0 - told[x];
      told[x] = 0.0;
      for (double& share : told) share = without > 0.0 ? share / without : 0.0;
    }
    for (std::size_t y = 0; y < wanted.size(); ++y) result.judgement.rejected[y] += reach * wanted[y];
  }
  return result;
}

// The largest mass that can be moved from draws to tokens in them, within the target.
double transport(const Distribution& target, const std::vector<Draw>& draws) {
  std::vector<Distribution> rows(target.size() + draws.size());
  Distribution bounds = target;
  std::size_t variables = 0;
  for (const Draw& draw : draws) {
    bounds.push_back(draw.probability);
    std::vector<std::size_t> held = draw.tokens;
    std::sort(held.begin(), held.end());
    held.erase(std::unique(held.begin(), held.end()), held.end());
    variables += held.size();
  }
  for (Distribution& row : rows) row.assign(variables, 0.0);
  std::size_t variable = 0;
  for (std::size_t d = 0; d < draws.size(); ++d) {
    for (std::size_t x = 0; x < target.size(); ++x) {
      if (std::find(draws[d].tokens.begin(), draws[d].tokens.end(), x) == draws[d].tokens.end()) continue;
      rows[x][variable] = rows[target.size() + d][variable] = 1.0;
      ++variable;
    }
  }
  return maximise(Distribution(variables, 1.0), rows, bounds);
}

double cut_over_subsets(const Distribution& target, const Distribution& draft, int drafts) {
  double least = 0.0;
  for (std::size_t set = 0; set < std::size_t{1} << target.size(); ++set) {
    double target_mass = 0.0;
    double draft_mass = 0.0;
    for (std::size_t x = 0; x < target.size(); ++x) {
      if (((set >> x) & 1U) == 0) continue;
      target_mass += target[x];
      draft_mass += draft[x];
    }
    least = std::min(least, target_mass - std::pow(draft_mass, drafts));
  }
  return 1.0 + least;
}

double total(const Distribution& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum;
}

void require_lossless(const MultiDraftJudgement& result, const Distribution& target) {
  double accepted = 0.0;
  for (std::size_t x = 0; x < target.size(); ++x) {
    accepted += result.judgement.accepted[x];
    REQUIRE(std::abs(result.judgement.accepted[x] + result.judgement.rejected[x] - target[x]) < 1e-12);
    REQUIRE(result.judgement.accepted[x] >= 0.0);
    REQUIRE(result.judgement.rejected[x] >= 0.0);
  }
  REQUIRE(std::abs(accepted - total(result.by_rank)) < 1e-12);
}

double alpha_of(const MultiDraftJudgement& result) { return total(result.by_rank); }

}  // namespace

TEST_CASE("recursive rejection, with and without replacement, equals the rule on every draw", "[theory][multi_draft]") {
  Numbers numbers(2305);
  for (int trial = 0; trial < 300; ++trial) {
    const int vocab = 2 + trial % 4;
    const int drafts = 1 + trial % 4;
    const Distribution target = numbers.distribution(vocab, trial % 2 == 0);
    const Distribution draft = numbers.distribution(vocab, trial % 3 == 0);
    INFO("trial " << trial);
    for (const bool replacement : {true, false}) {
      const MultiDraftJudgement expected = recursive_by_draws(target, draft, drafts, replacement);
      const MultiDraftJudgement result =
          replacement ? judge_recursive(target, draft, drafts) : judge_without_replacement(target, draft, drafts);
      require_lossless(result, target);
      for (std::size_t k = 0; k < expected.by_rank.size(); ++k)
        REQUIRE(std::abs(result.by_rank[k] - expected.by_rank[k]) < 1e-13);
      for (std::size_t k = 0; k < expected.by_rank.size(); ++k)
        for (std::size_t x = 0; x < target.size(); ++x)
          REQUIRE(std::abs(result.by_token[k][x] - expected.by_token[k][x]) < 1e-13);
      for (std::size_t x = 0; x < target.size(); ++x) {
        REQUIRE(std::abs(result.judgement.accepted[x] - expected.judgement.accepted[x]) < 1e-13);
        REQUIRE(std::abs(result.judgement.rejected[x] - expected.judgement.rejected[x]) < 1e-13);
      }
    }
  }
}

TEST_CASE("multi-draft figures known by hand", "[theory][multi_draft]") {
  // Without replacement the ranks do not multiply: 7/8, not 13/16.
  const Distribution target = {0.5, 0.25, 0.25};
  const Distribution draft = {0.25, 0.5, 0.25};
  CHECK(std::abs(alpha_of(judge_without_replacement(target, draft, 2)) - 7.0 / 8.0) < 1e-15);
  // Two different drafts of two tokens hold everything: 1, compared with the iid optimum of .69.
  const Distribution even = {0.5, 0.5};
  const Distribution leaning = {0.9, 0.1};
  CHECK(std::abs(alpha_of(judge_without_replacement(even, leaning, 2)) - 1.0) < 1e-15);
  CHECK(std::abs(optimal_acceptance_without_replacement(even, leaning, 2) - 1.0) < 1e-15);
  CHECK(std::abs(optimal_acceptance(even, leaning, 2) - 0.69) < 1e-15);
  // Greedy target: a draft counts if it is the argmax.
  const Distribution cold = {0.0, 1.0, 0.0};
  CHECK(std::abs(alpha_of(judge_recursive(cold, draft, 3)) - 7.0 / 8.0) < 1e-15);
  CHECK(judge_top_ranked(target, draft, 2).by_rank == Distribution{0.25, 0.5});
  CHECK(judge_top_ranked(even, even, 3).by_rank == Distribution{0.5, 0.5, 0.0});
  // A token without draft probability is never a candidate, not even the target's likeliest one.
  CHECK(judge_top_ranked(Distribution{0.5, 0.3, 0.2}, Distribution{0.0, 1.0, 0.0}, 3).by_rank == Distribution{0.3, 0.0, 0.0});
}

TEST_CASE("K-SEQ: the factor is the least lossless one, acceptance as over every draw", "[theory][multi_draft]") {
  Numbers numbers(2310);
  int excesses = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const int vocab = 2 + trial % 4;
    const int drafts = 1 + trial % 4;
    const Distribution target = numbers.distribution(vocab, trial % 2 == 0);
    const Distribution draft = numbers.distribution(vocab, trial % 3 == 0);
    const double factor = kseq_factor(target, draft, drafts);
    REQUIRE(factor >= 1.0);
    REQUIRE(factor <= drafts);
    const MultiDraftJudgement result = judge_kseq(target, draft, drafts);
    require_lossless(result, target);
    const auto accepted_with = [&](double rho) {
      Distribution accepted(target.size(), 0.0);
      for (const Draw& draw : all_draws(draft, drafts, true)) {
        double reach = draw.probability;
        for (const std::size_t x : draw.tokens) {
          const double accept = std::min(1.0, target[x] / (rho * draft[x]));
          accepted[x] += reach * accept;
          reach *= 1.0 - accept;
        }
      }
      return accepted;
    };
    const Distribution accepted = accepted_with(factor);
    for (std::size_t x = 0; x < target.size(); ++x) REQUIRE(std::abs(result.judgement.accepted[x] - accepted[x]) < 1e-12);
    // A larger factor does not accept more; nor does a smaller one, unless it emits some token above the target's probability.
    REQUIRE(total(accepted_with(factor * 1.01)) <= total(accepted) + 1e-14);
    if (factor < 1.02) continue;
    const Distribution greedy = accepted_with(factor / 1.01);
    double excess = 0.0;
    for (std::size_t x = 0; x < target.size(); ++x) excess = std::max(excess, greedy[x] - target[x]);
    REQUIRE((excess > 1e-14 || total(greedy) <= total(accepted) + 1e-14));
    excesses += excess > 1e-14 ? 1 : 0;
  }
  CHECK(excesses > 50);
  CHECK(kseq_factor(Distribution{0.5, 0.5}, Distribution{0.9, 0.1}, 1) == 1.0);
}

TEST_CASE("optimal transport: sorted prefixes, all subsets and a linear programme agree", "[theory][multi_draft]") {
  Numbers numbers(11);
  for (int trial = 0; trial < 3000; ++trial) {
    const int vocab = 1 + trial % 6;
    const int drafts = 1 + trial % 5;
    const Distribution target = numbers.distribution(vocab, trial % 2 == 0);
    const Distribution draft = numbers.distribution(vocab, trial % 3 == 0);
    INFO("trial " << trial << " vocab " << vocab << " drafts " << drafts);
    const double optimum = optimal_acceptance(target, draft, drafts);
    REQUIRE(std::abs(optimum - cut_over_subsets(target, draft, drafts)) < 1e-14);
    if (drafts == 1) REQUIRE(std::abs(optimum - overlap(target, draft)) < 1e-14);
    if (vocab > 4 || drafts > 3 || trial % 5 != 0) continue;
    REQUIRE(std::abs(optimum - transport(target, all_draws(draft, drafts, true))) < 1e-9);
    REQUIRE(std::abs(optimal_acceptance_without_replacement(target, draft, drafts) -
                     transport(target, all_draws(draft, drafts, false))) < 1e-9);
  }
}

TEST_CASE("optimal transport at vocabulary 128,000 takes less than 50 ms of processor time", "[theory][multi_draft]") {
  Numbers numbers(128);
  const Distribution target = numbers.distribution(128000, false);
  const Distribution draft = numbers.distribution(128000, true);
  double fastest = 1.0;
  double optimum = 0.0;
  for (int run = 0; run < 3; ++run) {
    const std::clock_t start = std::clock();
    optimum = optimal_acceptance(target, draft, 4);
    fastest = std::min(fastest, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  INFO("seconds " << fastest);
  CHECK(optimum > alpha_of(judge_kseq(target, draft, 4)));
  CHECK((fastest < 0.05 || tests::kSanitized));
}

TEST_CASE("orders of the multi-draft rules hold on 12,000 pairs", "[theory][multi_draft][orders]") {
  constexpr double slack = 1e-12;
  Numbers numbers(31);
  int kseq_wins = 0;
  int beyond_optimum = 0;
  for (int trial = 0; trial < 12000; ++trial) {
    const int vocab = 2 + trial % 7;
    const Distribution target = numbers.distribution(vocab, trial % 2 == 0);
    const Distribution draft = numbers.distribution(vocab, trial % 3 == 0);
    double recursive_before = 0.0;
    double kseq_before = 0.0;
    double without_before = 0.0;
    double optimum_before = 0.0;
    for (int drafts = 1; drafts <= 3; ++drafts) {
      const double optimum = optimal_acceptance(target, draft, drafts);
      const double recursive = alpha_of(judge_recursive(target, draft, drafts));
      const double kseq = alpha_of(judge_kseq(target, draft, drafts));
      const double without = alpha_of(judge_without_replacement(target, draft, drafts));
      INFO("trial " << trial << " vocab " << vocab << " drafts " << drafts);
      REQUIRE(optimum >= kseq - slack);
      REQUIRE(optimum >= recursive - slack);
      REQUIRE(kseq >= (1.0 - std::exp(-1.0)) * optimum - slack);  // proved with SpecTr
      REQUIRE(optimal_acceptance_without_replacement(target, draft, drafts) >= without - slack);
      REQUIRE(optimum >= optimum_before - slack);
      REQUIRE(recursive >= recursive_before - slack);
      REQUIRE(kseq >= kseq_before - slack);
      REQUIRE(without >= without_before - slack);
      REQUIRE(kseq >= recursive - slack);  // seen without exception; no proof is known to us
      kseq_wins += kseq > recursive + slack ? 1 : 0;
      beyond_optimum += without > optimum + slack ? 1 : 0;
      optimum_before = optimum;
      recursive_before = recursive;
      kseq_before = kseq;
      without_before = without;
    }
  }
  CHECK(kseq_wins > 1000);
  CHECK(beyond_optimum > 1000);  // drafts that differ: the iid optimum does not bound them
}

TEST_CASE("multi-draft functions refuse malformed distributions and counts", "[theory][multi_draft]") {
  const Distribution even = {0.5, 0.5};
  CHECK_THROWS_AS(judge_recursive(even, even, 0), InvariantBroken);
  CHECK_THROWS_AS(judge_kseq(even, Distribution{0.5, 0.4}, 2), InvariantBroken);
  CHECK_THROWS_AS(optimal_acceptance(even, Distribution{1.0}, 2), InvariantBroken);
  CHECK_THROWS_AS(judge_without_replacement(Distribution(64, 1.0 / 64), Distribution(64, 1.0 / 64), 8), InvariantBroken);
  CHECK_THROWS_AS(optimal_acceptance_without_replacement(Distribution(32, 1.0 / 32), Distribution(32, 1.0 / 32), 2),
                  InvariantBroken);
}

}  // namespace specsim::theory_multi_draft_test
