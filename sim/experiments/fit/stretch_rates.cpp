#include "sim/experiments/fit/stretch_rates.h"

#include <numeric>
#include <tuple>

namespace specsim::fit {

namespace {

using Law = StretchRates;

double sum_of(const Law& law) { return std::accumulate(law.begin(), law.end(), 0.0); }

Law step_on(const Law& law, double persistence) {
  const double any = (1.0 - persistence) * sum_of(law) / static_cast<double>(law.size());
  Law next = law;
  for (double& share : next) share = persistence * share + any;
  return next;
}

struct RoundLaws {
  std::vector<double> reached;  // [depth]: share of rounds that accept so many tokens and more
  Law next = {};                // where the next round begins
};

RoundLaws go_round(const std::vector<StretchRates>& by_depth, double persistence, Law law) {
  RoundLaws round;
  round.reached.push_back(sum_of(law));
  const auto end = [&](const Law& own) {
    const Law moved = step_on(own, persistence);
    for (std::size_t s = 0; s < own.size(); ++s) round.next[s] += moved[s];
  };
  for (const StretchRates& rates : by_depth) {
    Law rejected = law;
    for (std::size_t s = 0; s < law.size(); ++s) {
      rejected[s] *= 1.0 - rates[s];
      law[s] *= rates[s];
    }
    end(rejected);
    round.reached.push_back(sum_of(law));
    law = step_on(law, persistence);
  }
  end(law);
  return round;
}

}  // namespace

std::vector<double> rates_along_text(const std::vector<StretchRates>& by_depth, double persistence) {
  constexpr std::size_t kStates = std::tuple_size_v<StretchRates>;
  std::array<Law, kStates> rounds;  // [from][to]
  for (std::size_t from = 0; from < kStates; ++from) {
    Law law = {};
    law[from] = 1.0;
    rounds[from] = go_round(by_depth, persistence, law).next;
  }
  // After 2^20 rounds every beginning has led to the same law.
  for (int doubling = 0; doubling < 20; ++doubling) {
    std::array<Law, kStates> twice = {};
    for (std::size_t from = 0; from < kStates; ++from)
      for (std::size_t by = 0; by < kStates; ++by)
        for (std::size_t to = 0; to < kStates; ++to) twice[from][to] += rounds[from][by] * rounds[by][to];
    rounds = twice;
  }
  const RoundLaws round = go_round(by_depth, persistence, rounds[0]);
  std::vector<double> rates;
  for (std::size_t depth = 0; depth < by_depth.size(); ++depth)
    rates.push_back(round.reached[depth] > 0.0 ? round.reached[depth + 1] / round.reached[depth] : 0.0);
  return rates;
}

}  // namespace specsim::fit
