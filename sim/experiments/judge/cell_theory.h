// The registry of theories. Each entry states the parts that it covers, whether it covers a given cell, and what it predicts for
// the cell's rounds. A cell that no entry covers has no theory, and the reason is reported. A part that no entry names is never
// judged by the theory of another part.
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

// The prediction of theory for a cell's rounds.
struct RoundTheory {
  std::string missing;  // why there is no prediction; empty: there is one
  // The distribution of accepted tokens, by the stratum that the round begins in (markov, regimes, requests and trace have one
  // per context). Empty if unknown, because a policy or the text also decides.
  std::vector<theory::RoundDistribution> distributions;
  bool estimated = false;  // the distributions come from a sample: their mean is right, but no exact test is possible
  // Moments of the tokens that one sequence emits in `rounds` rounds; nullopt: too many to follow. Empty if rounds are
  // independent of each other (requests: those of one type), or follow from their start (trace).
  std::function<std::optional<theory::RunMoments>(int rounds)> sequence;
  // Requests that emit equally many tokens while their context moves. Empty if theory does not follow them, or if contexts stay.
  std::function<theory::MovingRequests(int request_tokens)> requests;
  double mean_error = 0.0;  // error of a distribution's mean: half the width of a bracket, or a standard error; 0: exact
  // Acceptance at a position, [context][depth], for verifiers that judge positions; else empty.
  std::vector<std::vector<double>> alpha;
};

// The theory of one cell under construction. It receives the distributions that the cell decodes with, then answers. Cells with
// the same tables share one object; it refers to the first of them.
class CellTheory {
 public:
  CellTheory() = default;
  CellTheory(const CellTheory&) = delete;
  CellTheory& operator=(const CellTheory&) = delete;
  virtual ~CellTheory() = default;

  // Receives the distributions of one context at one depth of the block, each once and in order. For a lossy verifier of chains
  // with identical contexts, returns the distribution of a token emitted there; otherwise nothing.
  virtual std::vector<double> see(int context, int depth, const verify::PositionDistributions& distributions) = 0;
  // Called before see(): the classes that the tokens of this context are counted in.
  virtual void sorted_by(int /*context*/, const theory::TokenClasses& /*classes*/) {}
  // For the verifiers above: the distribution of the token after a fully accepted block; empty: the target's.
  [[nodiscard]] virtual std::vector<double> after_block(const verify::PositionDistributions& /*distributions*/) const {
    return {};
  }
  // Does long computations after the last distributions were seen. Called on a worker thread.
  virtual void finish() {}
  // The classes of the tokens that one round emits, if the verifier is a lossy one for which see() returns nothing, and rounds
  // are identically distributed and independent; otherwise nothing. After finish().
  [[nodiscard]] virtual std::optional<theory::TokenMoments> tokens_of_round() const { return std::nullopt; }
  // The prediction for a cell that shares the tables.
  [[nodiscard]] virtual RoundTheory answer(const spec::Cell& cell) const = 0;
};

// A theory of a cell, or the reason why there is none.
struct Coverage {
  std::unique_ptr<CellTheory> theory;
  std::string missing;
};

struct TheoryEntry {
  config::PartInfo info;
  std::vector<std::string> verifiers;  // names of the verifiers that it covers
  // Names of the drafters that it covers. Empty: every chain, and every drafter of blocks with the same tree in each round. The
  // drafts of such a drafter follow from its tree, its siblings and its distributions.
  std::vector<std::string> drafters;
  // Called for cells of these verifiers and drafters. Their policy, if any, is in policy_theories().
  std::function<Coverage(const spec::Cell&)> cover;
};

config::Registry<TheoryEntry>& theories();

// The effect of a policy, by the name of its entry: one of the two functions, or neither if rounds go as without it.
struct PolicyTheory {
  config::PartInfo info;
  // Draft lengths as a function of earlier acceptance.
  std::function<theory::LengthRule(const spec::Cell&)> lengths;
  // Whether drafting stops after a token of this probability, drawn from a distribution of this entropy in nats.
  std::function<bool(const config::Arguments&, double probability, double entropy)> stops;
  bool alone = false;  // `lengths` holds for batch 1 only, where a length does not depend on other sequences
};

config::Registry<PolicyTheory>& policy_theories();

// The entry that names the cell's verifier and drafter; nullptr, with `why`, if there is none.
const TheoryEntry* theory_entry(const spec::Cell& cell, std::string& why);
// The theory of the cell, or the reason why it has none.
Coverage cover(const spec::Cell& cell);

}  // namespace specsim::judge
