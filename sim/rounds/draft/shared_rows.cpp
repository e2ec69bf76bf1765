#include "sim/rounds/draft/shared_rows.h"

#include "sim/foundation/base/token.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace specsim::draft {

namespace {

constexpr double kFirstSlope = 0.5;
constexpr double kFirstIntercept = -0.2;
constexpr double kRidge = 1e-3;
constexpr double kDamping = 50.0;
constexpr std::size_t kShared = 3;       // slope; sum of weight x^2; sum of miss x
constexpr std::size_t kPerPosition = 5;  // intercept; sums of weight x, of weight, of miss; observations

}  // namespace

config::Fields<SharedRows> shared_rows_fields(Sharer sharer) {
  using P = SharedRows;
  const bool server = sharer == Sharer::server;
  const char* const round = server ? "step" : "round";
  const std::string confidence =
      "a token's chance of acceptance: estimate, fitted during the run to the log-odds of the draft's likeliest token and the "
      "position; history, fitted to the position alone; head, a perfect trained head";
  return {
      {"confidence", &P::confidence, confidence + (server ? "; default: estimate if rounds are executed, else history" : ""),
       config::one_of<Confidence>(
           {{"estimate", Confidence::estimate}, {"history", Confidence::history}, {"head", Confidence::head}}),
       config::Default{server ? "" : "estimate"}},
      {"budget", &P::budget,
       fmt::format(
           "how many tokens the batch verifies: previous, the most expected tokens per time at the confidences of the {0} before "
           "(vLLM); early_stop, one more while that raises them, at this {0}'s (DSpark); rows, a fixed number",
           round),
       config::one_of<RowBudget>(
           {{"previous", RowBudget::previous}, {"early_stop", RowBudget::early_stop}, {"rows", RowBudget::rows}})},
      {"rows", &P::rows, "with budget: rows, mean number of draft tokens verified per sequence",
       config::between(0, kMaxDraftLength)},
      {"refit", &P::refit, fmt::format("{}s between fits of the estimate", round), config::between(1, 1e6)},
      {"smoothing", &P::smoothing,
       fmt::format(
           "with budget: previous, weight of earlier {0}s in each sequence's moving mean of confidences (vLLM as merged: 0.8); "
           "0: the last {0} alone (vLLM's main branch since)",
           round),
       config::Interval{0, 1, false, true}},
  };
}

std::vector<double> AcceptanceFit::start(std::size_t positions, Confidence confidence) {
  std::vector<double> memory(kShared + kPerPosition * positions, 0.0);
  memory[0] = confidence == Confidence::estimate ? kFirstSlope : 0.0;
  for (std::size_t k = 0; k < positions; ++k) memory[kShared + kPerPosition * k] = kFirstIntercept;
  return memory;
}

double* AcceptanceFit::own(std::size_t k) { return memory_.data() + kShared + kPerPosition * k; }
const double* AcceptanceFit::own(std::size_t k) const { return memory_.data() + kShared + kPerPosition * k; }

double AcceptanceFit::chance(std::span<const LengthPolicy::TokenForecast> forecasts, std::size_t k) const {
  if (confidence_ == Confidence::head) return forecasts[k].overlap;
  return 1.0 / (1.0 + std::exp(-(memory_[0] * certainty(forecasts, k) + own(k)[0])));
}

void AcceptanceFit::observe(std::span<const LengthPolicy::TokenForecast> forecasts, std::size_t verified, std::size_t accepted) {
  if (confidence_ == Confidence::head) return;
  for (std::size_t k = 0; k < verified && k <= accepted; ++k) {
    const double x = certainty(forecasts, k);
    const double p = chance(forecasts, k);
    const double weight = p * (1.0 - p);
    const double miss = (k < accepted ? 1.0 : 0.0) - p;
    memory_[1] += weight * x * x;
    memory_[2] += miss * x;
    double* const sums = own(k);
    sums[1] += weight * x;
    sums[2] += weight;
    sums[3] += miss;
    sums[4] += 1.0;
  }
}

void AcceptanceFit::refit() {
  double slope_information = memory_[1] + kRidge;
  double slope_score = memory_[2];
  double all = 0.0;
  for (std::size_t k = 0; k < positions_; ++k) {
    const double* const sums = own(k);
    slope_information -= sums[1] * sums[1] / (sums[2] + kRidge);
    slope_score -= sums[1] * sums[3] / (sums[2] + kRidge);
    all += sums[4];
  }
  double step = slope_score / slope_information * all / (all + kDamping);
  if (confidence_ != Confidence::estimate || !std::isfinite(step) || memory_[0] + step < 0.0)
    step = 0.0;  // a more certain draft is never accepted less often
  for (std::size_t k = 0; k < positions_; ++k) {
    double* const sums = own(k);
    const double own_step = (sums[3] - sums[1] * step) / (sums[2] + kRidge) * sums[4] / (sums[4] + kDamping);
    if (std::isfinite(own_step)) sums[0] += own_step;
    std::fill(sums + 1, sums + kPerPosition, 0.0);
  }
  memory_[0] += step;
  memory_[1] = memory_[2] = 0.0;
}

void sort_slots(std::vector<DraftSlot>& slots) {
  std::sort(slots.begin(), slots.end(), [](const DraftSlot& a, const DraftSlot& b) {
    if (a.survival != b.survival) return a.survival > b.survival;
    return a.position != b.position ? a.position < b.position : a.chain < b.chain;
  });
}

}  // namespace specsim::draft
