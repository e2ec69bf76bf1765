#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

#include <cmath>

namespace specsim::families {

namespace {

class ZipfDistribution final : public Distribution {
 public:
  ZipfDistribution(double exponent, double offset) : exponent_(exponent), offset_(offset) {}
  void draw(const DistributionAddress&, const TargetDistributions&, std::span<double> distribution) const override {
    for (std::size_t x = 0; x < distribution.size(); ++x)
      distribution[x] = std::exp(-exponent_ * (std::log(static_cast<double>(x) + 1.0 + offset_) - std::log(1.0 + offset_)));
    math::normalise(distribution);
  }

 private:
  double exponent_;
  double offset_;
};

}  // namespace

FamilyEntry zipf_family() {
  struct P {
    double exponent = 0.0;
    double offset = 0.0;
  };
  static const config::Fields<P> fields = {
      {"exponent", &P::exponent, "how fast probabilities fall with rank", config::between(0, 100), config::required},
      {"offset", &P::offset, "flattens the head", config::between(0, 1e9)},
  };
  return {{"zipf", "rank-frequency distribution of text (Zipf-Mandelbrot): token 0 is the likeliest", "Mandelbrot 1953", fields,
           "Distribution: proportional to (rank + offset)^-exponent, rank = token + 1."},
          [](const config::Arguments& arguments, DistributionBuilder&) {
            const P params = fields.read(arguments);
            return std::make_unique<ZipfDistribution>(params.exponent, params.offset);
          }};
}

}  // namespace specsim::families
