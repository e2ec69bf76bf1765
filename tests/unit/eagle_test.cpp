// How drafters use the configured draft distribution.
#include "tests/support/drafters.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include <vector>

namespace specsim::eagle_test {

using specsim::tests::make_blocks;

TEST_CASE(
    "eagle: of a target of one token a share of the contexts has it where tokens are chosen, all of them a share of it where "
    "drawn") {
  const std::vector<double> target = {0.0, 1.0, 0.0};
  const std::vector<double> draft = {0.6, 0.3, 0.1};
  const auto altered = [&](const char* siblings, double chance, const std::vector<double>& towards) {
    std::vector<double> own = draft;
    make_blocks("eagle", fmt::format("{{branching: [1, 1], sharpening: 0.5, decay: 1, siblings: {}}}", siblings))
        ->alter_distribution(1, chance, towards, own);
    return own;
  };
  // Mutant: half of the target everywhere, whose token is always the likeliest, so every draft is right.
  CHECK(altered("top_k", 0.49, target) == target);
  CHECK(altered("top_k", 0.51, target) == draft);
  CHECK(altered("sampled", 0.1, target) == altered("sampled", 0.9, target));
  CHECK(altered("sampled", 0.1, target)[1] == Approx(0.65));
  const std::vector<double> warm = {0.2, 0.5, 0.3};
  CHECK(altered("top_k", 0.1, warm) == altered("top_k", 0.9, warm));
}

}  // namespace specsim::eagle_test
