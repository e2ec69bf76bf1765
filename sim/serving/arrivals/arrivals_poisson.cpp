#include "sim/serving/arrivals/arrivals.h"

namespace specsim::arrivals {

namespace {

class Poisson final : public ArrivalProcess {
 public:
  Poisson(std::size_t requests, double rate, bool rescaled) : requests_(requests), rate_(rate), rescaled_(rescaled) {}
  [[nodiscard]] std::size_t requests() const override { return requests_; }
  void fill(RequestTrace& workload, rng::Key key) const override {
    fill_from_gaps(workload, gamma_gaps(requests_, rate_, 1.0, rescaled_, key));
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_rate(double rate) const override {
    return std::make_unique<Poisson>(requests_, rate, rescaled_);
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_requests(std::size_t requests) const override {
    return std::make_unique<Poisson>(requests, rate_, rescaled_);
  }

 private:
  std::size_t requests_;
  double rate_;
  bool rescaled_;
};

}  // namespace

ArrivalsEntry poisson_arrivals() {
  return {{"poisson",
           "independent of each other, at a constant rate",
           "",
           {rate_parameter(),
            requests_parameter(),
            {"rescaled",
             config::Type::boolean,
             "false",
             "the last request is due at requests / rate, as vllm bench serve has it",
             {},
             {}}},
           ""},
          [](const config::Arguments& arguments, Diagnostics&) {
            return std::make_unique<Poisson>(static_cast<std::size_t>(arguments.integer("requests")), arguments.number("rate"),
                                             arguments.boolean("rescaled"));
          }};
}

}  // namespace specsim::arrivals
