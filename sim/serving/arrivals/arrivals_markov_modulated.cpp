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

// Switches between levels that are drawn one by one: between two requests, and in all. Beyond these limits, stays without a
// request are drawn together.
constexpr std::size_t kMostSwitches = 100'000;
constexpr std::size_t kMostSwitchesInAll = 100'000'000;

class MarkovModulated final : public ArrivalProcess {
 public:
  struct Params {
    std::vector<double> rates;
    std::vector<double> holding_s;
    std::size_t requests = 1000;
  };
  explicit MarkovModulated(Params params) : params_(std::move(params)) {}
  [[nodiscard]] std::size_t requests() const override { return params_.requests; }
  void fill(RequestTrace& workload, rng::Key key) const override {
    rng::Stream random_bits(key, rng::Purpose::start, 2, 0);
    const auto exponential = [&](double mean) {
      return boost::random::exponential_distribution<double>(1.0 / mean)(random_bits);
    };
    std::vector<double> gaps;
    std::size_t state = 0;
    double left = exponential(params_.holding_s[state]);
    double gap = 0.0;
    double sent = 0.0;         // seconds until the last of `gaps`
    std::size_t switches = 0;  // of levels since then
    std::size_t all_switches = 0;
    while (gaps.size() < params_.requests && sent <= kLongestRun && !workload.stopped()) {
      const double next = params_.rates[state] > 0.0 ? exponential(1.0 / params_.rates[state]) : left + 1.0;
      if (next < left) {
        gaps.push_back(gap + next);
        sent += gaps.back();
        gap = 0.0;
        left -= next;
        switches = 0;
        continue;
      }
      gap += left;
      state = (state + 1) % params_.rates.size();
      if (++switches > kMostSwitches || ++all_switches > kMostSwitchesInAll) gap += skip_to_next(state, random_bits);
      const bool skipped = switches > kMostSwitches || all_switches > kMostSwitchesInAll;
      left = exponential(params_.holding_s[state]);
      if (!skipped) continue;
      gaps.push_back(gap);
      sent += gap;
      gap = 0.0;
      switches = 0;
    }
    gaps.resize(params_.requests, 0.0);  // a longer run is refused, so later requests do not matter
    fill_from_gaps(workload, gaps);
  }
  // The time from the beginning of a stay at level `state` to the next request, and the level at which it is sent. Draws all
  // stays without a request together. A stay at level i of mean h and rate r sends nothing with probability 1 / (1 + r h); its
  // time until the first request or its end is exponential of mean h / (1 + r h) in both cases. The number of whole rounds of
  // levels without a request is therefore geometric, and their times are sums of such exponentials.
  double skip_to_next(std::size_t& state, rng::Stream& random_bits) const {
    const auto uniform = [&] { return boost::random::uniform_01<double>()(random_bits); };
    double log_empty = 0.0;  // of the probability that a round sends nothing
    for (std::size_t i = 0; i < params_.rates.size(); ++i) log_empty -= std::log1p(params_.rates[i] * params_.holding_s[i]);
    const double rounds = std::floor(std::log1p(-uniform()) / log_empty);
    double time = 0.0;
    const auto stays = [&](std::size_t level, double count) {
      if (count > 0.0)
        time += boost::random::gamma_distribution<double>(
            count, params_.holding_s[level] / (1.0 + params_.rates[level] * params_.holding_s[level]))(random_bits);
    };
    for (std::size_t i = 0; i < params_.rates.size(); ++i) stays(i, rounds);
    // The round that sends: level by level, given that one of the remaining levels sends.
    for (double log_rest = log_empty;; state = (state + 1) % params_.rates.size()) {
      stays(state, 1.0);
      const double log_own = -std::log1p(params_.rates[state] * params_.holding_s[state]);
      if (uniform() * std::expm1(log_rest) > std::expm1(log_own)) return time;
      log_rest -= log_own;
    }
  }
  // Scales all states' rates in proportion.
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_rate(double rate) const override {
    double sent = 0.0;
    double time = 0.0;
    for (std::size_t i = 0; i < params_.rates.size(); ++i) {
      sent += params_.rates[i] * params_.holding_s[i];
      time += params_.holding_s[i];
    }
    Params other = params_;
    for (double& one : other.rates) one *= rate * time / sent;
    return std::make_unique<MarkovModulated>(std::move(other));
  }
  [[nodiscard]] std::unique_ptr<ArrivalProcess> with_requests(std::size_t requests) const override {
    Params other = params_;
    other.requests = requests;
    return std::make_unique<MarkovModulated>(std::move(other));
  }

 private:
  Params params_;
};

}  // namespace

ArrivalsEntry markov_modulated_arrivals() {
  using P = MarkovModulated::Params;
  static const config::Fields<P> fields = {
      {"rates", &P::rates, "requests per second at each level", config::between(0, 1e9), config::required},
      {"holding_s", &P::holding_s, "mean seconds at each level", config::between(1e-6, 1e9), config::required},
      requests_field(&P::requests),
  };
  return {
      {"markov_modulated", "a Poisson process whose rate cycles through several levels, each held for an exponential time", "",
       fields, ""},
      [](const config::Arguments& arguments, Diagnostics& diagnostics) -> std::unique_ptr<ArrivalProcess> {
        const P params = fields.read(arguments);
        const std::vector<double>& rates = params.rates;
        if (rates.empty() || rates.size() != params.holding_s.size() || std::accumulate(rates.begin(), rates.end(), 0.0) <= 0.0) {
          diagnostics.add(arguments.where("rates"),
                          fmt::format("{} rates and {} holding_s, allowed: equally many of both, and one rate above 0",
                                      rates.size(), params.holding_s.size()));
          return nullptr;
        }
        return std::make_unique<MarkovModulated>(params);
      }};
}

}  // namespace specsim::arrivals
