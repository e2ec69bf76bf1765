#include "sim/serving/arrivals/arrivals.h"

#include "sim/foundation/rng/address.h"

#include <boost/random/exponential_distribution.hpp>
#include <boost/random/gamma_distribution.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::arrivals {

Picoseconds moment(double seconds) { return std::llround(kPicosecondsPerSecond * std::min(seconds, 1.1 * kLongestRun)); }

void fill_from_gaps(RequestTrace& workload, const std::vector<double>& gaps) {
  double due = 0.0;
  workload.requests.resize(gaps.size());
  for (std::size_t i = 0; i < gaps.size(); ++i) workload.requests[i].due = moment(due += gaps[i]);
}

DueTimes sum_gaps(std::function<double(std::uint64_t request)> gap) {
  return [gap = std::move(gap), due = 0.0, request = std::uint64_t{0}]() mutable { return moment(due += gap(request++)); };
}

double gamma_gap(std::uint64_t request, double rate, double shape, rng::Key key) {
  rng::Stream random_bits(key, rng::Purpose::start, 1, request);
  return shape == 1.0 ? boost::random::exponential_distribution<double>(rate)(random_bits)
                      : boost::random::gamma_distribution<double>(shape, 1.0 / (shape * rate))(random_bits);
}

std::vector<double> gamma_gaps(std::size_t requests, double rate, double shape, bool rescaled, rng::Key key,
                               const RequestTrace& workload) {
  std::vector<double> gaps(requests);
  double sum = 0.0;
  for (std::size_t i = 0; i < requests && !workload.stopped(); ++i) {
    gaps[i] = gamma_gap(i, rate, shape, key);
    sum += gaps[i];
  }
  if (rescaled && sum > 0.0)
    for (double& gap : gaps) gap *= static_cast<double>(requests) / rate / sum;
  return gaps;
}

}  // namespace specsim::arrivals
