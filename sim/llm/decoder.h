// Speculative decoding with real models: draft, one target pass over the drafts, and the simulator's own verifier on the laws.
#pragma once

#include "sim/llm/drafter.h"
#include "sim/llm/laws.h"
#include "sim/llm/measure.h"
#include "sim/math/scan.h"
#include "sim/verify/position_rule.h"

#include <functional>
#include <span>
#include <vector>

namespace specsim::llm {

// A position that was judged, while its laws are at hand.
struct Judged {
  std::size_t sequence = 0;
  int depth = 0;  // 0-based place in the chain
  const verify::PositionLaws& laws;
  Token token = 0;
  bool accepted = false;
};

class Decoder {
 public:
  // The rule must suit the laws (verify::Demands). `drafter` may be null at draft length 0: plain decoding.
  Decoder(LawSource& target, Drafter* drafter, const verify::PositionRule& rule, int draft_length, rng::Key key,
          Clock clock = Clock::wall);

  // Begins a batch; prompts of at least one token, read up to their last one.
  void start(std::vector<Text> texts);
  // Whether every sequence has room for another round.
  [[nodiscard]] bool fits() const;
  // One round of every sequence: between 1 and draft_length + 1 tokens each.
  void round();

  [[nodiscard]] const std::vector<Text>& texts() const { return texts_; }
  [[nodiscard]] const std::vector<int>& accepted() const { return accepted_; }  // by sequence, of the last round
  [[nodiscard]] double round_seconds() const { return round_seconds_; }         // of the last round, all of it
  void observe(std::function<void(const Judged&)> observer) { observer_ = std::move(observer); }

 private:
  // Judges the drafts of sequence s; `target` holds the laws of its rows.
  void judge(std::size_t s, std::span<const double> target);
  Token pick(std::uint64_t word);  // from weights_

  LawSource& target_;
  Drafter* drafter_;
  const verify::PositionRule& rule_;
  int draft_length_;
  rng::Key key_;
  Clock clock_;
  std::vector<Text> texts_;
  std::vector<int> accepted_;
  std::uint32_t round_ = 0;
  std::vector<Proposal> proposals_;
  std::vector<double> laws_;
  std::vector<double> weights_;
  math::ScanSums sums_;
  std::function<void(const Judged&)> observer_;
  double round_seconds_ = 0.0;
};

}  // namespace specsim::llm
