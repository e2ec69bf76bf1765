// Independent gaps between requests.
#include "sim/serving/arrivals/arrivals.h"

namespace specsim::arrivals {

namespace {

class Renewal final : public ArrivalProcess {
 public:
  struct Params {
    double rate = 1.0;
    double burstiness = 1.0;
    std::size_t requests = 1000;
    bool rescaled = false;
    bool equal = false;  // all gaps are 1 / rate
  };
  explicit Renewal(const Params& params) : params_(params) {}
  [[nodiscard]] std::size_t requests() const override { return params_.requests; }
  void fill(RequestTrace& workload, rng::Key key) const override {
    fill_from_gaps(workload, params_.equal ? std::vector<double>(params_.requests, 1.0 / params_.rate)
                                           : gamma_gaps(params_.requests, params_.rate, params_.burstiness, params_.rescaled, key,
                                                        workload));
  }
  [[nodiscard]] DueTimes due_times(rng::Key key) const override {
    if (params_.rescaled) return {};
    return sum_gaps([own = params_, key](std::uint64_t request) {
      return own.equal ? 1.0 / own.rate : gamma_gap(request, own.rate, own.burstiness, key);
    });
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_rate(double rate) const override {
    Params other = params_;
    other.rate = rate;
    return std::make_unique<Renewal>(other);
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_requests(std::size_t requests) const override {
    Params other = params_;
    other.requests = requests;
    return std::make_unique<Renewal>(other);
  }

 private:
  Params params_;
};

using RenewalParams = Renewal::Params;

config::Declaration<RenewalParams> rescaled_field() {
  return {"rescaled", &RenewalParams::rescaled, "the last request is due at requests / rate, as in vllm bench serve"};
}

ArrivalsEntry renewal(const char* name, const char* summary, const char* paper, const config::Fields<RenewalParams>& fields,
                      bool equal) {
  return {{name, summary, paper, fields, ""}, [fields, equal](const config::Arguments& arguments, Diagnostics&) {
            RenewalParams params = fields.read(arguments);
            params.equal = equal;
            return std::make_unique<Renewal>(params);
          }};
}

}  // namespace

ArrivalsEntry poisson_arrivals() {
  return renewal("poisson", "independent of each other, at a constant rate", "",
                 {rate_field(&RenewalParams::rate), requests_field(&RenewalParams::requests), rescaled_field()}, false);
}

ArrivalsEntry gamma_arrivals() {
  return renewal("gamma", "gaps with a gamma distribution: burstier than Poisson's below burstiness 1, more regular above",
                 "vLLM's --burstiness",
                 {rate_field(&RenewalParams::rate),
                  {"burstiness", &RenewalParams::burstiness,
                   "shape of the gaps; their coefficient of variation is 1 / sqrt of it", config::between(1e-3, 1e6)},
                  requests_field(&RenewalParams::requests),
                  rescaled_field()},
                 false);
}

ArrivalsEntry deterministic_arrivals() {
  return renewal("deterministic", "equal gaps", "", {rate_field(&RenewalParams::rate), requests_field(&RenewalParams::requests)},
                 true);
}

}  // namespace specsim::arrivals
