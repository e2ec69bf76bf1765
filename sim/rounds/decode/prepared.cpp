#include "sim/rounds/decode/prepared.h"

#include <algorithm>

namespace specsim::decode {

PreparedContexts::PreparedContexts(int vocab, int contexts, int depths)
    : vocab_(static_cast<std::uint64_t>(vocab)),
      depths_(static_cast<std::uint64_t>(depths)),
      draft_(vocab_ * depths_ * static_cast<std::uint64_t>(contexts)),
      accept_(draft_.size()),
      rejected_(draft_.size()),
      bonus_(vocab_ * static_cast<std::uint64_t>(contexts)) {}

std::size_t PreparedContexts::bytes_needed(std::size_t vocab, std::size_t contexts, std::size_t depths) {
  return vocab * contexts * (3 * depths + 1) * sizeof(std::uint64_t);
}

void PreparedContexts::prepare(int context, int depth, const verify::PositionRule& rule,
                               const verify::PositionDistributions& distributions, const OutputClasses& classes,
                               math::AliasScratch& scratch) {
  const std::uint64_t offset = (static_cast<std::uint64_t>(context) * depths_ + static_cast<std::uint64_t>(depth)) * vocab_;
  math::build_alias(distributions.drafted, draft_.data() + offset, scratch);
  std::uint64_t* accept = accept_.data() + offset;
  std::vector<verify::Odds> odds(vocab_);
  rule.all_odds(distributions, odds);
  for (std::uint64_t x = 0; x < vocab_; ++x) accept[x] = verify::accept_threshold(odds[x]) << kClassBits | classes.of_token[x];
  std::vector<double> weights(vocab_);
  rule.rejected(distributions, weights);
  // Distributions that are equal but for rounding may reject with probability 1e-16 and leave no residual. The target's
  // distribution is used then.
  if (*std::max_element(weights.begin(), weights.end()) <= 0.0) rule.bonus(distributions.target, weights);
  math::build_alias(weights, rejected_.data() + offset, scratch);
  if (depth == 0) {
    rule.bonus(distributions.target, weights);
    math::build_alias(weights, bonus_.data() + static_cast<std::uint64_t>(context) * vocab_, scratch);
  }
}

}  // namespace specsim::decode
