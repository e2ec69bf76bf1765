#include "sim/lab/llm/method.h"

#include "sim/lab/llm/block_proposer.h"

namespace specsim::llm {

RunningMethod::RunningMethod(Model& target, Model* draft, const Method& method, const math::Sampling& sampling,
                             std::size_t sequences, int draft_length, rng::Key key, Clock clock)
    : target_(target, sampling, sequences) {
  // A tree of likeliest tokens ranks them by the model's own distribution, as EAGLE does: at temperature 0 there would be no
  // second token.
  const auto* const block = std::get_if<std::reference_wrapper<const draft::BlockDrafter>>(&method.drafts);
  const bool ranks = block != nullptr && block->get().shape().siblings == tokens::Siblings::point_mass;
  if (draft != nullptr) draft_.emplace(*draft, ranks ? math::Sampling() : sampling, sequences);
  if (block != nullptr)
    drafter_ = std::make_unique<BlockProposer>(block->get(), target_, this->draft());
  else
    drafter_ = std::make_unique<ModelProposer>(*draft_, method.argmax(), clock);
  decoder_.emplace(target_, drafter_.get(), *method.rule, draft_length, key, clock);
}

}  // namespace specsim::llm
