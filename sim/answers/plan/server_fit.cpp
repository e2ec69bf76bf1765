#include "sim/answers/plan/server_fit.h"

#include "sim/hardware/latency/deployment_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::plan {

namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

double rounded_up(double tokens, double step) { return std::ceil(tokens / step) * step; }

cost::MemoryBudget memory(const cost::Deployment& deployment, double batch, double context, int draft_length) {
  return cost::memory_of(deployment, {batch, context}, draft_length + 1,
                         deployment.draft ? cost::Kept::both : cost::Kept::target);
}

std::string needs(const cost::MemoryBudget& all, const std::string& what) {
  const cost::MemoryBudget& budget = all.tightest();
  return fmt::format("{} needs {:.1f} GiB of the {:.1f} GiB that {} has for it", what, budget.needed_bytes() / kGib,
                     budget.available_bytes / kGib, budget.device.empty() ? "a GPU" : budget.device);
}

}  // namespace

ServerFit fit_for_one(const cost::Deployment& deployment, cost::MemoryRules rules, double context, int draft_length) {
  cost::Deployment own = deployment;
  own.engine.memory = rules;
  const auto fits = [&](double tokens) { return memory(own, 1.0, tokens, draft_length).fits(); };
  const double needed = context + draft_length + 1.0;
  const std::optional<double> known = deployment.target->context;
  ServerFit fit;
  fit.planned = rounded_up(needed, 256.0);
  fit.unknown = !known;
  fit.past_model = known && needed > *known;
  if (known && fits(*known)) return fit;
  const double least = fit.past_model ? *known : fit.planned;
  if (!fits(least)) {
    fit.why_not =
        needs(memory(own, 1.0, least, draft_length), fmt::format("a sequence of {:.0f} tokens, with the weights,", least));
    return fit;
  }
  if (!known) return fit;
  fit.context = least;
  for (double tokens = 1024.0; tokens < *known && fits(tokens); tokens *= 2.0)  // as much as fits, in powers of two
    fit.context = std::max(least, tokens);
  return fit;
}

ServerFit fit_for_all(const cost::Deployment& deployment, double batch, double context, int draft_length) {
  cost::Deployment own = deployment;
  own.engine.memory = cost::MemoryRules::none;
  ServerFit fit;
  fit.planned = rounded_up(context + draft_length + 1.0, 256.0);
  const std::optional<double> known = deployment.target->context;
  fit.unknown = !known;
  fit.past_model = known && context + draft_length + 1.0 > *known;
  const cost::MemoryBudget budget = memory(own, batch, fit.planned, draft_length);
  if (!budget.fits()) {
    fit.why_not = needs(budget, "the memory that it allocates when it starts");
    return fit;
  }
  double given = fit.planned;
  const auto take = [&](double tokens) {
    const bool fits = memory(own, batch, tokens, draft_length).fits();
    if (fits) given = std::max(given, tokens);
    return fits;
  };
  if (known && !take(*known))
    for (double tokens = 1024.0; tokens < *known && take(tokens);) tokens *= 2.0;
  fit.context = given * std::max(1.0, batch);
  return fit;
}

}  // namespace specsim::plan
