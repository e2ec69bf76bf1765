// A model with its sampling settings: tokens in, next-token distributions out. Verifiers see only distributions, so here a real
// model replaces a synthetic family.
#pragma once

#include "sim/foundation/math/simplex.h"
#include "sim/lab/llm/model.h"

#include <boost/core/noncopyable.hpp>

#include <memory>
#include <span>
#include <vector>

namespace specsim::llm {

// Softmax at the temperature, then top-k, top-p, min-p; temperature 0: all mass on the largest logit, ties to the lowest token.
void distribution_of_logits(std::span<const float> logits, const math::Sampling& sampling, std::span<double> distribution);

class DistributionSource : boost::noncopyable {
 public:
  virtual ~DistributionSource() = default;
  [[nodiscard]] virtual std::size_t vocab() const = 0;
  [[nodiscard]] virtual std::size_t capacity() const = 0;  // most tokens of a sequence
  [[nodiscard]] virtual std::size_t length(std::size_t sequence) const = 0;
  virtual void rewind(std::size_t sequence, std::size_t length) = 0;
  virtual void keep_path(std::size_t sequence, std::size_t length, std::span<const std::uint32_t> path) = 0;  // as Cache's
  // Like Model::forward, with distributions instead of logits.
  virtual void extend(std::span<const Extension> batch, std::span<double> distributions) = 0;
};

class ModelDistributions final : public DistributionSource {
 public:
  ModelDistributions(Model& model, const math::Sampling& sampling, std::size_t sequences);
  [[nodiscard]] std::size_t vocab() const override { return model_.config().vocab; }
  [[nodiscard]] std::size_t capacity() const override { return model_.config().context; }
  [[nodiscard]] std::size_t length(std::size_t sequence) const override { return cache_->length(sequence); }
  void rewind(std::size_t sequence, std::size_t length) override { cache_->rewind(sequence, length); }
  void keep_path(std::size_t sequence, std::size_t length, std::span<const std::uint32_t> path) override {
    cache_->keep_path(sequence, length, path);
  }
  void extend(std::span<const Extension> batch, std::span<double> distributions) override;

 private:
  Model& model_;
  math::Sampling sampling_;
  std::unique_ptr<Cache> cache_;
  std::vector<float> logits_;
};

// Reads tokens without computing distributions, a part at a time.
void prefill(DistributionSource& source, std::size_t sequence, std::span<const Token> tokens);

}  // namespace specsim::llm
