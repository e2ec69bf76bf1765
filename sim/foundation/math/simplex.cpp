#include "sim/foundation/math/simplex.h"

#include "sim/foundation/base/check.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace specsim::math {

namespace {

void keep_tokens(std::span<double> distribution, std::span<const Token> tokens) {
  std::vector<double> kept(distribution.size(), 0.0);
  for (const Token x : tokens) kept[x] = distribution[x];
  std::copy(kept.begin(), kept.end(), distribution.begin());
  normalise(distribution);
}

}  // namespace

void drop_subnormal(std::span<double> distribution) {
  for (double& mass : distribution) mass = mass < std::numeric_limits<double>::min() ? 0.0 : mass;
}

void normalise(std::span<double> weights) {
  double total = 0.0;
  for (const double w : weights) total += w;
  SPECSIM_CHECK(total > 0.0 && std::isfinite(total), "sum = {}", total);
  for (double& w : weights) {  // one pass for both: this loop dominates for distributions that are used once
    const double share = w / total;
    w = share < std::numeric_limits<double>::min() ? 0.0 : share;
  }
}

void softmax(std::span<double> logits) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  for (double& logit : logits) logit = std::exp(logit - highest);
  normalise(logits);
}

Token argmax(std::span<const double> distribution) {
  return static_cast<Token>(std::max_element(distribution.begin(), distribution.end()) - distribution.begin());
}

std::vector<Token> likeliest(std::span<const double> distribution, std::size_t most) {
  std::vector<Token> order(distribution.size());
  std::iota(order.begin(), order.end(), Token{0});
  const auto likelier = [&](Token a, Token b) {
    return distribution[a] != distribution[b] ? distribution[a] > distribution[b] : a < b;
  };
  if (most >= distribution.size()) {
    std::sort(order.begin(), order.end(), likelier);
    return order;
  }
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(most);
  std::partial_sort(order.begin(), end, order.end(), likelier);
  return {order.begin(), end};  // copied, to free the memory of the others
}

void point_mass(std::span<double> distribution, Token token) {
  std::fill(distribution.begin(), distribution.end(), 0.0);
  distribution[token] = 1.0;
}

double overlap(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t x = 0; x < a.size(); ++x) sum += std::min(a[x], b[x]);
  return sum;
}

double entropy(std::span<const double> distribution) {
  double sum = 0.0;
  for (const double p : distribution)
    if (p > 0.0) sum -= p * std::log(p);
  return sum;
}

void apply_temperature(std::span<double> distribution, double temperature) {
  const double highest = *std::max_element(distribution.begin(), distribution.end());
  const double log_highest = std::log(highest);
  for (double& mass : distribution) mass = mass > 0.0 ? std::exp((std::log(mass) - log_highest) / temperature) : 0.0;
  normalise(distribution);
}

void keep_top_k(std::span<double> distribution, int k) {
  if (static_cast<std::size_t>(k) >= distribution.size()) return;
  keep_tokens(distribution, likeliest(distribution, static_cast<std::size_t>(k)));
}

void keep_top_p(std::span<double> distribution, double mass) {
  if (mass >= 1.0) return;
  const std::vector<Token> order = likeliest(distribution, distribution.size());
  double kept_mass = 0.0;
  std::size_t kept = 0;
  while (kept < order.size() && (kept == 0 || kept_mass < mass)) kept_mass += distribution[order[kept++]];
  keep_tokens(distribution, std::span(order).first(kept));
}

void keep_min_p(std::span<double> distribution, double share) {
  const double least = share * *std::max_element(distribution.begin(), distribution.end());
  for (double& mass : distribution)
    if (mass < least) mass = 0.0;
  normalise(distribution);
}

void apply_sampling(std::span<double> distribution, const Sampling& sampling) {
  if (sampling.temperature == 0.0)
    point_mass(distribution, argmax(distribution));
  else if (sampling.temperature != 1.0)
    apply_temperature(distribution, sampling.temperature);
  if (sampling.top_k > 0) keep_top_k(distribution, sampling.top_k);
  if (sampling.top_p < 1.0) keep_top_p(distribution, sampling.top_p);
  if (sampling.min_p > 0.0) keep_min_p(distribution, sampling.min_p);
}

}  // namespace specsim::math
