#include "sim/families/law.h"
#include "sim/math/simplex.h"

namespace specsim::families {

namespace {

class MinPTransform final : public Law {
 public:
  MinPTransform(std::unique_ptr<Law> source, double value) : source_(std::move(source)), value_(value) {}
  void draw(const LawAddress& address, const TargetLaws& target, std::span<double> law) const override {
    source_->draw(address, target, law);
    math::keep_min_p(law, value_);
  }
  [[nodiscard]] bool random() const override { return source_->random(); }

 private:
  std::unique_ptr<Law> source_;
  double value_;
};

}  // namespace

TransformEntry min_p_transform() {
  return {{"min_p",
           "tokens with at least a share of the likeliest one's probability, renormalised",
           "Nguyen et al., arXiv 2407.01082",
           {{"value", config::Type::number, {}, "the share", config::between(0, 1), {}}},
           "Law: source / kept mass on the tokens kept. From the target: alpha = the target's mass on them."},
          [](const config::Arguments& arguments, std::unique_ptr<Law> source, LawBuilder&) {
            return std::make_unique<MinPTransform>(std::move(source), arguments.number("value"));
          }};
}

}  // namespace specsim::families
