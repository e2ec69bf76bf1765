// A plan's time of overlapped rounds compared with the closed form that the simulated placement is compared with.
#include "sim/answers/plan/draft_placings.h"
#include "tests/placement/batches.h"
#include "tests/support/placement_theory.h"

#include <cmath>

namespace specsim::overlapped_plan_test {

using specsim::tests::LineCost;

TEST_CASE("a plan's overlapped round is the closed form of the placement") {
  constexpr double kMicro = 1e-6;
  for (const double pass : {1.0, 3.0})
    for (const double alpha : {0.0, 0.6, 0.9, 1.0})
      for (const int batch : {1, 4, 37, 1000})  // mutant: probabilities that underflow from (1 - full)^1000 on
        for (const double link : {0.0, 2.0}) {
          constexpr int kLength = 3;
          const LineCost cost({6.0}, {pass}, 0.5, false, link);
          const cost::RoundTime time =
              plan::overlapped_time(cost, {static_cast<double>(batch), 100.0}, kLength, std::pow(alpha, kLength));
          const std::vector<theory::RoundEnd> ends = theory::chain_ends(alpha, kLength);
          const double round = theory::overlapped_round(ends, kLength * pass + link, 6.5, batch).round;
          CHECK(time.total() == Approx(kMicro * round).epsilon(1e-9));
          CHECK(time.verify.total() + time.overhead == Approx(kMicro * 6.5).epsilon(1e-12));
        }
  // Re-drafting for the sequences that rejected alone: with passes of 1 us per sequence the expected number of them counts.
  const LineCost per_sequence({6.0}, {0.0, 1.0});
  const double full = 0.25;
  double expected = 0.0;
  const double binomial[] = {0.421875, 0.421875, 0.140625, 0.015625};  // of 3 sequences at .25
  for (int n = 0; n <= 3; ++n) expected += binomial[n] * ((n > 0 ? std::max(6.0, 2.0 * 3) : 6.0) + 2.0 * (3 - n));
  CHECK(plan::overlapped_time(per_sequence, {3.0, 0.0}, 2, full).total() == Approx(kMicro * expected).epsilon(1e-9));
}

}  // namespace specsim::overlapped_plan_test
