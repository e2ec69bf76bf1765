// Every transform of the registry: valid distributions, addressed, as documented, and with the documented overlap. tests/parts
// tests each by its entry alone.
#include "tests/unit/transforms.h"
#include "sim/foundation/base/check.h"
#include "sim/foundation/math/simplex.h"
#include "tests/support/tails.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace specsim::transforms_test {

using namespace specsim::tests;

namespace {

// ---- examples, with the documented distribution if it is a formula ------------------------------------------------------------

using Formula = std::function<Probabilities(const Probabilities&)>;

struct Example {
  std::string transform;
  std::string yaml;  // a draft's distribution that uses it
  bool random;
  bool relabels;    // permuted tokens in, permuted tokens out
  Formula formula;  // the draft's probabilities from the target's; empty if the distribution is random
};

// The k tokens that have the fewest tokens ahead of them.
Probabilities likeliest(const Probabilities& distribution, std::size_t k) {
  Probabilities kept(distribution.size(), 0.0);
  for (std::size_t x = 0; x < distribution.size(); ++x) {
    std::size_t ahead = 0;
    for (std::size_t y = 0; y < distribution.size(); ++y)
      ahead += distribution[y] > distribution[x] || (distribution[y] == distribution[x] && y < x) ? 1 : 0;
    if (ahead < k) kept[x] = distribution[x];
  }
  return normalised(kept);
}

const std::vector<Example>& examples() {
  static const std::vector<Example> list = {
      {"temperature", from_target("temperature, value: 2"), false, true,
       [](Probabilities distribution) {
         for (double& mass : distribution) mass = std::sqrt(mass);
         return normalised(distribution);
       }},
      {"temperature", from_target("temperature, value: .5"), false, true,
       [](Probabilities distribution) {
         for (double& mass : distribution) mass *= mass;
         return normalised(distribution);
       }},
      {"mix_noise", from_target("mix_noise, value: .3"), false, true,
       [](Probabilities distribution) {
         for (double& mass : distribution) mass = 0.7 * mass + 0.3 / static_cast<double>(distribution.size());
         return distribution;
       }},
      {"mix_noise", from_target("mix_noise, value: .25, noise: {family: one_hot, token: 1}"), false, false,
       [](Probabilities distribution) {
         for (double& mass : distribution) mass *= 0.75;
         distribution[1] += 0.25;
         return distribution;
       }},
      {"mix_noise", from_target("mix_noise, value: .5, noise: {family: dirichlet, concentration: 1}"), true, false, {}},
      {"logit_noise", from_target("logit_noise, value: .8"), true, false, {}},
      {"top_k", from_target("top_k, value: 2"), false, true,
       [](const Probabilities& distribution) { return likeliest(distribution, 2); }},
      {"top_k", from_target("top_k, value: 200000"), false, true, [](const Probabilities& distribution) { return distribution; }},
      {"top_p", from_target("top_p, value: .6"), false, true,
       [](const Probabilities& distribution) {
         for (std::size_t k = 1;; ++k) {
           const Probabilities kept = likeliest(distribution, k);
           double mass = 0.0;
           for (std::size_t x = 0; x < distribution.size(); ++x) mass += kept[x] > 0.0 ? distribution[x] : 0.0;
           if (mass >= 0.6) return kept;
         }
       }},
      {"min_p", from_target("min_p, value: .2"), false, true,
       [](Probabilities distribution) {
         const double least = 0.2 * *std::max_element(distribution.begin(), distribution.end());
         for (double& mass : distribution) mass = mass < least ? 0.0 : mass;
         return normalised(distribution);
       }},
      {"permute", from_target("permute, value: .7"), true, false, {}},
      {"interpolate", "{from: {family: uniform}, transform: interpolate, value: .4}", false, true,
       [](Probabilities distribution) {
         for (double& mass : distribution) mass = 0.4 * mass + 0.6 / static_cast<double>(distribution.size());
         return distribution;
       }},
      {"interpolate", "{from: {family: normal_logits, sigma: 1}, transform: interpolate, value: .5}", true, false, {}},
      {"reduced_vocab", from_target("reduced_vocab, value: 2"), false, false,
       [](Probabilities distribution) {
         std::fill(distribution.begin() + 2, distribution.end(), 0.0);
         return normalised(distribution);
       }},
      {"overlap", from_target("overlap, value: .95, shape: temperature"), false, true, {}},
      {"overlap", from_target("overlap, value: .95, shape: uniform_mix"), false, true,
       [](Probabilities distribution) {
         const Probabilities uniform(distribution.size(), 1.0 / static_cast<double>(distribution.size()));
         const double weight = 0.05 / (1.0 - overlap(distribution, uniform));
         for (double& mass : distribution) mass += weight * (uniform[0] - mass);
         return distribution;
       }},
      {"overlap", from_target("overlap, value: .95, shape: disjoint_tail"), false, true,
       [](Probabilities distribution) {
         const auto least =
             static_cast<std::size_t>(std::min_element(distribution.begin(), distribution.end()) - distribution.begin());
         const double weight = 0.05 / (1.0 - distribution[least]);
         for (double& mass : distribution) mass *= 1.0 - weight;
         distribution[least] += weight;
         return distribution;
       }},
      {"argmax_agreement", from_target("argmax_agreement, value: .6"), true, false, {}},
  };
  return list;
}

}  // namespace

TEST_CASE("every registered transform describes its distribution", "[transforms]") {
  for (const families::TransformEntry& entry : families::transforms().entries()) {
    INFO(entry.info.name);
    CHECK_FALSE(entry.info.summary.empty());
    CHECK(entry.info.notes.starts_with("Distribution"));
  }
}

TEST_CASE("transforms give distributions, the same at the same address", "[transforms]") {
  Lcg lcg{20260431};
  for (const Example& example : examples()) {
    for (const std::size_t vocab : {4U, 19U, 1000U}) {
      INFO(example.yaml << " at vocab " << vocab);
      const Probabilities target = random_target(lcg, vocab, false);
      const auto distribution = build(example.yaml, vocab);
      const auto twin = build(example.yaml, vocab);
      CHECK(distribution->random() == example.random);
      CHECK_FALSE(distribution->is_target());
      std::vector<Probabilities> forwards;
      bool distributions = true;
      for (std::uint64_t context = 0; context < 40; ++context) {
        forwards.push_back(draw(*distribution, target, context));
        distributions = distributions && is_distribution(forwards.back());
      }
      CHECK(distributions);
      bool same = true;
      for (std::uint64_t context = 40; context-- > 0;) same = same && draw(*twin, target, context) == forwards[context];
      CHECK(same);
      bool moved = false;
      for (std::uint64_t context = 1; context < 40; ++context) moved = moved || forwards[context] != forwards[0];
      CHECK(moved == example.random);
      if (example.random)
        CHECK(draw(*distribution, target, 3, rng::make_key(1, 1)) != draw(*distribution, target, 3, rng::make_key(1, 4)));
    }
  }
}

TEST_CASE("fixed transforms are their formulas", "[transforms]") {
  Lcg lcg{20260432};
  for (const Example& example : examples()) {
    if (!example.formula) continue;
    for (const std::size_t vocab : {4U, 19U, 300U}) {
      for (int trial = 0; trial < 20; ++trial) {
        const Probabilities target = random_target(lcg, vocab, false);
        INFO(example.yaml << " at vocab " << vocab);
        REQUIRE(largest_difference(draw(*build(example.yaml, vocab), target), example.formula(target)) < 1e-13);
      }
    }
  }
}

TEST_CASE("relabelled tokens in, relabelled tokens out", "[transforms]") {
  Lcg lcg{20260433};
  for (const Example& example : examples()) {
    if (!example.relabels) continue;
    for (const std::size_t vocab : {4U, 31U}) {
      for (int trial = 0; trial < 10; ++trial) {
        const Probabilities target = random_target(lcg, vocab, false);
        std::vector<std::size_t> label(vocab);
        std::iota(label.begin(), label.end(), std::size_t{0});
        for (std::size_t i = vocab; i > 1; --i)
          std::swap(label[i - 1], label[static_cast<std::size_t>(lcg() * static_cast<double>(i))]);
        Probabilities relabelled(vocab);
        for (std::size_t x = 0; x < vocab; ++x) relabelled[label[x]] = target[x];
        const auto distribution = build(example.yaml, vocab);
        const Probabilities plain = draw(*distribution, target);
        const Probabilities other = draw(*distribution, relabelled);
        Probabilities back(vocab);
        for (std::size_t x = 0; x < vocab; ++x) back[x] = other[label[x]];
        INFO(example.yaml << " at vocab " << vocab);
        REQUIRE(largest_difference(plain, back) < 1e-12);  // sums are added in another order
      }
    }
  }
}

TEST_CASE("zeros of the target: transforms that keep the support keep it", "[transforms]") {
  Lcg lcg{20260434};
  for (int trial = 0; trial < 30; ++trial) {
    const Probabilities target = random_target(lcg, 25, true);
    for (const char* transform : {"temperature, value: 3", "temperature, value: .1", "logit_noise, value: 2", "top_k, value: 4",
                                  "top_p, value: .5", "min_p, value: .3", "overlap, value: .97, shape: temperature"}) {
      const Probabilities drawn = draw(*build(from_target(transform), 25), target);
      INFO(transform);
      REQUIRE(is_distribution(drawn));
      for (std::size_t x = 0; x < target.size(); ++x)
        if (target[x] == 0.0) REQUIRE(drawn[x] == 0.0);
    }
  }
}

TEST_CASE("documented overlaps: mixtures and truncations", "[transforms]") {
  Lcg lcg{20260435};
  for (int trial = 0; trial < 200; ++trial) {
    const auto vocab = static_cast<std::size_t>(4.0 + lcg() * 60.0);
    const Probabilities target = random_target(lcg, vocab, trial % 2 == 0);
    const Probabilities uniform(vocab, 1.0 / static_cast<double>(vocab));
    const double value = trial == 0 ? 0.0 : trial == 1 ? 1.0 : lcg();
    INFO("value " << value << ", vocab " << vocab);
    const Probabilities noisy = draw(*build(from_target(fmt::format("mix_noise, value: {}", value)), vocab), target);
    REQUIRE(std::abs(overlap(target, noisy) - (1.0 - value * (1.0 - overlap(target, uniform)))) < 1e-13);
    const Probabilities closer =
        draw(*build(fmt::format("{{from: {{family: geometric, ratio: .7}}, transform: interpolate, value: {}}}", value), vocab),
             target);
    Probabilities source(vocab);
    for (std::size_t x = 0; x < vocab; ++x) source[x] = std::pow(0.7, static_cast<double>(x));
    source = normalised(source);
    REQUIRE(std::abs(overlap(target, closer) - (1.0 - (1.0 - value) * (1.0 - overlap(target, source)))) < 1e-13);
    for (const std::string& transform :
         {fmt::format("top_k, value: {}", 1 + static_cast<int>(lcg() * 10.0)),
          fmt::format("top_p, value: {}", 0.05 + 0.9 * lcg()), fmt::format("min_p, value: {}", lcg()),
          fmt::format("reduced_vocab, value: {}", 4 + static_cast<int>(lcg() * 10.0))}) {
      Probabilities drawn;
      try {
        drawn = draw(*build(from_target(transform), vocab), target);
      } catch (const InvariantBroken&) {  // zeros everywhere below value
        REQUIRE(transform.starts_with("reduced_vocab"));
        continue;
      }
      double mass = 0.0;
      bool proportional = true;
      for (std::size_t x = 0; x < vocab; ++x) mass += drawn[x] > 0.0 ? target[x] : 0.0;
      for (std::size_t x = 0; x < vocab; ++x)
        if (drawn[x] > 0.0) proportional = proportional && std::abs(drawn[x] * mass - target[x]) < 1e-14;
      INFO(transform);
      REQUIRE(proportional);
      REQUIRE(std::abs(overlap(target, drawn) - mass) < 1e-13);
    }
  }
}

TEST_CASE("logit_noise: log-ratios of draft and source are normal", "[transforms][stat]") {
  // Detects a value taken for a variance and noise shared by neighbouring tokens or contexts.
  Lcg lcg{20260436};
  const Probabilities target = random_target(lcg, 20, true);
  std::vector<std::size_t> support;
  for (std::size_t x = 0; x < target.size(); ++x)
    if (target[x] > 0.0) support.push_back(x);
  for (const double value : {0.05, 0.8, 6.0}) {
    const auto distribution = build(from_target(fmt::format("logit_noise, value: {}", value)), target.size());
    const double deviation = value * std::sqrt(2.0);
    std::vector<double> bins(50, 0.0);
    double n = 0.0;
    double mean = 0.0;
    double square = 0.0;
    for (std::uint64_t context = 0; context < 6000; ++context) {
      const Probabilities drawn = draw(*distribution, target, context);
      for (std::size_t i = 0; i + 1 < support.size(); i += 2) {
        const std::size_t x = support[i];
        const std::size_t y = support[i + 1];
        const double ratio = std::log(drawn[x] / target[x]) - std::log(drawn[y] / target[y]);
        bins[static_cast<std::size_t>(std::min(normal_cdf(ratio, 0.0, deviation) * 50.0, 49.0))] += 1.0;
        mean += ratio;
        square += ratio * ratio;
        n += 1.0;
      }
    }
    INFO("value " << value);
    const double variance = 2.0 * value * value;
    CHECK(chi_square_p(bins, n / 50.0) > kLevel);
    CHECK(std::abs(mean / n / std::sqrt(variance / n)) < kZ);
    CHECK(std::abs((square / n - variance) / std::sqrt(2.0 * variance * variance / n)) < kZ);
  }
  const Probabilities quiet = draw(*build(from_target("logit_noise, value: 0"), target.size()), target, 5);
  CHECK(largest_difference(quiet, target) < 1e-15);
}

TEST_CASE("logit_noise: each context has its own noise, log-normal with the given spread", "[transforms][stat]") {
  // Detects a spread taken for a variance, one drawn for every token, and one drawn once for all contexts.
  const Probabilities target(401, 1.0 / 401);
  constexpr double kPairs = 200;
  for (const double spread : {0.3, 1.0}) {
    const auto distribution = build(from_target(fmt::format("logit_noise, value: .7, spread: {}", spread)), target.size());
    const double deviation = std::sqrt(spread * spread + 0.5 / kPairs);  // with what estimating adds
    std::vector<double> bins(30, 0.0);
    constexpr std::uint64_t kContexts = 3000;
    for (std::uint64_t context = 0; context < kContexts; ++context) {
      const Probabilities drawn = draw(*distribution, target, context);
      double square = 0.0;
      for (std::size_t x = 0; x + 1 < drawn.size(); x += 2) square += std::pow(std::log(drawn[x]) - std::log(drawn[x + 1]), 2);
      const double estimate = 0.5 * std::log(square / (2.0 * kPairs));
      bins[static_cast<std::size_t>(std::min(normal_cdf(estimate, std::log(0.7), deviation) * 30.0, 29.0))] += 1.0;
    }
    INFO("spread " << spread);
    CHECK(chi_square_p(bins, kContexts / 30.0) > kLevel);
  }
}

TEST_CASE("permute: the share that takes part, and a uniform shuffle of it", "[transforms][stat]") {
  // Detects a shuffle that favours some orders (the usual mistake in Fisher and Yates), one that never leaves a chosen token in
  // its place, and a share that is squared.
  const Probabilities target = normalised({1, 2, 3, 4, 5});
  const std::size_t vocab = target.size();
  Probabilities sorted = target;
  for (const double value : {0.0, 0.3, 0.8, 1.0}) {
    const auto distribution = build(from_target(fmt::format("permute, value: {}", value)), vocab);
    // Of K > 0 shuffled tokens one is fixed on average, so the moved ones are E[K] - P(K > 0).
    const double expected = static_cast<double>(vocab) * value - (1.0 - std::pow(1.0 - value, static_cast<double>(vocab)));
    double sum = 0.0;
    double squares = 0.0;
    std::vector<std::size_t> code;
    std::vector<double> orders(120, 0.0);
    constexpr std::uint64_t n = 60000;
    for (std::uint64_t context = 0; context < n; ++context) {
      Probabilities drawn = draw(*distribution, target, context);
      double moved = 0.0;
      std::size_t order = 0;
      for (std::size_t x = 0; x < vocab; ++x) {
        moved += drawn[x] != target[x] ? 1.0 : 0.0;
        std::size_t smaller = 0;
        for (std::size_t y = x + 1; y < vocab; ++y) smaller += drawn[y] < drawn[x] ? 1 : 0;
        order = order * (vocab - x) + smaller;
      }
      orders[order] += 1.0;
      sum += moved;
      squares += moved * moved;
      std::sort(drawn.begin(), drawn.end());
      if (drawn != sorted) FAIL("masses changed");
    }
    const double count = static_cast<double>(n);
    const double variance = squares / count - sum / count * (sum / count);
    INFO("value " << value << ", moved " << sum / count << ", expected " << expected);
    if (value == 0.0)
      CHECK(sum == 0.0);
    else
      CHECK(std::abs(sum / count - expected) / std::sqrt(variance / count) < kZ);
    if (value == 1.0) CHECK(chi_square_p(orders, count / 120.0) > kLevel);
  }
}

TEST_CASE("argmax_agreement: the rate, and uniform other tokens", "[transforms][stat]") {
  // Detects a rate that counts chance agreement twice, and an "other" token that may be the argmax itself or misses the last one.
  const Probabilities target = {.1, .2, .3, .15, .25};
  for (const double value : {0.0, 0.37, 0.9, 1.0}) {
    const auto distribution = build(from_target(fmt::format("argmax_agreement, value: {}", value)), target.size());
    std::vector<double> counts(target.size(), 0.0);
    constexpr double n = 100000.0;
    for (std::uint64_t context = 0; context < static_cast<std::uint64_t>(n); ++context) {
      const Probabilities drawn = draw(*distribution, target, context);
      const std::size_t token = math::argmax(drawn);
      if (drawn[token] != 1.0) FAIL("not a point mass");
      counts[token] += 1.0;
    }
    INFO("value " << value);
    const double agreed = counts[2];
    if (value == 0.0 || value == 1.0)
      CHECK(agreed == value * n);
    else
      CHECK(std::abs(agreed - value * n) / std::sqrt(n * value * (1.0 - value)) < kZ);
    if (value < 1.0) CHECK(chi_square_p({counts[0], counts[1], counts[3], counts[4]}, (n - agreed) / 4.0) > kLevel);
  }
  // Two tokens: the other one.
  const auto two = build(from_target("argmax_agreement, value: 0"), 2);
  CHECK(draw(*two, {.9, .1}, 7) == Probabilities{0.0, 1.0});
}

TEST_CASE("settings that transforms refuse", "[transforms]") {
  CHECK(refusal("{from: {family: uniform}, transform: overlap, value: .9}", 4, false).find("allowed: in a draft") !=
        std::string::npos);
  CHECK(refusal("{from: {family: uniform}, transform: overlap, value: .9}", 4, true).find("allowed: from: target") !=
        std::string::npos);
  CHECK(refusal("{from: {from: target, transform: top_k, value: 2}, transform: overlap, value: .9}", 4, true)
            .find("allowed: from: target") != std::string::npos);
  CHECK(refusal("{from: {family: uniform}, transform: interpolate, value: .9}", 4, false).find("allowed: in a draft") !=
        std::string::npos);
  CHECK(refusal("{from: target, transform: temperature, value: 2}", 4, false).find("allowed: a distribution") !=
        std::string::npos);
  CHECK(refusal("{from: target}", 4, true).find("lacks \"transform\"") != std::string::npos);
  CHECK(refusal("{transform: top_k, value: 2}", 4, true).find("lacks \"from\"") != std::string::npos);
  CHECK(refusal("{family: uniform, transform: top_k, value: 2}", 4, true).find("both family and from or transform") !=
        std::string::npos);
  CHECK_FALSE(refusal("{from: target, transform: temperature, value: 0}", 4, true).empty());
  CHECK_FALSE(refusal("{from: target, transform: mix_noise, value: 1.5}", 4, true).empty());
  CHECK_FALSE(refusal("{from: target, transform: mix_noise, value: .5, noise: {family: nobody}}", 4, true).empty());
  CHECK_FALSE(refusal("{from: target, transform: top_k, value: 0}", 4, true).empty());
  std::string deep = "target";
  for (int i = 0; i < 40; ++i) deep = "{from: " + deep + ", transform: top_k, value: 2}";
  CHECK(refusal(deep, 4, true).find("nested too deep") != std::string::npos);
}

TEST_CASE("nested transforms apply from the inside out, each with its own stream", "[transforms]") {
  Lcg lcg{20260438};
  const Probabilities target = random_target(lcg, 12, false);
  const Probabilities nested =
      draw(*build("{from: {from: target, transform: top_k, value: 5}, transform: mix_noise, value: .5}", 12), target);
  Probabilities expected = likeliest(target, 5);
  for (double& mass : expected) mass = 0.5 * mass + 0.5 / 12.0;
  CHECK(largest_difference(nested, expected) < 1e-15);
  // Twice the same noise stream would double the log-ratios instead of adding independent ones.
  const auto once = build(from_target("logit_noise, value: 1"), 12);
  const auto twice = build("{from: {from: target, transform: logit_noise, value: 1}, transform: logit_noise, value: 1}", 12);
  const Probabilities a = draw(*once, target, 9);
  const Probabilities b = draw(*twice, target, 9);
  bool doubled = true;
  for (std::size_t x = 1; x < 12; ++x) {
    const double own = std::log(a[x] / target[x]) - std::log(a[0] / target[0]);
    const double both = std::log(b[x] / target[x]) - std::log(b[0] / target[0]);
    doubled = doubled && std::abs(both - 2.0 * own) < 1e-9;
  }
  CHECK_FALSE(doubled);
}

}  // namespace specsim::transforms_test
