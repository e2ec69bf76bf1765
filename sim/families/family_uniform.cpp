#include "sim/families/law.h"

#include <algorithm>

namespace specsim::families {

namespace {

class UniformLaw final : public Law {
 public:
  void draw(const LawAddress&, const TargetLaws&, std::span<double> law) const override {
    std::fill(law.begin(), law.end(), 1.0 / static_cast<double>(law.size()));
  }
};

}  // namespace

FamilyEntry uniform_family() {
  return {{"uniform", "every token equally likely", "", {}, "Law: 1 / vocab."},
          [](const config::Arguments&, LawBuilder&) { return std::make_unique<UniformLaw>(); }};
}

}  // namespace specsim::families
