#include "sim/foundation/rng/address.h"
#include "sim/serving/arrivals/arrivals.h"

#include <boost/random/exponential_distribution.hpp>

#include <fmt/format.h>

#include <numeric>
#include <utility>

namespace specsim::arrivals {

namespace {

class MarkovModulated final : public ArrivalProcess {
 public:
  MarkovModulated(std::size_t requests, std::vector<double> rates, std::vector<double> holding)
      : requests_(requests), rates_(std::move(rates)), holding_(std::move(holding)) {}
  [[nodiscard]] std::size_t requests() const override { return requests_; }
  void fill(RequestTrace& workload, rng::Key key) const override {
    rng::Stream random_bits(key, rng::Purpose::start, 2, 0);
    const auto exponential = [&](double mean) {
      return boost::random::exponential_distribution<double>(1.0 / mean)(random_bits);
    };
    std::vector<double> gaps;
    std::size_t state = 0;
    double left = exponential(holding_[state]);
    double gap = 0.0;
    while (gaps.size() < requests_) {
      const double next = rates_[state] > 0.0 ? exponential(1.0 / rates_[state]) : left + 1.0;
      if (next < left) {
        gaps.push_back(gap + next);
        gap = 0.0;
        left -= next;
        continue;
      }
      gap += left;
      state = (state + 1) % rates_.size();
      left = exponential(holding_[state]);
    }
    fill_from_gaps(workload, gaps);
  }
  // All states' rates in proportion.
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_rate(double rate) const override {
    double sent = 0.0;
    double time = 0.0;
    for (std::size_t i = 0; i < rates_.size(); ++i) {
      sent += rates_[i] * holding_[i];
      time += holding_[i];
    }
    std::vector<double> rates = rates_;
    for (double& one : rates) one *= rate * time / sent;
    return std::make_unique<MarkovModulated>(requests_, std::move(rates), holding_);
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_requests(std::size_t requests) const override {
    return std::make_unique<MarkovModulated>(requests, rates_, holding_);
  }

 private:
  std::size_t requests_;
  std::vector<double> rates_;
  std::vector<double> holding_;
};

}  // namespace

ArrivalsEntry markov_modulated_arrivals() {
  return {{"markov_modulated",
           "a Poisson process whose rate goes round several levels, each held for an exponential time",
           "",
           {{"rates", config::Type::number_list, {}, "requests a second at each level", config::between(0, 1e9), {}},
            {"holding_s", config::Type::number_list, {}, "mean seconds at each level", config::between(1e-6, 1e9), {}},
            requests_parameter()},
           ""},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) -> std::unique_ptr<ArrivalProcess> {
            const std::vector<double>& rates = arguments.numbers("rates");
            if (rates.empty() || rates.size() != arguments.numbers("holding_s").size() ||
                std::accumulate(rates.begin(), rates.end(), 0.0) <= 0.0) {
              diagnostics.add(arguments.where("rates"),
                              fmt::format("{} rates and {} holding_s, allowed: as many of both, and one rate above 0",
                                          rates.size(), arguments.numbers("holding_s").size()));
              return nullptr;
            }
            return std::make_unique<MarkovModulated>(static_cast<std::size_t>(arguments.integer("requests")), rates,
                                                     arguments.numbers("holding_s"));
          }};
}

}  // namespace specsim::arrivals
