#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

namespace specsim::families {

namespace {

class TopKTransform final : public Distribution {
 public:
  TopKTransform(std::unique_ptr<Distribution> source, int value) : source_(std::move(source)), value_(value) {}
  void draw(const DistributionAddress& address, const TargetDistributions& target,
            std::span<double> distribution) const override {
    source_->draw(address, target, distribution);
    math::keep_top_k(distribution, value_);
  }
  [[nodiscard]] bool random() const override { return source_->random(); }

 private:
  std::unique_ptr<Distribution> source_;
  int value_;
};

}  // namespace

TransformEntry top_k_transform() {
  struct P {
    int value = 0;
  };
  static const config::Fields<P> fields = {
      {"value", &P::value, "number of tokens kept; ties: the lower token is kept", config::between(1, kMaxVocab),
       config::required},
  };
  return {{"top_k", "the k likeliest tokens, renormalised", "Fan et al., arXiv 1805.04833", fields,
           "Distribution: source / kept mass on the tokens kept. From the target: alpha = the target's mass on them."},
          [](const config::Arguments& arguments, std::unique_ptr<Distribution> source, DistributionBuilder&) {
            return std::make_unique<TopKTransform>(std::move(source), fields.read(arguments).value);
          }};
}

}  // namespace specsim::families
