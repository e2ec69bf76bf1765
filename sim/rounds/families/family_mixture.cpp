#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

#include <fmt/format.h>

namespace specsim::families {

namespace {

class MixtureDistribution final : public Distribution {
 public:
  MixtureDistribution(std::vector<std::unique_ptr<Distribution>> components, std::vector<double> weights)
      : components_(std::move(components)), weights_(std::move(weights)) {
    math::normalise(weights_);
  }
  void draw(const DistributionAddress& address, const TargetDistributions& target,
            std::span<double> distribution) const override {
    std::vector<double> sum(distribution.size(), 0.0);
    for (std::size_t i = 0; i < components_.size(); ++i) {
      components_[i]->draw(address, target, distribution);
      for (std::size_t x = 0; x < distribution.size(); ++x) sum[x] += weights_[i] * distribution[x];
    }
    std::copy(sum.begin(), sum.end(), distribution.begin());
  }
  [[nodiscard]] bool random() const override {
    for (const auto& component : components_)
      if (component->random()) return true;
    return false;
  }

 private:
  std::vector<std::unique_ptr<Distribution>> components_;
  std::vector<double> weights_;
};

}  // namespace

FamilyEntry mixture_family() {
  struct P {
    config::Value components;
    std::vector<double> weights;
  };
  static const config::Fields<P> fields = {
      {"components", &P::components, "the distributions", config::as_list, config::required},
      {"weights", &P::weights, "one for each component, any positive sum", config::between(0, 1e100), config::required},
  };
  return {{"mixture", "a weighted mean of other distributions", "", fields,
           "Distribution: sum of weight * component, weights normalised.",
           "components: [{family: uniform}, {family: geometric, ratio: 0.4}], weights: [3, 1]"},
          [](const config::Arguments& arguments, DistributionBuilder& builder) -> std::unique_ptr<Distribution> {
            const P params = fields.read(arguments);
            const config::Value& list = params.components;
            const std::vector<double>& weights = params.weights;
            double sum = 0.0;
            for (const double w : weights) sum += w;
            if (list.items.empty() || list.items.size() != weights.size() || !(sum > 0.0)) {
              builder.diagnostics().add(
                  arguments.where("weights"),
                  fmt::format("weights has {} entries of sum {:.12g}, allowed: {}, one for each component, of a positive sum",
                              weights.size(), sum, list.items.size()));
              return nullptr;
            }
            std::vector<std::unique_ptr<Distribution>> components;
            for (std::size_t i = 0; i < list.items.size(); ++i) {
              auto component = builder.build(list.items[i], fmt::format("components[{}]", i));
              if (component != nullptr) components.push_back(std::move(component));
            }
            if (components.size() != weights.size()) return nullptr;
            return std::make_unique<MixtureDistribution>(std::move(components), weights);
          }};
}

}  // namespace specsim::families
