// The bandit of draft lengths, compared with its program line by line.
#include "sim/rounds/draft/length_policy.h"
#include "tests/support/cells.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>

namespace specsim::bandit_policy_test {

TEST_CASE("bandit: the lengths that BanditSpec's program chooses") {
  const std::vector<double> times = {1.0, 1.0513, 1.1237, 1.2071, 1.3119, 1.4003};  // no two lengths tie
  Diagnostics diagnostics;
  const draft::PolicyEntry* entry = draft::policies().find("bandit");
  REQUIRE(entry != nullptr);
  const config::Arguments arguments =
      config::read_arguments(config::map({}, {}), entry->info.parameters, {}, "bandit", diagnostics);
  const auto policy = entry->make(arguments, {5, times, 3}, diagnostics);
  diagnostics.throw_if_any();
  CHECK(policy->sequences() == 3);
  std::mt19937 generator(20260712);
  int lengths_seen = 0;
  for (int run = 0; run < 20; ++run) {
    const double alpha = 0.05 + 0.045 * run;
    std::bernoulli_distribution accepts(alpha);
    draft::LengthPolicy::Memory memory = policy->start();
    // ucb_length_spec_generate: four arms, throughput as the reward.
    std::vector<double> ucb_mean(4, 0.0);
    std::vector<double> ucb_calltime(4, 0.0);
    for (int out_index = 1; out_index < 80; ++out_index) {
      int gamma = 0;
      if (out_index < 4 * 2) {
        gamma = (out_index - 1) % 4 + 1;
      } else {
        double calls = 0.0;
        for (const double own : ucb_calltime) calls += own;
        std::vector<double> score = ucb_mean;
        for (double& own : score) own += std::sqrt(6.0 * std::log(out_index) / calls);
        gamma = static_cast<int>(std::max_element(score.begin(), score.end()) - score.begin()) + 1;
      }
      REQUIRE(memory.length == gamma);
      lengths_seen |= 1 << gamma;
      std::vector<int> accepted(3, 0);
      double tokens = 0.0;
      for (int& own : accepted) {
        while (own < gamma && accepts(generator)) ++own;
        tokens += own + 1.0;
      }
      const auto arm = static_cast<std::size_t>(gamma) - 1;
      const double put = tokens / times[static_cast<std::size_t>(gamma)];
      ucb_mean[arm] = (ucb_mean[arm] * ucb_calltime[arm] + put) / (1.0 + ucb_calltime[arm]);
      ucb_calltime[arm] += 1.0;
      policy->observe_batch(memory, gamma, accepted);
    }
  }
  CHECK(lengths_seen == 0b11110);
}

}  // namespace specsim::bandit_policy_test
