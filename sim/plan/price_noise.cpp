#include "sim/plan/price_noise.h"

#include "sim/cost/deployment.h"

#include <cmath>

namespace specsim::plan {
namespace {

constexpr double kApart = 0.7;

double verification(const RoundPrice& price) {
  const double rows = price.verified_rows;
  return price.cost->relative_error(cost::Role::target, {price.workload.batch, rows, price.workload.context, rows}) *
         price.time.verify.total() / price.time.total();
}

double drafting(const RoundPrice& price) {
  return price.cost->relative_error(cost::Role::draft, {price.workload.batch, 1.0, price.workload.context, 1.0}) *
         price.time.draft.total() / price.time.total();
}

bool one_draft(const RoundPrice& a, const RoundPrice& b) {
  if (a.cost == b.cost) return true;
  const cost::Deployment* of_a = a.cost->deployment();
  const cost::Deployment* of_b = b.cost->deployment();
  return of_a != nullptr && of_b != nullptr && of_a->draft && of_b->draft && of_a->draft->name == of_b->draft->name;
}

}  // namespace

double price_noise(const RoundPrice& a, const RoundPrice& b) {
  const double verify = a.verified_rows == b.verified_rows ? verification(a) - verification(b)
                                                           : std::sqrt(kApart) * std::hypot(verification(a), verification(b));
  const double draft = one_draft(a, b) ? drafting(a) - drafting(b) : std::hypot(drafting(a), drafting(b));
  return std::hypot(verify, draft);
}

}  // namespace specsim::plan
