#include "sim/serving/arrivals/arrivals.h"

namespace specsim::arrivals {

namespace {

class Poisson final : public ArrivalProcess {
 public:
  struct Params {
    double rate = 1.0;
    std::size_t requests = 1000;
    bool rescaled = false;
  };
  explicit Poisson(const Params& params) : params_(params) {}
  [[nodiscard]] std::size_t requests() const override { return params_.requests; }
  void fill(RequestTrace& workload, rng::Key key) const override {
    fill_from_gaps(workload, gamma_gaps(params_.requests, params_.rate, 1.0, params_.rescaled, key));
  }
  [[nodiscard]] DueTimes due_times(rng::Key key) const override {
    if (params_.rescaled) return {};
    return sum_gaps([rate = params_.rate, key](std::uint64_t request) { return gamma_gap(request, rate, 1.0, key); });
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_rate(double rate) const override {
    Params other = params_;
    other.rate = rate;
    return std::make_unique<Poisson>(other);
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_requests(std::size_t requests) const override {
    Params other = params_;
    other.requests = requests;
    return std::make_unique<Poisson>(other);
  }

 private:
  Params params_;
};

}  // namespace

ArrivalsEntry poisson_arrivals() {
  using P = Poisson::Params;
  static const config::Fields<P> fields = {
      rate_field(&P::rate),
      requests_field(&P::requests),
      {"rescaled", &P::rescaled, "the last request is due at requests / rate, as in vllm bench serve"},
  };
  return {{"poisson", "independent of each other, at a constant rate", "", fields, ""},
          [](const config::Arguments& arguments, Diagnostics&) { return std::make_unique<Poisson>(fields.read(arguments)); }};
}

}  // namespace specsim::arrivals
