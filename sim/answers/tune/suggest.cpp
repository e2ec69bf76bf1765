#include "sim/answers/tune/suggest.h"

#include <boost/random/mersenne_twister.hpp>
#include <boost/random/normal_distribution.hpp>

#include <fmt/format.h>
#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace specsim::tune {

namespace {

constexpr std::size_t kDraws = 1024;
// If no run gains anything for the decision, the run that leaves the least variance is worth this share of its standard
// deviation.
constexpr double kShareOfError = 0.05;

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

// Load and lengths of a run.
std::tuple<double, double, double, double> place_of(const Run& run) {
  return {run.concurrency.value_or(0.0), run.rate.value_or(0.0), run.prompt_tokens.value_or(0.0),
          run.output_tokens.value_or(0.0)};
}

// The choices of each decision, as candidates. The highest rate is a single decision among all candidates.
std::vector<std::vector<std::size_t>> decisions_of(const std::vector<Run>& candidates, Question question, int draft_length) {
  if (question == Question::max_rate) {
    std::vector<std::size_t> all(candidates.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return {all};
  }
  std::map<std::tuple<double, double, double, double>, std::vector<std::size_t>> by_place;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (question != Question::pays || !candidates[i].speculates() || candidates[i].draft_length == draft_length)
      by_place[place_of(candidates[i])].push_back(i);
  std::vector<std::vector<std::size_t>> decisions;
  for (auto& [place, choices] : by_place)
    if (choices.size() > 1) decisions.push_back(std::move(choices));
  return decisions;
}

// Mean and covariance of the logarithm of each candidate's speed: 1 / TPOT, or throughput if the question is the highest rate.
struct Speeds {
  Vector mean;
  Matrix covariance;
};

Speeds speeds_of(const TuneResult& belief, Question question) {
  const bool rate = question == Question::max_rate;
  const auto metric = static_cast<std::size_t>(rate ? Metric::throughput : Metric::tpot);
  const auto count = static_cast<Eigen::Index>(belief.expected.size());
  Speeds speeds{Vector(count), Matrix(count, count)};
  for (Eigen::Index i = 0; i < count; ++i) {
    const auto row = static_cast<std::size_t>(i);
    speeds.mean(i) = (rate ? 1.0 : -1.0) * belief.expected[row].mean[metric];
    for (Eigen::Index j = 0; j < count; ++j)
      speeds.covariance(i, j) = belief.covariance[row * kMetrics + metric][static_cast<std::size_t>(j) * kMetrics + metric];
  }
  return speeds;
}

// Independent standard normals, the same for every question.
std::vector<double> normals(std::size_t count) {
  boost::random::mt19937_64 bits(20091);
  boost::random::normal_distribution<double> normal;
  std::vector<double> draws(count);
  for (std::size_t i = 0; i < count; ++i) draws[i] = i % 2 == 1 ? -draws[i - 1] : normal(bits);  // their mean is exactly 0
  return draws;
}

// Expected gain of the best choice if beliefs of the choices move by `move` times a standard normal, averaged over the
// decisions.
double gain(const Vector& mean, const Vector& move, const std::vector<std::vector<std::size_t>>& decisions,
            const std::vector<double>& draws) {
  double sum = 0.0;
  for (const auto& choices : decisions) {
    double now = -1e300;
    for (const std::size_t choice : choices) now = std::max(now, mean(static_cast<Eigen::Index>(choice)));
    for (const double draw : draws) {
      double best = -1e300;
      for (const std::size_t choice : choices) {
        const auto at = static_cast<Eigen::Index>(choice);
        best = std::max(best, mean(at) + draw * move(at));
      }
      sum += (best - now) / static_cast<double>(draws.size());
    }
  }
  return decisions.empty() ? 0.0 : std::max(0.0, sum / static_cast<double>(decisions.size()));
}

// The gain from knowing all speeds.
double gain_of_all(const Vector& mean, const Matrix& covariance, const std::vector<std::vector<std::size_t>>& decisions,
                   const std::vector<double>& draws) {
  double sum = 0.0;
  std::size_t next = 0;
  for (const auto& choices : decisions) {
    const auto size = static_cast<Eigen::Index>(choices.size());
    Matrix own(size, size);
    Vector centre(size);
    for (Eigen::Index i = 0; i < size; ++i) {
      const auto at = static_cast<Eigen::Index>(choices[static_cast<std::size_t>(i)]);
      centre(i) = mean(at);
      for (Eigen::Index j = 0; j < size; ++j)
        own(i, j) = covariance(at, static_cast<Eigen::Index>(choices[static_cast<std::size_t>(j)])) + (i == j ? 1e-10 : 0.0);
    }
    const Matrix root = own.llt().matrixL();
    const double now = centre.maxCoeff();
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      Vector z(size);
      for (Eigen::Index i = 0; i < size; ++i) z(i) = draws[next++ % draws.size()];
      sum += ((centre + root * z).maxCoeff() - now) / static_cast<double>(kDraws);
    }
  }
  return decisions.empty() ? 0.0 : std::max(0.0, sum / static_cast<double>(decisions.size()));
}

}  // namespace

SuggestionList suggest(const std::vector<Run>& candidates, const TuneResult& belief, Question question, int draft_length,
                       std::size_t count, const std::vector<Run>& measured) {
  Speeds speeds = speeds_of(belief, question);
  const auto decisions = decisions_of(candidates, question, draft_length);
  const std::vector<double> draws = normals(kDraws);
  const std::vector<double> more_draws = normals(kDraws * 64);
  const Metric measured_metric = question == Question::max_rate ? Metric::throughput : Metric::tpot;
  const double noise = noise_of(measured_metric) * noise_of(measured_metric);
  std::set<std::size_t> used;
  std::set<std::pair<int, std::tuple<double, double, double, double>>> known;
  for (const Run& run : measured) known.insert({run.draft_length, place_of(run)});
  // Runs of one kind do not determine a server: the first two runs are one with speculation and one without.
  std::set<bool> modes;
  for (const Run& run : measured) modes.insert(run.speculates());
  std::set<bool> offered;
  for (const Run& run : candidates) offered.insert(run.speculates());
  const bool both_modes = offered.size() == 2;
  SuggestionList result;
  const auto still_open = [&] { return std::expm1(gain_of_all(speeds.mean, speeds.covariance, decisions, more_draws)); };
  double open = result.open = still_open();
  while (result.suggestions.size() < count) {
    Suggestion best;
    double best_score = -1.0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (modes.size() == 1 && modes.contains(candidates[i].speculates()) && both_modes) continue;
      if (used.contains(i) || known.contains({candidates[i].draft_length, place_of(candidates[i])})) continue;
      const auto at = static_cast<Eigen::Index>(i);
      const double own = speeds.covariance(at, at) + noise;
      const Vector move = speeds.covariance.col(at) / std::sqrt(own);
      const double value = gain(speeds.mean, move, decisions, draws);
      const double left = (speeds.covariance.diagonal() - move.cwiseProduct(move)).cwiseMax(0.0).cwiseSqrt().mean();
      const double score = value + kShareOfError * (speeds.covariance.diagonal().cwiseMax(0.0).cwiseSqrt().mean() - left);
      if (score > best_score) {
        best_score = score;
        best = {i, std::expm1(value), 0.0};
      }
    }
    if (best_score < 0.0) break;
    used.insert(best.cell);
    modes.insert(candidates[best.cell].speculates());
    const auto at = static_cast<Eigen::Index>(best.cell);
    const Vector move = speeds.covariance.col(at) / std::sqrt(speeds.covariance(at, at) + noise);
    speeds.covariance -= move * move.transpose();
    open = best.open_after = std::min(open, still_open());  // the estimate is a mean of random draws
    result.suggestions.push_back(best);
  }
  return result;
}

std::vector<Run> usual_candidates(const Run& like, int longest, double most_clients) {
  std::vector<Run> candidates;
  for (double clients = 1.0; clients <= most_clients; clients *= 4.0)
    for (int length = 0; length <= longest; length = length < 5 ? length + 1 : length + 2) {
      Run run = like;
      run.name = length == 0 ? fmt::format("plain-c{:.0f}", clients) : fmt::format("k{}-c{:.0f}", length, clients);
      run.draft_length = length;
      run.concurrency = clients;
      run.rate.reset();
      run.requests = std::max(32.0, 4.0 * clients);
      run.position_rates.clear();
      run.acceptance_length.reset();
      run.measured = {};
      candidates.push_back(run);
    }
  return candidates;
}

}  // namespace specsim::tune
