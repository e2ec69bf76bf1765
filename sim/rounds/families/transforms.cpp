// Transforms that change the probabilities of a source.
#include "sim/foundation/base/wide.h"
#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

#include <utility>

namespace specsim::families {

namespace {

using Source = std::unique_ptr<Distribution>;

class Applied final : public Distribution {
 public:
  // Changes the source's probabilities in place.
  using Rule = std::function<void(std::span<double> distribution, const DistributionAddress&, const TargetDistributions&)>;
  Applied(Source source, bool random, Rule rule) : source_(std::move(source)), random_(random), rule_(std::move(rule)) {}
  void draw(const DistributionAddress& address, const TargetDistributions& target,
            std::span<double> distribution) const override {
    source_->draw(address, target, distribution);
    rule_(distribution, address, target);
  }
  [[nodiscard]] bool random() const override { return random_ || source_->random(); }

 private:
  Source source_;
  bool random_;
  Rule rule_;
};

template <class T>
struct OneValue {
  T value{};
};

template <class T>
config::Fields<OneValue<T>> value_field(const char* meaning, const config::Interval& interval) {
  return {{"value", &OneValue<T>::value, meaning, interval, config::required}};
}

// A transform with one parameter, the value.
template <class T>
TransformEntry by_value(config::PartInfo info, const config::Fields<OneValue<T>>& fields,
                        void (*apply)(std::span<double> distribution, T value)) {
  info.parameters = fields;
  return {std::move(info), [fields, apply](const config::Arguments& arguments, Source source, DistributionBuilder&) {
            return std::make_unique<Applied>(
                std::move(source), false,
                [apply, value = fields.read(arguments).value](std::span<double> distribution, const auto&, const auto&) {
                  apply(distribution, value);
                });
          }};
}

// The same with random numbers of its own for each context.
TransformEntry by_chance(config::PartInfo info, const config::Fields<OneValue<double>>& fields,
                         void (*apply)(std::span<double> distribution, double value, rng::Stream& random)) {
  info.parameters = fields;
  return {std::move(info), [fields, apply](const config::Arguments& arguments, Source source, DistributionBuilder& builder) {
            return std::make_unique<Applied>(
                std::move(source), true,
                [apply, value = fields.read(arguments).value, stream = builder.next_stream()](
                    std::span<double> distribution, const DistributionAddress& address, const auto&) {
                  rng::Stream random(address.key, rng::Purpose::distribution, stream, address.context);
                  apply(distribution, value, random);
                });
          }};
}

// (1 - weight) distribution + weight other.
void mix(std::span<double> distribution, std::span<const double> other, double weight) {
  for (std::size_t x = 0; x < distribution.size(); ++x) distribution[x] += weight * (other[x] - distribution[x]);
  math::normalise(distribution);
}

constexpr const char* kKept =
    "Distribution: source / kept mass on the tokens kept. From the target: alpha = the target's mass on them.";

}  // namespace

TransformEntry temperature_transform() {
  return by_value(
      {"temperature",
       "the same logits divided by a temperature",
       "",
       {},
       "Distribution: proportional to source^(1 / value). No closed form of the overlap in general; 1 at value 1."},
      value_field<double>("below 1 sharpens, above 1 flattens; limits: one-hot and uniform", config::between(1e-3, 1e6)),
      math::apply_temperature);
}

TransformEntry top_k_transform() {
  return by_value({"top_k", "the k likeliest tokens, renormalised", "Fan et al., arXiv 1805.04833", {}, kKept},
                  value_field<int>("number of tokens kept; ties: the lower token is kept", config::between(1, kMaxVocab)),
                  math::keep_top_k);
}

TransformEntry top_p_transform() {
  return by_value({"top_p",
                   "the shortest run of likeliest tokens that reaches a mass, renormalised",
                   "Holtzman et al., arXiv 1904.09751",
                   {},
                   kKept},
                  value_field<double>("the mass to reach; the token that reaches it is kept", config::above(0, 1)),
                  math::keep_top_p);
}

TransformEntry min_p_transform() {
  return by_value({"min_p",
                   "tokens with at least a share of the likeliest one's probability, renormalised",
                   "Nguyen et al., arXiv 2407.01082",
                   {},
                   kKept},
                  value_field<double>("the share", config::between(0, 1)), math::keep_min_p);
}

TransformEntry reduced_vocab_transform() {
  return by_value<std::size_t>(
      {"reduced_vocab",
       "a draft that knows only the lowest token ids",
       "Zhao et al., FR-Spec, arXiv 2502.14856",
       {},
       "Distribution: source restricted to ids below value, renormalised; the source must have mass there. From the target: "
       "alpha = the target's mass there."},
      value_field<std::size_t>("number of known tokens: ids below it (in a zipf distribution the most frequent ones)",
                               config::between(1, kMaxVocab)),
      [](std::span<double> distribution, std::size_t known) {
        for (std::size_t x = known; x < distribution.size(); ++x) distribution[x] = 0.0;
        math::normalise(distribution);
      });
}

TransformEntry permute_transform() {
  return by_chance(
      {"permute",
       "shuffles the probabilities of a random part of the tokens",
       "",
       {},
       "Distribution: the source with the ranks of the chosen tokens permuted at random, fresh for each context: a draft that "
       "confuses tokens."},
      value_field<double>("probability that a token is among those that are permuted", config::between(0, 1)),
      [](std::span<double> distribution, double value, rng::Stream& random) {
        std::vector<std::size_t> chosen;
        for (std::size_t x = 0; x < distribution.size(); ++x)
          if (rng::to_unit(random()) < value) chosen.push_back(x);
        for (std::size_t i = chosen.size(); i > 1; --i) {  // Fisher and Yates
          const auto j = static_cast<std::size_t>(scale_bits(random(), i));
          std::swap(distribution[chosen[i - 1]], distribution[chosen[j]]);
        }
      });
}

TransformEntry argmax_agreement_transform() {
  return by_chance({"argmax_agreement",
                    "one-hot distributions whose argmaxes agree at a given rate: a draft at temperature 0",
                    "",
                    {},
                    "Distribution: a point mass on the source's argmax with probability value, else on another token, uniformly; "
                    "fresh for each context. alpha is value on average where the target is one-hot."},
                   value_field<double>("the rate", config::between(0, 1)),
                   [](std::span<double> distribution, double value, rng::Stream& random) {
                     Token token = math::argmax(distribution);
                     const bool agrees = rng::to_unit(random()) < value;
                     const auto other = static_cast<Token>(scale_bits(random(), distribution.size() - 1));
                     if (!agrees) token = other < token ? other : other + 1;
                     math::point_mass(distribution, token);
                   });
}

TransformEntry interpolate_transform() {
  static const auto fields = value_field<double>("0: the source, 1: the target", config::between(0, 1));
  return {{"interpolate", "moves a draft towards the target, as distillation does", "", fields,
           "Distribution: (1 - value) source + value target; drafts only. alpha = 1 - (1 - value)(1 - overlap(target, source))."},
          [](const config::Arguments& arguments, Source source, DistributionBuilder& builder) -> Source {
            if (!builder.is_draft()) {
              builder.diagnostics().add(arguments.where(), "transform interpolate is used in a target, allowed: in a draft");
              return nullptr;
            }
            return std::make_unique<Applied>(std::move(source), false,
                                             [value = fields.read(arguments).value](std::span<double> distribution, const auto&,
                                                                                    const TargetDistributions& target) {
                                               mix(distribution, target.model, value);
                                             });
          }};
}

TransformEntry mix_noise_transform() {
  struct P {
    double value = 0.0;
    config::Value noise;
  };
  static const config::Fields<P> fields = {
      {"value", &P::value, "the noise's weight", config::between(0, 1), config::required},
      {"noise", &P::noise, "the noise distribution", config::Default{"{family: uniform}"}},
  };
  return {{"mix_noise", "a mixture of the source with a noise distribution", "", fields,
           "Distribution: (1 - value) source + value noise. From the target: alpha = 1 - value (1 - overlap(target, noise))."},
          [](const config::Arguments& arguments, Source source, DistributionBuilder& builder) -> Source {
            const P params = fields.read(arguments);
            const std::shared_ptr<Distribution> noise = builder.build(params.noise, "noise");
            if (noise == nullptr) return nullptr;
            return std::make_unique<Applied>(
                std::move(source), noise->random(),
                [noise, weight = params.value](std::span<double> distribution, const DistributionAddress& address,
                                               const TargetDistributions& target) {
                  std::vector<double> other(distribution.size());
                  noise->draw(address, target, other);
                  mix(distribution, other, weight);
                });
          }};
}

}  // namespace specsim::families
