#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

namespace specsim::families {

namespace {

class TopPTransform final : public Distribution {
 public:
  TopPTransform(std::unique_ptr<Distribution> source, double value) : source_(std::move(source)), value_(value) {}
  void draw(const DistributionAddress& address, const TargetDistributions& target,
            std::span<double> distribution) const override {
    source_->draw(address, target, distribution);
    math::keep_top_p(distribution, value_);
  }
  [[nodiscard]] bool random() const override { return source_->random(); }

 private:
  std::unique_ptr<Distribution> source_;
  double value_;
};

}  // namespace

TransformEntry top_p_transform() {
  struct P {
    double value = 0.0;
  };
  static const config::Fields<P> fields = {
      {"value", &P::value, "the mass to reach; the token that reaches it is kept", config::above(0, 1), config::required},
  };
  return {{"top_p", "the shortest run of likeliest tokens that reaches a mass, renormalised", "Holtzman et al., arXiv 1904.09751",
           fields, "Distribution: source / kept mass on the tokens kept. From the target: alpha = the target's mass on them."},
          [](const config::Arguments& arguments, std::unique_ptr<Distribution> source, DistributionBuilder&) {
            return std::make_unique<TopPTransform>(std::move(source), fields.read(arguments).value);
          }};
}

}  // namespace specsim::families
