#include "sim/serving/arrivals/arrivals.h"

namespace specsim::arrivals {

namespace {

class GammaArrivals final : public ArrivalProcess {
 public:
  GammaArrivals(std::size_t requests, double rate, double shape, bool rescaled)
      : requests_(requests), rate_(rate), shape_(shape), rescaled_(rescaled) {}
  [[nodiscard]] std::size_t requests() const override { return requests_; }
  void fill(RequestTrace& workload, rng::Key key) const override {
    fill_from_gaps(workload, gamma_gaps(requests_, rate_, shape_, rescaled_, key));
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_rate(double rate) const override {
    return std::make_unique<GammaArrivals>(requests_, rate, shape_, rescaled_);
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_requests(std::size_t requests) const override {
    return std::make_unique<GammaArrivals>(requests, rate_, shape_, rescaled_);
  }

 private:
  std::size_t requests_;
  double rate_;
  double shape_;
  bool rescaled_;
};

}  // namespace

ArrivalsEntry gamma_arrivals() {
  return {{"gamma",
           "gaps with a gamma distribution: burstier than Poisson's below burstiness 1, more regular above",
           "vLLM's --burstiness",
           {rate_parameter(),
            {"burstiness",
             config::Type::number,
             "1",
             "shape of the gaps; their coefficient of variation is 1 / sqrt of it",
             config::between(1e-3, 1e6),
             {}},
            requests_parameter(),
            {"rescaled",
             config::Type::boolean,
             "false",
             "the last request is due at requests / rate, as vllm bench serve has it",
             {},
             {}}},
           ""},
          [](const config::Arguments& arguments, Diagnostics&) {
            return std::make_unique<GammaArrivals>(static_cast<std::size_t>(arguments.integer("requests")),
                                                   arguments.number("rate"), arguments.number("burstiness"),
                                                   arguments.boolean("rescaled"));
          }};
}

}  // namespace specsim::arrivals
