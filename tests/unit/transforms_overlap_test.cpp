// The transform that reaches a requested overlap, on each of its paths.
#include "tests/unit/transforms.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

namespace specsim::transforms_overlap_test {

using namespace specsim::tests;

TEST_CASE("overlap reaches the value to 1e-12 on every shape", "[transforms]") {
  Lcg lcg{20260437};
  for (const std::size_t vocab : {2U, 3U, 10U, 100U, 1000U, 32000U}) {
    std::vector<Probabilities> targets = {zipf(vocab, 1.1), random_target(lcg, vocab, false)};
    if (vocab <= 1000) {
      targets.push_back(zipf(vocab, 0.3));
      targets.push_back(zipf(vocab, 6.0));
      targets.push_back(random_target(lcg, vocab, true));
    }
    Probabilities half = zipf(vocab, 1.5);  // zeros, among them the lowest and the highest token
    for (std::size_t x = 0; x < vocab; x += 3) half[x] = 0.0;
    half.back() = vocab > 2 ? 0.0 : half.back();
    targets.push_back(normalised(half));
    for (std::size_t t = 0; t < targets.size(); ++t) {
      const Probabilities& target = targets[t];
      Probabilities flat(vocab, 0.0);
      double support = 0.0;
      for (const double mass : target) support += mass > 0.0 ? 1.0 : 0.0;
      for (std::size_t x = 0; x < vocab; ++x) flat[x] = target[x] > 0.0 ? 1.0 / support : 0.0;
      const double to_flat = overlap(target, flat);
      const double to_uniform = overlap(target, Probabilities(vocab, 1.0 / static_cast<double>(vocab)));
      const double to_least = *std::min_element(target.begin(), target.end());
      const std::vector<std::pair<std::string, double>> shapes = {
          {"temperature", to_flat}, {"uniform_mix", to_uniform}, {"disjoint_tail", to_least}};
      for (const auto& [shape, lowest] : shapes) {
        std::vector<double> shares = {0.0, 1e-6, 0.3, 0.999, 1.0};
        if (vocab <= 1000) shares.insert(shares.end(), {1e-12, 0.01, 0.1, 0.5, 0.7, 0.9, 1.0 - 1e-9});
        for (const double share : shares) {
          // The ends of the range are rounded: the test stays inside by less than the promised accuracy.
          const double value = std::min(lowest + share * (1.0 - lowest), 1.0);
          INFO("vocab " << vocab << ", target " << t << ", shape " << shape << ", value " << fmt::format("{:.17g}", value));
          const auto distribution = build(from_target(fmt::format("overlap, value: {:.17g}, shape: {}", value, shape)), vocab);
          const Probabilities drawn = draw(*distribution, target);
          REQUIRE(is_distribution(drawn));
          REQUIRE(std::abs(overlap(target, drawn) - value) < 1.01e-12);
          if (shape == "temperature") {  // on its path: log draft is linear in log target, with a slope in [0, 1]
            const auto top = static_cast<std::size_t>(std::max_element(target.begin(), target.end()) - target.begin());
            double slope = -1.0;
            for (std::size_t x = 0; x < vocab; ++x) {
              if (target[x] == 0.0) {
                REQUIRE(drawn[x] == 0.0);
              } else if (target[x] < 0.5 * target[top]) {
                const double own = std::log(drawn[x] / drawn[top]) / std::log(target[x] / target[top]);
                if (slope < 0.0) slope = own;
                if (std::abs(own - slope) > 1e-9) FAIL("off the path");
              }
            }
            REQUIRE((slope < 1.0 + 1e-9 && slope > -1.0 - 1e-9));
          }
        }
      }
    }
  }
}

TEST_CASE("overlap refuses what its path cannot reach, with the range", "[transforms]") {
  const Probabilities target = {.5, .3, .15, .05};
  const auto message = [&](const std::string& shape, double value, const Probabilities& distribution) -> std::string {
    try {
      static_cast<void>(
          draw(*build(from_target(fmt::format("overlap, value: {:.17g}, shape: {}", value, shape)), distribution.size()),
               distribution));
    } catch (const BadInput& bad) {
      return bad.what();
    }
    return "";
  };
  // Uniform on four tokens overlaps by .25 + .25 + .15 + .05.
  for (const char* shape : {"temperature", "uniform_mix"}) {
    const std::string refused = message(shape, 0.6999, target);
    INFO(refused);
    CHECK(refused.find("value is 0.6999, allowed: in [0.7, 1]") != std::string::npos);
    CHECK(refused.find(shape) != std::string::npos);
    CHECK(refused.starts_with("test:1:"));
    CHECK(message(shape, 0.7001, target).empty());
  }
  CHECK(message("disjoint_tail", 0.0499, target).find("allowed: in [0.05, 1]") != std::string::npos);
  CHECK(message("disjoint_tail", 0.0501, target).empty());
  // Zeros: temperature keeps the support, the mixture extends it, and the tail has a separate token.
  const Probabilities zeros = {.5, 0, .5, 0};
  CHECK(message("temperature", 0.99, zeros).find("allowed: in [1, 1]") != std::string::npos);
  CHECK(message("uniform_mix", 0.49, zeros).find("allowed: in [0.5, 1]") != std::string::npos);
  CHECK(message("disjoint_tail", 0.0, zeros).empty());
  CHECK(message("temperature", 1.0, zeros).empty());
  const Probabilities tail = draw(*build(from_target("overlap, value: .25, shape: disjoint_tail"), 4), zeros);
  CHECK(largest_difference(tail, {.125, 0, .125, .75}) < 1e-15);  // ties of the least likely: the highest token
  CHECK_FALSE(message("temperature", 1.1, target).empty());
  CHECK_FALSE(message("temperature", -0.1, target).empty());
}

}  // namespace specsim::transforms_overlap_test
