#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

namespace specsim::families {

namespace {

class MixNoiseTransform final : public Distribution {
 public:
  MixNoiseTransform(std::unique_ptr<Distribution> source, std::unique_ptr<Distribution> noise, double value)
      : source_(std::move(source)), noise_(std::move(noise)), value_(value) {}
  void draw(const DistributionAddress& address, const TargetDistributions& target,
            std::span<double> distribution) const override {
    std::vector<double> noise(distribution.size());
    noise_->draw(address, target, noise);
    source_->draw(address, target, distribution);
    for (std::size_t x = 0; x < distribution.size(); ++x) distribution[x] += value_ * (noise[x] - distribution[x]);
    math::normalise(distribution);
  }
  [[nodiscard]] bool random() const override { return source_->random() || noise_->random(); }

 private:
  std::unique_ptr<Distribution> source_;
  std::unique_ptr<Distribution> noise_;
  double value_;
};

}  // namespace

TransformEntry mix_noise_transform() {
  struct P {
    double value = 0.0;
    config::Value noise;
  };
  static const config::Fields<P> fields = {
      {"value", &P::value, "the noise's weight", config::between(0, 1), config::required},
      {"noise", &P::noise, "the noise distribution", config::Default{"{family: uniform}"}},
  };
  return {{"mix_noise", "a mixture of the source with a noise distribution", "", fields,
           "Distribution: (1 - value) source + value noise. From the target: alpha = 1 - value (1 - overlap(target, noise))."},
          [](const config::Arguments& arguments, std::unique_ptr<Distribution> source,
             DistributionBuilder& builder) -> std::unique_ptr<Distribution> {
            const P params = fields.read(arguments);
            auto noise = builder.build(params.noise, "noise");
            if (noise == nullptr) return nullptr;
            return std::make_unique<MixNoiseTransform>(std::move(source), std::move(noise), params.value);
          }};
}

}  // namespace specsim::families
