#include "sim/serving/arrivals/lengths.h"

#include <boost/random/normal_distribution.hpp>

#include <algorithm>
#include <cmath>

namespace specsim::arrivals {

namespace {

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

}  // namespace

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
          [](const config::Value& value, const config::PartInfo& info,
             Diagnostics& diagnostics) -> std::unique_ptr<LengthDistribution> {
            const std::size_t before = diagnostics.list().size();
            const config::Arguments arguments =
                config::read_arguments(value, info.parameters, {}, "lengths lognormal", diagnostics);
            if (diagnostics.list().size() != before) return nullptr;
            const P params = fields.read(arguments);
            return std::make_unique<LognormalLength>(params.mean, params.cv, params.most);
          }};
}

}  // namespace specsim::arrivals
