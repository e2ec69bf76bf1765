// When requests are sent: the registry of arrival processes.
#pragma once

#include "sim/foundation/config/registry.h"
#include "sim/foundation/rng/philox.h"
#include "sim/serving/arrivals/request_trace.h"

#include <functional>
#include <memory>
#include <vector>

namespace specsim::arrivals {

// The moments at which requests are due, one after the other.
using DueTimes = std::function<Picoseconds()>;

class ArrivalProcess {
 public:
  ArrivalProcess() = default;
  ArrivalProcess(const ArrivalProcess&) = delete;
  ArrivalProcess& operator=(const ArrivalProcess&) = delete;
  virtual ~ArrivalProcess() = default;
  // Fills in the requests and when they are due; also their lengths if its entry states it.
  virtual void fill(RequestTrace& workload, rng::Key key) const = 0;
  // The moments of fill(), for a run that does not keep its requests; empty if they depend on later ones or on answers.
  [[nodiscard]] virtual DueTimes due_times(rng::Key /*key*/) const { return {}; }
  // How many requests fill() makes, if this is known before.
  [[nodiscard]] virtual std::size_t requests() const { return 0; }
  // Notes for the user: ignored columns, estimated lengths.
  [[nodiscard]] virtual std::vector<std::string> notes() const { return {}; }
  // This process at another rate, or with another limit of requests in flight, from the same random numbers; nullptr if the
  // process has no rate.
  [[nodiscard]] virtual std::unique_ptr<ArrivalProcess> with_rate(double /*requests_per_second*/) const { return nullptr; }
  [[nodiscard]] virtual std::unique_ptr<ArrivalProcess> with_concurrency(std::uint32_t /*concurrency*/) const { return nullptr; }
  // This process with this many requests; nullptr if they are recorded.
  [[nodiscard]] virtual std::unique_ptr<ArrivalProcess> with_requests(std::size_t /*requests*/) const { return nullptr; }
};

struct ArrivalsEntry {
  config::PartInfo info;
  // nullptr after reporting.
  std::function<std::unique_ptr<ArrivalProcess>(const config::Arguments&, Diagnostics&)> make;
  bool brings_lengths = false;  // its requests have prompts and outputs of their own
};

config::Registry<ArrivalsEntry>& arrival_processes();

// ---- shared by several processes ----

// The parameters `requests` and `rate` (per second), held by these members.
template <class P>
config::Declaration<P> requests_field(std::size_t P::*requests) {
  return {"requests", requests, "number of requests", config::between(1, 1e8)};
}
template <class P>
config::Declaration<P> rate_field(double P::*rate) {
  return {"rate", rate, "mean requests per second", config::between(1e-9, 1e9), config::required};
}
// The moment this many seconds after the start. Beyond kLongestRun it is a moment that every run refuses, so that it does not
// overflow.
Picoseconds moment(double seconds);
// Requests that are due at the sums of these gaps, in seconds.
void fill_from_gaps(RequestTrace& workload, const std::vector<double>& gaps);
// The sums of gaps: gap(i) is that before request number i.
DueTimes sum_gaps(std::function<double(std::uint64_t request)> gap);
// A gap of gamma_gaps() that is not rescaled.
double gamma_gap(std::uint64_t request, double rate, double shape, rng::Key key);
// Gaps of mean 1 / rate: gamma with this shape (1: exponential, a Poisson process), each request's from its own random numbers.
// `rescaled`: scaled such that the last request is due at requests / rate, as `vllm bench serve` does it. `workload`: whose
// requests they are; from when it is stopped on, gaps are 0.
std::vector<double> gamma_gaps(std::size_t requests, double rate, double shape, bool rescaled, rng::Key key,
                               const RequestTrace& workload);

}  // namespace specsim::arrivals
