#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

#include <cmath>

namespace specsim::families {

namespace {

class GeometricDistribution final : public Distribution {
 public:
  explicit GeometricDistribution(double ratio) : ratio_(ratio) {}
  void draw(const DistributionAddress&, const TargetDistributions&, std::span<double> distribution) const override {
    for (std::size_t x = 0; x < distribution.size(); ++x) distribution[x] = std::pow(ratio_, static_cast<double>(x));
    math::normalise(distribution);
  }

 private:
  double ratio_;
};

}  // namespace

FamilyEntry geometric_family() {
  struct P {
    double ratio = 0.0;
  };
  static const config::Fields<P> fields = {
      {"ratio", &P::ratio, "ratio of neighbouring probabilities", config::above(0, 1), config::required},
  };
  return {{"geometric", "each token is less likely than the one before by a constant ratio", "", fields,
           "Distribution: proportional to ratio^token; ratio 1 is uniform."},
          [](const config::Arguments& arguments, DistributionBuilder&) {
            return std::make_unique<GeometricDistribution>(fields.read(arguments).ratio);
          }};
}

}  // namespace specsim::families
