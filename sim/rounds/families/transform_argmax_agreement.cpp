#include "sim/foundation/base/wide.h"
#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

namespace specsim::families {

namespace {

class ArgmaxAgreementTransform final : public Distribution {
 public:
  ArgmaxAgreementTransform(std::unique_ptr<Distribution> source, double value, std::uint32_t stream)
      : source_(std::move(source)), value_(value), stream_(stream) {}
  void draw(const DistributionAddress& address, const TargetDistributions& target,
            std::span<double> distribution) const override {
    source_->draw(address, target, distribution);
    rng::Stream random(address.key, rng::Purpose::distribution, stream_, address.context);
    Token token = math::argmax(distribution);
    const bool agrees = rng::to_unit(random()) < value_;
    const auto other = static_cast<Token>(scale_bits(random(), distribution.size() - 1));
    if (!agrees) token = other < token ? other : other + 1;
    math::point_mass(distribution, token);
  }
  [[nodiscard]] bool random() const override { return true; }

 private:
  std::unique_ptr<Distribution> source_;
  double value_;
  std::uint32_t stream_;
};

}  // namespace

TransformEntry argmax_agreement_transform() {
  struct P {
    double value = 0.0;
  };
  static const config::Fields<P> fields = {
      {"value", &P::value, "the rate", config::between(0, 1), config::required},
  };
  return {{"argmax_agreement", "one-hot distributions whose argmaxes agree at a given rate: a draft at temperature 0", "", fields,
           "Distribution: a point mass on the source's argmax with probability value, else on another token, uniformly; fresh "
           "for each context. alpha is value on average where the target is one-hot."},
          [](const config::Arguments& arguments, std::unique_ptr<Distribution> source, DistributionBuilder& builder) {
            return std::make_unique<ArgmaxAgreementTransform>(std::move(source), fields.read(arguments).value,
                                                              builder.next_stream());
          }};
}

}  // namespace specsim::families
