#include "sim/experiments/judge/agreement.h"

#include "sim/foundation/math/quantiles.h"
#include "sim/rounds/theory/round_tokens.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace specsim::judge {

namespace {

// The normal limit is used from this number of expected tokens per class.
constexpr double kFewTokens = 1000.0;

struct Deviations {
  std::vector<double> mean;        // [bucket]: observed - expected
  std::vector<double> covariance;  // [bucket][bucket]
};

// The deviations' chi-squared distance by their covariance. Eliminates one bucket after the other, always the one with the
// largest remaining variance. `certain`: buckets without variance that deviate all the same.
struct Distance {
  double squared = 0.0;
  int rank = 0;
  bool certain = false;
};

Distance distance_of(Deviations own) {
  const std::size_t size = own.mean.size();
  const auto entry = [&](std::size_t a, std::size_t b) -> double& { return own.covariance[a * size + b]; };
  std::vector<bool> open(size, true);
  std::vector<double> whole(size);  // original variances; a remainder that is tiny relative to them counts as rounding
  for (std::size_t k = 0; k < size; ++k) whole[k] = entry(k, k);
  Distance distance;
  for (std::size_t step = 0; step < size; ++step) {
    constexpr double kRounding = 1e-9;
    std::size_t pivot = size;
    for (std::size_t k = 0; k < size; ++k)
      if (open[k] && entry(k, k) > kRounding * std::max(whole[k], 1.0) && (pivot == size || entry(k, k) > entry(pivot, pivot)))
        pivot = k;
    if (pivot == size) break;
    open[pivot] = false;
    const double variance = entry(pivot, pivot);
    distance.squared += own.mean[pivot] * own.mean[pivot] / variance;
    ++distance.rank;
    for (std::size_t a = 0; a < size; ++a) {
      if (!open[a]) continue;
      const double share = entry(a, pivot) / variance;
      own.mean[a] -= share * own.mean[pivot];
      for (std::size_t b = 0; b < size; ++b)
        if (open[b]) entry(a, b) -= share * entry(pivot, b);
    }
  }
  constexpr double kLessThanOne = 0.5;  // tokens are whole numbers
  for (std::size_t k = 0; k < size; ++k) distance.certain = distance.certain || (open[k] && std::abs(own.mean[k]) > kLessThanOne);
  return distance;
}

// p-value of the emitted tokens by class in `rounds` rounds. The statistic is their distance from the mean by their covariance,
// which is chi-squared with the covariance's rank. Classes with few tokens are pooled. A token of a class that is never emitted,
// or a count that differs although it has no variance, gives p = 0. NaN: nothing to test.
double round_output_p(const theory::TokenMoments& tokens, std::span<const std::uint64_t> output, std::uint64_t rounds) {
  const auto n = static_cast<double>(rounds);
  const std::size_t classes = tokens.classes();
  if (rounds == 0) return std::numeric_limits<double>::quiet_NaN();
  std::vector<std::size_t> bucket(classes);  // the bucket in which a class is counted
  std::size_t buckets = 1;                   // the first is the pool
  bool forbids = false;
  double pooled = 0.0;
  std::size_t least = 0;  // the class with the fewest tokens that is not pooled
  for (std::size_t k = 0; k < classes; ++k) {
    const double expected = n * tokens.mean()[k];
    forbids = forbids || expected == 0.0;
    if (expected == 0.0 && output[k] > 0) return 0.0;
    bucket[k] = expected >= kFewTokens ? buckets++ : 0;
    if (bucket[k] == 0)
      pooled += expected;
    else if (bucket[least] == 0 || tokens.mean()[k] < tokens.mean()[least])
      least = k;
  }
  if (buckets == 1 && pooled < kFewTokens) return forbids ? 1.0 : std::numeric_limits<double>::quiet_NaN();
  // A pool that is still too small joins the smallest of the others.
  if (pooled < kFewTokens)
    for (std::size_t k = 0; k < classes; ++k)
      if (bucket[k] == 0) bucket[k] = bucket[least];
  Deviations own{std::vector<double>(buckets, 0.0), std::vector<double>(buckets * buckets, 0.0)};
  const std::vector<double> covariance = tokens.covariance();
  for (std::size_t a = 0; a < classes; ++a) {
    own.mean[bucket[a]] += static_cast<double>(output[a]) - n * tokens.mean()[a];
    for (std::size_t b = 0; b < classes; ++b) own.covariance[bucket[a] * buckets + bucket[b]] += n * covariance[a * classes + b];
  }
  const Distance distance = distance_of(std::move(own));
  if (distance.certain) return 0.0;
  if (distance.rank > 0) return math::chi_squared_tail(distance.squared, distance.rank);
  return buckets > 1 || forbids ? 1.0 : std::numeric_limits<double>::quiet_NaN();
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kPooledBelow = 100.0;

// Sidak: the p-value of the smallest of several p-values.
double sidak(double p, int tests) { return -std::expm1(tests * std::log1p(-std::min(p, 1.0 - 1e-16))); }

constexpr double kScoreAbove = 5000.0;  // expected tokens per class

// The share of each output class by stratum, [stratum][class], under the target and under the draft. Contexts of one stratum are
// drawn with equal weight.
struct ClassShares {
  explicit ClassShares(const decode::Prepared& prepared)
      : target(static_cast<std::size_t>(prepared.strata) * static_cast<std::size_t>(prepared.class_count), 0.0), draft(target) {
    const auto classes = static_cast<std::size_t>(prepared.class_count);
    const bool one = prepared.strata == 1;
    const double share = one ? 1.0 / static_cast<double>(prepared.classes.size()) : 1.0;
    for (std::size_t context = 0; context < prepared.classes.size(); ++context) {
      const std::size_t stratum = one ? 0 : context;
      for (std::size_t k = 0; k < classes; ++k) {
        target[stratum * classes + k] += share * prepared.classes[context].target_mass[k];
        draft[stratum * classes + k] += share * prepared.classes[context].draft_mass[k];
      }
    }
  }

  std::vector<double> target;
  std::vector<double> draft;
};

// Tests of emitted tokens by class against the target's shares, stratum by stratum.
struct ClassTests {
  GTest fine;    // every class
  GTest coarse;  // the ratio bins, without classes of single top tokens
  // The score test relies on the normal limit, so it uses only classes with many expected tokens. The rare ones that a leak
  // would fill are counted together and tested exactly.
  double score = 0.0;
  double information = 0.0;
  double rare_observed = 0.0;
  double rare_expected = 0.0;
  double rare_leaked = 0.0;  // expected there if every token came from the draft
  double impossible_draft = 0.0;

  void add_stratum(const std::uint64_t* output, const double* target, const double* draft, const decode::Prepared& prepared) {
    const auto classes = static_cast<std::size_t>(prepared.class_count);
    std::vector<double> observed(classes);
    std::vector<double> expected(classes);
    std::vector<double> observed_bins(decode::kPairBins, 0.0);
    std::vector<double> expected_bins(decode::kPairBins, 0.0);
    double n = 0.0;
    for (std::size_t k = 0; k < classes; ++k) n += static_cast<double>(output[k]);
    for (std::size_t k = 0; k < classes; ++k) {
      const std::size_t bin = prepared.bin_of_class[k];
      observed[k] = static_cast<double>(output[k]);
      expected[k] = n * target[k];
      observed_bins[bin] += observed[k];
      expected_bins[bin] += expected[k];
    }
    fine.add(observed, expected);
    if (classes > decode::kPairBins) coarse.add(observed_bins, expected_bins);
    for (std::size_t k = 0; k < classes; ++k) {
      if (!(target[k] > 0.0)) {
        impossible_draft += n * draft[k];
        continue;
      }
      if (expected[k] < kScoreAbove) {
        if (draft[k] > target[k]) {
          rare_observed += observed[k];
          rare_expected += expected[k];
          rare_leaked += n * draft[k];
        }
        continue;
      }
      const double weight = draft[k] / target[k] - 1.0;
      score += weight * (observed[k] - expected[k]);
      information += expected[k] * weight * weight;
    }
  }
};

// Tests neighbours in the emitted text by ratio bin. If tokens are independent, each bin follows every bin with its own share.
GTest neighbours_test(const decode::Counts& counts, const std::vector<double>& target, const decode::Prepared& prepared) {
  GTest pairs;
  std::vector<double> share_of_bin(decode::kPairBins, 0.0);
  for (std::size_t k = 0; k < static_cast<std::size_t>(prepared.class_count); ++k)
    share_of_bin[prepared.bin_of_class[k]] += target[k];
  for (std::size_t a = 0; a < decode::kPairBins; ++a) {
    std::vector<double> row(decode::kPairBins);
    double n = 0.0;
    for (std::size_t b = 0; b < decode::kPairBins; ++b)
      n += row[b] = static_cast<double>(counts.pairs[a * decode::kPairBins + b]);
    std::vector<double> expected(decode::kPairBins);
    for (std::size_t b = 0; b < decode::kPairBins; ++b) expected[b] = n * share_of_bin[b];
    pairs.add(row, expected);
  }
  return pairs;
}

// All tests of the output distribution, combined in one p-value.
void judge_output(const DistributionFacts& facts, const decode::Counts& counts, double level, Agreement& agreement) {
  const decode::Prepared& prepared = facts.classes;
  const auto classes = static_cast<std::size_t>(prepared.class_count);
  double total = 0.0;
  for (const std::uint64_t n : counts.output) total += static_cast<double>(n);
  agreement.smallest_leak = kNaN;
  if (total == 0.0) {
    agreement.p_output_distribution = kNaN;
    return;
  }
  if (prepared.classes.empty()) {  // fresh distributions: classes are equally likely by construction
    GTest uniform;
    uniform.add({counts.output.begin(), counts.output.end()}, std::vector<double>(classes, total / static_cast<double>(classes)));
    agreement.p_output_distribution = uniform.p();
    return;
  }

  const ClassShares shares(prepared);
  ClassTests all;
  const auto strata = static_cast<std::size_t>(prepared.strata);
  for (std::size_t s = 0; s < strata; ++s)
    all.add_stratum(&counts.output[s * classes], &shares.target[s * classes], &shares.draft[s * classes], prepared);
  double smallest = all.fine.p();
  int tests = 1;
  if (all.coarse.degrees > 0 || all.coarse.impossible) smallest = std::min(smallest, all.coarse.p()), ++tests;
  if (all.information > 0.0) smallest = std::min(smallest, normal_p(all.score / std::sqrt(all.information))), ++tests;
  const bool rare = all.rare_expected > 0.0;
  // Rounding: shares of classes may sum to 1 + 2e-16.
  const double rare_share = std::min(1.0, all.rare_expected / total);
  if (rare) smallest = std::min(smallest, binomial_p(all.rare_observed, total, rare_share)), ++tests;
  if (strata == 1) {
    const GTest pairs = neighbours_test(counts, shares.target, prepared);
    if (pairs.degrees > 0 || pairs.impossible) smallest = std::min(smallest, pairs.p()), ++tests;
  }
  const bool tested = all.fine.degrees > 0 || all.fine.impossible || tests > 1 || all.impossible_draft > 0.0;
  agreement.p_output_distribution = tested ? sidak(smallest, tests) : kNaN;

  // The power of the score test and of the rare classes' count; the other tests can only add to it.
  const double own_level = level / tests;
  const double needed = math::normal_upper_quantile(own_level / 2.0) + math::normal_quantile(kPower);
  double leak = all.information > 1e-9 * total ? needed / std::sqrt(all.information) : std::numeric_limits<double>::infinity();
  if (rare) leak = std::min(leak, rare_leak(total, rare_share, std::min(1.0, all.rare_leaked / total), own_level));
  if (all.impossible_draft > 0.0) leak = std::min(leak, -std::log(1.0 - kPower) / all.impossible_draft);
  if (leak > 1.0) leak = kNaN;
  agreement.smallest_leak = leak;
}

// Tests the tokens of a lossy rule against the distribution that theory predicts. The expected count of a class is the sum over
// positions of the tokens judged there times its mass, plus the share of bonus tokens, mostly the target's. Given the numbers of
// judged tokens, their covariance is at most the multinomial one, so the test is conservative.
double judged_p(const DistributionFacts& facts, const decode::Counts& counts) {
  const auto classes = static_cast<std::size_t>(facts.classes.class_count);
  std::vector<double> expected(classes, 0.0);
  const auto add = [&](std::uint64_t tokens, const std::vector<double>& mass, double share) {
    for (std::size_t k = 0; k < classes; ++k) expected[k] += static_cast<double>(tokens) * share * mass[k];
  };
  // Each judged position emits one token. A fully accepted block, which a policy may have ended early, emits one more.
  std::uint64_t whole = std::accumulate(counts.output.begin(), counts.output.end(), std::uint64_t{0});
  for (std::size_t j = 0; j < counts.reached.size(); ++j) {
    add(counts.reached[j], facts.judged_mass[std::min(j, facts.judged_mass.size() - 1)], 1.0);
    whole -= counts.reached[j];
  }
  if (!facts.bonus_mass.empty()) {
    add(whole, facts.bonus_mass, 1.0);
  } else {
    for (const decode::OutputClasses& context : facts.classes.classes)
      add(whole, context.target_mass, 1.0 / static_cast<double>(facts.classes.classes.size()));
  }
  // Classes without tokens are not tested.
  std::vector<double> observed;
  std::vector<double> kept;
  for (std::size_t k = 0; k < classes; ++k) {
    const bool any =
        std::any_of(facts.classes.classes.begin(), facts.classes.classes.end(),
                    [k](const decode::OutputClasses& own) { return own.target_mass[k] > 0.0 || own.draft_mass[k] > 0.0; });
    if (!any && counts.output[k] == 0) continue;
    observed.push_back(static_cast<double>(counts.output[k]));
    kept.push_back(expected[k]);
  }
  GTest test;
  test.add(observed, kept);
  return test.tested() ? test.p() : kNaN;
}

}  // namespace

double check_level(std::size_t checks, double budget) {
  return -std::expm1(std::log1p(-budget) / static_cast<double>(std::max<std::size_t>(checks, 1)));
}

void GTest::add(const std::vector<double>& observed, const std::vector<double>& expected) {
  struct Bucket {
    double observed = 0.0;
    double expected = 0.0;
  };
  std::vector<Bucket> kept;
  Bucket pool;
  const bool any = std::any_of(expected.begin(), expected.end(), [](double x) { return x > 0.0; });
  for (std::size_t i = 0; i < observed.size(); ++i) {
    if (!(expected[i] > 0.0)) {
      impossible = impossible || observed[i] > 0.0;
      forbids = forbids || any;
    } else if (expected[i] >= kPooledBelow) {
      kept.push_back({observed[i], expected[i]});
    } else {
      pool.observed += observed[i];
      pool.expected += expected[i];
    }
  }
  if (pool.expected >= kPooledBelow) {
    kept.push_back(pool);
  } else if (pool.expected > 0.0 && !kept.empty()) {
    Bucket& least =
        *std::min_element(kept.begin(), kept.end(), [](const Bucket& a, const Bucket& b) { return a.expected < b.expected; });
    least.observed += pool.observed;
    least.expected += pool.expected;
  }
  if (kept.size() < 2) return;
  for (const Bucket& bucket : kept)
    g += 2.0 * (bucket.observed > 0.0 ? bucket.observed * std::log(bucket.observed / bucket.expected) : 0.0) -
         2.0 * (bucket.observed - bucket.expected);
  degrees += static_cast<int>(kept.size()) - 1;
}

double GTest::p() const {
  if (impossible) return 0.0;
  if (degrees == 0) return 1.0;
  return math::chi_squared_tail(std::max(g, 0.0), degrees);
}

double normal_p(double z) {
  if (std::isnan(z)) return z;
  if (std::isinf(z)) return 0.0;
  return 2.0 * math::normal_tail(std::abs(z));
}

Agreement judge_cell(const spec::Cell& cell, const DistributionFacts& facts, const Prediction& prediction,
                     const decode::Counts& counts, double level) {
  Agreement agreement;
  if (cell.lossless()) {
    judge_output(facts, counts, level, agreement);
  } else {
    // A lossy verifier's tokens differ from the target's. They are compared with the distribution that theory predicts, if any.
    agreement.smallest_leak = kNaN;
    agreement.p_output_distribution = !facts.judged_mass.empty() ? judged_p(facts, counts)
                                      : facts.tokens_of_round
                                          ? round_output_p(*facts.tokens_of_round, counts.output, counts.rounds)
                                          : kNaN;
  }
  if (!prediction.known || counts.rounds == 0) {
    agreement.z_tokens_per_round = kNaN;
    agreement.p_tokens_per_round = kNaN;
    agreement.p_accepted_distribution = kNaN;
    agreement.smallest_error = kNaN;
    return agreement;
  }
  const MeanTest mean(cell, facts.classes.strata, prediction, counts);
  agreement.z_tokens_per_round = mean.z();
  agreement.p_tokens_per_round = mean.p();
  agreement.smallest_error = mean.smallest_error(level);

  if (prediction.accepted_distribution.empty()) {
    agreement.p_accepted_distribution = kNaN;
    return agreement;
  }
  GTest test;
  const auto size = static_cast<std::size_t>(cell.draft_length()) + 1;
  for (std::size_t s = 0; s < prediction.accepted_distribution.size(); ++s) {
    std::vector<double> observed(size);
    double n = 0.0;
    for (std::size_t j = 0; j < size; ++j) n += observed[j] = static_cast<double>(counts.accepted_distribution[s * size + j]);
    std::vector<double> expected(size);
    for (std::size_t j = 0; j < size; ++j) expected[j] = n * prediction.accepted_distribution[s].accepted[j];
    test.add(observed, expected);
  }
  agreement.p_accepted_distribution = test.tested() ? test.p() : kNaN;
  return agreement;
}

const char* to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::agree:
      return "agree";
    case Verdict::disagree:
      return "disagree";
    case Verdict::refuted_as_expected:
      return "refuted_as_expected";
    case Verdict::no_theory:
      return "no_theory";
  }
  return "";
}

bool contradicts(const Agreement& agreement, double level) {
  // Comparisons with NaN are false, so an untested figure rejects nothing.
  return agreement.p_tokens_per_round < level || agreement.p_accepted_distribution < level;
}

Verdict decide(const spec::Cell& cell, const Prediction& prediction, const Agreement& exact, const Agreement& named,
               double level) {
  if (named.p_output_distribution < level) return Verdict::disagree;
  if (contradicts(exact, level)) return Verdict::disagree;
  if (!prediction.known) return Verdict::no_theory;
  const bool rejected = contradicts(named, level);
  if (spec::expects_refuted(cell.theory)) return rejected ? Verdict::refuted_as_expected : Verdict::disagree;
  return rejected ? Verdict::disagree : Verdict::agree;
}

std::optional<Underpowered> underpowered(const spec::Cell& cell, const DistributionFacts& facts, const Prediction& prediction,
                                         const decode::Counts& counts, const Agreement& agreement, double level) {
  const auto rounds = static_cast<double>(counts.rounds);
  constexpr double kSpare = 1.1;
  if (cell.lossless() && !facts.classes.classes.empty() && facts.chi_squared >= kPowerChiSquared) {
    const double leak = agreement.smallest_leak;
    if (leak <= kPowerLeak) return std::nullopt;  // NaN: not even a complete leak would be detected
    const double factor = leak / kPowerLeak;
    return Underpowered{"leak of the draft's distribution", leak, kPowerLeak, kSpare * factor * factor * rounds};
  }
  if (!prediction.known || agreement.smallest_error <= kPowerError) return std::nullopt;
  const double needed =
      counts.rounds == 0 ? kNaN : MeanTest(cell, facts.classes.strata, prediction, counts).rounds_for(kPowerError, level);
  return Underpowered{"error of tokens per round", agreement.smallest_error < 1.0 ? agreement.smallest_error : kNaN, kPowerError,
                      kSpare * needed};
}

}  // namespace specsim::judge
