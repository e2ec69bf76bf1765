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

  // At a sequence's start; `length` is that of the first round, at most the drafter's draft_length.
  [[nodiscard]] virtual Memory start() const = 0;
  // After a round: the next one's length and whatever leads to it.
  virtual void observe(Memory& /*memory*/, int /*drafted*/, int /*accepted*/) const {}
  // While drafting, after each token but the last: whether to draft another. `probability` of the token under the draft's
  // distribution, `entropy` of that distribution in nats.
  [[nodiscard]] virtual bool goes_on(double /*probability*/, double /*entropy*/) const { return true; }
  // True: goes_on() is to be asked.
  [[nodiscard]] virtual bool looks() const { return false; }
  // True: drafts what will be accepted and no more; a bound, since nobody can know it.
  [[nodiscard]] virtual bool foresees() const { return false; }
};

// What there is to choose from.
struct LengthChoice {
  int longest = 0;                  // the drafter's draft_length
  std::vector<double> round_times;  // [longest + 1]: of a round that drafts so many, in any unit
};

struct PolicyEntry {
  config::PartInfo info;
  // May return nullptr after reporting.
  std::function<std::unique_ptr<LengthPolicy>(const config::Arguments&, const LengthChoice&, Diagnostics&)> make;
};

config::Registry<PolicyEntry>& policies();

}  // namespace specsim::draft
