#include "sim/foundation/base/wide.h"
#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

#include <utility>

namespace specsim::families {

namespace {

class PermuteTransform final : public Distribution {
 public:
  PermuteTransform(std::unique_ptr<Distribution> source, double value, std::uint32_t stream)
      : source_(std::move(source)), value_(value), stream_(stream) {}
  void draw(const DistributionAddress& address, const TargetDistributions& target,
            std::span<double> distribution) const override {
    source_->draw(address, target, distribution);
    rng::Stream random(address.key, rng::Purpose::distribution, stream_, address.context);
    std::vector<std::size_t> chosen;
    for (std::size_t x = 0; x < distribution.size(); ++x)
      if (rng::to_unit(random()) < value_) chosen.push_back(x);
    for (std::size_t i = chosen.size(); i > 1; --i) {  // Fisher and Yates
      const auto j = static_cast<std::size_t>(scale_bits(random(), i));
      std::swap(distribution[chosen[i - 1]], distribution[chosen[j]]);
    }
  }
  [[nodiscard]] bool random() const override { return true; }

 private:
  std::unique_ptr<Distribution> source_;
  double value_;
  std::uint32_t stream_;
};

}  // namespace

TransformEntry permute_transform() {
  struct P {
    double value = 0.0;
  };
  static const config::Fields<P> fields = {
      {"value", &P::value, "probability that a token is among those that are permuted", config::between(0, 1), config::required},
  };
  return {
      {"permute", "shuffles the probabilities of a random part of the tokens", "", fields,
       "Distribution: the source with the ranks of the chosen tokens permuted at random, fresh for each context: a draft that "
       "confuses tokens."},
      [](const config::Arguments& arguments, std::unique_ptr<Distribution> source, DistributionBuilder& builder) {
        return std::make_unique<PermuteTransform>(std::move(source), fields.read(arguments).value, builder.next_stream());
      }};
}

}  // namespace specsim::families
