// Fits to few data, where the prior has an effect: half a count for every probability (Krichevsky and Trofimov 1981).
#include "sim/experiments/fit/fitted_process.h"

#include <catch2/catch.hpp>

#include <vector>

namespace specsim::fit_prior_test {

namespace {

constexpr int kDrafted = 1000;  // no round accepts all, so that every position is judged

// A text as rounds: each accepts the given number of tokens, and rejects the next one.
fit::RecordedRequest text(const std::vector<int>& accepted) {
  fit::RecordedRequest request;
  for (const int count : accepted) request.rounds.push_back({count, kDrafted});
  return request;
}

}  // namespace

TEST_CASE("an acceptance rate of few tokens is drawn to the middle by half a count on each side", "[fit]") {
  // 3 + 0 + 5 accepted, 3 rejected: (8 + 1/2) / (11 + 1). Mutants: no prior, 8/11; a whole count on each side, 9/13.
  const fit::FittedProcess constant = fit::fit_process(fit::Process::constant, 1, {text({3, 0, 5})});
  CHECK(constant.alpha[0][0] == Approx(8.5 / 12.0).epsilon(1e-12));
  // Nothing was ever rejected.
  fit::RecordedRequest all;
  all.rounds = {{4, 4}};
  CHECK(fit::fit_process(fit::Process::constant, 1, {all}).alpha[0][0] == Approx(4.5 / 5.0).epsilon(1e-12));
}

TEST_CASE("moves between regimes are counted with half a count each", "[fit]") {
  // Forty accepted, ten rejected, and the same again: the states are nearly certain. Of the nineteen moves from a rejecting
  // position one leads to an accepting one, (1 + 1/2) / (19 + 1) = .075. Mutants: no prior, .053; a whole count each, .095. Of
  // eighty moves from an accepting position two lead out, 2.5 / 81.
  std::vector<int> rounds;
  for (int i = 0; i < 2; ++i) {
    rounds.push_back(40);
    for (int rejected = 1; rejected < 10; ++rejected) rounds.push_back(0);
  }
  const fit::FittedProcess regimes = fit::fit_process(fit::Process::regimes, 2, {text(rounds)});
  const std::size_t rejecting = regimes.alpha[0][0] < regimes.alpha[1][0] ? 0 : 1;
  const std::size_t accepting = 1 - rejecting;
  CHECK(regimes.transition[rejecting][accepting] == Approx(0.075).epsilon(0.1));
  CHECK(regimes.transition[accepting][rejecting] == Approx(2.5 / 81.0).epsilon(0.1));
  CHECK(regimes.alpha[rejecting][0] == Approx(0.5 / 21.0).epsilon(0.2));
  CHECK(regimes.alpha[accepting][0] == Approx(80.5 / 81.0).epsilon(0.005));
}

}  // namespace specsim::fit_prior_test
