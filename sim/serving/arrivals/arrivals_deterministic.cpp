#include "sim/serving/arrivals/arrivals.h"

namespace specsim::arrivals {

namespace {

class Regular final : public ArrivalProcess {
 public:
  Regular(std::size_t requests, double rate) : requests_(requests), rate_(rate) {}
  [[nodiscard]] std::size_t requests() const override { return requests_; }
  void fill(RequestTrace& workload, rng::Key /*key*/) const override {
    fill_from_gaps(workload, std::vector<double>(requests_, 1.0 / rate_));
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_rate(double rate) const override {
    return std::make_unique<Regular>(requests_, rate);
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_requests(std::size_t requests) const override {
    return std::make_unique<Regular>(requests, rate_);
  }

 private:
  std::size_t requests_;
  double rate_;
};

}  // namespace

ArrivalsEntry deterministic_arrivals() {
  return {{"deterministic", "equal gaps", "", {rate_parameter(), requests_parameter()}, ""},
          [](const config::Arguments& arguments, Diagnostics&) {
            return std::make_unique<Regular>(static_cast<std::size_t>(arguments.integer("requests")), arguments.number("rate"));
          }};
}

}  // namespace specsim::arrivals
