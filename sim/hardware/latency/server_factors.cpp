#include "sim/hardware/latency/server_factors.h"

#include "sim/foundation/config/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace specsim::cost {

const std::array<FactorInfo, kFactors>& factor_infos() {
  // Assumed, close to what scripts/results/tune_prior.py finds over the measured servers of results/tune (prior.csv there). The
  // means are 0: how servers differ on average from their kernels' estimates is in the engines' files.
  static const std::array<FactorInfo, kFactors> infos = {{
      {"products", true, 0.04, "matrix products and small kernels"},
      {"arithmetic", true, 0.27, "extra factor of arithmetic on top of reading weights"},
      {"experts", true, 0.35, "routed experts"},
      {"routing", true, 0.25, "independent choices of experts per further token of a pass"},
      {"attention", true, 0.4, "attention over the cache"},
      {"verification", true, 0.31, "extra factor of attention of several tokens per sequence"},
      {"prefill", true, 0.22, "extra factor of prompts, products and attention"},
      {"communication", true, 0.8, "communication between the GPUs of one model"},
      {"speculation", true, 0.046, "all passes of speculative rounds"},
      {"step", false, 370.0, "host time per step"},
      {"sequence", false, 15.0, "host time per step and sequence"},
      {"row", false, 9.2, "host time per row of a verification"},
      {"round", false, 550.0, "host time per speculative round"},
      {"draft_pass", false, 240.0, "host time per draft pass"},
      {"request", true, 1.2, "host time per request before it is queued"},
  }};
  return infos;
}

FactorBelief prior_belief(const ServerFactors& kernel_errors) {
  FactorBelief belief;
  for (std::size_t i = 0; i < kFactors; ++i) {
    const FactorInfo& info = factor_infos()[i];
    belief.covariance[i][i] = info.error * info.error + kernel_errors.values[i] * kernel_errors.values[i];
  }
  return belief;
}

double ratio_variance(const FactorBelief& belief, const FactorVector& slope) {
  double sum = 0.0;
  for (std::size_t i = 0; i < kFactors; ++i)
    for (std::size_t j = 0; j < kFactors; ++j) sum += slope[i] * belief.covariance[i][j] * slope[j];
  return std::max(0.0, sum);
}

double discrepancy_correlation(const StepSetting& a, const StepSetting& b) {
  // Correlation lengths of the discrepancies: differences of the logarithms of batch and prompt, and of draft lengths; and the
  // distance between steps with and without speculation.
  constexpr double kLengthScale = 1.2;
  constexpr double kDraftScale = 8.0;
  constexpr double kModesApart = 1.2;
  const double batch = std::log(a.batch / b.batch) / kLengthScale;
  const double prompt = std::log(std::max(1.0, a.prompt) / std::max(1.0, b.prompt)) / kLengthScale;
  const bool both = a.draft_length > 0 && b.draft_length > 0;
  const double drafts = both                               ? (a.draft_length - b.draft_length) / kDraftScale
                        : a.draft_length == b.draft_length ? 0.0
                                                           : kModesApart;
  return std::exp(-0.5 * (batch * batch + prompt * prompt + drafts * drafts));
}

FactorBelief read_belief(const config::Value& value, Diagnostics& diagnostics) {
  FactorBelief belief;
  static const std::vector<config::Parameter> parameters = {
      {"factors", config::Type::value, {}, "by factor: a logarithm of a time, or microseconds of host time", {}, {}},
      {"covariance", config::Type::value, {}, "of the factors, a row for each", {}, {}}};
  static const std::vector<config::Parameter> names = [] {
    std::vector<config::Parameter> list;
    for (const FactorInfo& info : factor_infos())
      list.push_back({info.key,
                      config::Type::number,
                      "0",
                      info.meaning,
                      info.logarithm ? config::between(-5, 5) : config::between(-1e6, 1e6),
                      {}});
    return list;
  }();
  const std::size_t before = diagnostics.list().size();
  const config::Arguments arguments = config::read_arguments(value, parameters, {}, "tuned", diagnostics);
  if (diagnostics.list().size() != before) return belief;
  const config::Arguments factors = config::read_arguments(arguments.value("factors"), names, {}, "tuned.factors", diagnostics);
  const config::Value& rows = arguments.value("covariance");
  const auto refuse = [&](const config::Value& found, const char* what) {
    diagnostics.add(found.where, fmt::format("covariance is {}, allowed: {} of {} numbers, in the order of the factors",
                                             config::description_of_found(found), what, kFactors));
  };
  if (!rows.is_list() || rows.items.size() != kFactors) {
    refuse(rows, "a row for each factor,");
    return belief;
  }
  if (diagnostics.list().size() != before) return belief;
  for (std::size_t i = 0; i < kFactors; ++i) {
    belief.mean.values[i] = factors.number(factor_infos()[i].key);
    const config::Value& row = rows.items[i];
    if (!row.is_list() || row.items.size() != kFactors) {
      refuse(row, "a list");
      return belief;
    }
    for (std::size_t j = 0; j < kFactors; ++j) {
      const std::optional<double> number = config::as_number(row.items[j]);
      if (!number) {
        refuse(row.items[j], "a list");
        return belief;
      }
      belief.covariance[i][j] = *number;
    }
  }
  for (std::size_t i = 0; i < kFactors; ++i)
    for (std::size_t j = 0; j < kFactors; ++j)
      if (belief.covariance[i][i] < 0.0 || belief.covariance[i][j] != belief.covariance[j][i] ||
          belief.covariance[i][j] * belief.covariance[i][j] > belief.covariance[i][i] * belief.covariance[j][j] * (1.0 + 1e-6)) {
        diagnostics.add(rows.items[i].where,
                        "covariance is no covariance, allowed: a symmetric matrix without correlations beyond 1");
        return belief;
      }
  return belief;
}

std::string belief_text(const FactorBelief& belief, int indent) {
  const std::string space(static_cast<std::size_t>(indent), ' ');
  std::string text = space + "factors:\n";
  for (std::size_t i = 0; i < kFactors; ++i) {
    const FactorInfo& info = factor_infos()[i];
    text += fmt::format("{}  {}: {:.6g}  # {}, {}\n", space, info.key, belief.mean.values[i],
                        info.logarithm ? "logarithm of time" : "microseconds", info.meaning);
  }
  text += space + "covariance:\n";
  for (const FactorVector& row : belief.covariance) {
    std::vector<std::string> numbers;
    for (const double number : row) numbers.push_back(fmt::format("{:.10g}", number));
    text += fmt::format("{}  - [{}]\n", space, fmt::join(numbers, ", "));
  }
  return text;
}

}  // namespace specsim::cost
