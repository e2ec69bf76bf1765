#include "sim/rounds/decode/block_round.h"
#include "sim/rounds/decode/fresh_blocks.h"
#include "sim/rounds/decode/fresh_round.h"
#include "sim/rounds/decode/simulator.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace specsim::decode {

namespace {

// The random choices of a chain's rounds, at the same addresses as those of prepared rounds.
class AddressedChoices final : public verify::ChoiceSource {
 public:
  AddressedChoices(BitSource& random_bits, std::uint64_t sequence) : random_bits_(random_bits), sequence_(sequence) {}
  void begin(std::uint32_t round) {
    round_ = round;
    random_bits_.final_token(round, sequence_ - sequence_ % 2, 2, finals_.data());
  }
  Token pick(Use use, int node, int /*depth*/, const verify::Pickable& distribution) override {
    switch (use) {
      case Use::token:
        drafted_ = random_bits_.at(rng::Purpose::draft_accept, static_cast<std::uint32_t>(node) - 1, round_, sequence_);
        return distribution.pick(drafted_.first);
      case Use::target_sample:
        return distribution.pick(drafted_.second);
      default:
        return distribution.pick(finals_[sequence_ % 2]);
    }
  }
  bool accept(int /*node*/, verify::Odds odds) override { return verify::accepts(rng::to_unit(drafted_.second), odds); }

 private:
  BitSource& random_bits_;
  std::uint64_t sequence_;
  std::uint32_t round_ = 0;
  rng::BitsPair drafted_{};  // the last draft token's numbers: the decision on it comes before the next draw
  std::array<std::uint64_t, 2> finals_{};
};

// Maps an emitted token to a number that is uniform in [0, 1) if the token was drawn from the target. The number is the token's
// place in the target's running sum: tokens with draft > target first, then the rest, each part in token order. One more uniform
// `u` gives the place within the token's own mass. A leak of the draft shifts the number down.
double place_in_target(Token emitted, std::span<const double> target, std::span<const double> drafted, double u) {
  double over = 0.0;    // mass of the tokens that the draft makes too likely
  double before = 0.0;  // mass of the tokens in the same part that come before the emitted one
  const bool own_over = drafted[emitted] > target[emitted];
  for (std::size_t x = 0; x < target.size(); ++x) {
    const bool x_over = drafted[x] > target[x];
    over += x_over ? target[x] : 0.0;
    before += x < emitted && x_over == own_over ? target[x] : 0.0;
  }
  return (own_over ? 0.0 : over) + before + u * target[emitted];
}

}  // namespace

// Runs one sequence with the same rule and the same addresses as with prepared tables.
void Simulator::run_fresh(const ChunkPlan& chunk, BitSource& random_bits, Counts& counts, RoundSink* sink) const {
  const std::uint64_t sequence = chunk.first_sequence;
  const auto length = static_cast<std::size_t>(draft_length_);
  FreshRound fresh(plan_, draft_length_, bonus_ == Bonus::emitted);
  AddressedChoices choices(random_bits, sequence);
  std::uint64_t text_position = 0;
  std::uint64_t full_rounds = 0;
  const FreshRound::Observer count_output = [&](Token emitted, std::uint64_t place, std::span<const double> target,
                                                std::span<const double> drafted) {
    const double u = rng::to_unit(random_bits.at(rng::Purpose::judge, 0, static_cast<std::uint32_t>(place), sequence).first);
    const double uniform = place_in_target(emitted, target, drafted, u);
    ++counts.output[static_cast<std::size_t>(std::clamp(uniform * kFreshClasses, 0.0, kFreshClasses - 1.0))];
  };
  const FreshRound::Observer none;
  for (std::uint32_t round = 0; round < chunk.rounds; ++round) {
    choices.begin(round);
    const FreshRound::RoundResult& outcome =
        fresh.play(sequence, text_position, choices, round % kFreshJudged == 0 ? count_output : none);
    const auto accepted = static_cast<std::size_t>(outcome.accepted);
    for (std::size_t i = 0; i < accepted; ++i) ++counts.accepted[i];
    for (std::size_t i = 0; i < std::min(accepted + 1, length); ++i) ++counts.reached[i];
    ++counts.accepted_distribution[accepted];
    full_rounds += outcome.whole ? 1 : 0;
    text_position += outcome.emitted.size();
    if (sink != nullptr) {
      const std::uint32_t lane = 0;
      sink->accepted(lane, round, static_cast<std::uint32_t>(accepted));
      sink->round(lane, round, outcome.emitted, 0);
    }
  }
  counts.add_group(
      {.number = sequence, .rounds = chunk.rounds, .full = full_rounds, .longest = full_rounds, .emitted = text_position},
      draft_length_ > 0);
}

// As above for blocks. Their tables are rebuilt for the positions that a round can reach.
void Simulator::run_fresh_blocks(const BlockJudging& judging, const ChunkPlan& chunk, BitSource& random_bits, Counts& counts,
                                 RoundSink* sink) const {
  constexpr std::uint32_t kLane = 0;
  const std::uint64_t sequence = chunk.first_sequence;
  const draft::LengthPolicy* const policy = judging.policy;
  const bool chain = judging.drafter->tree() != nullptr && judging.drafter->tree()->is_chain();
  FreshBlocks window(plan_, draft_length_ + 1, FreshBlocks::Rounds::from_first);
  std::optional<BlockRound> round;
  GroupBits bits(random_bits, sequence - sequence % GroupBits::kGroup);
  draft::LengthPolicy::Memory memory = policy != nullptr ? policy->start() : draft::LengthPolicy::Memory{.length = draft_length_};
  const std::unique_ptr<draft::BlockDrafter::Memory> drafter_memory = judging.drafter->start();
  std::vector<Token> text;
  std::uint64_t text_position = 0;
  std::uint64_t full_rounds = 0;
  std::uint64_t longest_rounds = 0;
  for (std::uint32_t number = 0; number < chunk.rounds; ++number) {
    window.draw(sequence, text_position);
    if (!round) round.emplace(window.tables(), window.process(), draw_key_, *judging.drafter, policy);
    bits.begin(number);
    bits.set_lane(static_cast<std::uint32_t>(sequence % GroupBits::kGroup));
    const BlockRound::RoundResult& outcome = round->play(*judging.rule,
                                                         {sequence, 0, static_cast<std::uint32_t>(text_position), text,
                                                          memory.length, drafter_memory.get(), &memory, bonus_ == Bonus::emitted},
                                                         bits);
    const std::size_t accepted = outcome.accepted;
    std::optional<BlockRound::Ahead> ahead;
    if (sink != nullptr && bonus_ == Bonus::none) ahead = round->ahead(policy, memory);
    int drafted = round->drafted();
    if (policy != nullptr) {
      policy->observe(memory, chain ? drafted : std::min(memory.length, draft_length_), static_cast<int>(accepted));
      if (policy->remembers_tokens()) policy->observe_tokens(memory, round->draft_probabilities(), static_cast<int>(accepted));
      if (policy->uses_forecasts()) drafted = static_cast<int>(accepted);
    }
    ++counts.accepted_distribution[accepted];
    counts.add_drafted(sequence, static_cast<std::size_t>(drafted), 1, round->pass_rows());
    for (std::size_t i = 0; i < outcome.emitted.size(); ++i) {
      if (i < accepted) ++counts.accepted[i];
      if (i < accepted || !outcome.whole) ++counts.reached[i];
      if (number % kFreshJudged != 0) continue;
      const double u =
          rng::to_unit(random_bits.at(rng::Purpose::judge, 0, static_cast<std::uint32_t>(text_position + i), sequence).first);
      const double uniform = place_in_target(outcome.emitted[i], window.target(i), window.drafted(i), u);
      ++counts.output[static_cast<std::size_t>(std::clamp(uniform * kFreshClasses, 0.0, kFreshClasses - 1.0))];
    }
    full_rounds += outcome.whole ? 1 : 0;
    longest_rounds += accepted == static_cast<std::size_t>(draft_length_) ? 1 : 0;
    text_position += outcome.emitted.size();
    if (judging.drafter->shape().reads_text) text.insert(text.end(), outcome.emitted.begin(), outcome.emitted.end());
    if (sink != nullptr) {
      sink->drafted(kLane, number, static_cast<std::uint32_t>(drafted), ahead ? outcome.guessed : outcome.whole);
      if (ahead) sink->ahead(ahead->depth, ahead->nodes);
      sink->passes(round->pass_rows());
      sink->accepted(kLane, number, static_cast<std::uint32_t>(accepted));
      sink->round(kLane, number, outcome.emitted, 0);
    }
  }
  counts.add_group(
      {.number = sequence, .rounds = chunk.rounds, .full = full_rounds, .longest = longest_rounds, .emitted = text_position},
      draft_length_ > 0);
}

}  // namespace specsim::decode
