#include "sim/rounds/families/distribution.h"

#include <algorithm>

namespace specsim::families {

namespace {

class UniformDistribution final : public Distribution {
 public:
  void draw(const DistributionAddress&, const TargetDistributions&, std::span<double> distribution) const override {
    std::fill(distribution.begin(), distribution.end(), 1.0 / static_cast<double>(distribution.size()));
  }
};

}  // namespace

FamilyEntry uniform_family() {
  return {{"uniform", "every token equally likely", "", {}, "Distribution: 1 / vocab."},
          [](const config::Arguments&, DistributionBuilder&) { return std::make_unique<UniformDistribution>(); }};
}

}  // namespace specsim::families
