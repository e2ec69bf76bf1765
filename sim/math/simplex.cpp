#include "sim/math/simplex.h"

#include "sim/base/check.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace specsim::math {

namespace {

void keep_tokens(std::span<double> law, std::span<const Token> tokens) {
  std::vector<double> kept(law.size(), 0.0);
  for (const Token x : tokens) kept[x] = law[x];
  std::copy(kept.begin(), kept.end(), law.begin());
  normalise(law);
}

}  // namespace

void normalise(std::span<double> weights) {
  double total = 0.0;
  for (const double w : weights) total += w;
  SPECSIM_CHECK(total > 0.0 && std::isfinite(total), "sum = {}", total);
  for (double& w : weights) w /= total;
}

void softmax(std::span<double> logits) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  for (double& logit : logits) logit = std::exp(logit - highest);
  normalise(logits);
}

Token argmax(std::span<const double> law) { return static_cast<Token>(std::max_element(law.begin(), law.end()) - law.begin()); }

std::vector<Token> likeliest(std::span<const double> law, std::size_t most) {
  std::vector<Token> order(law.size());
  std::iota(order.begin(), order.end(), Token{0});
  const auto likelier = [&](Token a, Token b) { return law[a] != law[b] ? law[a] > law[b] : a < b; };
  if (most >= law.size()) {
    std::sort(order.begin(), order.end(), likelier);
    return order;
  }
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(most);
  std::partial_sort(order.begin(), end, order.end(), likelier);
  return {order.begin(), end};  // without the room of the others
}

void point_mass(std::span<double> law, Token token) {
  std::fill(law.begin(), law.end(), 0.0);
  law[token] = 1.0;
}

double overlap(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t x = 0; x < a.size(); ++x) sum += std::min(a[x], b[x]);
  return sum;
}

void apply_temperature(std::span<double> law, double temperature) {
  const double highest = *std::max_element(law.begin(), law.end());
  for (double& mass : law) mass = mass > 0.0 ? std::exp((std::log(mass) - std::log(highest)) / temperature) : 0.0;
  normalise(law);
}

void keep_top_k(std::span<double> law, int k) {
  if (static_cast<std::size_t>(k) >= law.size()) return;
  keep_tokens(law, likeliest(law, static_cast<std::size_t>(k)));
}

void keep_top_p(std::span<double> law, double mass) {
  if (mass >= 1.0) return;
  const std::vector<Token> order = likeliest(law, law.size());
  double kept_mass = 0.0;
  std::size_t kept = 0;
  while (kept < order.size() && (kept == 0 || kept_mass < mass)) kept_mass += law[order[kept++]];
  keep_tokens(law, std::span(order).first(kept));
}

void keep_min_p(std::span<double> law, double share) {
  const double least = share * *std::max_element(law.begin(), law.end());
  for (double& mass : law)
    if (mass < least) mass = 0.0;
  normalise(law);
}

void apply_sampling(std::span<double> law, const Sampling& sampling) {
  if (sampling.temperature == 0.0)
    point_mass(law, argmax(law));
  else if (sampling.temperature != 1.0)
    apply_temperature(law, sampling.temperature);
  if (sampling.top_k > 0) keep_top_k(law, sampling.top_k);
  if (sampling.top_p < 1.0) keep_top_p(law, sampling.top_p);
  if (sampling.min_p > 0.0) keep_min_p(law, sampling.min_p);
}

}  // namespace specsim::math
