// The registry of draft length policies: how many tokens of a chain to draft this round.
#pragma once

#include "sim/foundation/config/registry.h"

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace specsim::draft {

class LengthPolicy {
 public:
  // The memory of a policy for one sequence, or for a batch whose sequences draft alike.
  struct Memory {
    double value = 0.0;
    int length = 0;
    int rounds = 0;                                    // a counter that the policy uses
    double threshold = 0.0;                            // threshold of a policy that looks at the tokens
    std::vector<std::pair<double, bool>> judged = {};  // draft tokens' probabilities, and whether they were accepted
    std::vector<double> learnt = {};                   // what a policy that estimates acceptance has learnt
    std::vector<double> earlier = {};                  // its estimates of the last round
  };

  LengthPolicy() = default;
  LengthPolicy(const LengthPolicy&) = delete;
  LengthPolicy& operator=(const LengthPolicy&) = delete;
  virtual ~LengthPolicy() = default;

  // Number of sequences of the batch that share one draft length; 1: each sequence has its own.
  [[nodiscard]] virtual int sequences() const { return 1; }
  // Whether the next round's length depends on what the last round accepted.
  [[nodiscard]] virtual bool follows_acceptance() const { return true; }
  // Whether the sequences of a batch depend on each other, so that only batches are independent: they have one length that
  // depends on all their acceptances, or they share rows.
  [[nodiscard]] bool ties_sequences() const { return sequences() > 1 && (follows_acceptance() || shares_rows()); }
  // The memory at the start of a sequence; `length` is that of the first round, at most the drafter's draft_length.
  [[nodiscard]] virtual Memory start() const = 0;
  // Updates the length of the next round and the policy's memory, after a round that drafted and accepted this many tokens.
  virtual void observe(Memory& /*memory*/, int /*drafted*/, int /*accepted*/) const {}
  // Like observe(), for a batch with one common length; accepted[i]: tokens of the i-th sequence. Only if sequences() is above 1.
  virtual void observe_batch(Memory& /*memory*/, int /*drafted*/, std::span<const int> /*accepted*/) const {}
  // Whether to draft another token; asked after each one but the last. `probability` is the token's under the draft's
  // distribution, `entropy` is that distribution's entropy in nats.
  [[nodiscard]] virtual bool goes_on(const Memory& /*memory*/, double /*probability*/, double /*entropy*/) const { return true; }
  // A token of the path drafted so far: its probability under the draft's distribution, and its acceptance probability min(1,
  // target / draft), which real drafters can only estimate.
  struct Drafted {
    double probability = 0.0;
    double acceptance = 0.0;
  };
  // Like goes_on(), but sees the whole path; called instead of goes_on() if looks_along() is true.
  [[nodiscard]] virtual bool continues_along(std::span<const Drafted> /*path*/) const { return true; }
  [[nodiscard]] virtual bool looks_along() const { return false; }
  // True if goes_on() must be called while drafting.
  [[nodiscard]] virtual bool looks() const { return false; }
  // True if observe_tokens() must be called with each round's draft tokens, after observe().
  [[nodiscard]] virtual bool remembers_tokens() const { return false; }
  // probabilities[i]: of the i-th draft token under the draft's distribution.
  virtual void observe_tokens(Memory& /*memory*/, std::span<const double> /*probabilities*/, int /*accepted*/) const {}
  // True if every sequence drafts as much as it can, and sequences() of them share the rows that the target verifies. Then
  // share() is called instead of length(), and observe_shared() instead of the other observers.
  [[nodiscard]] virtual bool shares_rows() const { return false; }
  // The forecast on a draft token before it is drawn. Nothing here may depend on the token itself or on later tokens.
  struct TokenForecast {
    double overlap = 0.0;    // probability that it is accepted if it is reached: sum of min(target, draft) if it is drawn
    double certainty = 0.0;  // log(q / (1 - q)) of the draft's likeliest token there, q its probability; within +-kMostCertain
  };
  static constexpr double kMostCertain = 40.0;
  // One sequence of the batch: `number` names it from round to round, and there is a forecast for each token of its chain.
  struct Chain {
    std::size_t number = 0;
    std::span<const TokenForecast> forecasts;
  };
  // Sets verified[i]: how many tokens of the i-th chain are verified. The rest is dropped unseen. Whether a token is verified may
  // depend on earlier tokens and on other chains, but not on the token itself: otherwise the output would no longer follow the
  // target's distribution.
  virtual void share(Memory& /*memory*/, std::span<const Chain> /*chains*/, std::span<int> /*verified*/) const {}
  // accepted[i]: accepted tokens among the verified[i].
  virtual void observe_shared(Memory& /*memory*/, std::span<const Chain> /*chains*/, std::span<const int> /*verified*/,
                              std::span<const int> /*accepted*/) const {}
  // True if the policy knows how many tokens will be accepted and drafts exactly these. No real method can know that; at batch 1
  // it is an upper bound.
  [[nodiscard]] virtual bool uses_forecasts() const { return false; }
  // The same policy with other LengthChoice::round_times; nullptr if it does not use them.
  [[nodiscard]] virtual std::unique_ptr<LengthPolicy> with_round_times(const std::vector<double>& /*round_times*/) const {
    return nullptr;
  }
};

// The inputs from which a policy is made.
struct LengthChoice {
  int longest = 0;  // the drafter's draft_length
  // [longest + 1]: time of a round that drafts this many tokens, in any unit; empty if unknown.
  std::vector<double> round_times;
  int batch = 1;  // sequences that are decoded together
  // Time of a round that drafts `longest` tokens, by the number of tokens verified over all sequences: entry i is for i / (size -
  // 1) of batch * longest tokens. Filled only for an entry with by_rows.
  std::vector<double> row_times = {};
};

struct PolicyEntry {
  config::PartInfo info;
  // May return nullptr after reporting.
  std::function<std::unique_ptr<LengthPolicy>(const config::Arguments&, const LengthChoice&, Diagnostics&)> make;
  // The policy uses LengthChoice::round_times, which are unknown if the config names no cost, and has with_round_times().
  bool by_times = false;
  // The policy uses LengthChoice::row_times, so it needs a cost too, and shares_rows() is true.
  bool by_rows = false;
};

config::Registry<PolicyEntry>& policies();

}  // namespace specsim::draft
