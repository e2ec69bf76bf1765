#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::families {

namespace {

constexpr double kSumTolerance = 1e-9;

class ExplicitDistribution final : public Distribution {
 public:
  explicit ExplicitDistribution(std::vector<double> probabilities) : distribution_(std::move(probabilities)) {
    math::normalise(distribution_);
  }
  void draw(const DistributionAddress&, const TargetDistributions&, std::span<double> distribution) const override {
    std::copy(distribution_.begin(), distribution_.end(), distribution.begin());
  }

 private:
  std::vector<double> distribution_;
};

}  // namespace

FamilyEntry explicit_family() {
  struct P {
    std::vector<double> probabilities;
  };
  static const config::Fields<P> fields = {
      {"probabilities", &P::probabilities, "one for each token, summing to 1 within 1e-9; zeros are legal", config::between(0, 1),
       config::required},
  };
  return {{"explicit", "the probabilities as listed", "", fields, "Distribution: as listed.", "probabilities: [0.5, 0.3, 0.2]"},
          [](const config::Arguments& arguments, DistributionBuilder& builder) -> std::unique_ptr<Distribution> {
            const std::vector<double> list = fields.read(arguments).probabilities;
            const Location where = arguments.where("probabilities");
            if (list.size() != static_cast<std::size_t>(builder.vocab())) {
              builder.diagnostics().add(
                  where, fmt::format("probabilities has {} entries, allowed: {} (pair.vocab)", list.size(), builder.vocab()));
              return nullptr;
            }
            double sum = 0.0;
            for (const double p : list) sum += p;
            if (std::abs(sum - 1.0) > kSumTolerance) {
              builder.diagnostics().add(where, fmt::format("probabilities sum to {:.12g}, allowed: 1 within 1e-9", sum));
              return nullptr;
            }
            return std::make_unique<ExplicitDistribution>(list);
          }};
}

}  // namespace specsim::families
