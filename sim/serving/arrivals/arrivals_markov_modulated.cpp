#include "sim/foundation/rng/address.h"
#include "sim/serving/arrivals/arrivals.h"

#include <boost/random/exponential_distribution.hpp>
#include <boost/random/gamma_distribution.hpp>
#include <boost/random/uniform_01.hpp>

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <utility>

namespace specsim::arrivals {

namespace {

// Switches between levels that are drawn one by one: between two requests, and in all. Beyond, those that nothing is sent in are
// drawn together.
constexpr std::size_t kMostSwitches = 100'000;
constexpr std::size_t kMostSwitchesInAll = 100'000'000;

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
    double sent = 0.0;         // seconds until the last of `gaps`
    std::size_t switches = 0;  // of levels since then
    std::size_t all_switches = 0;
    while (gaps.size() < requests_ && sent <= kLongestRun) {
      const double next = rates_[state] > 0.0 ? exponential(1.0 / rates_[state]) : left + 1.0;
      if (next < left) {
        gaps.push_back(gap + next);
        sent += gaps.back();
        gap = 0.0;
        left -= next;
        switches = 0;
        continue;
      }
      gap += left;
      state = (state + 1) % rates_.size();
      if (++switches > kMostSwitches || ++all_switches > kMostSwitchesInAll) gap += skip_to_next(state, random_bits);
      const bool skipped = switches > kMostSwitches || all_switches > kMostSwitchesInAll;
      left = exponential(holding_[state]);
      if (!skipped) continue;
      gaps.push_back(gap);
      sent += gap;
      gap = 0.0;
      switches = 0;
    }
    gaps.resize(requests_, 0.0);  // a run so long is refused, whatever comes behind
    fill_from_gaps(workload, gaps);
  }
  // The time from the beginning of a stay at level `state` to the next request, and the level that it is sent at, all stays that
  // nothing is sent in drawn together. A stay at level i of mean h and rate r sends nothing with probability 1 / (1 + r h), and
  // its time until the first request or its end is exponential of mean h / (1 + r h) either way; so are whole rounds of levels a
  // geometric number, and their times sums of so many.
  double skip_to_next(std::size_t& state, rng::Stream& random_bits) const {
    const auto uniform = [&] { return boost::random::uniform_01<double>()(random_bits); };
    double log_empty = 0.0;  // of the probability that a round sends nothing
    for (std::size_t i = 0; i < rates_.size(); ++i) log_empty -= std::log1p(rates_[i] * holding_[i]);
    const double rounds = std::floor(std::log1p(-uniform()) / log_empty);
    double time = 0.0;
    const auto stays = [&](std::size_t level, double count) {
      if (count > 0.0)
        time += boost::random::gamma_distribution<double>(count,
                                                          holding_[level] / (1.0 + rates_[level] * holding_[level]))(random_bits);
    };
    for (std::size_t i = 0; i < rates_.size(); ++i) stays(i, rounds);
    // The round that sends: level by level, given that one of those from here on does.
    for (double log_rest = log_empty;; state = (state + 1) % rates_.size()) {
      stays(state, 1.0);
      const double log_own = -std::log1p(rates_[state] * holding_[state]);
      if (uniform() * std::expm1(log_rest) > std::expm1(log_own)) return time;
      log_rest -= log_own;
    }
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
