// Token numbers carry no meaning: every drafter, by its entry alone, with the labels in reverse order.
#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/verify/verifier.h"
#include "tests/support/cells.h"
#include "tests/support/samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace specsim::relabel_test {

namespace {

constexpr int kVocab = 24;
constexpr int kRuns = 12;

// Zipf's law for the target; for the draft a flatter one with neighbouring ranks exchanged: no two tokens are equal.
std::vector<double> masses(double exponent, int swapped, bool reversed) {
  std::vector<double> weights;
  double sum = 0.0;
  for (int token = 0; token < kVocab; ++token) sum += weights.emplace_back(std::pow(1.0 + (token ^ swapped), -exponent));
  for (double& weight : weights) weight /= sum;
  if (reversed) std::reverse(weights.begin(), weights.end());
  return weights;
}

// nullopt if the parts are not compatible.
std::optional<spec::Cell> cell_with(const std::string& drafter, const verify::VerifierEntry& verifier, bool reversed, int seed) {
  const std::string text = fmt::format(
      "{{experiment: relabel, seed: {}, rounds: 2560, theory: {{name: none}}, pair: {{vocab: {}, target: {{family: explicit, "
      "probabilities: [{:.17g}]}}, draft: {{family: explicit, probabilities: [{:.17g}]}}{}}}, context: {{process: fixed, "
      "sequence_rounds: 64}}, cost: {{model: ratio, cost_ratio: 0.1}}, decode: {{drafter: {}, verifier: {}}}}}",
      seed, kVocab, fmt::join(masses(1.1, 0, reversed), ", "), fmt::join(masses(0.8, 1, reversed), ", "),
      verifier.demands.one_hot_target ? ", target_sampling: {temperature: 0}" : "", drafter, verifier.info.name);
  Diagnostics diagnostics;
  const spec::Experiment experiment =
      spec::read_experiment(config::parse_text(text, "test", diagnostics), "test", {}, diagnostics);
  if (!diagnostics.empty()) return std::nullopt;
  return experiment.cells.at(0);
}

double tokens_per_round(const spec::Cell& cell) {
  const tests::ReadyCell ready(cell);
  const decode::Simulator simulator = ready.simulator();
  decode::Counts counts = simulator.empty_counts();
  for (std::uint64_t chunk = 0; chunk * simulator.chunk_size() < ready.cell().work(); ++chunk)
    simulator.run(chunk, ready.cell().work(), counts);
  return static_cast<double>(counts.emitted) / static_cast<double>(counts.rounds);
}

struct Figure {
  double mean = 0.0;
  double variance = 0.0;  // squared standard error of the mean
};

Figure over_runs(const std::string& drafter, const verify::VerifierEntry& verifier, bool reversed) {
  Figure figure;
  double squares = 0.0;
  for (int run = 0; run < kRuns; ++run) {
    const double own = tokens_per_round(*cell_with(drafter, verifier, reversed, 100 * (reversed ? 1 : 2) + run));
    figure.mean += own / kRuns;
    squares += own * own / kRuns;
  }
  figure.variance = std::max(0.0, squares - figure.mean * figure.mean) / (kRuns - 1);
  return figure;
}

// The first lossless verifier that accepts the drafter, preferably one for a sampled target.
const verify::VerifierEntry* verifier_for(const std::string& drafter) {
  const verify::VerifierEntry* found = nullptr;
  for (const verify::VerifierEntry& verifier : verify::verifiers().entries())
    if (verifier.lossless && (found == nullptr || found->demands.one_hot_target) &&
        cell_with(drafter, verifier, false, 1).has_value())
      found = &verifier;
  return found;
}

}  // namespace

TEST_CASE("every drafter emits as many tokens with the labels in reverse order", "[relabel]") {
  // Drafters whose rule does depend on the token's number, and why.
  const std::map<std::string, std::string> by_number = {
      {"rest",
       "its datastore is written in tokens; ties, which the program leaves to a hash map, are broken by token number here"}};
  int compared = 0;
  for (const draft::DrafterEntry& entry : draft::drafters().entries()) {
    if (by_number.count(entry.info.name) > 0) continue;
    int own = 0;
    for (const std::string& sample : tests::samples_of(entry.info)) {
      const verify::VerifierEntry* const verifier = verifier_for(sample);
      if (verifier == nullptr) continue;
      INFO(sample << ", " << verifier->info.name);
      const Figure in_order = over_runs(sample, *verifier, false);
      const Figure reversed = over_runs(sample, *verifier, true);
      INFO(in_order.mean << " in order, " << reversed.mean << " reversed");
      // Mutant: suffix decoding's ties go to the lowest token, .01 to .02 apart.
      CHECK(std::abs(in_order.mean - reversed.mean) < 5.0 * std::sqrt(in_order.variance + reversed.variance) + 1e-12);
      ++own;
    }
    INFO(entry.info.name);
    CHECK(own > 0);
    compared += own;
  }
  CHECK(compared > 40);
}

}  // namespace specsim::relabel_test
