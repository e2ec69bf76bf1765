#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

#include <boost/random/gamma_distribution.hpp>
#include <boost/random/uniform_01.hpp>

#include <algorithm>
#include <cmath>

namespace specsim::families {

namespace {

class DirichletDistribution final : public Distribution {
 public:
  DirichletDistribution(double concentration, std::uint32_t stream) : concentration_(concentration), stream_(stream) {}
  void draw(const DistributionAddress& address, const TargetDistributions&, std::span<double> distribution) const override {
    // Gamma variates of small shape underflow; their logarithms do not: log G(a) = log G(a + 1) + log(U) / a.
    rng::Stream random(address.key, rng::Purpose::distribution, stream_, address.context);
    boost::random::gamma_distribution<double> gamma(concentration_ + 1.0);
    boost::random::uniform_01<double> uniform;
    for (double& mass : distribution) {
      const double u = 1.0 - uniform(random);
      mass = std::log(gamma(random)) + std::log(u) / concentration_;
    }
    math::softmax(distribution);
  }
  [[nodiscard]] bool random() const override { return true; }

 private:
  double concentration_;
  std::uint32_t stream_;
};

}  // namespace

FamilyEntry dirichlet_family() {
  struct P {
    double concentration = 0.0;
  };
  static const config::Fields<P> fields = {
      {"concentration", &P::concentration, "small: few tokens hold the mass; large: nearly uniform", config::between(1e-3, 1e6),
       config::required},
  };
  return {{"dirichlet", "a random point of the simplex, symmetric", "", fields,
           "Distribution: Dirichlet(concentration, ..., concentration), fresh for each context. Two independent ones at "
           "concentration 1 overlap by vocab / (2 vocab - 1) on average."},
          [](const config::Arguments& arguments, DistributionBuilder& builder) {
            return std::make_unique<DirichletDistribution>(fields.read(arguments).concentration, builder.next_stream());
          }};
}

}  // namespace specsim::families
