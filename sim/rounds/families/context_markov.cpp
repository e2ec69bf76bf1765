#include "sim/foundation/base/wide.h"
#include "sim/rounds/families/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace specsim::families {

namespace {

constexpr std::int64_t kMaxStates = 4096;

class MarkovProcess final : public ContextProcess {
 public:
  // hashed: the next state is a hash of state and token, or for a share `merges` of them of the state alone; else the last
  // `order` tokens written in base vocab.
  MarkovProcess(std::uint64_t vocab, std::uint64_t states, bool hashed, double merges)
      : vocab_(vocab), states_(states), hashed_(hashed), merges_(merges) {
    shape_.kind = ContextShape::Kind::markov;
    shape_.contexts = static_cast<int>(states);
  }
  [[nodiscard]] const ContextShape& shape() const override { return shape_; }
  void start(rng::Key, std::uint64_t, std::size_t count, std::uint32_t* context) const override {
    std::fill_n(context, count, 0U);
  }
  [[nodiscard]] bool moves() const override { return true; }
  void step(rng::Key, std::uint64_t, const std::uint32_t* lanes, std::size_t count, const std::uint32_t*, const Token* token,
            std::uint32_t* context) const override {
    for (std::size_t i = 0; i < count; ++i) context[lanes[i]] = next(context[lanes[i]], token[i]);
  }
  // Of the tokens since `before` only the newest is known; it follows those of `before`. A hashed state cannot be split.
  [[nodiscard]] std::uint32_t after_last(std::uint32_t before, std::uint32_t context) const override {
    return hashed_ ? context : next(before, static_cast<Token>(context % vocab_));
  }
  [[nodiscard]] std::uint32_t next(std::uint32_t context, Token token) const override {
    if (!hashed_) return static_cast<std::uint32_t>((context * vocab_ + token) % states_);
    const std::uint64_t own = std::uint64_t{context} << 32 | token;
    if (merges_ > 0.0 && static_cast<double>(mixed(own + kMergeSalt)) < merges_ * 0x1p64)
      return static_cast<std::uint32_t>(scale_bits(mixed((std::uint64_t{context} << 32) + kMergedSalt), states_));
    return static_cast<std::uint32_t>(scale_bits(mixed(own), states_));
  }

 private:
  static constexpr std::uint64_t kMergeSalt = 0x6D65726765000000;
  static constexpr std::uint64_t kMergedSalt = 0x6D65726765640000;
  // splitmix64 (Steele, Lea and Flood 2014).
  static std::uint64_t mixed(std::uint64_t x) {
    std::uint64_t h = x * 0x9E3779B97F4A7C15ULL;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
    return h ^ (h >> 31);
  }
  std::uint64_t vocab_;
  std::uint64_t states_;
  bool hashed_;
  double merges_;
  ContextShape shape_;
};

}  // namespace

ContextEntry markov_context() {
  struct P {
    int order = 1;
    std::optional<int> states;
    double merges = 0.0;
  };
  static const config::Fields<P> fields = {
      {"order", &P::order, "last tokens that a distribution depends on; vocab^order states, at most 4096",
       config::between(1, 12)},
      {"states", &P::states, "instead of order: number of states, chosen by a hash of state and token; for large vocabularies",
       config::between(1, kMaxStates)},
      {"merges", &P::merges,
       "with states: share of a state's tokens that lead to one and the same state, so that a sibling of the "
       "likeliest token may lead to the same state as the likeliest one",
       config::between(0, 1)},
  };
  return {
      {"markov", "the distributions depend on the tokens emitted so far", "", fields,
       "Every sequence starts in state 0 (as after token 0 repeated). Rounds of a sequence are correlated through the state; "
       "theory follows them exactly by matrices over the states, from the first round of a sequence on."},
      [](const config::Arguments& arguments, ContextBuilder& builder) {
        const P params = fields.read(arguments);
        ContextModel model;
        builder.add_pair(model);
        const auto vocab = static_cast<std::int64_t>(builder.vocab());
        std::int64_t states = 1;
        const bool hashed = arguments.has("states");
        if (hashed && arguments.given("order"))
          builder.diagnostics().add(arguments.where("order"), "order is given together with states, allowed: one of them");
        if (!hashed && params.merges > 0.0)
          builder.diagnostics().add(arguments.where("merges"),
                                    "merges is given without states, allowed: merges together with states: N");
        if (hashed) {
          states = *params.states;
        } else {
          for (std::int64_t i = 0; i < params.order && states <= kMaxStates; ++i) states *= vocab;
          if (states > kMaxStates) {
            builder.diagnostics().add(
                arguments.where("order"),
                fmt::format("order is {} at vocab {}, allowed: vocab^order of at most {} states, or states: N (hashed) instead",
                            params.order, vocab, kMaxStates));
            return model;
          }
        }
        model.process = std::make_unique<MarkovProcess>(static_cast<std::uint64_t>(vocab), static_cast<std::uint64_t>(states),
                                                        hashed, params.merges);
        return model;
      }};
}

}  // namespace specsim::families
