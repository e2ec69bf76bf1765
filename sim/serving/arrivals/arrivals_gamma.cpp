#include "sim/serving/arrivals/arrivals.h"

namespace specsim::arrivals {

namespace {

class GammaArrivals final : public ArrivalProcess {
 public:
  struct Params {
    double rate = 1.0;
    double burstiness = 1.0;
    std::size_t requests = 1000;
    bool rescaled = false;
  };
  explicit GammaArrivals(const Params& params) : params_(params) {}
  [[nodiscard]] std::size_t requests() const override { return params_.requests; }
  void fill(RequestTrace& workload, rng::Key key) const override {
    fill_from_gaps(workload, gamma_gaps(params_.requests, params_.rate, params_.burstiness, params_.rescaled, key));
  }
  [[nodiscard]] DueTimes due_times(rng::Key key) const override {
    if (params_.rescaled) return {};
    return sum_gaps([own = params_, key](std::uint64_t request) { return gamma_gap(request, own.rate, own.burstiness, key); });
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_rate(double rate) const override {
    Params other = params_;
    other.rate = rate;
    return std::make_unique<GammaArrivals>(other);
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_requests(std::size_t requests) const override {
    Params other = params_;
    other.requests = requests;
    return std::make_unique<GammaArrivals>(other);
  }

 private:
  Params params_;
};

}  // namespace

ArrivalsEntry gamma_arrivals() {
  using P = GammaArrivals::Params;
  static const config::Fields<P> fields = {
      rate_field(&P::rate),
      {"burstiness", &P::burstiness, "shape of the gaps; their coefficient of variation is 1 / sqrt of it",
       config::between(1e-3, 1e6)},
      requests_field(&P::requests),
      {"rescaled", &P::rescaled, "the last request is due at requests / rate, as in vllm bench serve"},
  };
  return {
      {"gamma", "gaps with a gamma distribution: burstier than Poisson's below burstiness 1, more regular above",
       "vLLM's --burstiness", fields, ""},
      [](const config::Arguments& arguments, Diagnostics&) { return std::make_unique<GammaArrivals>(fields.read(arguments)); }};
}

}  // namespace specsim::arrivals
