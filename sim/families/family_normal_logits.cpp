#include "sim/families/distribution.h"
#include "sim/math/simplex.h"

#include <boost/random/normal_distribution.hpp>

#include <algorithm>
#include <cmath>

namespace specsim::families {

namespace {

constexpr double kLargestSigma = 1000.0;  // of any context: logits of some thousands stay numbers

class NormalLogits final : public Distribution {
 public:
  NormalLogits(double sigma, double spread, std::uint32_t stream) : sigma_(sigma), spread_(spread), stream_(stream) {}
  void draw(const DistributionAddress& address, const TargetDistributions&, std::span<double> distribution) const override {
    rng::Stream random(address.key, rng::Purpose::distribution, stream_, address.context);
    const double sigma = sigma_of_context(random);
    boost::random::normal_distribution<double> normal(0.0, sigma);
    for (double& logit : distribution) logit = normal(random);
    math::softmax(distribution);
  }
  [[nodiscard]] bool random() const override { return true; }

 private:
  double sigma_of_context(rng::Stream& random) const {
    if (spread_ == 0.0) return sigma_;
    boost::random::normal_distribution<double> standard(0.0, spread_);
    return std::min(sigma_ * std::exp(standard(random)), kLargestSigma);
  }

  double sigma_;
  double spread_;
  std::uint32_t stream_;
};

}  // namespace

FamilyEntry normal_logits_family() {
  return {
      {"normal_logits",
       "softmax of independent normal logits",
       "",
       {{"sigma",
         config::Type::number,
         {},
         "standard deviation of the logits",
         config::Interval{0, kLargestSigma, true, false},
         {}},
        {"spread",
         config::Type::number,
         "0",
         "standard deviation over contexts of the logarithm of sigma: some contexts leave no choice, others a wide one",
         config::between(0, 10),
         {}}},
       "Distribution: softmax(sigma * exp(spread * N(0, 1)) * N(0, 1)), the second factor drawn once for a context, all fresh "
       "for each context. For large vocabularies the likeliest tokens hold a log-normal share."},
      [](const config::Arguments& arguments, DistributionBuilder& builder) {
        return std::make_unique<NormalLogits>(arguments.number("sigma"), arguments.number("spread"), builder.next_stream());
      }};
}

}  // namespace specsim::families
