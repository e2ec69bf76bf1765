#include "sim/families/law.h"
#include "sim/math/simplex.h"

namespace specsim::families {

namespace {

class ReducedVocabTransform final : public Law {
 public:
  ReducedVocabTransform(std::unique_ptr<Law> source, std::size_t value) : source_(std::move(source)), value_(value) {}
  void draw(const LawAddress& address, const TargetLaws& target, std::span<double> law) const override {
    source_->draw(address, target, law);
    for (std::size_t x = value_; x < law.size(); ++x) law[x] = 0.0;
    math::normalise(law);
  }
  [[nodiscard]] bool random() const override { return source_->random(); }

 private:
  std::unique_ptr<Law> source_;
  std::size_t value_;
};

}  // namespace

TransformEntry reduced_vocab_transform() {
  return {{"reduced_vocab",
           "a draft that knows only the lowest token ids",
           "Zhao et al., FR-Spec, arXiv 2502.14856",
           {{"value",
             config::Type::integer,
             {},
             "tokens known: ids below it (in a zipf law the most frequent ones)",
             config::between(1, kMaxVocab),
             {}}},
           "Law: source restricted to ids below value, renormalised; the source must have mass there. From the target: alpha = "
           "the target's mass there."},
          [](const config::Arguments& arguments, std::unique_ptr<Law> source, LawBuilder&) {
            return std::make_unique<ReducedVocabTransform>(std::move(source),
                                                           static_cast<std::size_t>(arguments.integer("value")));
          }};
}

}  // namespace specsim::families
