#include "sim/families/law.h"
#include "sim/math/simplex.h"

namespace specsim::families {

namespace {

class TopKTransform final : public Law {
 public:
  TopKTransform(std::unique_ptr<Law> source, int value) : source_(std::move(source)), value_(value) {}
  void draw(const LawAddress& address, const TargetLaws& target, std::span<double> law) const override {
    source_->draw(address, target, law);
    math::keep_top_k(law, value_);
  }
  [[nodiscard]] bool random() const override { return source_->random(); }

 private:
  std::unique_ptr<Law> source_;
  int value_;
};

}  // namespace

TransformEntry top_k_transform() {
  return {{"top_k",
           "the k likeliest tokens, renormalised",
           "Fan et al., arXiv 1805.04833",
           {{"value", config::Type::integer, {}, "tokens kept; ties: the lower token stays", config::between(1, kMaxVocab), {}}},
           "Law: source / kept mass on the tokens kept. From the target: alpha = the target's mass on them."},
          [](const config::Arguments& arguments, std::unique_ptr<Law> source, LawBuilder&) {
            return std::make_unique<TopKTransform>(std::move(source), static_cast<int>(arguments.integer("value")));
          }};
}

}  // namespace specsim::families
