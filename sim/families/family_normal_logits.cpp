#include "sim/families/distribution.h"
#include "sim/math/simplex.h"

#include <boost/random/normal_distribution.hpp>

namespace specsim::families {

namespace {

class NormalLogits final : public Distribution {
 public:
  NormalLogits(double sigma, std::uint32_t stream) : sigma_(sigma), stream_(stream) {}
  void draw(const DistributionAddress& address, const TargetDistributions&, std::span<double> distribution) const override {
    rng::Stream random(address.key, rng::Purpose::distribution, stream_, address.context);
    boost::random::normal_distribution<double> normal(0.0, sigma_);
    for (double& logit : distribution) logit = normal(random);
    math::softmax(distribution);
  }
  [[nodiscard]] bool random() const override { return true; }

 private:
  double sigma_;
  std::uint32_t stream_;
};

}  // namespace

FamilyEntry normal_logits_family() {
  return {{"normal_logits",
           "softmax of independent normal logits",
           "",
           {{"sigma", config::Type::number, {}, "standard deviation of the logits", config::Interval{0, 1000, true, false}, {}}},
           "Distribution: softmax(sigma * N(0, 1)), fresh for each context. For large vocabularies the likeliest tokens hold a "
           "log-normal share."},
          [](const config::Arguments& arguments, DistributionBuilder& builder) {
            return std::make_unique<NormalLogits>(arguments.number("sigma"), builder.next_stream());
          }};
}

}  // namespace specsim::families
