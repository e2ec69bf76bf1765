#include "sim/theory/lossy.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "sim/base/check.h"
#include "sim/math/series.h"
#include "sim/theory/bounds.h"

namespace specsim::theory {

std::vector<double> typical_acceptance(std::span<const double> target, double epsilon, double delta) {
  SPECSIM_CHECK(epsilon >= 0.0 && delta >= 0.0, "epsilon = {}, delta = {}", epsilon, delta);
  math::CompensatedSum entropy;
  for (const double share : target) {
    if (share > 0.0) entropy += -share * std::log(share);
  }
  const double threshold = std::min(epsilon, delta * std::exp(-entropy.value()));
  std::vector<double> acceptance;
  for (const double share : target) acceptance.push_back(share > threshold ? 1.0 : 0.0);
  return acceptance;
}

std::vector<double> lenience_acceptance(std::span<const double> target, std::span<const double> drafted, double lenience) {
  SPECSIM_CHECK(target.size() == drafted.size(), "target has {} tokens, draft {}", target.size(), drafted.size());
  SPECSIM_CHECK(lenience > 0.0 && lenience <= 1.0, "lenience = {}", lenience);
  std::vector<double> acceptance(target.size(), 0.0);
  for (std::size_t x = 0; x < target.size(); ++x) {
    if (drafted[x] > 0.0) acceptance[x] = std::min(1.0, target[x] / (lenience * drafted[x]));
  }
  return acceptance;
}

std::vector<double> lenience_residual(std::span<const double> target, std::span<const double> drafted, double lenience) {
  SPECSIM_CHECK(target.size() == drafted.size(), "target has {} tokens, draft {}", target.size(), drafted.size());
  SPECSIM_CHECK(lenience > 0.0 && lenience <= 1.0, "lenience = {}", lenience);
  std::vector<double> residual;
  math::CompensatedSum mass;
  for (std::size_t x = 0; x < target.size(); ++x) {
    residual.push_back(std::max(0.0, target[x] / lenience - drafted[x]));
    mass += residual.back();
  }
  if (mass.value() == 0.0) return {target.begin(), target.end()};
  for (double& share : residual) share /= mass.value();
  return residual;
}

std::vector<double> top_k_acceptance(std::span<const double> target, int k) {
  SPECSIM_CHECK(k >= 1, "k = {}", k);
  std::vector<std::size_t> order(target.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return target[a] > target[b]; });
  std::vector<double> acceptance(target.size(), 0.0);
  for (std::size_t i = 0; i < std::min(order.size(), static_cast<std::size_t>(k)); ++i) acceptance[order[i]] = 1.0;
  return acceptance;
}

Judgement judge_accepting(std::span<const double> acceptance, std::span<const double> drafted,
                          std::span<const double> otherwise) {
  SPECSIM_CHECK(acceptance.size() == drafted.size(), "{} acceptances for {} tokens", acceptance.size(), drafted.size());
  (void)overlap(drafted, otherwise);  // throws unless both are laws of one size
  Judgement judgement;
  math::CompensatedSum rejected;
  for (std::size_t x = 0; x < drafted.size(); ++x) {
    SPECSIM_CHECK(acceptance[x] >= 0.0 && acceptance[x] <= 1.0, "acceptance = {}", acceptance[x]);
    judgement.accepted.push_back(acceptance[x] * drafted[x]);
    rejected += (1.0 - acceptance[x]) * drafted[x];
  }
  for (const double share : otherwise) judgement.rejected.push_back(rejected.value() * share);
  return judgement;
}

std::vector<double> emitted_law(const Judgement& judgement) {
  std::vector<double> law(judgement.accepted);
  for (std::size_t x = 0; x < law.size(); ++x) law[x] += judgement.rejected[x];
  return law;
}

double bias(const Judgement& judgement, std::span<const double> target) {
  return total_variation(emitted_law(judgement), target);
}

}  // namespace specsim::theory
