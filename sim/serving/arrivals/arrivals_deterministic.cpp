#include "sim/serving/arrivals/arrivals.h"

namespace specsim::arrivals {

namespace {

class Regular final : public ArrivalProcess {
 public:
  struct Params {
    double rate = 1.0;
    std::size_t requests = 1000;
  };
  explicit Regular(const Params& params) : params_(params) {}
  [[nodiscard]] std::size_t requests() const override { return params_.requests; }
  void fill(RequestTrace& workload, rng::Key /*key*/) const override {
    fill_from_gaps(workload, std::vector<double>(params_.requests, 1.0 / params_.rate));
  }
  [[nodiscard]] DueTimes due_times(rng::Key /*key*/) const override {
    return sum_gaps([gap = 1.0 / params_.rate](std::uint64_t /*request*/) { return gap; });
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_rate(double rate) const override {
    Params other = params_;
    other.rate = rate;
    return std::make_unique<Regular>(other);
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_requests(std::size_t requests) const override {
    Params other = params_;
    other.requests = requests;
    return std::make_unique<Regular>(other);
  }

 private:
  Params params_;
};

}  // namespace

ArrivalsEntry deterministic_arrivals() {
  using P = Regular::Params;
  static const config::Fields<P> fields = {
      rate_field(&P::rate),
      requests_field(&P::requests),
  };
  return {{"deterministic", "equal gaps", "", fields, ""},
          [](const config::Arguments& arguments, Diagnostics&) { return std::make_unique<Regular>(fields.read(arguments)); }};
}

}  // namespace specsim::arrivals
