#include "sim/families/law.h"
#include "sim/math/simplex.h"

#include <cmath>

namespace specsim::families {

namespace {

class GeometricLaw final : public Law {
 public:
  explicit GeometricLaw(double ratio) : ratio_(ratio) {}
  void draw(const LawAddress&, const TargetLaws&, std::span<double> law) const override {
    for (std::size_t x = 0; x < law.size(); ++x) law[x] = std::pow(ratio_, static_cast<double>(x));
    math::normalise(law);
  }

 private:
  double ratio_;
};

}  // namespace

FamilyEntry geometric_family() {
  return {
      {"geometric",
       "each token less likely than the one before by a constant ratio",
       "",
       {{"ratio", config::Type::number, {}, "of neighbouring probabilities", config::Interval{0, 1, true, false}, {}}},
       "Law: proportional to ratio^token; ratio 1 is uniform."},
      [](const config::Arguments& arguments, LawBuilder&) { return std::make_unique<GeometricLaw>(arguments.number("ratio")); }};
}

}  // namespace specsim::families
