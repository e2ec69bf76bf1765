// A method of speculative decoding with real models: the drafter and the verifier.
#pragma once

#include "sim/lab/llm/decoder.h"

#include <functional>
#include <memory>
#include <optional>
#include <variant>

namespace specsim::llm {

// A target and its draft, ready to run.
struct ModelPair {
  std::shared_ptr<ThreadTeam> team;
  std::unique_ptr<Model> target;
  std::unique_ptr<Model> draft;  // none for a drafter that reads the text alone
};

struct Method {
  enum class Chain { sampled, argmax };  // tokens of the draft model, one after the other
  std::variant<Chain, std::reference_wrapper<const draft::BlockDrafter>> drafts = Chain::sampled;
  const verify::BlockRule* rule = nullptr;  // judges the drafts; a chain's tokens in turn or as a block
  math::Sampling cuts = {};                 // top-k, top-p, min-p of both models
  bool lossless = true;                     // the rule

  // The draft model's argmax is drafted, a point mass.
  [[nodiscard]] bool argmax() const {
    const Chain* const chain = std::get_if<Chain>(&drafts);
    return chain != nullptr && *chain == Chain::argmax;
  }
  [[nodiscard]] math::Sampling sampling(double temperature) const {
    math::Sampling sampling = cuts;
    sampling.temperature = temperature;
    return sampling;
  }
};

// The method at one temperature, for `sequences` sequences together.
class RunningMethod {
 public:
  // All arguments must outlive this object.
  RunningMethod(Model& target, Model* draft, const Method& method, const math::Sampling& sampling, std::size_t sequences,
                int draft_length, rng::Key key, Clock clock = Clock::wall);
  [[nodiscard]] DistributionSource& target() { return target_; }
  [[nodiscard]] DistributionSource* draft() { return draft_ ? &*draft_ : nullptr; }
  [[nodiscard]] Decoder& decoder() { return *decoder_; }

 private:
  ModelDistributions target_;
  std::optional<ModelDistributions> draft_;
  std::unique_ptr<Proposer> drafter_;
  std::optional<Decoder> decoder_;
};

}  // namespace specsim::llm
