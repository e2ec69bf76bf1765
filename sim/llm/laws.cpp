#include "sim/llm/laws.h"

#include "sim/llm/kernels.h"

#include <algorithm>

namespace specsim::llm {

void law_of_logits(std::span<const float> logits, const math::Sampling& sampling, std::span<double> law) {
  const auto highest = std::max_element(logits.begin(), logits.end());
  if (sampling.temperature == 0.0) {
    math::point_mass(law, static_cast<Token>(highest - logits.begin()));
    return;
  }
  exponentials(logits, *highest, sampling.temperature, law);
  math::normalise(law);
  math::Sampling rest = sampling;
  rest.temperature = 1.0;
  math::apply_sampling(law, rest);
}

ModelLaws::ModelLaws(Model& model, const math::Sampling& sampling, std::size_t sequences)
    : model_(model), sampling_(sampling), cache_(model.make_cache(sequences, model.config().context)) {}

void ModelLaws::extend(std::span<const Extension> batch, std::span<double> laws) {
  logits_.resize(laws.size());
  model_.forward(batch, *cache_, logits_);
  for (std::size_t at = 0; at < laws.size(); at += vocab())
    law_of_logits(std::span(logits_).subspan(at, vocab()), sampling_, laws.subspan(at, vocab()));
}

void prefill(LawSource& source, std::size_t sequence, std::span<const Token> tokens) {
  constexpr std::size_t kStretch = 64;
  while (!tokens.empty()) {
    const Extension extension{.sequence = sequence, .tokens = tokens.first(std::min(kStretch, tokens.size())), .logit_rows = 0};
    source.extend({&extension, 1}, {});
    tokens = tokens.subspan(extension.tokens.size());
  }
}

}  // namespace specsim::llm
