#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

namespace specsim::families {

namespace {

class InterpolateTransform final : public Distribution {
 public:
  InterpolateTransform(std::unique_ptr<Distribution> source, double value) : source_(std::move(source)), value_(value) {}
  void draw(const DistributionAddress& address, const TargetDistributions& target,
            std::span<double> distribution) const override {
    source_->draw(address, target, distribution);
    for (std::size_t x = 0; x < distribution.size(); ++x) distribution[x] += value_ * (target.model[x] - distribution[x]);
    math::normalise(distribution);
  }
  [[nodiscard]] bool random() const override { return source_->random(); }

 private:
  std::unique_ptr<Distribution> source_;
  double value_;
};

}  // namespace

TransformEntry interpolate_transform() {
  struct P {
    double value = 0.0;
  };
  static const config::Fields<P> fields = {
      {"value", &P::value, "0: the source, 1: the target", config::between(0, 1), config::required},
  };
  return {{"interpolate", "moves a draft towards the target, as distillation does", "", fields,
           "Distribution: (1 - value) source + value target; drafts only. alpha = 1 - (1 - value)(1 - overlap(target, source))."},
          [](const config::Arguments& arguments, std::unique_ptr<Distribution> source,
             DistributionBuilder& builder) -> std::unique_ptr<Distribution> {
            if (!builder.is_draft()) {
              builder.diagnostics().add(arguments.where(), "transform interpolate is used in a target, allowed: in a draft");
              return nullptr;
            }
            return std::make_unique<InterpolateTransform>(std::move(source), fields.read(arguments).value);
          }};
}

}  // namespace specsim::families
