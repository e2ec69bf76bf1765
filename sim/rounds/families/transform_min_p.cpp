#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

namespace specsim::families {

namespace {

class MinPTransform final : public Distribution {
 public:
  MinPTransform(std::unique_ptr<Distribution> source, double value) : source_(std::move(source)), value_(value) {}
  void draw(const DistributionAddress& address, const TargetDistributions& target,
            std::span<double> distribution) const override {
    source_->draw(address, target, distribution);
    math::keep_min_p(distribution, value_);
  }
  [[nodiscard]] bool random() const override { return source_->random(); }

 private:
  std::unique_ptr<Distribution> source_;
  double value_;
};

}  // namespace

TransformEntry min_p_transform() {
  struct P {
    double value = 0.0;
  };
  static const config::Fields<P> fields = {
      {"value", &P::value, "the share", config::between(0, 1), config::required},
  };
  return {{"min_p", "tokens with at least a share of the likeliest one's probability, renormalised",
           "Nguyen et al., arXiv 2407.01082", fields,
           "Distribution: source / kept mass on the tokens kept. From the target: alpha = the target's mass on them."},
          [](const config::Arguments& arguments, std::unique_ptr<Distribution> source, DistributionBuilder&) {
            return std::make_unique<MinPTransform>(std::move(source), fields.read(arguments).value);
          }};
}

}  // namespace specsim::families
