#include "sim/families/law.h"
#include "sim/math/simplex.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::families {

namespace {

constexpr double kSumTolerance = 1e-9;

class ExplicitLaw final : public Law {
 public:
  explicit ExplicitLaw(std::vector<double> probabilities) : law_(std::move(probabilities)) { math::normalise(law_); }
  void draw(const LawAddress&, const TargetLaws&, std::span<double> law) const override {
    std::copy(law_.begin(), law_.end(), law.begin());
  }

 private:
  std::vector<double> law_;
};

}  // namespace

FamilyEntry explicit_family() {
  return {{"explicit",
           "the probabilities as listed",
           "",
           {{"probabilities",
             config::Type::number_list,
             {},
             "one for each token, summing to 1 within 1e-9; zeros are legal",
             config::between(0, 1),
             {}}},
           "Law: as listed."},
          [](const config::Arguments& arguments, LawBuilder& builder) -> std::unique_ptr<Law> {
            const std::vector<double>& list = arguments.numbers("probabilities");
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
            return std::make_unique<ExplicitLaw>(list);
          }};
}

}  // namespace specsim::families
