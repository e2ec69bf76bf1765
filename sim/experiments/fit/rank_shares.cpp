#include "sim/experiments/fit/table_fit.h"

#include "sim/foundation/math/quantiles.h"
#include "sim/foundation/rng/address.h"
#include "sim/rounds/families/scale.h"

#include <boost/random/normal_distribution.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <span>
#include <tuple>

namespace specsim::fit {

namespace {

constexpr auto kTokens = static_cast<std::size_t>(kVocab);
static_assert(kTokens % 4 == 0);
constexpr double kLeastLog = -4.6;  // a deviation of .01
constexpr double kLogStep = 0.26;   // up to 720
// Contexts per block. At temperature 0 a share is a count of contexts. That needs more contexts, which are cheap at temperature
// 0.
constexpr std::size_t kCounted = 1536;
constexpr std::size_t kSummed = 320;
constexpr double kSurelyAccepted = 1e-7;  // a further sibling less likely than this is not worth a pass over the tokens
constexpr double kVanishing = -45.0;      // logarithm of a share of the likeliest token that does not change its sum
constexpr double kNothing = 1e-9;         // a token below this share of the likeliest token's probability is ignored

constexpr std::size_t kSigmas = 16;
constexpr double kSigmaStep = 0.25;  // in the logarithm: up to 42 times the family's sigma

double deviation_at(std::size_t node) { return std::exp(kLeastLog + kLogStep * static_cast<double>(node)); }

// Cubic interpolation with the slopes of the neighbours (Catmull and Rom), `t` of the way from `low` to `high`.
double cubic(double before, double low, double high, double after, double t) {
  const double rise = 0.5 * (high - before);
  const double next = 0.5 * (after - low);
  return low + t * (rise + t * (3.0 * (high - low) - 2.0 * rise - next + t * (rise + next - 2.0 * (high - low))));
}

struct Logits {
  std::vector<double> target;  // at temperature 1
  std::vector<double> noise;   // standard normal numbers
};

// The share of each rank in one context, by deviation, rank after rank.
class OneContext {
 public:
  OneContext(const Logits& logits, const RankKind& kind, std::size_t ranks) : logits_(&logits), kind_(kind), shares_(ranks) {
    if (kind.temperature == 0.0) {
      pass_thresholds();
      return;
    }
    const double most = *std::max_element(logits.target.begin(), logits.target.end());
    if (kind.determines_sigma()) {
      for (std::size_t i = 0; i < kSigmas; ++i) {
        const double sharpness = sharpness_at(i);
        double& sum = sums_.emplace_back(0.0);
        for (const double logit : logits.target) {
          const double below = (logit - most) * sharpness;
          if (below > kVanishing) sum += std::exp(below);
        }
      }
      most_ = most;
      return;
    }
    double sum = 0.0;
    for (const double logit : logits.target) sum += target_.emplace_back(std::exp((logit - most) / kind.temperature));
    for (double& p : target_) p /= sum;
  }

  // Shares of the draft's likeliest tokens, by sigma and rank.
  const std::vector<double>& chosen_at(double deviation) {
    find_likeliest(deviation);
    chosen_.clear();
    for (std::size_t i = 0; i < kSigmas; ++i)
      for (const std::size_t x : likeliest_)
        chosen_.push_back(std::exp((logits_->target[x] - most_) * sharpness_at(i)) / sums_[i]);
    return chosen_;
  }

  // `random`: uniform numbers for drawn siblings.
  const std::vector<double>& at(double deviation, std::span<const double> random) {
    std::fill(shares_.begin(), shares_.end(), 0.0);
    if (kind_.temperature == 0.0) {
      // The target's token ranks after every token whose threshold has been passed.
      const auto rank =
          static_cast<std::size_t>(std::lower_bound(thresholds_.begin(), thresholds_.end(), deviation) - thresholds_.begin());
      if (rank < shares_.size()) shares_[rank] = 1.0;
      return shares_;
    }
    fill_draft(deviation);
    take_drawn(random);
    return shares_;
  }

 private:
  // The factor on each logit.
  [[nodiscard]] double sharpness_at(std::size_t sigma) const {
    return std::exp(kSigmaStep * static_cast<double>(sigma)) / kind_.temperature;
  }

  // Finds as many likeliest tokens as there are ranks, in order.
  void find_likeliest(double deviation) {
    draft_.resize(kTokens);
    for (std::size_t x = 0; x < kTokens; ++x) draft_[x] = logits_->target[x] + deviation * logits_->noise[x];
    if (shares_.size() == 1) {
      // Four maxima at a time, so that comparisons do not wait for one another.
      std::array<double, 4> most = {draft_[0], draft_[1], draft_[2], draft_[3]};
      for (std::size_t x = 4; x < kTokens; x += 4)
        for (std::size_t lane = 0; lane < 4; ++lane) most[lane] = std::max(most[lane], draft_[x + lane]);
      likeliest_ = {static_cast<std::size_t>(
          std::find(draft_.begin(), draft_.end(), *std::max_element(most.begin(), most.end())) - draft_.begin())};
      return;
    }
    likeliest_.resize(kTokens);
    std::iota(likeliest_.begin(), likeliest_.end(), std::size_t{0});
    std::partial_sort(likeliest_.begin(), likeliest_.begin() + static_cast<std::ptrdiff_t>(shares_.size()), likeliest_.end(),
                      [&](std::size_t a, std::size_t b) { return draft_[a] > draft_[b]; });
    likeliest_.resize(shares_.size());
  }

  // Thresholds in order: the deviations from which on one token more has a higher draft logit than the target's likeliest token.
  // Every token's logit is linear in the deviation.
  void pass_thresholds() {
    const std::vector<double>& target = logits_->target;
    const std::vector<double>& noise = logits_->noise;
    const auto best = static_cast<std::size_t>(std::max_element(target.begin(), target.end()) - target.begin());
    for (std::size_t x = 0; x < target.size(); ++x)
      if (noise[x] > noise[best]) thresholds_.push_back((target[best] - target[x]) / (noise[x] - noise[best]));
    const std::size_t kept = std::min(shares_.size(), thresholds_.size());
    std::partial_sort(thresholds_.begin(), thresholds_.begin() + static_cast<std::ptrdiff_t>(kept), thresholds_.end());
    thresholds_.resize(kept);
  }

  // Target and draft probabilities of the tokens that matter to either.
  void fill_draft(double deviation) {
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t x = 0; x < kTokens; ++x) most = std::max(most, logits_->target[x] + deviation * logits_->noise[x]);
    p_.clear();
    q_.clear();
    double sum = 0.0;
    const double least = std::log(kNothing);
    for (std::size_t x = 0; x < kTokens; ++x) {
      const double below = (logits_->target[x] + deviation * logits_->noise[x] - most) / kind_.temperature;
      if (below < least && target_[x] < kNothing) continue;
      p_.push_back(target_[x]);
      q_.push_back(below < least ? 0.0 : std::exp(below));
      sum += q_.back();
    }
    for (double& q : q_) q /= sum;
  }

  // Shares of siblings that are judged in turn: what is accepted of each, on the path on which all before it were rejected.
  void take_drawn(std::span<const double> random) {
    double left = 1.0;
    for (std::size_t rank = 0; rank < shares_.size(); ++rank) {
      double accepted = 0.0;
      double excess = 0.0;  // mass of the draft over the target, the source of rejected tokens
      for (std::size_t x = 0; x < p_.size(); ++x) {
        accepted += std::min(p_[x], q_[x]);
        excess += std::max(q_[x] - p_[x], 0.0);
      }
      shares_[rank] = left * std::min(accepted, 1.0);
      left *= std::max(1.0 - accepted, 0.0);
      if (rank + 1 == shares_.size() || left < kSurelyAccepted || !(excess > 0.0)) return;
      double until = random[rank] * excess;
      std::size_t drawn = p_.size();
      double residual = 0.0;
      for (std::size_t x = 0; x < p_.size(); ++x) {
        const double over = q_[x] - p_[x];
        if (over > 0.0 && until >= 0.0) {
          until -= over;
          drawn = x;
        }
        p_[x] = std::max(-over, 0.0);
        residual += p_[x];
      }
      const double rest = 1.0 - q_[drawn];
      q_[drawn] = 0.0;
      if (!(residual > 0.0) || !(rest > 1e-12)) return;
      for (std::size_t x = 0; x < p_.size(); ++x) {
        p_[x] /= residual;
        q_[x] /= rest;
      }
    }
  }

  const Logits* logits_;
  RankKind kind_;
  std::vector<double> shares_;
  std::vector<double> thresholds_;
  std::vector<double> target_;
  std::vector<double> p_;
  std::vector<double> q_;
  double most_ = 0.0;         // the target's likeliest logit
  std::vector<double> sums_;  // [sigma], normaliser of the target's probabilities
  std::vector<double> draft_;
  std::vector<std::size_t> likeliest_;
  std::vector<double> chosen_;
};

}  // namespace

RankShares::RankShares(const RankKind& kind, std::size_t ranks, std::uint64_t seed)
    : ranks_(ranks),
      sigmas_(kind.determines_sigma() ? kSigmas : 1),
      halves_((kBlocks + 1) * sigmas_ * 2 * kNodes, 0.0),
      shares_((kBlocks + 1) * sigmas_ * ranks * kNodes, 0.0) {
  const std::size_t contexts = kind.temperature == 0.0 ? kCounted : kSummed;
  const SpreadValues family;
  rng::Stream random(rng::make_key(seed, rng::hash_text("table fit")), rng::Purpose::distribution, 0, 0);
  boost::random::normal_distribution<double> normal;
  Logits logits{std::vector<double>(kTokens), std::vector<double>(kTokens)};
  std::vector<double> uniform(ranks);
  for (std::size_t block = 0; block < kBlocks; ++block) {
    for (std::size_t c = 0; c < contexts; ++c) {
      // Target scales run through their quantiles, which reduces the sampling error.
      const double deviate = math::normal_quantile((static_cast<double>(c) + 0.5) / static_cast<double>(contexts));
      const double sigma = std::min(family.sigma * std::exp(family.sigma_spread * deviate), families::kLargestScale);
      for (double& logit : logits.target) logit = sigma * normal(random);
      for (double& logit : logits.noise) logit = normal(random);
      for (double& x : uniform) x = 0.5 * std::erfc(-normal(random) / std::sqrt(2.0));
      OneContext one(logits, kind, ranks);
      for (std::size_t i = 0; i < kNodes; ++i) {
        const std::vector<double>& shares =
            kind.determines_sigma() ? one.chosen_at(deviation_at(i)) : one.at(deviation_at(i), uniform);
        for (std::size_t own = 0; own < sigmas_ * ranks; ++own)
          node(block, own / ranks, own % ranks, i) += shares[own] / static_cast<double>(contexts);
        const std::size_t half = 2 * c < contexts ? 0 : 1;
        for (std::size_t own = 0; own < sigmas_; ++own)
          half_node(block, own, half, i) += 2.0 * shares[own * ranks] / static_cast<double>(contexts);
      }
    }
    for (std::size_t own = 0; own < sigmas_ * ranks; ++own)
      for (std::size_t i = 0; i < kNodes; ++i)
        node(kAll, own / ranks, own % ranks, i) += node(block, own / ranks, own % ranks, i) / static_cast<double>(kBlocks);
    for (std::size_t own = 0; own < sigmas_ * 2; ++own)
      for (std::size_t i = 0; i < kNodes; ++i)
        half_node(kAll, own / 2, own % 2, i) += half_node(block, own / 2, own % 2, i) / static_cast<double>(kBlocks);
  }
}

namespace {

// The trapezoidal rule over the context's own deviate.
constexpr double kRuleReach = 6.0;
constexpr int kRuleSteps = 96;

double unit_of(const TableValues& values) { return values.sigma / SpreadValues().sigma; }

// The logarithm of the standard deviation of a draft's logits, in units of sigma over the family's, at one node of the
// trapezoidal rule.
double log_deviation_at(const TableValues& values, std::size_t depth, double deviate) {
  const double drifted = values.drift * values.drift * static_cast<double>(depth);
  const double noise = std::min(values.noise * std::exp(values.noise_spread * deviate), families::kLargestScale);
  return 0.5 * std::log(noise * noise + drifted) - std::log(unit_of(values));
}

}  // namespace

const RankShares& rank_shares(const RankKind& kind, std::size_t ranks, std::uint64_t seed) {
  using Key = std::tuple<double, bool, std::size_t, std::uint64_t>;
  static std::mutex mutex;
  static std::map<Key, RankShares> worked_out;
  const std::lock_guard lock(mutex);
  const Key key{kind.temperature, kind.likeliest, ranks, seed};
  const auto at = worked_out.find(key);
  return at != worked_out.end() ? at->second : worked_out.emplace(key, RankShares(kind, ranks, seed)).first->second;
}

std::vector<double> RankShares::at(const TableValues& values, std::size_t depth, std::size_t ranks, std::size_t block) const {
  const double sigma_steps = std::log(unit_of(values)) / kSigmaStep;
  std::vector<double> result(std::min(ranks, ranks_), 0.0);
  double weights = 0.0;
  for (int step = 0; step <= kRuleSteps; ++step) {
    const double deviate = kRuleReach * (2.0 * step / kRuleSteps - 1.0);
    const double weight = std::exp(-0.5 * deviate * deviate);
    const double log_deviation = log_deviation_at(values, depth, deviate);
    for (std::size_t rank = 0; rank < result.size(); ++rank)
      result[rank] += weight * interpolated(&shares_[(block * sigmas_ * ranks_ + rank) * kNodes], ranks_ * kNodes, sigma_steps,
                                            log_deviation);
    weights += weight;
  }
  for (double& share : result) share /= weights;
  return result;
}

StretchRates RankShares::by_stretch(const TableValues& values, std::size_t depth, std::size_t block) const {
  const double sigma_steps = std::log(unit_of(values)) / kSigmaStep;
  StretchRates result = {};
  std::array<double, 2> weights = {};  // weights of the two hard halves
  for (int step = 0; step <= kRuleSteps; ++step) {
    const double deviate = kRuleReach * (2.0 * step / kRuleSteps - 1.0);
    const double log_deviation = log_deviation_at(values, depth, deviate);
    for (std::size_t hard = 0; hard < 2; ++hard) {
      if (hard == 0 ? 2 * step > kRuleSteps : 2 * step < kRuleSteps) continue;
      const double weight = std::exp(-0.5 * deviate * deviate) * (2 * step == kRuleSteps ? 0.5 : 1.0);
      weights[hard] += weight;
      for (std::size_t open = 0; open < 2; ++open)
        result[2 * open + hard] +=
            weight * interpolated(&halves_[(block * sigmas_ * 2 + open) * kNodes], 2 * kNodes, sigma_steps, log_deviation);
    }
  }
  for (std::size_t s = 0; s < result.size(); ++s) result[s] /= weights[s % 2];
  return result;
}

double RankShares::interpolated(const double* row, std::size_t stride, double sigma_steps, double log_deviation) const {
  const double node_steps = std::clamp((log_deviation - kLeastLog) / kLogStep, 0.0, static_cast<double>(kNodes - 1));
  const std::size_t n = std::min(static_cast<std::size_t>(node_steps), kNodes - 2);
  const auto at = [&](std::size_t sigma) {
    const double* of = row + sigma * stride;
    return cubic(of[n > 0 ? n - 1 : 0], of[n], of[n + 1], of[std::min(n + 2, kNodes - 1)], node_steps - static_cast<double>(n));
  };
  if (sigmas_ == 1 || sigma_steps <= 0.0) return at(0);
  const double steps = std::min(sigma_steps, static_cast<double>(sigmas_ - 1));
  const std::size_t i = std::min(static_cast<std::size_t>(steps), sigmas_ - 2);
  return cubic(at(i > 0 ? i - 1 : 0), at(i), at(i + 1), at(std::min(i + 2, sigmas_ - 1)), steps - static_cast<double>(i));
}

}  // namespace specsim::fit
