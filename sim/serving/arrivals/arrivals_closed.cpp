#include "sim/serving/arrivals/arrivals.h"

#include <cmath>

namespace specsim::arrivals {

namespace {

class Closed final : public ArrivalProcess {
 public:
  struct Params {
    std::uint32_t concurrency = 0;
    std::size_t requests = 1000;
    double think_ms = 0.0;
    double rate = 0.0;
    double burstiness = 1.0;
  };
  explicit Closed(const Params& params) : params_(params) {}
  [[nodiscard]] std::size_t requests() const override { return params_.requests; }
  void fill(RequestTrace& workload, rng::Key key) const override {
    if (params_.rate > 0.0)
      fill_from_gaps(workload, gamma_gaps(params_.requests, params_.rate, params_.burstiness, true, key, workload));
    else
      workload.requests.resize(params_.requests);
    workload.concurrency = params_.concurrency;
    workload.think = std::llround(1e-3 * kPicosecondsPerSecond * params_.think_ms);
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_concurrency(std::uint32_t concurrency) const override {
    Params other = params_;
    other.concurrency = concurrency;
    return std::make_unique<Closed>(other);
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_rate(double rate) const override {
    if (!(params_.rate > 0.0)) return nullptr;
    Params other = params_;
    other.rate = rate;
    return std::make_unique<Closed>(other);
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_requests(std::size_t requests) const override {
    Params other = params_;
    other.requests = requests;
    return std::make_unique<Closed>(other);
  }

 private:
  Params params_;
};

}  // namespace

ArrivalsEntry closed_arrivals() {
  using P = Closed::Params;
  static const config::Fields<P> fields = {
      {"concurrency", &P::concurrency, "maximum number of requests in flight", config::between(1, 1e7), config::required},
      requests_field(&P::requests),
      {"think_ms", &P::think_ms, "between an answer and the next request", config::between(0, 1e9)},
      {"rate", &P::rate, "rate at which requests become due (--request-rate); 0: all at once", config::between(0, 1e9)},
      {"burstiness", &P::burstiness, "shape of their gaps, rescaled as in vllm bench serve", config::between(1e-3, 1e6)},
  };
  return {{"closed", "this many clients, each sends its next request when the one before has ended",
           "vllm bench serve --max-concurrency", fields,
           "A request that is due while the limit is reached waits in the client: TTFT counts from sending."},
          [](const config::Arguments& arguments, Diagnostics&) { return std::make_unique<Closed>(fields.read(arguments)); }};
}

}  // namespace specsim::arrivals
