#include "sim/judge/agreement.h"

#include "sim/math/quantiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace specsim::judge {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kPooledBelow = 100.0;
constexpr double kPower = 0.99;

// Sidak: the p-value of the smallest of several.
double sidak(double p, int tests) { return -std::expm1(tests * std::log1p(-std::min(p, 1.0 - 1e-16))); }

constexpr double kScoreAbove = 5000.0;  // expected tokens of a class
constexpr double kRareEvents = 1000.0;  // expected rejections or acceptances

// Two-sided p of `observed` in `n` trials of probability `share`, exact.
double binomial_p(double observed, double n, double share) {
  if (share >= 1.0) return 1.0;
  const double below = math::binomial_at_most(observed, n, share);
  const double above = observed > 0.0 ? math::binomial_above(observed - 1.0, n, share) : 1.0;
  return std::min(1.0, 2.0 * std::min(below, above));
}

// The smallest leak that the count of rare classes rejects with power kPower: it has probability `share` each without a
// leak and `leaked` under the draft alone. Infinite where even a leak of 1 is not seen.
double rare_leak(double n, double share, double leaked, double level) {
  double critical = std::floor(n * share);
  for (double step = std::max(1.0, std::floor(std::sqrt(n))); step >= 1.0; step = std::floor(step / 2.0))
    while (critical + step <= n && 2.0 * math::binomial_above(critical + step - 1.0, n, share) >= level) critical += step;
  ++critical;  // the smallest count whose upper tail is below the level
  const auto power = [&](double leak) {
    const double p = (1.0 - leak) * share + leak * leaked;
    return p >= 1.0 ? 1.0 : math::binomial_above(critical - 1.0, n, p);
  };
  if (critical > n || power(1.0) < kPower) return std::numeric_limits<double>::infinity();
  double low = 0.0;
  double high = 1.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (power(middle) < kPower ? low : high) = middle;
  }
  return high;
}

// The share of each output class by stratum, [stratum][class], under the target and under the draft; contexts of one stratum are
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

// Emitted tokens by class against the target's shares, stratum by stratum.
struct ClassTests {
  GTest fine;    // every class
  GTest coarse;  // the ratio bins, where top tokens are singled out
  // The score test trusts the normal limit, so only classes with many expected tokens enter it; the rare ones that a leak would
  // fill are counted together and tested exactly.
  double score = 0.0;
  double information = 0.0;
  double rare_observed = 0.0;
  double rare_expected = 0.0;
  double rare_leaked = 0.0;  // expected there if every token were the draft's
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

// Neighbours in the emitted text by ratio bin: where tokens are independent, each bin follows each with its own share.
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

// Everything the output distribution is asked, in one p-value.
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
  // Shares of classes may sum to 1 + 2e-16.
  const double rare_share = std::min(1.0, all.rare_expected / total);
  if (rare) smallest = std::min(smallest, binomial_p(all.rare_observed, total, rare_share)), ++tests;
  if (strata == 1) {
    const GTest pairs = neighbours_test(counts, shares.target, prepared);
    if (pairs.degrees > 0 || pairs.impossible) smallest = std::min(smallest, pairs.p()), ++tests;
  }
  agreement.p_output_distribution = sidak(smallest, tests);

  // The power of the score test and of the rare classes' count; the others can only add to it.
  const double own_level = level / tests;
  const double needed = math::normal_upper_quantile(own_level / 2.0) + math::normal_quantile(kPower);
  double leak = all.information > 1e-9 * total ? needed / std::sqrt(all.information) : std::numeric_limits<double>::infinity();
  if (rare) leak = std::min(leak, rare_leak(total, rare_share, std::min(1.0, all.rare_leaked / total), own_level));
  if (all.impossible_draft > 0.0) leak = std::min(leak, -std::log(1.0 - kPower) / all.impossible_draft);
  if (leak > 1.0) leak = kNaN;
  agreement.smallest_leak = leak;
}

// The tokens of a lossy rule against the distribution that it must have: expected of a class is the sum over positions of the
// tokens judged there times its mass, and the target's of the bonus tokens. Given how many were judged at each position their
// covariance is at most the multinomial one, so the test is on the safe side.
double judged_p(const spec::Cell& cell, const DistributionFacts& facts, const decode::Counts& counts) {
  const auto classes = static_cast<std::size_t>(facts.classes.class_count);
  std::vector<double> expected(classes, 0.0);
  const auto add = [&](std::uint64_t tokens, const std::vector<double>& mass, double share) {
    for (std::size_t k = 0; k < classes; ++k) expected[k] += static_cast<double>(tokens) * share * mass[k];
  };
  for (std::size_t j = 0; j < counts.reached.size(); ++j)
    add(counts.reached[j], facts.judged_mass[std::min(j, facts.judged_mass.size() - 1)], 1.0);
  for (const decode::OutputClasses& context : facts.classes.classes)
    add(counts.accepted_distribution[static_cast<std::size_t>(cell.draft_length())], context.target_mass,
        1.0 / static_cast<double>(facts.classes.classes.size()));
  GTest test;
  test.add({counts.output.begin(), counts.output.end()}, expected);
  return test.p();
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
  for (std::size_t i = 0; i < observed.size(); ++i) {
    if (!(expected[i] > 0.0)) {
      impossible = impossible || observed[i] > 0.0;
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

// Two-sided, of a sum that is `z` standard deviations off its mean, whatever the distribution of its independent terms:
// Chebyshev's bound, or Bernstein's where no term can be more than `range` off.
double largest_p(double z, double deviation, double range) {
  const double off = std::abs(z);
  const double bernstein = 2.0 * std::exp(-0.5 * off * off / (1.0 + range * off / (3.0 * deviation)));
  return std::min({1.0, 1.0 / (off * off), bernstein});
}

Agreement judge_cell(const spec::Cell& cell, const DistributionFacts& facts, const Prediction& prediction,
                     const decode::Counts& counts, double level) {
  Agreement agreement;
  agreement.output_counts = cell.lossless();
  judge_output(facts, counts, level, agreement);
  if (!facts.judged_mass.empty()) {
    agreement.p_output_distribution = judged_p(cell, facts, counts);
    agreement.output_counts = true;
  }
  if (!prediction.known || counts.rounds == 0) {
    agreement.z_tokens_per_round = kNaN;
    agreement.p_tokens_per_round = kNaN;
    agreement.p_accepted_distribution = kNaN;
    return agreement;
  }
  const double measured = static_cast<double>(counts.emitted) / static_cast<double>(counts.rounds);
  const double difference = measured - prediction.tokens_per_round;
  // Where every round must come out alike (alpha 0 or 1) only rounding may differ.
  const bool certain = prediction.tokens_per_round_error < 1e-9 * prediction.tokens_per_round;
  agreement.z_tokens_per_round =
      certain
          ? (std::abs(difference) < 1e-6 * measured ? 0.0 : std::copysign(std::numeric_limits<double>::infinity(), difference))
          : difference / prediction.tokens_per_round_error;
  agreement.p_tokens_per_round = normal_p(agreement.z_tokens_per_round);
  if (!certain && cell.draft_length() > 0) {
    // A mean of rare events is not normal: where rejections or acceptances are few, the first position's are counted
    // exactly, or, where rounds are not alike or no distribution is claimed, only what holds for any distribution of that mean,
    // spread and range is used.
    double tries = 0.0;
    for (const std::uint64_t n : counts.reached) tries += static_cast<double>(n);
    const double rare = tries * std::min(prediction.alpha, 1.0 - prediction.alpha);
    if (rare < kRareEvents) {
      const bool alike = prediction.accepted_distribution.size() == 1 && facts.classes.strata == 1;
      agreement.p_tokens_per_round =
          alike ? binomial_p(static_cast<double>(counts.accepted[0]), static_cast<double>(counts.reached[0]),
                             prediction.accepted_distribution[0].tail(1))
                : largest_p(agreement.z_tokens_per_round, prediction.tokens_per_round_error * static_cast<double>(counts.rounds),
                            cell.contexts->process->shape().ends()
                                ? std::numeric_limits<double>::infinity()
                                : static_cast<double>(cell.sequence_rounds) * cell.draft_length());
    }
  }

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
  agreement.p_accepted_distribution = test.p();
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
  // NaN compares false: what was not tested rejects nothing.
  return agreement.p_tokens_per_round < level || agreement.p_accepted_distribution < level;
}

Verdict decide(const spec::Cell& cell, const Prediction& prediction, const Agreement& exact, const Agreement& named,
               double level) {
  if (named.output_counts && named.p_output_distribution < level) return Verdict::disagree;
  if (contradicts(exact, level)) return Verdict::disagree;
  if (!prediction.known) return Verdict::no_theory;
  const bool rejected = contradicts(named, level);
  if (spec::expects_refuted(cell.theory)) return rejected ? Verdict::refuted_as_expected : Verdict::disagree;
  return rejected ? Verdict::disagree : Verdict::agree;
}

bool could_have_failed(const DistributionFacts& facts, const Agreement& agreement) {
  if (!agreement.output_counts || !facts.judged_mass.empty() || facts.classes.classes.empty() ||
      !(facts.chi_squared >= kPowerChiSquared))
    return true;
  return agreement.smallest_leak <= kPowerLeak;  // NaN: even a leak of everything would pass
}

}  // namespace specsim::judge
