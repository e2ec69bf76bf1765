#include "sim/lab/llm/proposer.h"

#include "sim/foundation/math/scan.h"

#include <algorithm>

namespace specsim::llm {

rng::BitsPair bits_at(rng::Key key, rng::Purpose purpose, std::uint32_t position, std::uint32_t round, std::uint64_t sequence) {
  return rng::philox_bits({rng::counter_word0(purpose, position), round, static_cast<std::uint32_t>(sequence),
                           static_cast<std::uint32_t>(sequence >> 32)},
                          key);
}

void ModelProposer::start(std::size_t sequence, std::span<const Token> prompt) {
  distributions_.rewind(sequence, 0);
  prefill(distributions_, sequence, prompt.first(prompt.size() - 1));
}

void ModelProposer::propose(std::span<const Text> texts, int draft_length, std::uint32_t round, rng::Key key,
                            std::vector<Proposal>& proposals) {
  const std::size_t vocab = distributions_.vocab();
  proposals.assign(texts.size(), {});
  std::vector<Extension> batch(texts.size());
  std::vector<double> distributions(texts.size() * vocab);
  math::ScanSums sums;
  for (int i = 0; i < draft_length; ++i) {
    for (std::size_t s = 0; s < texts.size(); ++s) {
      // First the tokens that the draft has not read: the final token, and after a full acceptance also its own last draft token.
      const std::span<const Token> unseen = i == 0 ? std::span(texts[s].tokens).subspan(distributions_.length(s))
                                                   : std::span<const Token>(proposals[s].tokens).last(1);
      batch[s] = {.sequence = s, .tokens = unseen};
    }
    distributions_.extend(batch, distributions);
    for (std::size_t s = 0; s < texts.size(); ++s) {
      const std::span<double> distribution = std::span(distributions).subspan(s * vocab, vocab);
      Proposal& proposal = proposals[s];
      proposal.draft_model.insert(proposal.draft_model.end(), distribution.begin(), distribution.end());
      if (argmax_) math::point_mass(distribution, math::argmax(distribution));
      proposal.drafted.insert(proposal.drafted.end(), distribution.begin(), distribution.end());
      sums.sum(distribution);
      const std::uint64_t bits =
          bits_at(key, rng::Purpose::draft_accept, static_cast<std::uint32_t>(i), round, texts[s].id).first;
      proposal.tokens.push_back(sums.pick(distribution, rng::to_unit(bits)));
      proposal.tree.add(i, 0);
    }
    if (i == 0) first_pass_end_ = now(clock_);
  }
}

void ModelProposer::settle(std::size_t sequence, std::size_t length) {
  distributions_.rewind(sequence, std::min(length, distributions_.length(sequence)));
}

}  // namespace specsim::llm
