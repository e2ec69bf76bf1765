#include "sim/foundation/base/bisect.h"
#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::families {

namespace {

enum class Shape { temperature, uniform_mix, disjoint_tail };

constexpr double kTolerance = 1e-12;

// A distribution with exactly the requested overlap with the target, on a named path away from the target.
class OverlapTransform final : public Distribution {
 public:
  OverlapTransform(double value, Shape shape, Location where) : value_(value), shape_(shape), where_(std::move(where)) {}

  void draw(const DistributionAddress&, const TargetDistributions& distributions, std::span<double> distribution) const override {
    const std::span<const double> target = distributions.verified;  // the distribution that alpha refers to
    const double lowest =
        shape_ == Shape::temperature ? along_temperature(target, distribution, 0.0) : mixed(target, distribution, 1.0);
    if (value_ < lowest - kTolerance)
      throw BadInput(where_,
                     fmt::format("value is {:.12g}, allowed: in [{:.12g}, 1], the range that shape {} reaches from this target",
                                 value_, lowest, name()));
    // The overlap falls steadily along both paths, from 1 at s = 1 (temperature) or at s = 0 (mixtures); for mixtures it is
    // linear.
    if (shape_ == Shape::temperature) {
      const auto is_below = [&](double s) { return along_temperature(target, distribution, s) < value_; };
      along_temperature(target, distribution, bisect(0.0, 1.0, is_below, kToTheLastBit).high);
    } else {
      const double weight = lowest < 1.0 ? std::clamp((1.0 - value_) / (1.0 - lowest), 0.0, 1.0) : 0.0;
      mixed(target, distribution, weight);
    }
    const double reached = math::overlap(target, distribution);
    if (std::abs(reached - value_) > kTolerance)
      throw BadInput(
          where_, fmt::format("value is {:.15g}; the nearest overlap that shape {} reaches from this target is {:.15g}", value_,
                              name(), reached));
  }

 private:
  // target^s, normalised: s = 1 / temperature from 1 (the target) to 0 (uniform on the target's support).
  static double along_temperature(std::span<const double> target, std::span<double> distribution, double s) {
    const double highest = std::log(*std::max_element(target.begin(), target.end()));
    for (std::size_t x = 0; x < distribution.size(); ++x)
      distribution[x] = target[x] > 0.0 ? std::exp(s * (std::log(target[x]) - highest)) : 0.0;
    math::normalise(distribution);
    return math::overlap(target, distribution);
  }

  double mixed(std::span<const double> target, std::span<double> distribution, double weight) const {
    const auto least = static_cast<std::size_t>(std::min_element(target.rbegin(), target.rend()).base() - target.begin() -
                                                1);  // ties: the highest token
    const double share = 1.0 / static_cast<double>(distribution.size());
    for (std::size_t x = 0; x < distribution.size(); ++x) {
      const double noise = shape_ == Shape::uniform_mix ? share : (x == least ? 1.0 : 0.0);
      distribution[x] = (1.0 - weight) * target[x] + weight * noise;
    }
    math::normalise(distribution);
    return math::overlap(target, distribution);
  }

  [[nodiscard]] const char* name() const {
    switch (shape_) {
      case Shape::temperature:
        return "temperature";
      case Shape::uniform_mix:
        return "uniform_mix";
      case Shape::disjoint_tail:
        return "disjoint_tail";
    }
    return "";
  }

  double value_;
  Shape shape_;
  Location where_;
};

}  // namespace

TransformEntry overlap_transform() {
  struct P {
    double value = 0.0;
    Shape shape = Shape::temperature;
  };
  static const config::Fields<P> fields = {
      {"value", &P::value, "the overlap, reached to 1e-12", config::between(0, 1), config::required},
      {"shape", &P::shape, "the path; block and tree rules depend on it",
       config::one_of<Shape>(
           {{"temperature", Shape::temperature}, {"uniform_mix", Shape::uniform_mix}, {"disjoint_tail", Shape::disjoint_tail}})},
  };
  return {
      {"overlap", "a draft with exactly the requested alpha, along a named path from the target", "", fields,
       "Distribution by shape. temperature: target^(1/T), normalised, T > 1 found by bisection. uniform_mix: (1 - w) target + w "
       "uniform. disjoint_tail: "
       "(1 - w) target + w on the target's least likely token. alpha = value by construction; a value that the path cannot "
       "reach is refused "
       "with the range. The target is the verified one, after its sampling settings; sampling settings of the draft "
       "are applied in addition and change alpha."},
      [](const config::Arguments& arguments, std::unique_ptr<Distribution> source,
         DistributionBuilder& builder) -> std::unique_ptr<Distribution> {
        const P params = fields.read(arguments);
        if (!builder.is_draft()) {
          builder.diagnostics().add(arguments.where(), "transform overlap is used in a target, allowed: in a draft");
          return nullptr;
        }
        if (!source->is_target()) {
          builder.diagnostics().add(arguments.where(),
                                    "transform overlap starts from a distribution other than the target, allowed: from: target");
          return nullptr;
        }
        return std::make_unique<OverlapTransform>(params.value, params.shape, arguments.where("value"));
      }};
}

}  // namespace specsim::families
