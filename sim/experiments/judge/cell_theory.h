// The registry of theories: each is an entry that says which parts it is a theory of, whether it covers a cell that has them, and
// what it says of the cell's rounds. A cell that no entry covers has no theory, and is told why; a part that no entry names is
// never judged by the theory of another.
#pragma once

#include "sim/experiments/spec/spec.h"
#include "sim/foundation/config/registry.h"
#include "sim/rounds/theory/length_policies.h"
#include "sim/rounds/theory/requests.h"
#include "sim/rounds/theory/round_distribution.h"
#include "sim/rounds/theory/round_tokens.h"
#include "sim/rounds/verify/position_rule.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace specsim::judge {

// What theory says of a cell's rounds.
struct RoundTheory {
  std::string missing;  // why it says nothing after all; empty: it does
  // The distribution of accepted tokens, by the stratum that the round begins in (markov, regimes, requests and trace have one
  // for each context). Empty where it is not known, since a policy or the text decides as well.
  std::vector<theory::RoundDistribution> distributions;
  bool estimated = false;  // the distributions' mean holds, but they come from a sample: no exact test against them
  // Moments of what one sequence emits in so many rounds; nullopt: too many to follow. Empty where rounds are independent of each
  // other (requests: those of one type), or follow from where they begin (trace).
  std::function<std::optional<theory::RunMoments>(int rounds)> sequence;
  // Requests that emit equally many tokens while their context moves; empty where theory does not follow them, or contexts stay.
  std::function<theory::MovingRequests(int request_tokens)> requests;
  double mean_error = 0.0;  // error of a distribution's mean: half the width of a bracket, or a standard error; 0: it is exact
  // Acceptance at a position, [context][depth], of verifiers that judge positions; else empty.
  std::vector<std::vector<double>> alpha;
};

// Theory of one cell in the making: it sees the distributions that the cell decodes by, then answers. Cells that share tables
// share it; it refers to the first of them.
class CellTheory {
 public:
  CellTheory() = default;
  CellTheory(const CellTheory&) = delete;
  CellTheory& operator=(const CellTheory&) = delete;
  virtual ~CellTheory() = default;

  // The distributions of one context at one depth of the block, each once and in order. Returns the distribution of a token that
  // is emitted there, where the verifier is a lossy one of chains and contexts are alike; else nothing.
  virtual std::vector<double> see(int context, int depth, const verify::PositionDistributions& distributions) = 0;
  // Told before see(): the classes that the tokens of this context are counted by.
  virtual void sorted_by(int /*context*/, const theory::TokenClasses& /*classes*/) {}
  // The distribution of the token behind a block that was accepted whole, of the verifiers above; empty: the target's.
  [[nodiscard]] virtual std::vector<double> behind_block(const verify::PositionDistributions& /*distributions*/) const {
    return {};
  }
  // Works out whatever takes long, once the last distributions were seen. Called on a worker thread.
  virtual void finish() {}
  // What one round emits, by class, where the verifier is a lossy one for which see() returns nothing, and rounds are alike and
  // independent of each other; else nothing. After finish().
  [[nodiscard]] virtual std::optional<theory::TokenMoments> tokens_of_round() const { return std::nullopt; }
  // What theory says of a cell that shares the tables.
  [[nodiscard]] virtual RoundTheory answer(const spec::Cell& cell) const = 0;
};

// A theory of a cell, or why there is none.
struct Coverage {
  std::unique_ptr<CellTheory> theory;
  std::string missing;
};

struct TheoryEntry {
  config::PartInfo info;
  std::vector<std::string> verifiers;  // names of the verifiers that it is a theory of
  // Names of the drafters that it covers. Empty: every chain, and every drafter of blocks whose tree is the same in each round,
  // since what it drafts follows from its tree, its siblings and its distributions.
  std::vector<std::string> drafters;
  // Asked for cells of these verifiers and drafters, whose policy, if they have one, is in policy_theories().
  std::function<Coverage(const spec::Cell&)> cover;
};

config::Registry<TheoryEntry>& theories();

// What a policy does, by the name of its entry: one of the two, or neither where rounds go as without it.
struct PolicyTheory {
  config::PartInfo info;
  // Lengths by what earlier rounds accepted.
  std::function<theory::LengthRule(const spec::Cell&)> lengths;
  // Whether drafting stops behind a token of this probability, drawn from a distribution of this entropy in nats.
  std::function<bool(const config::Arguments&, double probability, double entropy)> stops;
  bool alone = false;  // `lengths` holds for batch 1 alone, where a length does not depend on other sequences
};

config::Registry<PolicyTheory>& policy_theories();

// The one entry that names the cell's verifier and drafter; nullptr, with `why`, where there is none.
const TheoryEntry* theory_entry(const spec::Cell& cell, std::string& why);
// The theory of the cell, or why it has none.
Coverage cover(const spec::Cell& cell);

}  // namespace specsim::judge
