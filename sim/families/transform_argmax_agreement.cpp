#include "sim/base/wide.h"
#include "sim/families/law.h"
#include "sim/math/simplex.h"

namespace specsim::families {

namespace {

class ArgmaxAgreementTransform final : public Law {
 public:
  ArgmaxAgreementTransform(std::unique_ptr<Law> source, double value, std::uint32_t stream)
      : source_(std::move(source)), value_(value), stream_(stream) {}
  void draw(const LawAddress& address, const TargetLaws& target, std::span<double> law) const override {
    source_->draw(address, target, law);
    rng::Stream random(address.key, rng::Purpose::law, stream_, address.context);
    Token token = math::argmax(law);
    const bool agrees = rng::to_unit(random()) < value_;
    const auto other = static_cast<Token>(scale_word(random(), law.size() - 1));
    if (!agrees) token = other < token ? other : other + 1;
    math::point_mass(law, token);
  }
  [[nodiscard]] bool random() const override { return true; }

 private:
  std::unique_ptr<Law> source_;
  double value_;
  std::uint32_t stream_;
};

}  // namespace

TransformEntry argmax_agreement_transform() {
  return {{"argmax_agreement",
           "one-hot laws whose argmaxes agree at a given rate: a draft at temperature 0",
           "",
           {{"value", config::Type::number, {}, "the rate", config::between(0, 1), {}}},
           "Law: a point mass on the source's argmax with probability value, else on another token, uniformly; fresh for each "
           "context. "
           "alpha is value on average where the target is one-hot."},
          [](const config::Arguments& arguments, std::unique_ptr<Law> source, LawBuilder& builder) {
            return std::make_unique<ArgmaxAgreementTransform>(std::move(source), arguments.number("value"),
                                                              builder.next_stream());
          }};
}

}  // namespace specsim::families
