#include "sim/experiments/fit/spread_contexts.h"

#include "sim/foundation/math/quantiles.h"
#include "sim/foundation/math/simplex.h"
#include "sim/foundation/rng/address.h"
#include "sim/rounds/families/scale.h"

#include <boost/random/normal_distribution.hpp>

#include <algorithm>
#include <cmath>

namespace specsim::fit {

namespace {

double scale(double middle, double spread, double deviate) {
  return std::min(middle * std::exp(spread * deviate), families::kLargestScale);
}

}  // namespace

SpreadContexts::SpreadContexts(int vocab, std::uint64_t set) : vocab_(static_cast<std::size_t>(vocab)) {
  constexpr double kNumbers = 1e6;
  constexpr double kGolden = 0.6180339887498949;
  const auto count = static_cast<std::size_t>(std::clamp(kNumbers / vocab, 64.0, 1024.0));
  rng::Stream random(rng::make_key(set, rng::hash_text("spread fit")), rng::Purpose::distribution, 0, 0);
  boost::random::normal_distribution<double> normal;
  const auto draw = [&](std::vector<float>& logits) {
    logits.resize(count * vocab_);
    for (float& logit : logits) logit = static_cast<float>(normal(random));
  };
  draw(target_);
  draw(draft_);
  for (std::size_t c = 0; c < count; ++c) {
    const double share = (static_cast<double>(c) + 0.5) / static_cast<double>(count);
    const double other = std::fmod(kGolden * (static_cast<double>(c) + 1.0), 1.0);
    scales_.push_back({math::normal_quantile(share), math::normal_quantile(std::clamp(other, 1e-6, 1.0 - 1e-6))});
  }
}

std::vector<double> SpreadContexts::entropies(const SpreadValues& values) const {
  std::vector<double> result;
  std::vector<double> target(vocab_);
  for (std::size_t c = 0; c < count(); ++c) {
    fill_target(values, scales_[c].target, c, target);
    math::softmax(target);
    result.push_back(math::entropy(target));
  }
  return result;
}

std::vector<double> SpreadContexts::overlaps(const SpreadValues& values) const {
  std::vector<double> result;
  std::vector<double> draft(vocab_);
  settle_targets(values);
  for (std::size_t c = 0; c < count(); ++c) {
    fill_target(values, scales_[c].target, c, draft);
    result.push_back(overlap(values, scales_[c].draft, c, std::span(settled_).subspan(c * vocab_, vocab_), draft));
  }
  return result;
}

double SpreadContexts::mean_overlap(const SpreadValues& values, const families::ContextScales& scales,
                                    std::size_t contexts) const {
  std::vector<double> target(vocab_);
  std::vector<double> draft(vocab_);
  double sum = 0.0;
  for (std::size_t c = 0; c < contexts; ++c) {
    fill_target(values, scales.target, c % count(), draft);
    target = draft;
    math::softmax(target);
    sum += overlap(values, scales.draft, c % count(), target, draft);
  }
  return sum / static_cast<double>(contexts);
}

void SpreadContexts::fill_target(const SpreadValues& values, double deviate, std::size_t context,
                                 std::span<double> logits) const {
  const double sigma = scale(values.sigma, values.sigma_spread, deviate);
  for (std::size_t x = 0; x < vocab_; ++x) logits[x] = sigma * static_cast<double>(target_[context * vocab_ + x]);
}

double SpreadContexts::overlap(const SpreadValues& values, double deviate, std::size_t context, std::span<const double> target,
                               std::span<double> draft) const {
  const double noise = scale(values.noise, values.noise_spread, deviate);
  for (std::size_t x = 0; x < vocab_; ++x) draft[x] += noise * static_cast<double>(draft_[context * vocab_ + x]);
  math::softmax(draft);
  return math::overlap(target, draft);
}

// Computes the targets' distributions once, since they stay the same while the draft's scale and spread are sought. This saves
// half the cost of an overlap.
void SpreadContexts::settle_targets(const SpreadValues& values) const {
  if (!settled_.empty() && values.sigma == settled_at_.sigma && values.sigma_spread == settled_at_.sigma_spread) return;
  settled_.resize(count() * vocab_);
  for (std::size_t c = 0; c < count(); ++c) {
    const std::span<double> target = std::span(settled_).subspan(c * vocab_, vocab_);
    fill_target(values, scales_[c].target, c, target);
    math::softmax(target);
  }
  settled_at_ = values;
}

}  // namespace specsim::fit
