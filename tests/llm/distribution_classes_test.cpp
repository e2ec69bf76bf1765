// Recorded distributions in classes: which properties are preserved.
#include "sim/foundation/math/simplex.h"
#include "sim/foundation/rng/address.h"
#include "sim/lab/llm/acceptance.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

namespace specsim::distribution_classes_test {

TEST_CASE("distributions in classes keep their overlap", "[llm][trace]") {
  rng::Stream random(rng::make_key(3, 3), rng::Purpose::distribution, 0, 0);
  for (int i = 0; i < 200; ++i) {
    std::vector<double> target(50);
    std::vector<double> drafted(50);
    for (std::size_t x = 0; x < 50; ++x) {
      target[x] = std::pow(rng::to_unit(random()), 6.0);
      drafted[x] = i % 3 == 0 && x % 5 == 0 ? 0.0 : std::pow(rng::to_unit(random()), 6.0);
    }
    math::normalise(target);
    math::normalise(drafted);
    const llm::DistributionClasses classes = llm::distribution_classes(target, drafted, 5);
    REQUIRE(classes.target.size() == 9);
    CHECK(math::overlap(classes.target, classes.draft) == Approx(math::overlap(target, drafted)).epsilon(1e-12));
    CHECK(classes.target[0] + classes.draft[0] >= 0.5 * (classes.target[4] + classes.draft[4]));
  }
}

TEST_CASE("of equally likely tokens a record keeps the lower", "[llm][trace]") {
  const std::vector<double> target = {0.0, 0.1, 0.2, 0.3, 0.2, 0.2};
  const std::vector<double> draft = {0.3, 0.1, 0.1, 0.1, 0.2, 0.2};
  const llm::DistributionClasses classes = llm::distribution_classes(target, draft, 3);
  CHECK(std::vector<double>(classes.target.begin(), classes.target.begin() + 3) == std::vector<double>{0.0, 0.3, 0.2});
  CHECK(std::vector<double>(classes.draft.begin(), classes.draft.begin() + 3) == std::vector<double>{0.3, 0.1, 0.1});
}

}  // namespace specsim::distribution_classes_test
