#include "sim/serving/arrivals/arrivals.h"

namespace specsim::arrivals {

namespace {

class Batch final : public ArrivalProcess {
 public:
  struct Params {
    std::size_t requests = 1000;
  };
  explicit Batch(const Params& params) : params_(params) {}
  [[nodiscard]] std::size_t requests() const override { return params_.requests; }
  void fill(RequestTrace& workload, rng::Key /*key*/) const override { workload.requests.resize(params_.requests); }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_requests(std::size_t requests) const override {
    return std::make_unique<Batch>(Params{requests});
  }

 private:
  Params params_;
};

}  // namespace

ArrivalsEntry batch_arrivals() {
  using P = Batch::Params;
  static const config::Fields<P> fields = {requests_field(&P::requests)};
  return {{"batch", "a job: all requests at the start", "rollouts of reinforcement learning, offline evaluation", fields,
           "The run ends when the last request has its answer. duration_s is the makespan."},
          [](const config::Arguments& arguments, Diagnostics&) { return std::make_unique<Batch>(fields.read(arguments)); }};
}

}  // namespace specsim::arrivals
