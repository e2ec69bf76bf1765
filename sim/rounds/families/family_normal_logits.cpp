#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"
#include "sim/rounds/families/scale.h"

#include <boost/random/normal_distribution.hpp>

namespace specsim::families {

namespace {

class NormalLogits final : public Distribution {
 public:
  NormalLogits(double sigma, double spread, bool of_draft, std::uint32_t stream)
      : sigma_(sigma), spread_(spread), of_draft_(of_draft), stream_(stream) {}
  void draw(const DistributionAddress& address, const TargetDistributions&, std::span<double> distribution) const override {
    rng::Stream random(address.key, rng::Purpose::distribution, stream_, address.context);
    boost::random::normal_distribution<double> normal(0.0, scale_of_context(sigma_, spread_, address.deviate(of_draft_), random));
    for (double& logit : distribution) logit = normal(random);
    math::softmax(distribution);
  }
  [[nodiscard]] bool random() const override { return true; }

 private:
  double sigma_;
  double spread_;
  bool of_draft_;
  std::uint32_t stream_;
};

}  // namespace

FamilyEntry normal_logits_family() {
  struct P {
    double sigma = 0.0;
    double spread = 0.0;
  };
  static const config::Fields<P> fields = {
      {"sigma", &P::sigma, "standard deviation of the logits", config::above(0, kLargestScale), config::required},
      {"spread", &P::spread,
       "standard deviation over contexts of the logarithm of sigma: some contexts have few plausible tokens, others many",
       config::between(0, 10)},
  };
  return {
      {"normal_logits", "softmax of independent normal logits", "", fields,
       "Distribution: softmax(sigma * exp(spread * N(0, 1)) * N(0, 1)), the second factor drawn once for a context, all fresh "
       "for each context. For large vocabularies the likeliest tokens hold a log-normal share."},
      [](const config::Arguments& arguments, DistributionBuilder& builder) {
        const P params = fields.read(arguments);
        return std::make_unique<NormalLogits>(params.sigma, params.spread, builder.is_draft(), builder.next_stream());
      }};
}

}  // namespace specsim::families
