// Cells for exact tests: from a few lines of YAML, or from distributions that are listed context by context.
#pragma once

#include "sim/experiments/audit/audit.h"
#include "sim/experiments/spec/spec.h"
#include "sim/foundation/base/check.h"
#include "sim/rounds/decode/simulator.h"
#include "tests/support/enumeration.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace specsim::tests {

using Distribution = std::vector<double>;

// `pair`, `context`, `drafter` and `verifier` in flow style, as a config has them.
inline spec::Cell cell_of(const std::string& pair, const std::string& context, const std::string& drafter,
                          const std::string& verifier, std::uint64_t seed = 20260117) {
  const std::string text =
      fmt::format("{{experiment: exact, seed: {}, pair: {}, context: {}, decode: {{drafter: {}, verifier: {}}}}}", seed, pair,
                  context, drafter, verifier);
  Diagnostics diagnostics;
  config::Value config = config::parse_text(text, "test", diagnostics);
  spec::Experiment experiment = spec::read_experiment(std::move(config), "test", {}, diagnostics);
  INFO(text);
  diagnostics.throw_if_any();
  REQUIRE(experiment.cells.size() == 1);
  return experiment.cells.front();
}

inline std::string chain(int draft_length, bool argmax = false) {
  return fmt::format("{{kind: chain, draft_length: {}, selection: {}}}", draft_length, argmax ? "argmax" : "sampled");
}

inline std::string explicit_distribution(const Distribution& distribution) {
  std::string list;
  for (const double p : distribution) list += fmt::format("{}{:.17g}", list.empty() ? "" : ", ", p);
  return fmt::format("{{family: explicit, probabilities: [{}]}}", list);
}

inline std::string explicit_pair(const Distribution& target, const Distribution& draft) {
  return fmt::format("{{vocab: {}, target: {}, draft: {}}}", target.size(), explicit_distribution(target),
                     explicit_distribution(draft));
}

inline const Distribution kFirstTarget = {1.0 / 3.0, 2.0 / 3.0};
inline const Distribution kFirstDraft = {2.0 / 3.0, 1.0 / 3.0};
inline const Distribution kSecondTarget = {2.0 / 8.0, 3.0 / 8.0, 3.0 / 8.0};
inline const Distribution kSecondDraft = {1.0 / 8.0, 1.0 / 8.0, 6.0 / 8.0};

inline spec::Cell first_pair(int draft_length, const std::string& verifier = "token") {
  return cell_of(explicit_pair(kFirstTarget, kFirstDraft), "{process: fixed}", chain(draft_length), verifier);
}
inline spec::Cell second_pair(int draft_length, const std::string& verifier = "token") {
  return cell_of(explicit_pair(kSecondTarget, kSecondDraft), "{process: fixed}", chain(draft_length), verifier);
}

// Distributions listed by context, and contexts that follow a table of successors [context][token].
class ListedDistribution final : public families::Distribution {
 public:
  explicit ListedDistribution(tests::Distribution distribution) : distribution_(std::move(distribution)) {}
  void draw(const families::DistributionAddress&, const families::TargetDistributions&,
            std::span<double> distribution) const override {
    std::copy(distribution_.begin(), distribution_.end(), distribution.begin());
  }

 private:
  tests::Distribution distribution_;
};

class ListedProcess final : public families::ContextProcess {
 public:
  ListedProcess(std::vector<std::vector<std::uint32_t>> next) : next_(std::move(next)) {
    shape_.kind = families::ContextShape::Kind::markov;
    shape_.contexts = static_cast<int>(next_.size());
  }
  [[nodiscard]] const families::ContextShape& shape() const override { return shape_; }
  void start(rng::Key, std::uint64_t, std::size_t count, std::uint32_t* context) const override {
    std::fill_n(context, count, 0U);
  }
  [[nodiscard]] bool moves() const override { return true; }
  void step(rng::Key, std::uint64_t, const std::uint32_t* lanes, std::size_t count, const std::uint32_t*, const Token* token,
            std::uint32_t* context) const override {
    for (std::size_t i = 0; i < count; ++i) context[lanes[i]] = next(context[lanes[i]], token[i]);
  }
  [[nodiscard]] std::uint32_t next(std::uint32_t context, Token token) const override { return next_[context][token]; }

 private:
  std::vector<std::vector<std::uint32_t>> next_;
  families::ContextShape shape_;
};

inline spec::Cell listed_cell(const std::vector<Distribution>& targets, const std::vector<Distribution>& drafts,
                              const std::vector<std::vector<std::uint32_t>>& next, int draft_length, const std::string& verifier,
                              bool argmax = false) {
  spec::Cell cell;
  cell.experiment = "listed";
  cell.seed = 7;
  cell.vocab = static_cast<int>(targets.front().size());
  const verify::VerifierEntry* entry = verify::verifiers().find(verifier);
  SPECSIM_CHECK(entry != nullptr, "verifier {}", verifier);
  const draft::Chain chain{draft_length, argmax};
  if (entry->make)
    cell.method = spec::ChainMethod{chain, {entry, {}, entry->make({})}};
  else
    cell.method = spec::BlockMethod{chain,
                                    {draft::drafters().find("chain"), {}, draft::chain_block(draft_length)},
                                    {entry, {}, entry->make_block({})},
                                    {},
                                    true};
  auto model = std::make_shared<families::ContextModel>();
  for (std::size_t c = 0; c < targets.size(); ++c) {
    std::vector<std::unique_ptr<families::Distribution>> draft;
    draft.push_back(std::make_unique<ListedDistribution>(drafts[c]));
    model->pairs.emplace_back(std::make_unique<ListedDistribution>(targets[c]), std::move(draft), math::Sampling{},
                              math::Sampling{});
  }
  model->process = std::make_unique<ListedProcess>(next);
  cell.contexts = std::move(model);
  cell.pairing_group = 1;
  return cell;
}

// The cell in the form of the independent enumeration.
inline theory::Automaton automaton_of(const spec::Cell& cell) {
  decode::PreparationPlan plan = spec::plan_of(cell);
  plan.argmax_draft = false;
  const families::ContextProcess& process = *cell.contexts->process;
  const auto contexts = static_cast<std::size_t>(process.shape().contexts);
  theory::Automaton automaton;
  automaton.vocab = cell.vocab;
  automaton.states = process.shape().contexts;
  automaton.target.resize(contexts);
  std::vector<std::vector<Distribution>> by_depth(static_cast<std::size_t>(process.shape().depths),
                                                  std::vector<Distribution>(contexts));
  decode::prepare(
      plan,
      [&](int context, int depth, const verify::PositionDistributions& distributions, const decode::OutputClasses&) {
        const auto c = static_cast<std::size_t>(context);
        automaton.target[c].assign(distributions.target.begin(), distributions.target.end());
        by_depth[static_cast<std::size_t>(depth)][c].assign(distributions.draft_model.begin(), distributions.draft_model.end());
      },
      false);
  for (std::size_t c = 0; c < contexts; ++c)
    for (int x = 0; x < cell.vocab; ++x)
      automaton.next.push_back(process.moves()
                                   ? static_cast<int>(process.next(static_cast<std::uint32_t>(c), static_cast<Token>(x)))
                                   : static_cast<int>(c));
  if (by_depth.size() == 1) {
    automaton.draft = by_depth;
  } else {
    for (int i = 0; i < std::max(cell.draft_length(), 1); ++i)
      automaton.draft.push_back(by_depth[std::min(static_cast<std::size_t>(i), by_depth.size() - 1)]);
  }
  return automaton;
}

// nullopt for a verifier that the enumeration does not have.
inline std::optional<theory::Rule> witness_rule(const std::string& verifier) {
  if (verifier == "token") return theory::Rule::token;
  if (verifier == "block") return theory::Rule::block;
  if (verifier == "greedy") return theory::Rule::greedy;
  if (verifier == "sample_match") return theory::Rule::sample_match;
  if (verifier == "soft_argmax") return theory::Rule::soft_argmax;
  return std::nullopt;
}

inline double largest_difference(const Distribution& a, const Distribution& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// The largest difference between an audit and the independent enumeration: joint distribution, distribution of accepted, both
// expectations.
inline double witness_difference(const spec::Cell& cell, const audit::AuditReport& report) {
  theory::Automaton automaton = automaton_of(cell);
  const std::optional<theory::Rule> rule = witness_rule(cell.verifier().info.name);
  SPECSIM_CHECK(rule.has_value(), "no witness for {}", cell.verifier().info.name);
  double largest = 0.0;
  for (const audit::AuditStart& start : report.starts) {
    automaton.start = static_cast<int>(start.context);
    const theory::Enumeration witness = theory::enumerate(
        automaton, {*rule, cell.draft_length(), cell.argmax_draft() ? theory::Drafting::argmax : theory::Drafting::sampled},
        cell.draft_length() + 1);
    largest = std::max({largest, largest_difference(start.joint, witness.joint),
                        largest_difference(start.target_joint, witness.target_joint),
                        largest_difference(start.accepted_distribution, witness.accepted.accepted),
                        std::abs(start.expected_accepted - witness.accepted.mean_accepted()),
                        std::abs(start.expected_emitted - witness.expected_emitted)});
  }
  return largest;
}

// Tokens of every round as Simulator::run emits them, by lane.
class Recorder final : public decode::RoundSink {
 public:
  struct Round {
    std::vector<Token> emitted;
    std::uint32_t next_context = 0;
  };
  void round(std::uint32_t lane, std::uint32_t round, std::span<const Token> emitted, std::uint32_t next_context) override {
    if (lanes.size() <= lane) lanes.resize(lane + 1);
    SPECSIM_CHECK(lanes[lane].size() == round, "lane {}: round {} after {}", lane, round, lanes[lane].size());
    lanes[lane].push_back({{emitted.begin(), emitted.end()}, next_context});
  }
  [[nodiscard]] std::vector<Token> text(std::size_t lane) const {
    std::vector<Token> tokens;
    for (const Round& r : lanes[lane]) tokens.insert(tokens.end(), r.emitted.begin(), r.emitted.end());
    return tokens;
  }
  std::vector<std::vector<Round>> lanes;
};

// One chunk of `rounds` rounds as a simulation runs it.
struct Run {
  decode::Counts counts;
  Recorder rounds;
};
inline void run_chunk(const spec::Cell& cell, std::uint64_t rounds, Run& run) {
  const decode::PreparationPlan plan = spec::plan_of(cell);
  const decode::Prepared prepared = decode::prepare(plan, {});
  const decode::Simulator simulator(plan, prepared, spec::draw_key(cell), cell.draft_length(), cell.sequence_rounds);
  run.counts = simulator.empty_counts();
  simulator.run(0, rounds, run.counts, &run.rounds);
}

// Small addressed numbers for test inputs.
class InputNumbers {
 public:
  explicit InputNumbers(std::uint64_t seed) : stream_(rng::make_key(seed, 99), rng::Purpose::distribution, 0, 0) {}
  double next() { return rng::to_unit(stream_()); }
  std::uint64_t bits() { return stream_(); }
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() * static_cast<double>(bound)); }
  // Zeros with the given probability each.
  Distribution distribution(std::size_t size, double zeros) {
    Distribution distribution(size);
    double sum = 0.0;
    for (double& p : distribution) sum += p = next() < zeros ? 0.0 : next();
    if (sum == 0.0) sum = distribution[below(size)] = 1.0;
    for (double& p : distribution) p /= sum;
    return distribution;
  }

 private:
  rng::Stream stream_;
};

}  // namespace specsim::tests
