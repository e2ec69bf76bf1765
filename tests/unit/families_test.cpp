// Every family of the registry: valid distributions, addressed, and as documented. A family without an example here fails the
// suite.
#include "sim/foundation/base/check.h"
#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/context.h"
#include "sim/rounds/families/distribution.h"
#include "tests/support/tails.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace specsim::families_test {

using families::DistributionAddress;

namespace {

using Probabilities = std::vector<double>;
using Formula = std::function<double(std::size_t, std::size_t)>;  // (token, vocab), up to a factor

// Every statistical check below has a fixed seed and the bound 1e-6 on its p-value; |z| < 4.8916 is the same, two-sided.
constexpr double kLevel = 1e-6;
constexpr double kZ = 4.8916;

struct Example {
  std::string family;
  std::string yaml;
  bool random;
  Formula formula;  // empty if the distribution is random
  int vocab = 0;    // 0: any
};

const std::vector<Example>& examples() {
  static const std::vector<Example> list = {
      {"explicit", "{family: explicit, probabilities: [.5, 0, .2, .3]}", false,
       [](std::size_t x, std::size_t) {
         return std::vector<double>{.5, 0, .2, .3}[x];
       },
       4},
      {"explicit", "{family: explicit, probabilities: [0, 1]}", false,
       [](std::size_t x, std::size_t) { return x == 1 ? 1.0 : 0.0; }, 2},
      {"uniform", "{family: uniform}", false, [](std::size_t, std::size_t) { return 1.0; }},
      {"zipf", "{family: zipf, exponent: 1.1}", false,
       [](std::size_t x, std::size_t) { return std::pow(static_cast<double>(x) + 1.0, -1.1); }},
      {"zipf", "{family: zipf, exponent: 2, offset: 3.5}", false,
       [](std::size_t x, std::size_t) { return std::pow(static_cast<double>(x) + 4.5, -2.0); }},
      {"zipf", "{family: zipf, exponent: 0}", false, [](std::size_t, std::size_t) { return 1.0; }},
      {"zipf", "{family: zipf, exponent: 100, offset: 1e9}", false,
       [](std::size_t x, std::size_t) { return std::exp(-100.0 * std::log1p(static_cast<double>(x) / (1e9 + 1.0))); }},
      {"geometric", "{family: geometric, ratio: .8}", false,
       [](std::size_t x, std::size_t) { return std::exp(static_cast<double>(x) * std::log(0.8)); }},
      {"geometric", "{family: geometric, ratio: 1}", false, [](std::size_t, std::size_t) { return 1.0; }},
      {"geometric", "{family: geometric, ratio: 1e-300}", false,
       [](std::size_t x, std::size_t) { return x == 0   ? 1.0
                                               : x == 1 ? 1e-300
                                                        : 0.0; }},
      {"one_hot", "{family: one_hot, token: 1}", false, [](std::size_t x, std::size_t) { return x == 1 ? 1.0 : 0.0; }},
      {"mixture", "{family: mixture, weights: [3, 1], components: [{family: uniform}, {family: one_hot, token: 0}]}", false,
       [](std::size_t x, std::size_t vocab) { return 0.75 / static_cast<double>(vocab) + (x == 0 ? 0.25 : 0.0); }},
      {"mixture", "{family: mixture, weights: [0, 2], components: [{family: uniform}, {family: geometric, ratio: .5}]}", false,
       [](std::size_t x, std::size_t) { return std::pow(0.5, static_cast<double>(x)); }},
      {"mixture",
       "{family: mixture, weights: [1, 1], components: [{family: uniform}, {family: dirichlet, concentration: 1}]}",
       true,
       {}},
      {"dirichlet", "{family: dirichlet, concentration: 1}", true, {}},
      {"dirichlet", "{family: dirichlet, concentration: .001}", true, {}},
      {"dirichlet", "{family: dirichlet, concentration: 1e6}", true, {}},
      {"normal_logits", "{family: normal_logits, sigma: 1.5}", true, {}},
      {"normal_logits", "{family: normal_logits, sigma: 1000}", true, {}},
      {"uniform_logits", "{family: uniform_logits, range: 3}", true, {}},
      {"uniform_logits", "{family: uniform_logits, range: 1000}", true, {}},
      {"one_hot", "{family: one_hot}", true, {}},
  };
  return list;
}

std::unique_ptr<families::Distribution> build(const std::string& yaml, int vocab, bool is_draft = false) {
  Diagnostics diagnostics;
  const config::Value value = config::parse_text(yaml, "test", diagnostics);
  families::DistributionBuilder builder(vocab, is_draft, diagnostics);
  auto distribution = builder.build(value, "distribution");
  diagnostics.throw_if_any();
  return distribution;
}

// Its errors, joined into one text.
std::string refusal(const std::string& yaml, int vocab, bool is_draft = false) {
  try {
    static_cast<void>(build(yaml, vocab, is_draft));
  } catch (const BadInput& bad) {
    return bad.what();
  }
  return "";
}

const rng::Key kKey = rng::make_key(20260420, rng::hash_text("law"));

Probabilities draw(const families::Distribution& distribution, int vocab, std::uint64_t context, rng::Key key = kKey) {
  Probabilities drawn(static_cast<std::size_t>(vocab), -1.0);
  distribution.draw({key, context}, {}, drawn);
  return drawn;
}

// Sums to 1 within 1e-12, with no negative and no infinite value.
bool is_distribution(const Probabilities& distribution) {
  long double sum = 0.0L;
  for (const double mass : distribution) {
    if (!(mass >= 0.0 && mass <= 1.0 + 1e-12)) return false;
    sum += mass;
  }
  return std::abs(static_cast<double>(sum) - 1.0) < 1e-12;
}

// Independent draws sorted by their distribution function into 50 equally likely bins.
class Bins {
 public:
  void add(double u) {
    counts_[static_cast<std::size_t>(std::min(std::max(u, 0.0) * 50.0, 49.0))] += 1.0;
    ++n_;
  }
  [[nodiscard]] double p() const { return tests::chi_square_p(counts_, n_ / 50.0); }

 private:
  std::vector<double> counts_ = std::vector<double>(50, 0.0);
  double n_ = 0.0;
};

class Mean {
 public:
  void add(double x) {
    ++n_;
    sum_ += x;
    squares_ += x * x;
  }
  // Compares with a known mean, by the theoretical variance or by the sample's own.
  [[nodiscard]] double z(double mean, double variance) const { return (sum_ / n_ - mean) / std::sqrt(variance / n_); }
  [[nodiscard]] double z(double mean) const { return z(mean, std::max(squares_ / n_ - sum_ / n_ * (sum_ / n_), 1e-300)); }

 private:
  double n_ = 0.0;
  double sum_ = 0.0;
  double squares_ = 0.0;
};

}  // namespace

TEST_CASE("every registered family describes its distribution", "[families]") {
  for (const families::FamilyEntry& entry : families::families().entries()) {
    INFO(entry.info.name);
    CHECK_FALSE(entry.info.summary.empty());
    CHECK(entry.info.notes.starts_with("Distribution:"));
  }
}

TEST_CASE("families give distributions, the same at the same address", "[families]") {
  for (const Example& example : examples()) {
    for (const int vocab : {2, 3, 17, 1000}) {
      if (example.vocab != 0 && example.vocab != vocab && vocab != 17) continue;
      const int size = example.vocab != 0 ? example.vocab : vocab;
      INFO(example.yaml << " at vocab " << size);
      const auto distribution = build(example.yaml, size);
      const auto twin = build(example.yaml, size);
      REQUIRE(distribution != nullptr);
      CHECK(distribution->random() == example.random);
      CHECK_FALSE(distribution->is_target());
      std::vector<Probabilities> forwards;
      bool distributions = true;
      for (std::uint64_t context = 0; context < 40; ++context) {
        forwards.push_back(draw(*distribution, size, context));
        distributions = distributions && is_distribution(forwards.back());
      }
      CHECK(distributions);
      // The result does not depend on order, object and thread.
      bool same = true;
      std::thread([&] {
        for (std::uint64_t context = 40; context-- > 0;) same = same && draw(*twin, size, context) == forwards[context];
      }).join();
      CHECK(same);
      // Another context and another key give another distribution exactly if it claims to be random.
      bool moved = false;
      for (std::uint64_t context = 1; context < 40; ++context) moved = moved || forwards[context] != forwards[0];
      CHECK(moved == example.random);
      bool keyed = false;
      for (std::uint64_t context = 0; context < 40; ++context)
        keyed = keyed || draw(*distribution, size, context, rng::make_key(1, 1)) != forwards[context];
      CHECK(keyed == example.random);
      // Names of (sequence, text position) use the high half of the context as well.
      if (example.random && size == 1000) CHECK(draw(*distribution, size, 1ULL << 32) != forwards[0]);
    }
  }
}

TEST_CASE("fixed families are their formulas", "[families]") {
  for (const Example& example : examples()) {
    if (!example.formula) continue;
    for (const int vocab : {2, 4, 17, 1000, 32000}) {
      if (example.vocab != 0 && example.vocab != vocab) continue;
      const auto distribution = build(example.yaml, vocab);
      const Probabilities drawn = draw(*distribution, vocab, 0);
      const auto size = static_cast<std::size_t>(vocab);
      long double sum = 0.0L;
      for (std::size_t x = 0; x < size; ++x) sum += example.formula(x, size);
      double worst = 0.0;
      for (std::size_t x = 0; x < size; ++x) {
        const auto expected = static_cast<double>(example.formula(x, size) / sum);
        worst = std::max(worst, std::abs(drawn[x] - expected) / std::max(expected, 1e-290));
        if (expected == 0.0 && drawn[x] != 0.0) worst = 1.0;
      }
      INFO(example.yaml << " at vocab " << vocab);
      CHECK(worst < 1e-10);
    }
  }
}

TEST_CASE("settings that families refuse", "[families]") {
  CHECK(refusal("{family: explicit, probabilities: [.5, .5]}", 3).find("probabilities has 2 entries, allowed: 3 (pair.vocab)") !=
        std::string::npos);
  CHECK(refusal("{family: explicit, probabilities: [.5, .4]}", 2).find("probabilities sum to 0.9, allowed: 1 within 1e-9") !=
        std::string::npos);
  CHECK(refusal("{family: explicit, probabilities: [.5, .5000000001]}", 2).empty());
  CHECK_FALSE(refusal("{family: explicit, probabilities: [1.5, -.5]}", 2).empty());
  CHECK(refusal("{family: one_hot, token: 4}", 4).find("token is 4, allowed: below pair.vocab = 4") != std::string::npos);
  CHECK(refusal("{family: one_hot, token: 3}", 4).empty());
  CHECK_FALSE(refusal("{family: geometric, ratio: 0}", 4).empty());
  CHECK_FALSE(refusal("{family: geometric, ratio: 1.01}", 4).empty());
  CHECK_FALSE(refusal("{family: dirichlet, concentration: 1e-4}", 4).empty());
  CHECK_FALSE(refusal("{family: dirichlet}", 4).empty());
  CHECK_FALSE(refusal("{family: normal_logits, sigma: 0}", 4).empty());
  CHECK(refusal("{family: mixture, weights: [1], components: [{family: uniform}, {family: uniform}]}", 4)
            .find("weights has 1 entries") != std::string::npos);
  CHECK_FALSE(refusal("{family: mixture, weights: [0, 0], components: [{family: uniform}, {family: uniform}]}", 4).empty());
  CHECK(refusal("{family: dirichlets}", 4).find("did you mean \"dirichlet\"") != std::string::npos);
  CHECK_FALSE(refusal("{from: target, transform: temperature, value: 2}", 4, false).empty());
  CHECK(refusal("{from: target, transform: temperature, value: 2}", 4, true).empty());
}

TEST_CASE("dirichlet: each token's distribution is a beta distribution", "[families][stat]") {
  // Detects a gamma shape off by one (the boost of small shapes left out), a scale that depends on the token, and a log that is
  // normalised without its exponential.
  for (const double a : {0.05, 0.5, 1.0, 4.0, 300.0}) {
    for (const int vocab : {2, 7}) {
      const auto distribution = build("{family: dirichlet, concentration: " + std::to_string(a) + "}", vocab);
      const auto v = static_cast<double>(vocab);
      const auto marginal = [a, rest = a * (v - 1.0)](double x) { return tests::beta_cdf(x, a, rest); };
      Bins first;
      Bins last;
      Mean mean;
      Mean square;
      Mean sum_of_squares;
      constexpr std::uint64_t n = 20000;
      for (std::uint64_t context = 0; context < n; ++context) {
        const Probabilities drawn = draw(*distribution, vocab, context);
        if (vocab > 2) {
          first.add(marginal(std::min(drawn.front(), 1.0)));
          last.add(marginal(std::min(drawn.back(), 1.0)));
        } else {  // at small concentrations many masses round to 1: look at the smaller of the two, which is exact
          first.add(2.0 * marginal(std::min(drawn[0], drawn[1])));
        }
        mean.add(drawn[1]);
        square.add((drawn[1] - 1.0 / v) * (drawn[1] - 1.0 / v));
        double squares = 0.0;
        for (const double mass : drawn) squares += mass * mass;
        sum_of_squares.add(squares);
      }
      INFO("concentration " << a << ", vocab " << vocab);
      CHECK(first.p() > kLevel);
      if (vocab > 2) CHECK(last.p() > kLevel);
      const double variance = (v - 1.0) / (v * v * (a * v + 1.0));
      CHECK(std::abs(mean.z(1.0 / v, variance)) < kZ);
      CHECK(std::abs(square.z(variance)) < kZ);
      CHECK(std::abs(sum_of_squares.z((a + 1.0) / (a * v + 1.0))) < kZ);  // the second moment of pairs of tokens
    }
  }
}

TEST_CASE("dirichlet: tokens are exchangeable", "[families][stat]") {
  // Detects a stream whose words come in pairs with different uses for even and odd tokens.
  constexpr int vocab = 6;
  const auto distribution = build("{family: dirichlet, concentration: .7}", vocab);
  std::vector<double> wins(vocab, 0.0);
  for (std::uint64_t context = 0; context < 60000; ++context) wins[math::argmax(draw(*distribution, vocab, context))] += 1.0;
  CHECK(tests::chi_square_p(wins, 10000.0) > kLevel);
}

TEST_CASE("dirichlet: extreme concentrations stay finite", "[families]") {
  for (const char* concentration : {"1e-3", "1e-2", "1e6"}) {
    for (const int vocab : {2, 3, 50, 32000}) {
      const auto distribution = build(std::string("{family: dirichlet, concentration: ") + concentration + "}", vocab);
      bool distributions = true;
      double largest = 0.0;
      for (std::uint64_t context = 0; context < (vocab > 1000 ? 5U : 2000U); ++context) {
        const Probabilities drawn = draw(*distribution, vocab, context);
        distributions = distributions && is_distribution(drawn);
        largest = std::max(largest, *std::max_element(drawn.begin(), drawn.end()));
      }
      INFO("concentration " << concentration << ", vocab " << vocab);
      CHECK(distributions);
      if (concentration == std::string("1e6")) CHECK(largest * vocab < 1.01);  // standard deviation 1e-3 of the mean
      if (concentration == std::string("1e-3") && vocab <= 50) CHECK(largest > 0.999);
    }
  }
}

TEST_CASE("normal_logits: each context has its own sigma, log-normal with the given spread", "[families][stat]") {
  // Detects a spread taken for a variance, one drawn for every token, and one drawn once for all contexts.
  constexpr int vocab = 401;
  constexpr double kPairs = 200;
  for (const double spread : {0.3, 1.0}) {
    const auto distribution = build("{family: normal_logits, sigma: 2, spread: " + std::to_string(spread) + "}", vocab);
    const double deviation = std::sqrt(spread * spread + 0.5 / kPairs);  // with what estimating adds
    Bins bins;
    for (std::uint64_t context = 0; context < 3000; ++context) {
      const Probabilities drawn = draw(*distribution, vocab, context);
      double square = 0.0;
      for (std::size_t x = 0; x + 1 < drawn.size(); x += 2) square += std::pow(std::log(drawn[x]) - std::log(drawn[x + 1]), 2);
      bins.add(tests::normal_cdf(0.5 * std::log(square / (2.0 * kPairs)), std::log(2.0), deviation));
    }
    INFO("spread " << spread);
    CHECK(bins.p() > kLevel);
  }
}

TEST_CASE("normal_logits and uniform_logits: log-ratios of tokens have their distributions", "[families][stat]") {
  // Detects sigma taken for a variance, a range taken for a half-width, and noise shared between tokens.
  constexpr int vocab = 10;
  constexpr std::uint64_t n = 10000;
  for (const double sigma : {0.1, 1.0, 5.0}) {
    const auto distribution = build("{family: normal_logits, sigma: " + std::to_string(sigma) + "}", vocab);
    const double deviation = sigma * std::sqrt(2.0);
    Bins bins;
    Mean mean;
    Mean square;
    for (std::uint64_t context = 0; context < n; ++context) {
      const Probabilities drawn = draw(*distribution, vocab, context);
      for (std::size_t x = 0; x + 1 < drawn.size(); x += 2) {
        const double ratio = std::log(drawn[x]) - std::log(drawn[x + 1]);
        bins.add(tests::normal_cdf(ratio, 0.0, deviation));
        mean.add(ratio);
        square.add(ratio * ratio);
      }
    }
    INFO("sigma " << sigma);
    const double variance = 2.0 * sigma * sigma;
    CHECK(bins.p() > kLevel);
    CHECK(std::abs(mean.z(0.0, variance)) < kZ);
    CHECK(std::abs(square.z(variance, 2.0 * variance * variance)) < kZ);
  }
  for (const double range : {0.2, 3.0, 30.0}) {
    const auto distribution = build("{family: uniform_logits, range: " + std::to_string(range) + "}", vocab);
    Bins bins;
    Mean mean;
    Mean square;
    for (std::uint64_t context = 0; context < n; ++context) {
      const Probabilities drawn = draw(*distribution, vocab, context);
      for (std::size_t x = 0; x + 1 < drawn.size(); x += 2) {
        const double ratio = (std::log(drawn[x]) - std::log(drawn[x + 1])) / range;  // U - U': triangular on (-1, 1)
        bins.add(ratio < 0.0 ? 0.5 * (1.0 + ratio) * (1.0 + ratio) : 1.0 - 0.5 * (1.0 - ratio) * (1.0 - ratio));
        mean.add(ratio);
        square.add(ratio * ratio);
      }
    }
    INFO("range " << range);
    CHECK(bins.p() > kLevel);
    CHECK(std::abs(mean.z(0.0, 1.0 / 6.0)) < kZ);
    CHECK(std::abs(square.z(1.0 / 6.0, 1.0 / 15.0 - 1.0 / 36.0)) < kZ);
  }
}

TEST_CASE("one_hot: the random token is uniform, and fresh for each context", "[families][stat]") {
  // Detects a token that is never drawn, and contexts that share their word with the next one.
  constexpr int vocab = 12;
  const auto distribution = build("{family: one_hot}", vocab);
  std::vector<double> counts(vocab, 0.0);
  std::vector<double> neighbours(vocab * vocab, 0.0);
  std::size_t before = 0;
  for (std::uint64_t context = 0; context < 144000; ++context) {
    const Probabilities drawn = draw(*distribution, vocab, context);
    const std::size_t token = math::argmax(drawn);
    REQUIRE(drawn[token] == 1.0);
    counts[token] += 1.0;
    if (context % 2 == 1) neighbours[before * vocab + token] += 1.0;
    before = token;
  }
  CHECK(tests::chi_square_p(counts, 12000.0) > kLevel);
  CHECK(tests::chi_square_p(neighbours, 500.0) > kLevel);
}

TEST_CASE("a target and a draft of the same family are independent", "[families][stat]") {
  // Documented means of the overlap: Dirichlet(1) vocab / (2 vocab - 1), one_hot 1 / vocab. Detects streams shared by the two
  // sides (overlap 1) and by the parts of a mixture.
  const auto mean_overlap = [](const std::string& family, int vocab, std::uint64_t n) {
    Diagnostics diagnostics;
    const config::Value pair = config::parse_text("{target: " + family + ", draft: " + family + "}", "test", diagnostics);
    families::ContextBuilder builder(vocab, pair, diagnostics);
    families::ContextModel model;
    builder.add_pair(model);
    diagnostics.throw_if_any();
    Mean mean;
    Probabilities target(static_cast<std::size_t>(vocab));
    Probabilities draft(target.size());
    for (std::uint64_t context = 0; context < n; ++context) {
      model.pairs.at(0).draw_target({kKey, context}, target);
      model.pairs.at(0).draw_draft({kKey, context}, 0, target, draft);
      double overlap = 0.0;
      for (std::size_t x = 0; x < target.size(); ++x) overlap += std::min(target[x], draft[x]);
      mean.add(overlap);
    }
    return mean;
  };
  for (const int vocab : {2, 3, 10, 100}) {
    INFO("vocab " << vocab);
    CHECK(std::abs(mean_overlap("{family: dirichlet, concentration: 1}", vocab, 20000).z(vocab / (2.0 * vocab - 1.0))) < kZ);
    const double agree = 1.0 / vocab;
    CHECK(std::abs(mean_overlap("{family: one_hot}", vocab, 40000).z(agree, agree * (1.0 - agree))) < kZ);
  }
  // Two parts of a mixture: E[sum of squares] of the mean of two independent Dirichlet(1) at vocab 4 is (2 * 2/5 + 2 * 1/4) / 4 =
  // .325; with one stream for both it would be .4.
  const auto mixture = build(
      "{family: mixture, weights: [1, 1], components: [{family: dirichlet, concentration: 1}, {family: dirichlet, concentration: "
      "1}]}",
      4);
  Mean squares;
  for (std::uint64_t context = 0; context < 20000; ++context) {
    double sum = 0.0;
    for (const double mass : draw(*mixture, 4, context)) sum += mass * mass;
    squares.add(sum);
  }
  CHECK(std::abs(squares.z(0.325)) < kZ);
}

TEST_CASE("a pair applies each side's sampling settings, the draft's transform after the target's", "[families]") {
  Diagnostics diagnostics;
  const config::Value pair = config::parse_text(
      "{target: {family: explicit, probabilities: [.4, .3, .2, .1]}, target_sampling: {top_k: 3}, "
      "draft: {from: target, transform: mix_noise, value: .5}, draft_sampling: {temperature: 0}}",
      "test", diagnostics);
  families::ContextBuilder builder(4, pair, diagnostics);
  families::ContextModel model;
  builder.add_pair(model);
  diagnostics.throw_if_any();
  Probabilities target(4);
  Probabilities draft(4);
  model.pairs.at(0).draw_target({kKey, 0}, target);
  model.pairs.at(0).draw_draft({kKey, 0}, 0, target, draft);
  for (std::size_t x = 0; x < 3; ++x) CHECK(std::abs(target[x] - (0.4 - 0.1 * static_cast<double>(x)) / 0.9) < 1e-15);
  CHECK(target[3] == 0.0);
  CHECK(draft == Probabilities{1.0, 0.0, 0.0, 0.0});
  CHECK_FALSE(model.pairs.at(0).random());
}

}  // namespace specsim::families_test
