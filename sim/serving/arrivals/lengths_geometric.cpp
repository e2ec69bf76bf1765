#include "sim/serving/arrivals/lengths.h"

#include <boost/random/uniform_01.hpp>

#include <algorithm>
#include <cmath>

namespace specsim::arrivals {

namespace {

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

LengthsEntry geometric_lengths() {
  struct P {
    double mean = 0.0;
  };
  static const config::Fields<P> fields = {
      {"mean", &P::mean, "mean number of tokens", config::between(1, kMostTokens), config::required},
  };
  return {{"geometric", "every token is the last one with the same probability", "", fields, ""},
          [](const config::Value& value, const config::PartInfo& info,
             Diagnostics& diagnostics) -> std::unique_ptr<LengthDistribution> {
            const std::size_t before = diagnostics.list().size();
            const config::Arguments arguments =
                config::read_arguments(value, info.parameters, {}, "lengths geometric", diagnostics);
            if (diagnostics.list().size() != before) return nullptr;
            return std::make_unique<GeometricLength>(fields.read(arguments).mean);
          }};
}

}  // namespace specsim::arrivals
