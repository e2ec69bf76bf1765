#include "sim/lab/llm/distributions.h"

#include "sim/lab/llm/kernels.h"

#include <algorithm>

namespace specsim::llm {

void distribution_of_logits(std::span<const float> logits, const math::Sampling& sampling, std::span<double> distribution) {
  const auto highest = std::max_element(logits.begin(), logits.end());
  if (sampling.temperature == 0.0) {
    math::point_mass(distribution, static_cast<Token>(highest - logits.begin()));
    return;
  }
  exponentials(logits, *highest, sampling.temperature, distribution);
  math::normalise(distribution);
  math::Sampling rest = sampling;
  rest.temperature = 1.0;
  math::apply_sampling(distribution, rest);
}

ModelDistributions::ModelDistributions(Model& model, const math::Sampling& sampling, std::size_t sequences)
    : model_(model), sampling_(sampling), cache_(model.make_cache(sequences, model.config().context)) {}

void ModelDistributions::extend(std::span<const Extension> batch, std::span<double> distributions) {
  logits_.resize(distributions.size());
  model_.forward(batch, *cache_, logits_);
  for (std::size_t at = 0; at < distributions.size(); at += vocab())
    distribution_of_logits(std::span(logits_).subspan(at, vocab()), sampling_, distributions.subspan(at, vocab()));
}

void prefill(DistributionSource& source, std::size_t sequence, std::span<const Token> tokens) {
  constexpr std::size_t kStretch = 64;
  while (!tokens.empty()) {
    const Extension extension{.sequence = sequence, .tokens = tokens.first(std::min(kStretch, tokens.size())), .logit_rows = 0};
    source.extend({&extension, 1}, {});
    tokens = tokens.subspan(extension.tokens.size());
  }
}

}  // namespace specsim::llm
