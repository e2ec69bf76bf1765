#include "sim/families/law.h"
#include "sim/math/simplex.h"

namespace specsim::families {

namespace {

class TemperatureTransform final : public Law {
 public:
  TemperatureTransform(std::unique_ptr<Law> source, double value) : source_(std::move(source)), value_(value) {}
  void draw(const LawAddress& address, const TargetLaws& target, std::span<double> law) const override {
    source_->draw(address, target, law);
    math::apply_temperature(law, value_);
  }
  [[nodiscard]] bool random() const override { return source_->random(); }

 private:
  std::unique_ptr<Law> source_;
  double value_;
};

}  // namespace

TransformEntry temperature_transform() {
  return {{"temperature",
           "the same logits divided by a temperature",
           "",
           {{"value",
             config::Type::number,
             {},
             "below 1 sharpens, above 1 flattens; limits: one-hot and uniform",
             config::Interval{1e-3, 1e6},
             {}}},
           "Law: proportional to source^(1 / value). No closed form of the overlap in general; 1 at value 1."},
          [](const config::Arguments& arguments, std::unique_ptr<Law> source, LawBuilder&) {
            return std::make_unique<TemperatureTransform>(std::move(source), arguments.number("value"));
          }};
}

}  // namespace specsim::families
