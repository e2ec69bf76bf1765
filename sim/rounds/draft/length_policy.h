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
    int rounds = 0;                                    // a count of the policy's own
    double threshold = 0.0;                            // what a policy that looks at the tokens compares with
    std::vector<std::pair<double, bool>> judged = {};  // draft tokens' probabilities, and whether they were accepted
    std::vector<double> learnt = {};                   // what a policy that estimates acceptance has learnt
    std::vector<double> earlier = {};                  // its estimates of the last round
  };

  LengthPolicy() = default;
  LengthPolicy(const LengthPolicy&) = delete;
  LengthPolicy& operator=(const LengthPolicy&) = delete;
  virtual ~LengthPolicy() = default;

  // How many sequences of the batch have one draft length, chosen for all of them; 1: each has its own.
  [[nodiscard]] virtual int sequences() const { return 1; }
  // Whether the next round's length depends on what the last round accepted.
  [[nodiscard]] virtual bool follows_acceptance() const { return true; }
  // Whether the sequences of a batch depend on each other, so that only batches are independent: they have one length that
  // depends on all their acceptances, or they share rows.
  [[nodiscard]] bool ties_sequences() const { return sequences() > 1 && (follows_acceptance() || shares_rows()); }
  // The memory at the start of a sequence; `length` is that of the first round, at most the drafter's draft_length.
  [[nodiscard]] virtual Memory start() const = 0;
  // Sets the length of the next round, and what the policy remembers, after a round that drafted and accepted so many tokens.
  virtual void observe(Memory& /*memory*/, int /*drafted*/, int /*accepted*/) const {}
  // As observe(), for a batch that drafts one common length; accepted[i]: tokens of the i-th sequence. For sequences() above 1.
  virtual void observe_batch(Memory& /*memory*/, int /*drafted*/, std::span<const int> /*accepted*/) const {}
  // Whether to draft another token; asked after each one but the last. `probability` is the token's under the draft's
  // distribution, `entropy` that distribution's in nats.
  [[nodiscard]] virtual bool goes_on(const Memory& /*memory*/, double /*probability*/, double /*entropy*/) const { return true; }
  // A token of the path drafted so far: its probability under the draft's distribution, and the chance min(1, target / draft)
  // that it is accepted, which drafters guess at best.
  struct Drafted {
    double probability = 0.0;
    double acceptance = 0.0;
  };
  // Like goes_on(), but sees the whole path; called instead of goes_on() if looks_along() is true.
  [[nodiscard]] virtual bool goes_on_along(std::span<const Drafted> /*path*/) const { return true; }
  [[nodiscard]] virtual bool looks_along() const { return false; }
  // True if goes_on() is to be asked while drafting.
  [[nodiscard]] virtual bool looks() const { return false; }
  // True if observe_tokens() must be called with each round's draft tokens, after observe().
  [[nodiscard]] virtual bool remembers_tokens() const { return false; }
  // probabilities[i]: of the i-th draft token under the draft's distribution.
  virtual void observe_tokens(Memory& /*memory*/, std::span<const double> /*probabilities*/, int /*accepted*/) const {}
  // True if every sequence drafts as much as it can, and sequences() of them share the rows that the target verifies. Then
  // share() is called instead of length(), and observe_shared() instead of the other observers.
  [[nodiscard]] virtual bool shares_rows() const { return false; }
  // The outlook on a draft token before it is drawn. Nothing here may depend on the token itself or on later tokens.
  struct Outlook {
    double overlap = 0.0;    // the chance that it is accepted once it is reached: sum of min(target, draft) where it is drawn
    double certainty = 0.0;  // log(q / (1 - q)) of the draft's likeliest token there, q its probability; within +-kMostCertain
  };
  static constexpr double kMostCertain = 40.0;
  // One sequence of the batch: `number` names it from round to round, and there is an outlook for each token of its chain.
  struct Chain {
    std::size_t number = 0;
    std::span<const Outlook> outlooks;
  };
  // Sets verified[i]: how many tokens of the i-th chain are verified. The rest is dropped unseen, so that whether a token is
  // verified may hang on those before it and on other chains, but not on itself: the output is the target's no more if it does.
  virtual void share(Memory& /*memory*/, std::span<const Chain> /*chains*/, std::span<int> /*verified*/) const {}
  // accepted[i]: of the verified[i] tokens.
  virtual void observe_shared(Memory& /*memory*/, std::span<const Chain> /*chains*/, std::span<const int> /*verified*/,
                              std::span<const int> /*accepted*/) const {}
  // True if the policy knows how many tokens will be accepted and drafts no more than these, which nobody can know: no method
  // that somebody can run, and a bound at batch 1 alone.
  [[nodiscard]] virtual bool foresees() const { return false; }
  // The same policy with other LengthChoice::round_times; nullptr if it does not use them.
  [[nodiscard]] virtual std::unique_ptr<LengthPolicy> with_round_times(const std::vector<double>& /*round_times*/) const {
    return nullptr;
  }
};

// The inputs from which a policy is made.
struct LengthChoice {
  int longest = 0;  // the drafter's draft_length
  // [longest + 1]: how long a round takes that drafts so many tokens, in any unit; empty where it is not known.
  std::vector<double> round_times;
  int batch = 1;  // sequences that are decoded together
  // How long a round takes that drafts `longest` tokens and verifies so many of all sequences: [i] for i / (size - 1) of
  // batch * longest tokens. Filled for an entry with by_rows alone.
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
