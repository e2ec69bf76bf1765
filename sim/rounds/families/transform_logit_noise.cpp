#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/logit_noise.h"
#include "sim/rounds/families/scale.h"

#include <boost/random/normal_distribution.hpp>

#include <cmath>
#include <limits>

namespace specsim::families {

namespace {

class LogitNoiseTransform final : public Distribution {
 public:
  LogitNoiseTransform(std::unique_ptr<Distribution> source, double value, double spread, bool of_draft, std::uint32_t stream)
      : source_(std::move(source)), value_(value), spread_(spread), of_draft_(of_draft), stream_(stream) {}
  void draw(const DistributionAddress& address, const TargetDistributions& target,
            std::span<double> distribution) const override {
    source_->draw(address, target, distribution);
    rng::Stream random(address.key, rng::Purpose::distribution, stream_, address.context);
    boost::random::normal_distribution<double> normal(0.0, scale_of_context(value_, spread_, address.deviate(of_draft_), random));
    for (double& mass : distribution) {
      const double noise = normal(random);  // drawn for every token, so that a token's noise does not depend on the others
      mass = mass > 0.0 ? std::log(mass) + noise : -std::numeric_limits<double>::infinity();
    }
    math::softmax(distribution);
  }
  [[nodiscard]] bool random() const override { return true; }

 private:
  std::unique_ptr<Distribution> source_;
  double value_;
  double spread_;
  bool of_draft_;
  std::uint32_t stream_;
};

}  // namespace

std::unique_ptr<Distribution> logit_noise(std::unique_ptr<Distribution> source, double value, double spread, bool of_draft,
                                          std::uint32_t stream) {
  return std::make_unique<LogitNoiseTransform>(std::move(source), value, spread, of_draft, stream);
}

TransformEntry logit_noise_transform() {
  struct P {
    double value = 0.0;
    double spread = 0.0;
  };
  static const config::Fields<P> fields = {
      {"value", &P::value, "standard deviation of the noise", config::between(0, kLargestScale), config::required},
      {"spread", &P::spread,
       "standard deviation over contexts of the logarithm of value: the draft is right in some contexts and lost in others; by "
       "published acceptance 0.7 for a model of the target's family, 1 for an EAGLE head, 1.4 for a draft of 68M or Medusa's "
       "heads",
       config::between(0, 10)},
  };
  return {{"logit_noise", "independent normal noise on the source's logits", "", fields,
           "Distribution: softmax(log source + value * exp(spread * N(0, 1)) * N(0, 1)), the second factor drawn once for a "
           "context, all fresh for each context; tokens of probability 0 stay there."},
          [](const config::Arguments& arguments, std::unique_ptr<Distribution> source, DistributionBuilder& builder) {
            const P params = fields.read(arguments);
            return logit_noise(std::move(source), params.value, params.spread, builder.is_draft(), builder.next_stream());
          }};
}

}  // namespace specsim::families
