#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

#include <boost/random/uniform_01.hpp>

namespace specsim::families {

namespace {

class UniformLogits final : public Distribution {
 public:
  UniformLogits(double range, std::uint32_t stream) : range_(range), stream_(stream) {}
  void draw(const DistributionAddress& address, const TargetDistributions&, std::span<double> distribution) const override {
    rng::Stream random(address.key, rng::Purpose::distribution, stream_, address.context);
    boost::random::uniform_01<double> uniform;
    for (double& logit : distribution) logit = range_ * (uniform(random) - 0.5);
    math::softmax(distribution);
  }
  [[nodiscard]] bool random() const override { return true; }

 private:
  double range_;
  std::uint32_t stream_;
};

}  // namespace

FamilyEntry uniform_logits_family() {
  struct P {
    double range = 0.0;
  };
  static const config::Fields<P> fields = {
      {"range", &P::range, "the logits lie within range / 2 of 0", config::above(0, 1000), config::required},
  };
  return {{"uniform_logits", "softmax of independent uniform logits", "", fields,
           "Distribution: softmax(range * (U - 0.5)), fresh for each context; range 3 is the note's example (claim N1)."},
          [](const config::Arguments& arguments, DistributionBuilder& builder) {
            return std::make_unique<UniformLogits>(fields.read(arguments).range, builder.next_stream());
          }};
}

}  // namespace specsim::families
