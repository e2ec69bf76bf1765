// Helpers of the tests of context processes.
#pragma once

#include "tests/support/cells.h"
#include "tests/support/tails.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace specsim::tests {

// Every statistical check below has a fixed seed and the bound 1e-6 on its p-value.
inline constexpr double kLevel = 1e-6;

inline constexpr const char* kPair =
    "{vocab: 9, target: {family: dirichlet, concentration: 1}, draft: {from: target, transform: mix_noise, value: .5, noise: "
    "{family: dirichlet, "
    "concentration: 1}}}";
inline constexpr const char* kRegimes =
    "{process: regimes, states: [{}, {draft: {family: uniform}}, {target: {family: zipf, exponent: 1}}], "
    "transition: [[.8, .15, .05], [.3, .3, .4], [.1, 0, .9]]";

inline std::string yaml_of(const std::string& context, int draft_length, std::uint64_t rounds = 100000) {
  return fmt::format(
      "{{experiment: contexts, seed: 20260440, rounds: {}, pair: {}, context: {}, decode: {{drafter: {{kind: chain, "
      "draft_length: {}}}}}}}",
      rounds, kPair, context, draft_length);
}

// Runs every chunk of a cell.
template <class Sink>
decode::Counts simulate(const ReadyCell& ready, std::uint64_t total, Sink* sink) {
  const decode::Simulator simulator = ready.simulator();
  decode::Counts counts = simulator.empty_counts();
  for (std::uint64_t i = 0; i * simulator.chunk_size() < total; ++i) {
    if (sink != nullptr) sink->chunk(i);
    simulator.run(i, total, counts, sink);
  }
  return counts;
}

// A process alone: 256 sequences, text position by text position; calls f(lane, position, context).
template <class F>
void walk(const families::ContextProcess& process, rng::Key key, std::uint64_t first_sequence, std::uint32_t positions, F&& f) {
  std::vector<std::uint32_t> context(decode::kLanes);
  process.start(key, first_sequence, decode::kLanes, context.data());
  std::vector<std::uint32_t> lanes(decode::kLanes);
  std::iota(lanes.begin(), lanes.end(), 0U);
  std::vector<std::uint32_t> position(decode::kLanes, 0);
  const std::vector<Token> token(decode::kLanes, 0);
  for (std::uint32_t p = 0; p < positions; ++p) {
    for (std::uint32_t lane = 0; lane < decode::kLanes; ++lane) f(lane, p, context[lane]);
    process.step(key, first_sequence, lanes.data(), lanes.size(), position.data(), token.data(), context.data());
    for (std::uint32_t& at : position) ++at;
  }
}

inline std::shared_ptr<const families::ContextModel> model(const std::string& context) {
  return experiment_of(yaml_of(context, 1)).cells.at(0).contexts;
}

inline const rng::Key kKey = rng::make_key(20260441, 5);

}  // namespace specsim::tests
