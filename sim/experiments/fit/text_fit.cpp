#include "sim/experiments/fit/text_fit.h"

#include "sim/rounds/families/text_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace specsim::fit {

namespace {

constexpr std::size_t kFar = 16;         // positions so far apart have nothing but their request in common
constexpr double kFewestFarPairs = 500;  // the share between requests is told by no fewer
constexpr double kMostPersistence = 0.99;
constexpr double kMostBetween = 0.9;

// Sums over pairs of positions of one request: of neighbours, of those two apart, and of those kFar and more apart.
struct Pairs {
  std::array<double, 3> products = {};  // each position's distance from the mean of all, multiplied
  std::array<double, 3> count = {};
};

Pairs pairs_of(const std::vector<double>& request, double mean) {
  Pairs result;
  double far = 0.0;  // sum over the positions kFar and more before
  for (std::size_t i = 0; i < request.size(); ++i) {
    const double off = request[i] - mean;
    for (const std::size_t lag : {std::size_t{1}, std::size_t{2}}) {
      if (i < lag) continue;
      result.products[lag - 1] += off * (request[i - lag] - mean);
      result.count[lag - 1] += 1.0;
    }
    if (i < kFar) continue;
    far += request[i - kFar] - mean;
    result.products[2] += off * far;
    result.count[2] += static_cast<double>(i - kFar + 1);
  }
  return result;
}

struct Covariances {
  std::array<double, 3> at = {};  // neighbours, two apart, far apart
};

Covariances covariances(const Pairs& sums, double of_mean) {
  Covariances result;
  for (std::size_t i = 0; i < result.at.size(); ++i)
    result.at[i] = sums.count[i] > 0.0 ? sums.products[i] / sums.count[i] + of_mean : kUnknown;
  return result;
}

// The mean overlap by the two scales of a context, in between those of a grid.
class OverlapByScales {
 public:
  OverlapByScales(const SpreadContexts& contexts, const SpreadValues& values) {
    constexpr std::size_t kOfEach = 256;
    for (std::size_t i = 0; i < kNodes; ++i)
      for (std::size_t j = 0; j < kNodes; ++j)
        overlap_[i][j] = contexts.mean_overlap(values, {node(i), node(j)}, std::min(kOfEach, contexts.count()));
  }
  [[nodiscard]] double at(const families::ContextScales& scales) const {
    const auto [i, target] = below(scales.target);
    const auto [j, draft] = below(scales.draft);
    return (1.0 - target) * ((1.0 - draft) * overlap_[i][j] + draft * overlap_[i][j + 1]) +
           target * ((1.0 - draft) * overlap_[i + 1][j] + draft * overlap_[i + 1][j + 1]);
  }

 private:
  static constexpr std::size_t kNodes = 9;
  static constexpr double kReach = 3.0;  // deviates
  static constexpr double kStep = 2.0 * kReach / (kNodes - 1);
  static double node(std::size_t i) { return -kReach + kStep * static_cast<double>(i); }
  // The node below, and how far above it in steps.
  static std::pair<std::size_t, double> below(double deviate) {
    const double steps = std::clamp((deviate + kReach) / kStep, 0.0, static_cast<double>(kNodes - 1));
    const std::size_t i = std::min(static_cast<std::size_t>(steps), kNodes - 2);
    return {i, steps - static_cast<double>(i)};
  }
  std::array<std::array<double, kNodes>, kNodes> overlap_;
};

// Covariances of the overlaps of two contexts of the process: of one kind of request, and of one stretch of one kind.
struct Levels {
  double request = 0.0;
  double stretch = 0.0;
};

Levels levels_of(const OverlapByScales& overlap, double between_requests) {
  const families::TextLayout layout(between_requests);
  const std::vector<families::ContextScales> scales = layout.scales();
  std::vector<double> of_kind(layout.kinds(), 0.0);
  std::vector<double> of_stretch(layout.kinds() * families::TextLayout::stretches(), 0.0);
  double mean = 0.0;
  for (std::size_t c = 0; c < scales.size(); ++c) {
    const double share = overlap.at(scales[c]) / static_cast<double>(scales.size());
    mean += share;
    of_kind[layout.kind(c)] += share;
    of_stretch[layout.kind(c) * families::TextLayout::stretches() + layout.stretch(c)] += share;
  }
  const auto variance = [mean](const std::vector<double>& shares) {
    const auto parts = static_cast<double>(shares.size());
    double sum = 0.0;
    for (const double share : shares) sum += (parts * share - mean) * (parts * share - mean) / parts;
    return sum;
  };
  return {variance(of_kind), variance(of_stretch)};
}

// The share between requests that leads to this covariance of positions far apart, which is nearly in proportion to it.
double share_for(const OverlapByScales& surface, double covariance) {
  constexpr int kSteps = 20;
  double share = 0.2;
  for (int step = 0; step < kSteps; ++step) {
    const double found = levels_of(surface, share).request;
    if (!(found > 0.0)) return 0.0;
    share = std::clamp(share * covariance / found, 1e-4, kMostBetween);
  }
  return share;
}

// The persistence that leads to this covariance of neighbours; it may lie beyond what a probability can be.
double persistence_for(double neighbours, const Levels& levels) {
  return (neighbours - levels.request) / (levels.stretch - levels.request);
}

// How much of a stretch's covariance is left, on average, between the positions of a record that lie kFar and more apart.
double left_far_apart(const std::vector<std::vector<double>>& overlap, double persistence) {
  double left = 0.0;
  double pairs = 0.0;
  for (const std::vector<double>& request : overlap)
    for (std::size_t lag = kFar; lag < request.size(); ++lag) {
      const auto of_lag = static_cast<double>(request.size() - lag);
      left += of_lag * std::pow(persistence, static_cast<double>(lag));
      pairs += of_lag;
    }
  return pairs > 0.0 ? left / pairs : 0.0;
}

struct TextParameters {
  double persistence = 0.0;
  double share = 0.0;
  Levels levels;
  double request = 0.0;  // the covariance far apart that is the request's own; it may be negative by chance
};

// Both are met in turn: what a stretch leaves between positions far apart is not the request's.
TextParameters parameters_for(const OverlapByScales& surface, const std::vector<std::vector<double>>& overlap,
                              const Covariances& recorded, bool far) {
  constexpr int kSteps = 20;
  TextParameters result;
  result.levels = levels_of(surface, 0.0);
  double left = 0.0;  // from what is far apart being the request's own: else much of that would pass for persistence
  for (int step = 0; step < kSteps; ++step) {
    if (far) {
      result.request = (recorded.at[2] - left * result.levels.stretch) / (1.0 - left);
      result.share = result.request > 0.0 ? share_for(surface, result.request) : 0.0;
      result.levels = levels_of(surface, result.share);
    }
    const double persistence = std::clamp(persistence_for(recorded.at[0], result.levels), 0.0, kMostPersistence);
    if (!far || std::abs(persistence - result.persistence) < 1e-9) {
      result.persistence = persistence;
      break;
    }
    result.persistence = persistence;
    left = left_far_apart(overlap, persistence);
  }
  return result;
}

// The jackknife's standard error of a figure without each of the requests.
double jackknife(const std::vector<double>& without) {
  const auto n = static_cast<double>(without.size());
  double mean = 0.0;
  for (const double x : without) mean += x / n;
  double squares = 0.0;
  for (const double x : without) squares += (x - mean) * (x - mean);
  return std::sqrt(squares * (n - 1.0) / n);
}

}  // namespace

TextFit fit_text(const std::vector<std::vector<double>>& overlap, const SpreadContexts& contexts, const SpreadValues& values) {
  TextFit result;
  double mean = 0.0;
  double positions = 0.0;
  for (const std::vector<double>& request : overlap)
    for (const double x : request) {
      mean += x;
      positions += 1.0;
    }
  mean /= positions;
  // The record's own mean lies nearer to it than the true one: by its variance, over requests, covariances come out too small.
  const auto requests = static_cast<double>(overlap.size());
  double of_mean = 0.0;
  Pairs sums;
  std::vector<Pairs> by_request;
  for (const std::vector<double>& request : overlap) {
    double off = 0.0;
    for (const double x : request) off += (x - mean) / positions;
    if (requests > 1.0) of_mean += off * off * requests / (requests - 1.0);
    by_request.push_back(pairs_of(request, mean));
    for (std::size_t i = 0; i < sums.count.size(); ++i) {
      sums.products[i] += by_request.back().products[i];
      sums.count[i] += by_request.back().count[i];
    }
  }
  const OverlapByScales surface(contexts, values);
  const Levels apart = levels_of(surface, 0.0);
  double spread = 0.0;
  for (const std::vector<double>& request : overlap)
    for (const double x : request) spread = std::max(spread, std::abs(x - mean));
  if (sums.count[0] == 0.0 || !(apart.stretch > 1e-6) || spread < 1e-9) return result;
  const Covariances recorded = covariances(sums, of_mean);
  const bool far = requests > 1.0 && sums.count[2] >= kFewestFarPairs;
  const TextParameters found = parameters_for(surface, overlap, recorded, far);
  result.persistence = {found.persistence, kUnknown, true};
  result.between_requests = {found.share, kUnknown, far};

  // Without each request, by the slopes at what was found and beyond what a probability can be: an error that stops at a bound
  // would say nothing of how far the record reaches beyond it.
  const double left = far ? left_far_apart(overlap, found.persistence) : 0.0;
  const double near = std::max(found.share, 0.05);
  const double slope = near / levels_of(surface, near).request;
  std::array<std::vector<double>, 3> covariance_without;
  std::vector<double> persistence_without;
  std::vector<double> share_without;
  for (const Pairs& one : by_request) {
    Pairs rest = sums;
    for (std::size_t i = 0; i < rest.count.size(); ++i) {
      rest.products[i] -= one.products[i];
      rest.count[i] -= one.count[i];
    }
    const Covariances without = covariances(rest, of_mean);
    for (std::size_t i = 0; i < without.at.size(); ++i) covariance_without[i].push_back(without.at[i]);
    const double request = far ? (without.at[2] - left * found.levels.stretch) / (1.0 - left) : 0.0;
    const double moved = found.levels.request + (far ? request - found.request : 0.0);
    persistence_without.push_back((without.at[0] - moved) / (found.levels.stretch - found.levels.request));
    share_without.push_back(slope * request);
  }
  if (requests > 1.0) result.persistence.error = jackknife(persistence_without);
  if (far) result.between_requests.error = jackknife(share_without);
  const auto add = [&](const char* name, std::size_t i, double fitted) {
    result.moments.push_back({name, recorded.at[i], requests > 1.0 ? jackknife(covariance_without[i]) : kUnknown, fitted});
  };
  const double persistence = found.persistence;
  const Levels& levels = found.levels;
  const auto fitted = [&](double same) { return same * levels.stretch + (1.0 - same) * levels.request; };
  add("covariance of neighbours' overlaps", 0, fitted(persistence));
  if (sums.count[1] > 0.0) add("covariance two positions apart", 1, fitted(persistence * persistence));
  if (far) add("covariance 16 positions and more apart", 2, fitted(left));
  return result;
}

}  // namespace specsim::fit
