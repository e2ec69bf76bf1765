#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

namespace specsim::families {

namespace {

class TemperatureTransform final : public Distribution {
 public:
  TemperatureTransform(std::unique_ptr<Distribution> source, double value) : source_(std::move(source)), value_(value) {}
  void draw(const DistributionAddress& address, const TargetDistributions& target,
            std::span<double> distribution) const override {
    source_->draw(address, target, distribution);
    math::apply_temperature(distribution, value_);
  }
  [[nodiscard]] bool random() const override { return source_->random(); }

 private:
  std::unique_ptr<Distribution> source_;
  double value_;
};

}  // namespace

TransformEntry temperature_transform() {
  struct P {
    double value = 0.0;
  };
  static const config::Fields<P> fields = {
      {"value", &P::value, "below 1 sharpens, above 1 flattens; limits: one-hot and uniform", config::between(1e-3, 1e6),
       config::required},
  };
  return {{"temperature", "the same logits divided by a temperature", "", fields,
           "Distribution: proportional to source^(1 / value). No closed form of the overlap in general; 1 at value 1."},
          [](const config::Arguments& arguments, std::unique_ptr<Distribution> source, DistributionBuilder&) {
            return std::make_unique<TemperatureTransform>(std::move(source), fields.read(arguments).value);
          }};
}

}  // namespace specsim::families
