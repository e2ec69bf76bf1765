#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

namespace specsim::families {

namespace {

class ReducedVocabTransform final : public Distribution {
 public:
  ReducedVocabTransform(std::unique_ptr<Distribution> source, std::size_t value) : source_(std::move(source)), value_(value) {}
  void draw(const DistributionAddress& address, const TargetDistributions& target,
            std::span<double> distribution) const override {
    source_->draw(address, target, distribution);
    for (std::size_t x = value_; x < distribution.size(); ++x) distribution[x] = 0.0;
    math::normalise(distribution);
  }
  [[nodiscard]] bool random() const override { return source_->random(); }

 private:
  std::unique_ptr<Distribution> source_;
  std::size_t value_;
};

}  // namespace

TransformEntry reduced_vocab_transform() {
  struct P {
    std::size_t value = 0;
  };
  static const config::Fields<P> fields = {
      {"value", &P::value, "number of known tokens: ids below it (in a zipf distribution the most frequent ones)",
       config::between(1, kMaxVocab), config::required},
  };
  return {{"reduced_vocab", "a draft that knows only the lowest token ids", "Zhao et al., FR-Spec, arXiv 2502.14856", fields,
           "Distribution: source restricted to ids below value, renormalised; the source must have mass there. From the target: "
           "alpha = the target's mass there."},
          [](const config::Arguments& arguments, std::unique_ptr<Distribution> source, DistributionBuilder&) {
            return std::make_unique<ReducedVocabTransform>(std::move(source), fields.read(arguments).value);
          }};
}

}  // namespace specsim::families
