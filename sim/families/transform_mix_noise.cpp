#include "sim/families/law.h"
#include "sim/math/simplex.h"

namespace specsim::families {

namespace {

class MixNoiseTransform final : public Law {
 public:
  MixNoiseTransform(std::unique_ptr<Law> source, std::unique_ptr<Law> noise, double value)
      : source_(std::move(source)), noise_(std::move(noise)), value_(value) {}
  void draw(const LawAddress& address, const TargetLaws& target, std::span<double> law) const override {
    std::vector<double> noise(law.size());
    noise_->draw(address, target, noise);
    source_->draw(address, target, law);
    for (std::size_t x = 0; x < law.size(); ++x) law[x] += value_ * (noise[x] - law[x]);
    math::normalise(law);
  }
  [[nodiscard]] bool random() const override { return source_->random() || noise_->random(); }

 private:
  std::unique_ptr<Law> source_;
  std::unique_ptr<Law> noise_;
  double value_;
};

}  // namespace

TransformEntry mix_noise_transform() {
  return {{"mix_noise",
           "a mixture of the source with a noise law",
           "",
           {{"value", config::Type::number, {}, "the noise's weight", config::between(0, 1), {}},
            {"noise", config::Type::value, "{family: uniform}", "the noise law", {}, {}}},
           "Law: (1 - value) source + value noise. From the target: alpha = 1 - value (1 - overlap(target, noise))."},
          [](const config::Arguments& arguments, std::unique_ptr<Law> source, LawBuilder& builder) -> std::unique_ptr<Law> {
            auto noise = builder.build(arguments.value("noise"), "noise");
            if (noise == nullptr) return nullptr;
            return std::make_unique<MixNoiseTransform>(std::move(source), std::move(noise), arguments.number("value"));
          }};
}

}  // namespace specsim::families
