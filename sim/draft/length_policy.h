// The registry of draft length policies: how many tokens of a chain to draft this round.
#pragma once

#include "sim/config/registry.h"

#include <functional>
#include <memory>
#include <vector>

namespace specsim::draft {

class LengthPolicy {
 public:
  // What a policy remembers of a sequence.
  struct Memory {
    double value = 0.0;
    int length = 0;
  };

  LengthPolicy() = default;
  LengthPolicy(const LengthPolicy&) = delete;
  LengthPolicy& operator=(const LengthPolicy&) = delete;
  virtual ~LengthPolicy() = default;

  // What it remembers at a sequence's start; `length` is that of the first round, at most the drafter's draft_length.
  [[nodiscard]] virtual Memory start() const = 0;
  // Sets the length of the next round, and what the policy remembers, after a round that drafted and accepted so many tokens.
  virtual void observe(Memory& /*memory*/, int /*drafted*/, int /*accepted*/) const {}
  // Whether to draft another token; asked after each one but the last. `probability` is the token's under the draft's
  // distribution, `entropy` that distribution's in nats.
  [[nodiscard]] virtual bool goes_on(double /*probability*/, double /*entropy*/) const { return true; }
  // True if goes_on() is to be asked while drafting.
  [[nodiscard]] virtual bool looks() const { return false; }
  // True if the policy knows how many tokens will be accepted and drafts no more than these, which nobody can know: no method
  // that somebody can run, and a bound at batch 1 alone.
  [[nodiscard]] virtual bool foresees() const { return false; }
};

// What a policy is told when it is made.
struct LengthChoice {
  int longest = 0;  // the drafter's draft_length
  // [longest + 1]: how long a round takes that drafts so many tokens, in any unit; empty where it is not known.
  std::vector<double> round_times;
};

struct PolicyEntry {
  config::PartInfo info;
  // May return nullptr after reporting.
  std::function<std::unique_ptr<LengthPolicy>(const config::Arguments&, const LengthChoice&, Diagnostics&)> make;
  bool by_times = false;  // goes by LengthChoice::round_times, which are not known where the config names no cost
};

config::Registry<PolicyEntry>& policies();

}  // namespace specsim::draft
