#include "sim/experiments/fit/spread_fit.h"

#include "sim/experiments/fit/spread_contexts.h"
#include "sim/experiments/fit/spread_file.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/acceptance_record.h"
#include "sim/rounds/families/scale.h"
#include "sim/rounds/families/text_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

namespace specsim::fit {

namespace {

constexpr double kLeastScale = 0.02;
constexpr double kMostScale = families::kLargestScale;
constexpr double kMostSpread = 2.0;

struct Moments {
  double mean = 0.0;
  double deviation = 0.0;
};

Moments moments_of(const std::vector<double>& values) {
  Moments result;
  for (const double x : values) result.mean += x;
  result.mean /= static_cast<double>(values.size());
  for (const double x : values) result.deviation += (x - result.mean) * (x - result.mean);
  result.deviation = std::sqrt(result.deviation / static_cast<double>(values.size()));
  return result;
}

struct Bracket {
  double low = 0.0;
  double high = 0.0;
  double at_low = 0.0;  // the function's value there
  double at_high = 0.0;

  Bracket(const std::function<double(double)>& f, double from, double to)
      : low(from), high(to), at_low(f(from)), at_high(f(to)) {}
  [[nodiscard]] bool holds_zero() const { return (at_low > 0.0) != (at_high > 0.0); }
};

// The zero of a monotonic function; the nearer end if it has none.
double crossing(const std::function<double(double)>& f, Bracket bracket) {
  auto& [low, high, at_low, at_high] = bracket;
  if (!bracket.holds_zero()) return std::abs(at_low) < std::abs(at_high) ? low : high;
  // Regula falsi. The weight of an end that stays is halved each time (Illinois).
  constexpr int kMostSteps = 60;
  for (int step = 0; step < kMostSteps && high - low > 1e-6 * (1.0 + std::abs(high)); ++step) {
    const double middle = low + (high - low) * at_low / (at_low - at_high);
    const double at_middle = f(middle);
    if (at_middle == 0.0) return middle;
    if ((at_middle > 0.0) == (at_high > 0.0)) {
      high = middle;
      at_high = at_middle;
      at_low *= 0.5;
    } else {
      low = middle;
      at_low = at_middle;
      at_high *= 0.5;
    }
    if (std::abs(at_middle) < 1e-7) return middle;
  }
  return 0.5 * (low + high);
}

// Finds the scale at which the contexts' mean equals the recorded mean, then the spread at which their deviation equals the
// recorded one.
void meet(const std::function<Moments(double, double)>& of, const Moments& recorded, bool spread_too, double& scale,
          double& spread) {
  const double least = std::log(kLeastScale);
  const double most = std::log(kMostScale);
  // The scale converges together with the spread. The search for it starts around its last value, as wide as its last move.
  std::optional<double> last;
  double reach = most - least;
  const auto scale_at = [&](double own) {
    const auto off = [&](double log_scale) { return of(std::exp(log_scale), own).mean - recorded.mean; };
    std::optional<double> found;
    if (last && reach < 0.25 * (most - least)) {
      const Bracket near(off, std::max(least, *last - reach), std::min(most, *last + reach));
      if (near.holds_zero()) found = crossing(off, near);
    }
    if (!found) found = crossing(off, Bracket(off, least, most));
    if (last) reach = std::max(2.0 * std::abs(*found - *last), 1e-3);
    last = found;
    return std::exp(*found);
  };
  if (spread_too) {
    const auto off = [&](double own) { return of(scale_at(own), own).deviation - recorded.deviation; };
    spread = crossing(off, Bracket(off, 0.0, kMostSpread));
  }
  scale = scale_at(spread);
}

// For means over all positions: each request's contribution to the error of mean and deviation.
struct Influence {
  Moments moments;
  std::vector<double> mean;       // [request]
  std::vector<double> deviation;  // [request]
};

Influence influence_of(const std::vector<std::vector<double>>& requests) {
  std::vector<double> all;
  for (const std::vector<double>& request : requests) all.insert(all.end(), request.begin(), request.end());
  Influence result;
  result.moments = moments_of(all);
  const auto positions = static_cast<double>(all.size());
  for (const std::vector<double>& request : requests) {
    double mean = 0.0;
    double square = 0.0;
    for (const double x : request) {
      const double off = x - result.moments.mean;
      mean += off;
      square += off * off - result.moments.deviation * result.moments.deviation;
    }
    result.mean.push_back(mean / positions);
    result.deviation.push_back(result.moments.deviation > 0.0 ? square / (2.0 * result.moments.deviation * positions) : 0.0);
  }
  return result;
}

using Matrix = std::vector<std::vector<double>>;

// Gauss-Jordan elimination with pivots. Empty: singular.
Matrix inverse_of(Matrix a) {
  const std::size_t n = a.size();
  Matrix inverse(n, std::vector<double>(n, 0.0));
  for (std::size_t i = 0; i < n; ++i) inverse[i][i] = 1.0;
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column; row < n; ++row)
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    if (!(std::abs(a[pivot][column]) > 1e-12)) return {};
    std::swap(a[pivot], a[column]);
    std::swap(inverse[pivot], inverse[column]);
    const double scale = 1.0 / a[column][column];
    for (std::size_t j = 0; j < n; ++j) {
      a[column][j] *= scale;
      inverse[column][j] *= scale;
    }
    for (std::size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = a[row][column];
      for (std::size_t j = 0; j < n; ++j) {
        a[row][j] -= factor * a[column][j];
        inverse[row][j] -= factor * inverse[column][j];
      }
    }
  }
  return inverse;
}

// The record's moments: of the target if its distributions are recorded, of the overlap's spread unless only outcomes are.
struct Recorded {
  std::optional<Influence> entropy;
  Influence overlap;
  bool has_spread = false;
};

SpreadValues meet_moments(const SpreadContexts& contexts, const Recorded& recorded) {
  SpreadValues values;
  if (recorded.entropy)
    meet(
        [&](double sigma, double spread) {
          return moments_of(contexts.entropies({sigma, spread, 1.0, 0.0}));
        },
        recorded.entropy->moments, true, values.sigma, values.sigma_spread);
  meet(
      [&](double noise, double spread) {
        return moments_of(contexts.overlaps({values.sigma, values.sigma_spread, noise, spread}));
      },
      recorded.overlap.moments, recorded.has_spread, values.noise, values.noise_spread);
  return values;
}

// A parameter, and the moment that it was fitted to.
struct Fitted {
  double SpreadValues::*value;
  SpreadParameter SpreadFit::*parameter;
  bool of_entropy = false;
  bool deviation = false;
  double recorded = 0.0;
  std::vector<double> by_request;  // each request's contribution to the moment's error
};

// [moment] of the simulated contexts.
std::vector<double> moments_at(const std::vector<Fitted>& fitted, const SpreadContexts& contexts, const SpreadValues& values) {
  const bool entropies = std::any_of(fitted.begin(), fitted.end(), [](const Fitted& one) { return one.of_entropy; });
  const Moments entropy = entropies ? moments_of(contexts.entropies(values)) : Moments{};
  const Moments overlap = moments_of(contexts.overlaps(values));
  std::vector<double> result;
  for (const Fitted& one : fitted) {
    const Moments& own = one.of_entropy ? entropy : overlap;
    result.push_back(one.deviation ? own.deviation : own.mean);
  }
  return result;
}

// Slopes by moment and parameter.
Matrix slopes_at(const std::vector<Fitted>& fitted, const SpreadContexts& contexts, const SpreadValues& values) {
  const std::size_t n = fitted.size();
  Matrix slopes(n, std::vector<double>(n, 0.0));
  for (std::size_t j = 0; j < n; ++j) {
    const double step = 0.02 * std::max(values.*fitted[j].value, 0.1);
    SpreadValues up = values;
    SpreadValues down = values;
    up.*fitted[j].value += step;
    down.*fitted[j].value -= step;
    const std::vector<double> above = moments_at(fitted, contexts, up);
    const std::vector<double> below = moments_at(fitted, contexts, down);
    for (std::size_t i = 0; i < n; ++i) slopes[i][j] = (above[i] - below[i]) / (2.0 * step);
  }
  return slopes;
}

// Moments from several independent sets of simulated contexts.
struct OfSets {
  std::vector<double> mean;  // [moment]
  Matrix covariance;         // [moment][moment], of the means
};

constexpr std::uint64_t kSets = 8;  // including the first, which the fit used

OfSets of_sets(const std::vector<Fitted>& fitted, const SpreadContexts& first, int vocab, const SpreadValues& values) {
  const std::size_t n = fitted.size();
  Matrix by_set = {moments_at(fitted, first, values)};
  for (std::uint64_t set = 1; set < kSets; ++set) by_set.push_back(moments_at(fitted, SpreadContexts(vocab, set), values));
  constexpr auto kCount = static_cast<double>(kSets);
  OfSets result{std::vector<double>(n, 0.0), Matrix(n, std::vector<double>(n, 0.0))};
  for (const std::vector<double>& own : by_set)
    for (std::size_t i = 0; i < n; ++i) result.mean[i] += own[i] / kCount;
  for (const std::vector<double>& own : by_set)
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        result.covariance[i][j] += (own[i] - result.mean[i]) * (own[j] - result.mean[j]) / (kCount * (kCount - 1.0));
  return result;
}

// Moves from a fit on one set of contexts to a fit on all of them, which has less sampling error, by Newton steps with the
// slopes of the first set. `inverse`: of those slopes. Returns the sets' moments at the solution.
OfSets refine(const std::vector<Fitted>& fitted, const SpreadContexts& first, int vocab, const Matrix& inverse,
              SpreadValues& values) {
  constexpr int kMostSteps = 4;
  OfSets sets = of_sets(fitted, first, vocab, values);
  for (int step = 0; step < kMostSteps && !inverse.empty(); ++step) {
    double worst = 0.0;
    SpreadValues next = values;
    for (std::size_t i = 0; i < fitted.size(); ++i) {
      const double off = fitted[i].recorded - sets.mean[i];
      worst = std::max(worst, std::abs(off) / std::max(std::abs(fitted[i].recorded), 1e-3));
      for (std::size_t j = 0; j < fitted.size(); ++j) next.*fitted[j].value += inverse[j][i] * off;
    }
    if (worst < 2e-5) break;
    // If a step would leave a parameter's range, the fit on the first set is kept.
    for (const Fitted& one : fitted) {
      const double low = one.deviation ? 0.0 : kLeastScale;
      const double high = one.deviation ? kMostSpread : kMostScale;
      if (!(next.*one.value > low && next.*one.value < high)) return sets;
    }
    values = next;
    sets = of_sets(fitted, first, vocab, values);
  }
  return sets;
}

// Standard errors of the parameters. They follow from those of the moments (over requests and over simulated contexts) through
// the slopes of the moments. Empty: the moments do not identify the parameters.
std::vector<double> errors_of(const std::vector<Fitted>& fitted, const Matrix& inverse, Matrix covariance) {
  const std::size_t n = fitted.size();
  const std::size_t requests = fitted[0].by_request.size();
  const double unbiased = static_cast<double>(requests) / static_cast<double>(requests - 1);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t request = 0; request < requests; ++request)
        covariance[i][j] += unbiased * fitted[i].by_request[request] * fitted[j].by_request[request];
  std::vector<double> errors;
  for (const std::vector<double>& row : inverse) {
    double variance = 0.0;
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t k = 0; k < n; ++k) variance += row[j] * covariance[j][k] * row[k];
    errors.push_back(std::sqrt(variance));
  }
  return errors;
}

// ---- correlation between positions, as the parameters of context process `text`

constexpr std::size_t kFar = 16;         // positions at least this far apart share only their request
constexpr double kFewestFarPairs = 500;  // fewer pairs give no estimate of the share between requests
constexpr double kMostPersistence = 0.99;
constexpr double kMostBetween = 0.9;

// Sums over pairs of positions of one request: neighbours, two apart, and kFar or more apart.
struct Pairs {
  std::array<double, 3> products = {};  // product of both positions' distances from the overall mean
  std::array<double, 3> count = {};
};

Pairs pairs_of(const std::vector<double>& request, double mean) {
  Pairs result;
  double far = 0.0;  // sum over the positions kFar or more before
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

// The mean overlap by the two scales of a context, interpolated on a grid.
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
  // The grid node below, and the distance from it in steps.
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

// The share between requests that gives this covariance of distant positions. The two are nearly proportional.
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

// The persistence that gives this covariance of neighbours. It may lie outside [0, 1].
double persistence_for(double neighbours, const Levels& levels) {
  return (neighbours - levels.request) / (levels.stretch - levels.request);
}

// The mean share of a stretch's covariance that remains between positions of a record kFar or more apart.
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
  double request = 0.0;  // the request's own covariance of distant positions; sampling error can make it negative
};

// Iterates between both, since the covariance that a stretch leaves between distant positions does not belong to the request.
TextParameters parameters_for(const OverlapByScales& surface, const std::vector<std::vector<double>>& overlap,
                              const Covariances& recorded, bool far) {
  constexpr int kSteps = 20;
  TextParameters result;
  result.levels = levels_of(surface, 0.0);
  double left = 0.0;  // starts with all distant covariance as the request's own; otherwise much of it would count as persistence
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

// The jackknife's standard error, from the figure without each request.
double jackknife(const std::vector<double>& without) {
  const auto n = static_cast<double>(without.size());
  double mean = 0.0;
  for (const double x : without) mean += x / n;
  double squares = 0.0;
  for (const double x : without) squares += (x - mean) * (x - mean);
  return std::sqrt(squares * (n - 1.0) / n);
}

struct TextFit {
  SpreadParameter persistence;
  SpreadParameter between_requests;
  std::vector<SpreadMoment> moments;
};

// `overlap`: [request][position], of every position of a text. The persistence is fitted to the covariance of neighbours. The
// share between requests is fitted to the covariance of distant positions in one request, or 0 if too few positions are far
// apart. Neither is fitted if the scales have no spread. Errors come from leaving out one request at a time (the jackknife),
// with the scales fixed.
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
  // The record's own mean is nearer to the record than the true mean. Covariances are therefore too small by its variance over
  // requests, which is added.
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
  const Levels unshared = levels_of(surface, 0.0);
  double spread = 0.0;
  for (const std::vector<double>& request : overlap)
    for (const double x : request) spread = std::max(spread, std::abs(x - mean));
  if (sums.count[0] == 0.0 || !(unshared.stretch > 1e-6) || spread < 1e-9) return result;
  const Covariances recorded = covariances(sums, of_mean);
  const bool far = requests > 1.0 && sums.count[2] >= kFewestFarPairs;
  const TextParameters found = parameters_for(surface, overlap, recorded, far);
  result.persistence = {found.persistence, kUnknown, true};
  result.between_requests = {found.share, kUnknown, far};

  // Jackknife by the slopes at the solution, without clamping to [0, 1]. A clamped error would hide how far the record's
  // uncertainty reaches beyond the bound.
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

}  // namespace

SpreadRecord read_spread_record(const std::string& path, const std::string& kind) {
  using families::RecordForm;
  Diagnostics diagnostics;
  const std::vector<families::AcceptanceRecord> records = families::read_acceptance_records(
      path, {path, 0, 0}, kind, {RecordForm::rounds, RecordForm::accepted, RecordForm::overlap, RecordForm::distributions},
      diagnostics);
  diagnostics.throw_if_any();
  SpreadRecord result;
  for (const families::AcceptanceRecord& record : records) {
    std::vector<double> overlap = record.overlap;
    std::vector<double> entropy;
    if (record.form == RecordForm::rounds) {
      for (std::size_t i = 0; i < record.accepted.size(); ++i) {
        overlap.insert(overlap.end(), static_cast<std::size_t>(record.accepted[i]), 1.0);
        if (record.accepted[i] < record.drafted[i]) overlap.push_back(0.0);
      }
    }
    if (record.form == RecordForm::accepted)
      for (const int prefix : record.accepted) overlap.push_back(prefix > 0 ? 1.0 : 0.0);
    for (const families::RecordedPair& pair : record.positions) {
      result.vocab = std::max(result.vocab, static_cast<int>(pair.target.size()));
      entropy.push_back(math::entropy(pair.target));
      overlap.push_back(math::overlap(pair.target, pair.draft));
    }
    if (record.form == RecordForm::distributions) result.entropy.push_back(std::move(entropy));
    result.outcomes = record.form == RecordForm::rounds || record.form == RecordForm::accepted;
    result.overlap.push_back(std::move(overlap));
  }
  return result;
}

SpreadFit fit_spread(const SpreadRecord& record) {
  SpreadFit result;
  result.requests = record.overlap.size();
  for (const std::vector<double>& request : record.overlap) result.positions += request.size();
  result.vocab = record.vocab > 1 ? record.vocab : kVocab;
  const SpreadContexts contexts(result.vocab);
  Recorded recorded{std::nullopt, influence_of(record.overlap), !record.outcomes};
  if (!record.entropy.empty() && record.vocab > 1) recorded.entropy = influence_of(record.entropy);
  SpreadValues values = meet_moments(contexts, recorded);

  std::vector<Fitted> fitted;
  const auto add = [&](const char* name, const Influence& own, bool of_entropy, bool deviation, double SpreadValues::*value,
                       SpreadParameter SpreadFit::*parameter) {
    const std::vector<double>& parts = deviation ? own.deviation : own.mean;
    const double figure = deviation ? own.moments.deviation : own.moments.mean;
    double squares = 0.0;
    for (const double part : parts) squares += part * part;
    const auto requests = static_cast<double>(parts.size());
    result.moments.push_back(
        {name, figure, requests > 1.0 ? std::sqrt(squares * requests / (requests - 1.0)) : kUnknown, kUnknown});
    fitted.push_back({value, parameter, of_entropy, deviation, figure, parts});
  };
  if (recorded.entropy) {
    add("mean entropy of the target", *recorded.entropy, true, false, &SpreadValues::sigma, &SpreadFit::sigma);
    add("its deviation", *recorded.entropy, true, true, &SpreadValues::sigma_spread, &SpreadFit::sigma_spread);
  }
  add("mean overlap", recorded.overlap, false, false, &SpreadValues::noise, &SpreadFit::noise);
  if (recorded.has_spread)
    add("its deviation", recorded.overlap, false, true, &SpreadValues::noise_spread, &SpreadFit::noise_spread);
  const std::vector<Fitted> all = fitted;
  // A spread at the end of its range is no longer a parameter of the fit.
  std::erase_if(
      fitted, [&](const Fitted& one) { return one.deviation && !(values.*one.value > 0.0 && values.*one.value < kMostSpread); });
  const Matrix inverse = inverse_of(slopes_at(fitted, contexts, values));
  const OfSets sets = refine(fitted, contexts, result.vocab, inverse, values);
  if (fitted.size() == all.size()) {
    for (std::size_t i = 0; i < all.size(); ++i) result.moments[i].fitted = sets.mean[i];
  } else {
    const OfSets of_all = of_sets(all, contexts, result.vocab, values);
    for (std::size_t i = 0; i < all.size(); ++i) result.moments[i].fitted = of_all.mean[i];
  }

  result.sigma = {values.sigma, kUnknown, recorded.entropy.has_value()};
  result.sigma_spread = {values.sigma_spread, kUnknown, recorded.entropy.has_value()};
  result.noise = {values.noise, kUnknown, true};
  result.noise_spread = {values.noise_spread, kUnknown, recorded.has_spread};
  if (recorded.has_spread) {
    const TextFit text = fit_text(record.overlap, contexts, values);
    result.persistence = text.persistence;
    result.between_requests = text.between_requests;
    result.moments.insert(result.moments.end(), text.moments.begin(), text.moments.end());
  }
  if (result.requests < 2) return result;
  const std::vector<double> errors = errors_of(fitted, inverse, sets.covariance);
  for (std::size_t i = 0; i < errors.size(); ++i) (result.*fitted[i].parameter).error = errors[i];
  return result;
}

std::string SpreadFit::warning() const {
  if (sigma.fitted) return "";
  return fmt::format(
      "the target's sigma was not recorded, and the default {:g} is used: rankings of trees of likeliest tokens (tree_dynamic, "
      "siblings: top_k and similar) depend on it, and were up to 40 % wrong; {} omits them",
      sigma.value, kSpreadFile);
}

std::string SpreadFit::yaml() const {
  const auto told = [](const SpreadParameter& one) {
    if (!one.fitted) return std::string("not in the record");
    return std::isnan(one.error) ? std::string("fitted") : fmt::format("+- {:.2g}", one.error);
  };
  // Requests that differ emit equally many tokens; equally many rounds would favour the easy ones. The number is large enough
  // that the round cut at the end, usually a long one, does not matter.
  const std::string ends = between_requests.value > 0.0 ? ", request_tokens: 1000" : "";
  const std::string context =
      persistence.fitted ? fmt::format(
                               "# Along a text: persistence {}, between requests {}.\n"
                               "context: {{process: text, persistence: {:.6g}, between_requests: {:.6g}{}}}\n",
                               told(persistence), told(between_requests), persistence.value, between_requests.value, ends)
                         : "context: {process: iid, pool: 256}\n";
  return spread_experiment(
      {.heading = fmt::format("# Distributions like those of a record of {} requests, {} positions: contexts differ in their "
                              "entropy and in how "
                              "well\n"
                              "# the draft knows them. Standard errors: sigma {}, its spread {}; noise {}, its spread {}.\n",
                              requests, positions, told(sigma), told(sigma_spread), told(noise), told(noise_spread)),
       .vocab = vocab,
       .values = {sigma.value, sigma_spread.value, noise.value, noise_spread.value},
       .context = context,
       .trees = sigma.fitted,
       .left_out = sigma.fitted
                       ? ""
                       : "# Omitted: trees of likeliest tokens (tree_dynamic, siblings: top_k and similar). They depend "
                         "on the target's sigma, which\n"
                         "# was not recorded: with the default they were up to 40 % wrong. Chains and drawn siblings depend on "
                         "the overlaps.\n"});
}

}  // namespace specsim::fit
