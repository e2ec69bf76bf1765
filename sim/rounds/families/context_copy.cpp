#include "sim/foundation/base/wide.h"
#include "sim/foundation/rng/address.h"
#include "sim/rounds/families/context.h"

#include <algorithm>
#include <utility>

namespace specsim::families {

namespace {

constexpr std::int64_t kMaxPrompt = 4095;

// State 0: free text. State i + 1: the text is copying the prompt, whose token i comes next.
class CopyProcess final : public ContextProcess {
 public:
  // entry[x]: the state after token x in free text.
  CopyProcess(std::vector<Token> prompt, std::vector<std::uint32_t> entry)
      : prompt_(std::move(prompt)), entry_(std::move(entry)) {
    shape_.kind = ContextShape::Kind::markov;
    shape_.contexts = static_cast<int>(prompt_.size()) + 1;
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
  [[nodiscard]] std::span<const Token> prompt() const override { return prompt_; }
  [[nodiscard]] std::uint32_t next(std::uint32_t context, Token token) const override {
    if (context == 0 || token != prompt_[context - 1]) return entry_[token];
    return context < prompt_.size() ? context + 1 : 0;
  }

 private:
  std::vector<Token> prompt_;
  std::vector<std::uint32_t> entry_;
  ContextShape shape_;
};

}  // namespace

ContextEntry copy_context() {
  struct P {
    std::size_t prompt_tokens = 64;
    double fidelity = 0.9;
    double entry = 0.5;
    std::uint64_t prompt_seed = 1;
  };
  static const config::Fields<P> fields = {
      {"prompt_tokens", &P::prompt_tokens, "length of the prompt", config::between(1, kMaxPrompt)},
      {"fidelity", &P::fidelity,
       "while copying, the target's probability of the prompt's next token, in addition to what pair.target gives it",
       config::between(0, 1)},
      {"entry", &P::entry,
       "share of the prompt's tokens after which free text begins to copy what follows their first occurrence",
       config::between(0, 1)},
      {"prompt_seed", &P::prompt_seed, "draws the prompt, uniformly over the vocabulary", config::between(0, 9e15)},
  };
  return {{"copy", "text that repeats itself: stretches that copy a prompt, between free text", "", fields,
           "While the text copies position i, the target is fidelity one_hot(prompt[i]) + (1 - fidelity) pair.target, and the "
           "copy moves on to i + 1 if prompt[i] is emitted. Any other token leads to free text, whose target is pair.target, or "
           "back into the prompt. State and token determine the next state: the process is markov over prompt_tokens + 1 states. "
           "Every sequence starts in free text, and drafters that search the text see the prompt before it.",
           "prompt_tokens: 4, fidelity: 0.7"},
          [](const config::Arguments& arguments, ContextBuilder& builder) {
            const P params = fields.read(arguments);
            ContextModel model;
            const auto vocab = static_cast<std::uint64_t>(builder.vocab());
            rng::Stream random_bits(rng::make_key(params.prompt_seed, rng::hash_text("copy")), rng::Purpose::distribution, 0, 0);
            std::vector<Token> prompt(params.prompt_tokens);
            for (Token& token : prompt) token = static_cast<Token>(scale_bits(random_bits(), vocab));
            std::vector<std::uint32_t> entry(vocab, 0);
            for (std::size_t i = prompt.size() - 1; i-- > 0;)  // the first occurrence is written last
              entry[prompt[i]] = static_cast<std::uint32_t>(i) + 2;
            for (std::uint32_t& state : entry)
              if (rng::to_unit(random_bits()) >= params.entry) state = 0;

            builder.add_pair(model);
            if (model.pairs.empty()) return model;
            for (const Token token : prompt) builder.add_mixture_pair(model, token, params.fidelity);
            model.process = std::make_unique<CopyProcess>(std::move(prompt), std::move(entry));
            return model;
          }};
}

}  // namespace specsim::families
