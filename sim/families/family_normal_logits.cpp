#include "sim/families/law.h"
#include "sim/math/simplex.h"

#include <boost/random/normal_distribution.hpp>

namespace specsim::families {

namespace {

class NormalLogits final : public Law {
 public:
  NormalLogits(double sigma, std::uint32_t stream) : sigma_(sigma), stream_(stream) {}
  void draw(const LawAddress& address, const TargetLaws&, std::span<double> law) const override {
    rng::Stream random(address.key, rng::Purpose::law, stream_, address.context);
    boost::random::normal_distribution<double> normal(0.0, sigma_);
    for (double& logit : law) logit = normal(random);
    math::softmax(law);
  }
  [[nodiscard]] bool random() const override { return true; }

 private:
  double sigma_;
  std::uint32_t stream_;
};

}  // namespace

FamilyEntry normal_logits_family() {
  return {{"normal_logits",
           "softmax of independent normal logits",
           "",
           {{"sigma", config::Type::number, {}, "standard deviation of the logits", config::Interval{0, 1000, true, false}, {}}},
           "Law: softmax(sigma * N(0, 1)), fresh for each context. For large vocabularies the likeliest tokens hold a log-normal "
           "share."},
          [](const config::Arguments& arguments, LawBuilder& builder) {
            return std::make_unique<NormalLogits>(arguments.number("sigma"), builder.next_stream());
          }};
}

}  // namespace specsim::families
