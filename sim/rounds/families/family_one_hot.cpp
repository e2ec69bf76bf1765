#include "sim/foundation/base/wide.h"
#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

namespace specsim::families {

namespace {

class OneHotDistribution final : public Distribution {
 public:
  OneHotDistribution(bool random, Token token, std::uint32_t stream) : random_(random), token_(token), stream_(stream) {}
  void draw(const DistributionAddress& address, const TargetDistributions&, std::span<double> distribution) const override {
    Token token = token_;
    if (random_) {
      rng::Stream random(address.key, rng::Purpose::distribution, stream_, address.context);
      token = static_cast<Token>(scale_bits(random(), distribution.size()));
    }
    math::point_mass(distribution, token);
  }
  [[nodiscard]] bool random() const override { return random_; }

 private:
  bool random_;
  Token token_;
  std::uint32_t stream_;
};

}  // namespace

FamilyEntry one_hot_family() {
  struct P {
    std::optional<int> token;
  };
  static const config::Fields<P> fields = {
      {"token", &P::token, "the token; default: a uniformly random one for each context", config::between(0, kMaxVocab - 1)},
  };
  return {{"one_hot", "all mass on one token, as a target at temperature 0 has", "", fields,
           "Distribution: a point mass. Two independent random ones agree with probability 1 / vocab."},
          [](const config::Arguments& arguments, DistributionBuilder& builder) -> std::unique_ptr<Distribution> {
            const P params = fields.read(arguments);
            if (!params.token) return std::make_unique<OneHotDistribution>(true, 0, builder.next_stream());
            if (*params.token >= builder.vocab()) {
              builder.diagnostics().add(arguments.where("token"),
                                        "token is " + std::to_string(*params.token) +
                                            ", allowed: below pair.vocab = " + std::to_string(builder.vocab()));
              return nullptr;
            }
            return std::make_unique<OneHotDistribution>(false, static_cast<Token>(*params.token), 0);
          }};
}

}  // namespace specsim::families
