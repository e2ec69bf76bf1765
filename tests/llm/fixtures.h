// Real models for tests: those of tests/data/models, and tokens to feed them.
#pragma once

#include "sim/lab/llm/model.h"

#include <memory>
#include <string>
#include <vector>

namespace specsim::tests {

inline std::shared_ptr<llm::ThreadTeam> one_thread() {
  static const auto team = std::make_shared<llm::ThreadTeam>(1);
  return team;
}

inline std::shared_ptr<const llm::Weights> weights_of(const std::string& name) {
  return std::make_shared<llm::Weights>(llm::load_weights("tests/data/models/" + name));
}

inline std::unique_ptr<llm::Model> model_of(const std::shared_ptr<const llm::Weights>& weights) {
  return make_cpu_model(weights, weights->config.layers, one_thread());
}

inline std::vector<Token> some_tokens(const llm::ModelConfig& config, std::size_t count) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(static_cast<Token>((i * i * 31 + i * 17 + 5) % config.vocab));
  return tokens;
}

// One row of logits for each token.
inline std::vector<float> all_logits(llm::Model& model, llm::Cache& cache, std::vector<Token> tokens,
                                     std::vector<int> parents = {}, std::size_t sequence = 0) {
  std::vector<float> logits(tokens.size() * model.config().vocab);
  const llm::Extension extension{sequence, tokens, tokens.size(), parents};
  model.forward({&extension, 1}, cache, logits);
  return logits;
}

}  // namespace specsim::tests
