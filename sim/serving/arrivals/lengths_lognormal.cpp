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
  return {
      {"lognormal",
       "the logarithm is normal, rounded to whole tokens",
       "",
       {{"mean",
         config::Type::number,
         {},
         "mean number of tokens, before rounding and the limit",
         config::between(1, kMostTokens),
         {}},
        {"cv", config::Type::number, {}, "coefficient of variation: standard deviation over mean", config::between(0, 100), {}},
        {"most", config::Type::integer, "100000000", "most tokens; longer ones are cut", config::between(1, kMostTokens), {}}},
       ""},
      [](const config::Value& value, const config::PartInfo& info,
         Diagnostics& diagnostics) -> std::unique_ptr<LengthDistribution> {
        const std::size_t before = diagnostics.list().size();
        const config::Arguments arguments = config::read_arguments(value, info.parameters, {}, "lengths lognormal", diagnostics);
        if (diagnostics.list().size() != before) return nullptr;
        return std::make_unique<LognormalLength>(arguments.number("mean"), arguments.number("cv"),
                                                 static_cast<double>(arguments.integer("most")));
      }};
}

}  // namespace specsim::arrivals
