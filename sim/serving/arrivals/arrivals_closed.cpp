#include "sim/serving/arrivals/arrivals.h"

#include <cmath>

namespace specsim::arrivals {

namespace {

class Closed final : public ArrivalProcess {
 public:
  Closed(std::size_t requests, std::uint32_t concurrency, double think_ms, double rate, double burstiness)
      : requests_(requests), concurrency_(concurrency), think_ms_(think_ms), rate_(rate), burstiness_(burstiness) {}
  [[nodiscard]] std::size_t requests() const override { return requests_; }
  void fill(RequestTrace& workload, rng::Key key) const override {
    if (rate_ > 0.0)
      fill_from_gaps(workload, gamma_gaps(requests_, rate_, burstiness_, true, key));
    else
      workload.requests.resize(requests_);
    workload.concurrency = concurrency_;
    workload.think = std::llround(1e-3 * kPicosecondsPerSecond * think_ms_);
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_concurrency(std::uint32_t concurrency) const override {
    return std::make_unique<Closed>(requests_, concurrency, think_ms_, rate_, burstiness_);
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_rate(double rate) const override {
    return rate_ > 0.0 ? std::make_unique<Closed>(requests_, concurrency_, think_ms_, rate, burstiness_) : nullptr;
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_requests(std::size_t requests) const override {
    return std::make_unique<Closed>(requests, concurrency_, think_ms_, rate_, burstiness_);
  }

 private:
  std::size_t requests_;
  std::uint32_t concurrency_;
  double think_ms_;
  double rate_;
  double burstiness_;
};

}  // namespace

ArrivalsEntry closed_arrivals() {
  return {{"closed",
           "so many clients, each sends its next request when the one before has ended",
           "vllm bench serve --max-concurrency",
           {{"concurrency", config::Type::integer, {}, "requests in flight at most", config::between(1, 1e7), {}},
            requests_parameter(),
            {"think_ms", config::Type::number, "0", "between an answer and the next request", config::between(0, 1e9), {}},
            {"rate",
             config::Type::number,
             "0",
             "requests become due at this rate as well (--request-rate); 0: all at once",
             config::between(0, 1e9),
             {}},
            {"burstiness",
             config::Type::number,
             "1",
             "shape of their gaps, rescaled as vllm bench serve has it",
             config::between(1e-3, 1e6),
             {}}},
           "What is due while as many are in flight waits in the client: TTFT counts from sending."},
          [](const config::Arguments& arguments, Diagnostics&) {
            return std::make_unique<Closed>(static_cast<std::size_t>(arguments.integer("requests")),
                                            static_cast<std::uint32_t>(arguments.integer("concurrency")),
                                            arguments.number("think_ms"), arguments.number("rate"),
                                            arguments.number("burstiness"));
          }};
}

}  // namespace specsim::arrivals
