#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include "sim/foundation/base/check.h"
#include "sim/rounds/theory/requests.h"

namespace specsim::theory_requests_test {

using namespace specsim::theory;

namespace {

// Kept tokens over all rounds.
double counting_cut(const RequestTotals& totals) {
  return (totals.whole_tokens + totals.cut_tokens) / (totals.whole_rounds + totals.cut_rounds);
}

// Every sequence of rounds of one request: sums of probability-weighted figures, and of squares of the residual.
struct Brute {
  RequestTotals totals;
  double residual = 0.0;
  double residual_square = 0.0;
};

void follow(const RoundDistribution& distribution, int left, int tokens, int rounds, double probability, double ratio,
            Brute& brute) {
  const double residual = tokens - ratio * rounds;
  const auto finish = [&](double chance, bool cut) {
    brute.totals.whole_rounds += chance * rounds;
    brute.totals.whole_tokens += chance * tokens;
    brute.residual += chance * residual;
    brute.residual_square += chance * residual * residual;
    if (cut) {
      brute.totals.cut_rounds += chance;
      brute.totals.cut_tokens += chance * left;
    }
  };
  if (left == 0) {
    finish(probability, false);
    return;
  }
  for (int emitted = 1; emitted <= static_cast<int>(distribution.accepted.size()); ++emitted) {
    const double chance = probability * distribution.accepted[static_cast<std::size_t>(emitted - 1)];
    if (emitted > left) {
      finish(chance, true);
    } else {
      follow(distribution, left - emitted, tokens + emitted, rounds + 1, chance, ratio, brute);
    }
  }
}

}  // namespace

TEST_CASE("request totals equal a walk over every sequence of rounds", "[theory][requests]") {
  for (const RoundDistribution& distribution : {constant_alpha(0.7, 3), by_position(std::vector<double>{0.9, 0.2}),
                                                constant_alpha(0.4, 0), constant_alpha(1.0, 2), constant_alpha(0.0, 2)}) {
    for (const int request_tokens : {1, 2, 3, 4, 7, 12}) {
      INFO("draft_length " << distribution.draft_length() << " tokens " << request_tokens);
      Brute brute;
      follow(distribution, request_tokens, 0, 0, 1.0, 0.0, brute);
      const RequestTotals totals = request_totals(distribution, request_tokens);
      CHECK(std::abs(totals.whole_rounds - brute.totals.whole_rounds) < 1e-13);
      CHECK(std::abs(totals.whole_tokens - brute.totals.whole_tokens) < 1e-13);
      CHECK(std::abs(totals.cut_rounds - brute.totals.cut_rounds) < 1e-13);
      CHECK(std::abs(totals.cut_tokens - brute.totals.cut_tokens) < 1e-13);
      CHECK(std::abs(totals.whole_tokens + totals.cut_tokens - request_tokens) < 1e-12);
    }
  }
}

TEST_CASE("the standard error uses the exact second moment of the ratio's residual", "[theory][requests]") {
  const std::vector<RequestType> types = {{1.0, constant_alpha(0.5, 3)}, {3.0, constant_alpha(0.9, 3)}};
  const RequestTotals totals = request_totals(types, 9);
  Brute low;
  Brute high;
  follow(types[0].distribution, 9, 0, 0, 1.0, totals.tokens_per_round(), low);
  follow(types[1].distribution, 9, 0, 0, 1.0, totals.tokens_per_round(), high);
  CHECK(std::abs(0.25 * low.residual + 0.75 * high.residual) < 1e-13);
  const double expected = std::sqrt((0.25 * low.residual_square + 0.75 * high.residual_square) / 40.0) / totals.whole_rounds;
  CHECK(std::abs(tokens_per_round_standard_error(types, 9, 40.0) - expected) < 1e-13);
}

TEST_CASE("cut rounds bias short requests down, and the limit is harmonic", "[theory][requests]") {
  const std::vector<RequestType> types = {{1.0, constant_alpha(0.5, 4)}, {1.0, constant_alpha(0.9, 4)}};
  const double limit = equal_tokens_limit(types);
  double previous = 1.0;
  for (const int request_tokens : {10, 100, 1000, 10000}) {
    const double now = request_totals(types, request_tokens).tokens_per_round();
    CHECK(now > previous);
    CHECK(now < limit);
    previous = now;
  }
  CHECK(std::abs(previous - limit) < 2e-3);
  CHECK(std::abs(counting_cut(request_totals(types, 10000)) - limit) < 2e-3);
  // Wald: at alpha 0 or without drafts no round is cut.
  CHECK(request_totals(constant_alpha(0.0, 4), 10).tokens_per_round() == 1.0);
  // Certain acceptance of more than the request holds: the only round is cut.
  CHECK_THROWS_AS(request_totals(constant_alpha(1.0, 4), 3).tokens_per_round(), InvariantBroken);
  CHECK(counting_cut(request_totals(constant_alpha(1.0, 4), 3)) == 3.0);
}

TEST_CASE("pooling alpha .5 and .9 at draft length 4", "[theory][requests][claims]") {
  const std::vector<double> alpha = {0.5, 0.9};
  const std::vector<double> weight = {1.0, 1.0};
  const PoolingFigures figures = pooling_figures(alpha, weight, 4);
  CHECK(std::abs(figures.equal_tokens - 2.630) < 0.0005);
  CHECK(std::abs(figures.equal_rounds - 3.016) < 0.0005);
  CHECK(std::abs(figures.mean_alpha - 0.7) < 1e-15);
  CHECK(std::abs(figures.at_mean_alpha - 2.773) < 0.0005);
  CHECK(std::abs(figures.at_pooled_alpha - 2.700) < 0.0005);
  const std::vector<double> same = {0.6, 0.6};
  const PoolingFigures alike = pooling_figures(same, weight, 4);
  CHECK(std::abs(alike.equal_tokens - alike.at_mean_alpha) < 1e-14);
  CHECK(std::abs(alike.equal_rounds - alike.at_pooled_alpha) < 1e-14);
}

namespace {

// The same for requests whose state moves with every token: position by position, round by round.
struct MovingWalk {
  const Modulation& modulation;
  int draft_length;
  double ratio = 0.0;
  Brute brute;
  double tries = 0.0;
  double accepted = 0.0;

  void round(std::size_t state, int left, int tokens, int rounds, double probability) {
    const double residual = tokens - ratio * rounds;
    if (left > 0) return position(state, 0, left, tokens, rounds, probability);
    finish(probability, tokens, rounds, residual);
  }
  void finish(double chance, int tokens, int rounds, double residual) {
    brute.totals.whole_rounds += chance * rounds;
    brute.totals.whole_tokens += chance * tokens;
    brute.residual += chance * residual;
    brute.residual_square += chance * residual * residual;
  }
  void end_of_round(const std::vector<double>& moves, std::size_t state, int emitted, int left, int tokens, int rounds,
                    double probability) {
    const auto states = static_cast<std::size_t>(modulation.states);
    for (std::size_t next = 0; next < states; ++next) {
      const double chance = probability * moves[state * states + next];
      if (chance == 0.0) continue;
      if (emitted <= left) {
        round(next, left - emitted, tokens + emitted, rounds + 1, chance);
      } else {
        finish(chance, tokens, rounds, tokens - ratio * rounds);
        brute.totals.cut_rounds += chance;
        brute.totals.cut_tokens += chance * left;
      }
    }
  }
  void position(std::size_t state, int depth, int left, int tokens, int rounds, double probability) {
    if (depth == draft_length) return end_of_round(modulation.bonus, state, depth + 1, left, tokens, rounds, probability);
    const auto states = static_cast<std::size_t>(modulation.states);
    const auto j = static_cast<std::size_t>(depth);
    tries += probability;
    end_of_round(modulation.reject[j], state, depth + 1, left, tokens, rounds, probability);
    for (std::size_t next = 0; next < states; ++next) {
      const double chance = probability * modulation.accept[j][state * states + next];
      if (chance == 0.0) continue;
      accepted += chance;
      position(next, depth + 1, left, tokens, rounds, chance);
    }
  }
};

Modulation three_depths() {
  Modulation modulation;
  modulation.states = 2;
  modulation.accept = {{.5, .2, .1, .3}, {.3, .3, .2, .1}, {.1, .5, .3, .3}};
  modulation.reject = {{.1, .2, .4, .2}, {.2, .2, .3, .4}, {.3, .1, .1, .3}};
  modulation.bonus = {.7, .3, .4, .6};
  return modulation;
}

}  // namespace

TEST_CASE("requests whose context moves equal a walk over every path", "[theory][requests]") {
  const Modulation modulation = three_depths();
  const std::vector<double> start = {.35, .65};
  for (const int draft_length : {0, 1, 3}) {
    for (const int request_tokens : {1, 2, 3, 5, 6}) {
      INFO("draft_length " << draft_length << " tokens " << request_tokens);
      const MovingRequests found = moving_requests(modulation, start, draft_length, request_tokens);
      const double ratio = found.totals.whole_rounds > 0.0 ? found.totals.tokens_per_round() : 0.0;
      MovingWalk walk{modulation, draft_length, ratio, {}};
      for (std::size_t s = 0; s < 2; ++s) walk.round(s, request_tokens, 0, 0, start[s]);
      CHECK(std::abs(found.totals.whole_rounds - walk.brute.totals.whole_rounds) < 1e-12);
      CHECK(std::abs(found.totals.whole_tokens - walk.brute.totals.whole_tokens) < 1e-12);
      CHECK(std::abs(found.totals.cut_rounds - walk.brute.totals.cut_rounds) < 1e-12);
      CHECK(std::abs(found.totals.cut_tokens - walk.brute.totals.cut_tokens) < 1e-12);
      CHECK(std::abs(found.tries - walk.tries) < 1e-12);
      CHECK(std::abs(found.accepted - walk.accepted) < 1e-12);
      CHECK(std::abs(found.residual - walk.brute.residual_square) < 1e-12);
      CHECK(std::abs(walk.brute.residual) < 1e-12);
    }
  }
}

TEST_CASE("contexts that do not move mix the given number of request types", "[theory][requests]") {
  const std::vector<RequestType> types = {{1.0, constant_alpha(0.5, 3)}, {3.0, constant_alpha(0.9, 3)}};
  const std::vector<double> still = {1.0, 0.0, 0.0, 1.0};
  const MovingRequests found =
      moving_requests(hidden_regimes(std::vector<double>{0.5, 0.9}, still), std::vector<double>{0.25, 0.75}, 3, 40);
  const RequestTotals totals = request_totals(types, 40);
  CHECK(found.totals.tokens_per_round() == Approx(totals.tokens_per_round()).epsilon(1e-12));
  CHECK(found.totals.cut_tokens == Approx(totals.cut_tokens).epsilon(1e-12));
  CHECK(found.tokens_per_round_standard_error(40.0) == Approx(tokens_per_round_standard_error(types, 40, 40.0)).epsilon(1e-10));
}

}  // namespace specsim::theory_requests_test
