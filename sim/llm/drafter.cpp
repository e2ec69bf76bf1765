#include "sim/llm/drafter.h"

#include "sim/math/scan.h"

#include <algorithm>

namespace specsim::llm {

rng::WordPair words_at(rng::Key key, rng::Purpose purpose, std::uint32_t position, std::uint32_t round, std::uint64_t sequence) {
  return rng::philox_words({rng::counter_word0(purpose, position), round, static_cast<std::uint32_t>(sequence),
                            static_cast<std::uint32_t>(sequence >> 32)},
                           key);
}

void ModelDrafter::start(std::size_t sequence, std::span<const Token> prompt) {
  laws_.rewind(sequence, 0);
  prefill(laws_, sequence, prompt.first(prompt.size() - 1));
}

void ModelDrafter::propose(std::span<const Text> texts, int draft_length, std::uint32_t round, rng::Key key,
                           std::vector<Proposal>& proposals) {
  const std::size_t vocab = laws_.vocab();
  proposals.assign(texts.size(), {});
  std::vector<Extension> batch(texts.size());
  std::vector<double> laws(texts.size() * vocab);
  math::ScanSums sums;
  for (int i = 0; i < draft_length; ++i) {
    for (std::size_t s = 0; s < texts.size(); ++s) {
      // At first what it has not seen: the final token, and its own last draft before it after a full acceptance.
      const std::span<const Token> unseen =
          i == 0 ? std::span(texts[s].tokens).subspan(laws_.length(s)) : std::span<const Token>(proposals[s].tokens).last(1);
      batch[s] = {.sequence = s, .tokens = unseen};
    }
    laws_.extend(batch, laws);
    for (std::size_t s = 0; s < texts.size(); ++s) {
      const std::span<double> law = std::span(laws).subspan(s * vocab, vocab);
      Proposal& proposal = proposals[s];
      proposal.draft_model.insert(proposal.draft_model.end(), law.begin(), law.end());
      if (argmax_) math::point_mass(law, math::argmax(law));
      proposal.drafted.insert(proposal.drafted.end(), law.begin(), law.end());
      sums.sum(law);
      const std::uint64_t word =
          words_at(key, rng::Purpose::draft_accept, static_cast<std::uint32_t>(i), round, texts[s].id).first;
      proposal.tokens.push_back(sums.pick(law, rng::to_unit(word)));
      proposal.tree.add(i, 0);
    }
    if (i == 0) first_pass_end_ = now(clock_);
  }
}

void ModelDrafter::settle(std::size_t sequence, std::size_t length) {
  laws_.rewind(sequence, std::min(length, laws_.length(sequence)));
}

}  // namespace specsim::llm
