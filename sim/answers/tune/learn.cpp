#include "sim/answers/tune/learn.h"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <limits>

namespace specsim::tune {

namespace {

// [Metric]: standard deviations of the logarithm of the difference between repetitions of one run. Assumed, close to the results
// of scripts/results/tune_prior.py over the servers of results/tune.
constexpr std::array<double, kMetrics> kNoise = {0.04, 0.018, 0.02};
constexpr double kTpotAndThroughput = -0.9;  // correlation of the two discrepancies
constexpr double kSameLengths = 0.9;         // correlation of the acceptance errors of two runs
constexpr double kOtherLengths = 0.5;
constexpr double kDegrees = 4.0;  // degrees of freedom of the noise
constexpr int kRounds = 20;

struct Belief {
  Eigen::VectorXd mean;        // [Factor]
  Eigen::MatrixXd covariance;  // [Factor][Factor]
};

Belief as_belief(const cost::FactorBelief& given) {
  constexpr auto kCount = static_cast<Eigen::Index>(cost::kFactors);
  Belief belief{Eigen::Map<const Eigen::VectorXd>(given.mean.values.data(), kCount), Eigen::MatrixXd(kCount, kCount)};
  for (Eigen::Index i = 0; i < kCount; ++i)
    for (Eigen::Index j = 0; j < kCount; ++j)
      belief.covariance(i, j) = given.covariance[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
  return belief;
}

cost::FactorBelief as_belief(const Belief& given) {
  cost::FactorBelief belief;
  for (std::size_t i = 0; i < cost::kFactors; ++i) {
    belief.mean.values[i] = given.mean(static_cast<Eigen::Index>(i));
    for (std::size_t j = 0; j < cost::kFactors; ++j)  // rounding makes the two halves differ
      belief.covariance[i][j] = 0.5 * (given.covariance(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) +
                                       given.covariance(static_cast<Eigen::Index>(j), static_cast<Eigen::Index>(i)));
  }
  return belief;
}

struct Row {
  std::size_t run;
  std::size_t metric;
  const Evidence* of;
};

std::vector<Row> measured_rows(const std::vector<Evidence>& evidence) {
  std::vector<Row> rows;
  for (std::size_t run = 0; run < evidence.size(); ++run)
    for (std::size_t metric = 0; metric < kMetrics; ++metric)
      if (evidence[run].measured[metric]) rows.push_back({run, metric, &evidence[run]});
  return rows;
}

std::vector<Row> all_rows(const std::vector<Evidence>& evidence) {
  std::vector<Row> rows;
  for (std::size_t run = 0; run < evidence.size(); ++run)
    for (std::size_t metric = 0; metric < kMetrics; ++metric) rows.push_back({run, metric, &evidence[run]});
  return rows;
}

constexpr auto ttft = static_cast<std::size_t>(Metric::ttft);

double metrics_alike(std::size_t a, std::size_t b) {
  if (a == b) return 1.0;
  return a == ttft || b == ttft ? 0.0 : kTpotAndThroughput;
}

// Covariance of two discrepancies.
double discrepancy(const Row& a, const Row& b) {
  const double common = metrics_alike(a.metric, b.metric);
  if (common == 0.0) return 0.0;
  return common * a.of->prediction.discrepancy[a.metric] * b.of->prediction.discrepancy[b.metric] *
         cost::discrepancy_correlation(a.of->setting, b.of->setting);
}

Eigen::MatrixXd slopes(const std::vector<Row>& rows) {
  Eigen::MatrixXd matrix(static_cast<Eigen::Index>(rows.size()), static_cast<Eigen::Index>(cost::kFactors));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t factor = 0; factor < cost::kFactors; ++factor)
      matrix(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(factor)) =
          rows[i].of->prediction.slope[rows[i].metric][factor];
  return matrix;
}

// Variance of the noise of a row, for a run with the usual weight. Run and simulation draw their requests independently.
double noise(const Row& row) {
  const double sampling = row.of->prediction.sampling[row.metric];
  return kNoise[row.metric] * kNoise[row.metric] + 2.0 * sampling * sampling;
}

// If a run does not state its acceptance, the error shifts its TPOT and its throughput in opposite directions. Runs with the
// same source, or with none, have correlated errors, more so if their lengths are the same.
double acceptance(const Row& a, const Row& b) {
  if (a.of->acceptance.source != b.of->acceptance.source) return 0.0;
  const auto sign = [](const Row& row) {
    return row.metric == static_cast<std::size_t>(Metric::tpot)         ? -1.0
           : row.metric == static_cast<std::size_t>(Metric::throughput) ? 1.0
                                                                        : 0.0;
  };
  const double common = a.of == b.of ? 1.0 : alike(a.of->run, b.of->run) ? kSameLengths : kOtherLengths;
  return common * a.of->acceptance.error * sign(a) * b.of->acceptance.error * sign(b);
}

Eigen::MatrixXd covariance(const std::vector<Row>& a, const std::vector<Row>& b, const Eigen::MatrixXd& factors) {
  Eigen::MatrixXd matrix = slopes(a) * factors * slopes(b).transpose();
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j)
      matrix(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) += discrepancy(a[i], b[j]) + acceptance(a[i], b[j]);
  return matrix;
}

// The simulator's prediction with the factors at `mean`, by the slopes around `at`.
Eigen::VectorXd expected(const std::vector<Row>& rows, const Eigen::VectorXd& shift) {
  Eigen::VectorXd values = slopes(rows) * shift;
  for (std::size_t i = 0; i < rows.size(); ++i)
    values(static_cast<Eigen::Index>(i)) += rows[i].of->prediction.mean[rows[i].metric];
  return values;
}

}  // namespace

double noise_of(Metric metric) { return kNoise[static_cast<std::size_t>(metric)]; }

cost::StepSetting setting_of(const Run& run, const Prediction& prediction) {
  return {prediction.batch, prediction.prompt_tokens, run.draft_length};
}

LearnedFactors learn(const cost::FactorBelief& prior_belief, const std::vector<Evidence>& evidence,
                     const std::vector<Evidence>& others, const cost::ServerFactors& at) {
  LearnedFactors learned;
  learned.fits.resize(evidence.size());
  const std::vector<Row> rows = measured_rows(evidence);
  const std::vector<Row> asked = all_rows(others);
  constexpr auto kCount = static_cast<Eigen::Index>(cost::kFactors);
  const Belief prior = as_belief(prior_belief);
  const Eigen::VectorXd centre = Eigen::Map<const Eigen::VectorXd>(at.values.data(), kCount);
  const Eigen::VectorXd shift = prior.mean - centre;
  const Eigen::MatrixXd among = covariance(rows, rows, prior.covariance);
  const auto count = static_cast<Eigen::Index>(rows.size());
  Eigen::VectorXd found = -expected(rows, shift);
  for (Eigen::Index i = 0; i < count; ++i)
    found(i) += *rows[static_cast<std::size_t>(i)].of->measured[rows[static_cast<std::size_t>(i)].metric];

  // Expectation-maximisation over the weights of the runs' metrics. A weight is the inverse of the noise variance relative to the
  // usual one.
  const auto weight_of = [&](const Row& row) -> double& {
    Fit& fit = learned.fits[row.run];
    return row.metric == ttft ? fit.ttft_weight : fit.weight;
  };
  Eigen::LLT<Eigen::MatrixXd> solver;
  for (int round = 0; round < kRounds && count > 0; ++round) {
    Eigen::MatrixXd total = among;
    for (Eigen::Index i = 0; i < count; ++i) {
      const Row& row = rows[static_cast<std::size_t>(i)];
      total(i, i) += noise(row) / weight_of(row);
    }
    solver.compute(total);
    const Eigen::VectorXd noise_mean = found - among * solver.solve(found);
    const Eigen::MatrixXd left = among - among * solver.solve(among);
    const auto place = [](const Row& row) { return 2 * row.run + (row.metric == ttft ? 1 : 0); };
    std::vector<double> squares(2 * evidence.size(), 0.0);
    std::vector<double> counts(2 * evidence.size(), 0.0);
    for (Eigen::Index i = 0; i < count; ++i) {
      const Row& row = rows[static_cast<std::size_t>(i)];
      squares[place(row)] += (noise_mean(i) * noise_mean(i) + left(i, i)) / noise(row);
      counts[place(row)] += 1.0;
    }
    for (const Row& row : rows) weight_of(row) = (kDegrees + counts[place(row)]) / (kDegrees + squares[place(row)]);
  }

  Belief posterior = prior;
  if (count > 0) {
    const Eigen::MatrixXd cross = prior.covariance * slopes(rows).transpose();
    posterior.mean += cross * solver.solve(found);
    posterior.covariance -= cross * solver.solve(cross.transpose());
  }
  learned.belief = as_belief(posterior);
  for (Fit& fit : learned.fits) fit.residual.fill(std::numeric_limits<double>::quiet_NaN());
  const Eigen::VectorXd after = expected(rows, posterior.mean - centre);
  for (Eigen::Index i = 0; i < count; ++i) {
    const Row& row = rows[static_cast<std::size_t>(i)];
    learned.fits[row.run].residual[row.metric] = *row.of->measured[row.metric] - after(i);
  }

  learned.expected.resize(others.size());
  Eigen::VectorXd mean = expected(asked, shift);
  Eigen::MatrixXd spread = covariance(asked, asked, prior.covariance);
  if (count > 0) {
    const Eigen::MatrixXd cross = covariance(asked, rows, prior.covariance);
    mean += cross * solver.solve(found);
    spread -= cross * solver.solve(cross.transpose());
  }
  learned.covariance.assign(asked.size(), std::vector<double>(asked.size()));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const Row& row = asked[i];
    const auto at_row = static_cast<Eigen::Index>(i);
    for (std::size_t j = 0; j < asked.size(); ++j) learned.covariance[i][j] = spread(at_row, static_cast<Eigen::Index>(j));
    learned.expected[row.run].mean[row.metric] = mean(at_row);
    learned.expected[row.run].error[row.metric] = std::sqrt(std::max(0.0, spread(at_row, at_row)) + noise(row));
  }
  return learned;
}

}  // namespace specsim::tune
