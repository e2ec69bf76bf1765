#include "sim/answers/plan/gain.h"

#include "sim/foundation/report/intervals.h"

#include <fmt/format.h>
#include <boost/math/distributions/normal.hpp>

#include <cmath>

namespace specsim::plan {

namespace {}  // namespace

double Gain::ratio() const { return std::exp(logarithm); }
double Gain::low() const { return std::exp(logarithm - report::kIn95 * error); }
double Gain::high() const { return std::exp(logarithm + report::kIn95 * error); }

double Gain::pays() const {
  if (error == 0.0) return logarithm > 0.0 ? 1.0 : logarithm < 0.0 ? 0.0 : 0.5;
  return boost::math::cdf(boost::math::normal(), logarithm / error);
}

Verdict verdict_of(const Gain& gain) {
  const double probability = gain.pays();
  return probability >= kSure ? Verdict::pays : probability <= 1.0 - kSure ? Verdict::does_not_pay : Verdict::too_close;
}

std::string verdict_text(const Gain& gain) {
  switch (verdict_of(gain)) {
    case Verdict::pays:
      return "pays";
    case Verdict::does_not_pay:
      return "does not pay";
    case Verdict::too_close:
      break;
  }
  return fmt::format("too close to call: P(pays) = {:.2f}, expected gain {:.0f} %", gain.pays(),
                     std::round(100.0 * (gain.ratio() - 1.0)) + 0.0);  // no "-0"
}

}  // namespace specsim::plan
