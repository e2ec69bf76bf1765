// Lengths that are drawn for each request.
#include "sim/serving/arrivals/lengths.h"

#include <boost/random/normal_distribution.hpp>
#include <boost/random/uniform_01.hpp>
#include <boost/random/uniform_int_distribution.hpp>

#include <algorithm>
#include <cmath>

namespace specsim::arrivals {

namespace {

class UniformLength final : public LengthDistribution {
 public:
  UniformLength(std::uint32_t from, std::uint32_t to) : from_(from), to_(to) {}
  std::uint32_t draw(std::uint64_t /*request*/, rng::Stream& random_bits) const override {
    return boost::random::uniform_int_distribution<std::uint32_t>(from_, to_)(random_bits);
  }

 private:
  std::uint32_t from_;
  std::uint32_t to_;
};

class LognormalLength final : public LengthDistribution {
 public:
  LognormalLength(double mean, double cv, double most)
      : sigma_(std::sqrt(std::log1p(cv * cv))), mu_(std::log(mean) - 0.5 * sigma_ * sigma_), most_(most) {}
  std::uint32_t draw(std::uint64_t /*request*/, rng::Stream& random_bits) const override {
    const double tokens = std::exp(boost::random::normal_distribution<double>(mu_, sigma_)(random_bits));
    return static_cast<std::uint32_t>(std::clamp(std::round(tokens), 1.0, most_));
  }

 private:
  double sigma_;
  double mu_;
  double most_;
};

class GeometricLength final : public LengthDistribution {
 public:
  explicit GeometricLength(double mean) : log_stay_(mean > 1.0 ? std::log1p(-1.0 / mean) : 0.0) {}
  std::uint32_t draw(std::uint64_t /*request*/, rng::Stream& random_bits) const override {
    if (log_stay_ == 0.0) return 1;
    const double u = boost::random::uniform_01<double>()(random_bits);
    return static_cast<std::uint32_t>(std::min(1.0 + std::floor(std::log1p(-u) / log_stay_), kMostTokens));
  }

 private:
  double log_stay_;  // logarithm of the probability that another token follows
};

}  // namespace

LengthsEntry uniform_lengths() {
  struct P {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
  };
  static const config::Fields<P> fields = {
      {"from", &P::from, "minimum number of tokens", config::between(1, kMostTokens), config::required},
      {"to", &P::to, "maximum number of tokens", config::between(1, kMostTokens), config::required},
  };
  return {{"uniform", "every whole number of tokens from one to another with the same probability", "", fields, ""},
          from_arguments("lengths uniform",
                         [](const config::Arguments& arguments, Diagnostics& diagnostics) -> std::unique_ptr<LengthDistribution> {
                           const P params = fields.read(arguments);
                           if (params.to < params.from) {
                             diagnostics.add(arguments.where("to"), "to is less than from, allowed: from or more");
                             return nullptr;
                           }
                           return std::make_unique<UniformLength>(params.from, params.to);
                         })};
}

LengthsEntry lognormal_lengths() {
  struct P {
    double mean = 0.0;
    double cv = 0.0;
    double most = 1e8;
  };
  static const config::Fields<P> fields = {
      {"mean", &P::mean, "mean number of tokens, before rounding and the limit", config::between(1, kMostTokens),
       config::required},
      {"cv", &P::cv, "coefficient of variation: standard deviation over mean", config::between(0, 100), config::required},
      {"most", &P::most, "maximum number of tokens; longer ones are cut", config::between(1, kMostTokens), config::whole},
  };
  return {{"lognormal", "the logarithm is normal, rounded to whole tokens", "", fields, ""},
          from_arguments("lengths lognormal", [](const config::Arguments& arguments, Diagnostics&) {
            const P params = fields.read(arguments);
            return std::make_unique<LognormalLength>(params.mean, params.cv, params.most);
          })};
}

LengthsEntry geometric_lengths() {
  struct P {
    double mean = 0.0;
  };
  static const config::Fields<P> fields = {
      {"mean", &P::mean, "mean number of tokens", config::between(1, kMostTokens), config::required},
  };
  return {{"geometric", "every token is the last one with the same probability", "", fields, ""},
          from_arguments("lengths geometric", [](const config::Arguments& arguments, Diagnostics&) {
            return std::make_unique<GeometricLength>(fields.read(arguments).mean);
          })};
}

}  // namespace specsim::arrivals
