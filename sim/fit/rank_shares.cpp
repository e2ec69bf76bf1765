#include "sim/fit/rank_shares.h"

#include "sim/families/scale.h"
#include "sim/math/quantiles.h"
#include "sim/rng/address.h"

#include <boost/random/normal_distribution.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace specsim::fit {

namespace {

constexpr auto kTokens = static_cast<std::size_t>(kVocab);
constexpr double kLeastLog = -4.6;  // a deviation of .01
constexpr double kLogStep = 0.26;   // up to 720
// Contexts of a block. At temperature 0 shares count contexts, which takes more of them; they are cheap there.
constexpr std::size_t kCounted = 1536;
constexpr std::size_t kSummed = 320;
constexpr double kSurelyAccepted = 1e-7;  // chance of a further sibling that is not worth going through the tokens for
constexpr double kNothing = 1e-9;         // share of a likeliest token's probability below which a token does not matter

double deviation_at(std::size_t node) { return std::exp(kLeastLog + kLogStep * static_cast<double>(node)); }

struct Logits {
  std::vector<double> target;  // at temperature 1
  std::vector<double> noise;   // normal numbers of standard deviation 1
};

// What each rank gets in one context, by deviation: rank after rank.
class OneContext {
 public:
  OneContext(const Logits& logits, const RankKind& kind, std::size_t ranks) : logits_(&logits), kind_(kind), shares_(ranks) {
    if (kind.temperature == 0.0) {
      pass_thresholds();
      return;
    }
    const double most = *std::max_element(logits.target.begin(), logits.target.end());
    double sum = 0.0;
    for (const double logit : logits.target) sum += target_.emplace_back(std::exp((logit - most) / kind.temperature));
    for (double& p : target_) p /= sum;
  }

  // `random`: uniform numbers for the siblings that are drawn.
  const std::vector<double>& at(double deviation, std::span<const double> random) {
    std::fill(shares_.begin(), shares_.end(), 0.0);
    if (kind_.temperature == 0.0) {
      // The target's token is behind every token whose threshold has been passed.
      const auto rank =
          static_cast<std::size_t>(std::lower_bound(thresholds_.begin(), thresholds_.end(), deviation) - thresholds_.begin());
      if (rank < shares_.size()) shares_[rank] = 1.0;
      return shares_;
    }
    fill_draft(deviation);
    if (kind_.likeliest)
      take_likeliest();
    else
      take_drawn(random);
    return shares_;
  }

 private:
  // The deviations from which on one token more lies above the target's likeliest in the draft's logits, in order. Every token's
  // logit moves in a straight line with the deviation.
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

  // Target and draft of the tokens that matter to either.
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

  void take_likeliest() {
    for (double& share : shares_) {
      const auto first = std::max_element(q_.begin(), q_.end());
      if (!(*first > 0.0)) return;
      share = p_[static_cast<std::size_t>(first - q_.begin())];
      *first = -1.0;
    }
  }

  // Siblings one after the other: what is accepted of each, on the path on which all before it were rejected.
  void take_drawn(std::span<const double> random) {
    double left = 1.0;
    for (std::size_t rank = 0; rank < shares_.size(); ++rank) {
      double accepted = 0.0;
      double excess = 0.0;  // mass of the draft over the target: where a rejected token comes from
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
};

}  // namespace

RankShares::RankShares(const RankKind& kind, std::size_t ranks, std::uint64_t seed)
    : ranks_(ranks), shares_((kBlocks + 1) * ranks * kNodes, 0.0) {
  const std::size_t contexts = kind.temperature == 0.0 ? kCounted : kSummed;
  const SpreadValues family;
  rng::Stream random(rng::make_key(seed, rng::hash_text("table fit")), rng::Purpose::distribution, 0, 0);
  boost::random::normal_distribution<double> normal;
  Logits logits{std::vector<double>(kTokens), std::vector<double>(kTokens)};
  std::vector<double> uniform(ranks);
  for (std::size_t block = 0; block < kBlocks; ++block) {
    for (std::size_t c = 0; c < contexts; ++c) {
      // Target scales run through their quantiles, which leaves less to chance.
      const double deviate = math::normal_quantile((static_cast<double>(c) + 0.5) / static_cast<double>(contexts));
      const double sigma = std::min(family.sigma * std::exp(family.sigma_spread * deviate), families::kLargestScale);
      for (double& logit : logits.target) logit = sigma * normal(random);
      for (double& logit : logits.noise) logit = normal(random);
      for (double& x : uniform) x = 0.5 * std::erfc(-normal(random) / std::sqrt(2.0));
      OneContext one(logits, kind, ranks);
      for (std::size_t i = 0; i < kNodes; ++i) {
        const std::vector<double>& shares = one.at(deviation_at(i), uniform);
        for (std::size_t rank = 0; rank < ranks; ++rank) node(block, rank, i) += shares[rank] / static_cast<double>(contexts);
      }
    }
    for (std::size_t rank = 0; rank < ranks; ++rank)
      for (std::size_t i = 0; i < kNodes; ++i) node(kAll, rank, i) += node(block, rank, i) / static_cast<double>(kBlocks);
  }
}

std::vector<double> RankShares::at(const TableValues& values, std::size_t depth, std::size_t ranks, std::size_t block) const {
  // The trapezoidal rule, over the context's own deviate.
  constexpr double kReach = 6.0;
  constexpr int kSteps = 96;
  const double drifted = values.drift * values.drift * static_cast<double>(depth);
  std::vector<double> result(std::min(ranks, ranks_), 0.0);
  double weights = 0.0;
  for (int step = 0; step <= kSteps; ++step) {
    const double deviate = kReach * (2.0 * step / kSteps - 1.0);
    const double weight = std::exp(-0.5 * deviate * deviate);
    const double noise = std::min(values.noise * std::exp(values.noise_spread * deviate), families::kLargestScale);
    const double log_deviation = 0.5 * std::log(noise * noise + drifted);
    for (std::size_t rank = 0; rank < result.size(); ++rank) result[rank] += weight * interpolated(block, rank, log_deviation);
    weights += weight;
  }
  for (double& share : result) share /= weights;
  return result;
}

// By cubics with the slopes of their neighbours (Catmull and Rom).
double RankShares::interpolated(std::size_t block, std::size_t rank, double log_deviation) const {
  const double* of = &shares_[(block * ranks_ + rank) * kNodes];
  const double steps = std::clamp((log_deviation - kLeastLog) / kLogStep, 0.0, static_cast<double>(kNodes - 1));
  const std::size_t i = std::min(static_cast<std::size_t>(steps), kNodes - 2);
  const double t = steps - static_cast<double>(i);
  const double before = of[i > 0 ? i - 1 : 0];
  const double after = of[std::min(i + 2, kNodes - 1)];
  const double low = 0.5 * (of[i + 1] - before);
  const double high = 0.5 * (after - of[i]);
  return of[i] + t * (low + t * (3.0 * (of[i + 1] - of[i]) - 2.0 * low - high + t * (low + high - 2.0 * (of[i + 1] - of[i]))));
}

}  // namespace specsim::fit
