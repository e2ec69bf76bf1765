// Speculative decoding with real models: a draft, one target pass over it, and the simulator's own verifier on the distributions.
#pragma once

#include "sim/lab/llm/distributions.h"
#include "sim/lab/llm/measure.h"
#include "sim/lab/llm/proposer.h"
#include "sim/rounds/verify/block_rule.h"

#include <functional>
#include <span>
#include <vector>

namespace specsim::llm {

// A judged position with its distributions.
struct JudgedPosition {
  std::size_t sequence = 0;
  int depth = 0;  // 0-based place in the chain
  const verify::PositionDistributions& distributions;
  Token token = 0;
  bool accepted = false;
};

// The time of a round by part; the parts add up to the whole.
struct RoundSeconds {
  double first_draft = 0.0;   // the draft's first pass, which follows a target pass and may have one more token to read
  double other_drafts = 0.0;  // the later draft passes
  double target = 0.0;        // the target's pass, including the distributions from its logits
  double judging = 0.0;
  [[nodiscard]] double total() const { return first_draft + other_drafts + target + judging; }
  RoundSeconds& operator+=(const RoundSeconds& other) {
    first_draft += other.first_draft;
    other_drafts += other.other_drafts;
    target += other.target;
    judging += other.judging;
    return *this;
  }
};

class Decoder {
 public:
  // The rule must suit the distributions (verify::Demands). `drafter` may be null at draft length 0, for decoding without
  // speculation. `rule` must outlive it.
  Decoder(DistributionSource& target, Proposer* drafter, const verify::BlockRule& rule, int draft_length, rng::Key key,
          Clock clock = Clock::wall);

  // Starts a batch; prompts of at least one token; all tokens except the last are read.
  void start(std::vector<Text> texts);
  // Largest length of a text that has room for another round.
  [[nodiscard]] std::size_t last_start() const;
  // Whether every sequence has room.
  [[nodiscard]] bool fits() const;
  // One round of every sequence: between 1 and draft_length + 1 tokens each.
  void round() { round(draft_length_); }
  void round(int draft_length);  // at most the decoder's own draft length
  // Returns to the prompts, for a drafter that keeps no memory of a sequence. The draft will have to read the last `unseen`
  // tokens, at least 1.
  void forget(std::size_t unseen);

  [[nodiscard]] const std::vector<Text>& texts() const { return texts_; }
  [[nodiscard]] const std::vector<int>& accepted() const { return accepted_; }  // [sequence]: tokens accepted in the last round
  [[nodiscard]] const std::vector<Proposal>& proposals() const { return proposals_; }  // [sequence]: drafts of the last round
  [[nodiscard]] const RoundSeconds& seconds() const { return seconds_; }               // time of the last round by part
  // The observer is called at each position that a rule judges separately.
  void observe(std::function<void(const JudgedPosition&)> observer) { observer_ = std::move(observer); }

 private:
  // Judges the drafts of sequence s and appends the emitted tokens to the text; `target` holds the distributions of its rows.
  // Returns the accepted nodes, including the root.
  std::vector<std::uint32_t> judge(std::size_t s, std::span<const double> target);

  DistributionSource& target_;
  Proposer* drafter_;
  const verify::BlockRule& rule_;
  int draft_length_;
  rng::Key key_;
  Clock clock_;
  std::vector<Text> texts_;
  std::vector<std::size_t> given_;  // tokens of each prompt
  std::vector<int> accepted_;
  std::uint32_t round_ = 0;
  std::vector<Proposal> proposals_;
  std::vector<double> distributions_;
  std::function<void(const JudgedPosition&)> observer_;
  RoundSeconds seconds_;
};

}  // namespace specsim::llm
