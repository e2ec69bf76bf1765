#include "sim/answers/plan/price_noise.h"

#include "sim/hardware/latency/deployment.h"

#include <cmath>

namespace specsim::plan {
namespace {

double verification(const RoundPrice& price) {
  const double rows = price.verified_rows;
  return price.cost->kernel_error(cost::Role::target, {price.workload.batch, rows, price.workload.context, rows}) *
         price.time.verify.total() / price.time.total();
}

double drafting(const RoundPrice& price) {
  return price.cost->kernel_error(cost::Role::draft, {price.workload.batch, 1.0, price.workload.context, 1.0}) *
         price.time.draft.total() / price.time.total();
}

// What an error has in common with one over other rows, and what it has alone.
double shared(const RoundPrice& price, double error) {
  return std::sqrt(price.cost->shared_variance(cost::Role::target)) * error;
}
double apart(const RoundPrice& price, double error) {
  return std::sqrt(1.0 - price.cost->shared_variance(cost::Role::target)) * error;
}

bool drafts(const RoundPrice& price) { return price.verified_rows > 1.0 || price.time.draft.total() > 0.0; }
double of_rounds(const RoundPrice& price) { return drafts(price) ? price.cost->round_error() : 0.0; }

bool one_draft(const RoundPrice& a, const RoundPrice& b) {
  if (a.cost == b.cost) return true;
  const cost::Deployment* of_a = a.cost->deployment();
  const cost::Deployment* of_b = b.cost->deployment();
  return of_a != nullptr && of_b != nullptr && of_a->draft && of_b->draft && of_a->draft->name == of_b->draft->name;
}

}  // namespace

double price_noise(const RoundPrice& a, const RoundPrice& b) {
  const double of_a = verification(a);
  const double of_b = verification(b);
  const double verify = a.verified_rows == b.verified_rows
                            ? of_a - of_b
                            : std::hypot(shared(a, of_a) - shared(b, of_b), std::hypot(apart(a, of_a), apart(b, of_b)));
  const double draft = one_draft(a, b) ? drafting(a) - drafting(b) : std::hypot(drafting(a), drafting(b));
  return std::hypot(verify, draft, of_rounds(a) - of_rounds(b));
}

double price_error(const RoundPrice& price) {
  return std::hypot(std::hypot(verification(price), drafting(price)), price.cost->server_error(cost::Role::target),
                    of_rounds(price));
}

}  // namespace specsim::plan
