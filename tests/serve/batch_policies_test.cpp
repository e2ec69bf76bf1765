// Policies of servers that choose one draft length for the batch, step by step next to oracles written from SGLang's program.
// Observations are drawn at random, so that a rule with another window, threshold or batch size diverges.
#include "sim/foundation/config/choose.h"
#include "sim/serving/serve/policy.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace specsim::batch_policies_test {
namespace {

using serve::BatchState;

double seconds(const BatchState& batch, int length) {
  // Passes that grow with rows, so that the best length falls as the batch grows.
  return 1.0 + 0.08 * length + 0.004 * batch.requests * (length + 1) + 1e-7 * batch.cached;
}

std::unique_ptr<serve::ServerPolicy> made(const std::string& yaml) {
  Diagnostics diagnostics;
  const config::Value section = config::parse_text(yaml, "test", diagnostics);
  const auto chosen = config::choose(serve::server_policies(), section, "kind", "test", diagnostics);
  REQUIRE(chosen.entry != nullptr);
  const serve::PolicyMaker maker = chosen.entry->read(chosen.arguments, diagnostics);
  for (const Diagnostic& one : diagnostics.list()) FAIL(one.message);
  REQUIRE(maker);
  return maker({seconds, {}});
}

std::string refused(const std::string& yaml) {
  Diagnostics diagnostics;
  const config::Value section = config::parse_text(yaml, "test", diagnostics);
  const auto chosen = config::choose(serve::server_policies(), section, "kind", "test", diagnostics);
  if (chosen.entry != nullptr && diagnostics.list().empty()) chosen.entry->read(chosen.arguments, diagnostics);
  REQUIRE(diagnostics.list().size() == 1);
  return diagnostics.list().front().message;
}

// Results of a step: the number of accepted drafts of each sequence.
struct Played {
  std::vector<int> accepted;
  int drafted = 0;
};

Played play(int sequences, int drafted, double rate, std::mt19937_64& random) {
  Played played{std::vector<int>(static_cast<std::size_t>(sequences)), drafted};
  for (int& one : played.accepted)
    while (one < drafted && std::uniform_real_distribution<double>()(random) < rate) ++one;
  return played;
}

void tell(serve::ServerPolicy& policy, const Played& played) {
  std::vector<std::uint32_t> verified(static_cast<std::size_t>(played.drafted));
  std::vector<std::uint32_t> accepted(verified.size());
  for (const int one : played.accepted)
    for (int at = 0; at < played.drafted && at <= one; ++at) {
      ++verified[static_cast<std::size_t>(at)];
      accepted[static_cast<std::size_t>(at)] += at < one ? 1 : 0;
    }
  policy.observe({static_cast<std::uint32_t>(played.accepted.size()), verified, accepted});
}

// strategy throughput_aware, with the faults of mutants.
struct ThroughputOracle {
  int window = 20;
  bool clears = true;      // observations of longer lengths are forgotten
  bool carries_on = true;  // rates of positions without drafts go on geometrically, not as 0
  bool pads = true;        // batches count with the size of the graph that they are padded to
  std::map<int, std::vector<int>> candidates = {{1, {1, 3, 5, 7}}, {8, {1, 3, 5}}, {32, {1, 3}}, {128, {1}}};

  std::vector<std::vector<double>> shares = std::vector<std::vector<double>>(7);  // [position], newest last
  int length = 5;                                                                 // the middle of [1, 3, 5, 7], as in the program
  int count = 0;

  [[nodiscard]] double rate(std::size_t at) const {
    const std::vector<double>& all = shares[at];
    const std::size_t used = std::min(all.size(), static_cast<std::size_t>(window));
    double sum = 0.0;
    for (std::size_t i = all.size() - used; i < all.size(); ++i) sum += all[i];
    return sum / static_cast<double>(used);
  }
  int next(int batch) {
    bool warm = count > 0 && count % 10 == 0;
    for (std::size_t at = 0; at < static_cast<std::size_t>(length); ++at)
      warm = warm && shares[at].size() >= static_cast<std::size_t>(window);
    if (!warm) return length;
    if (pads) {
      for (const auto& [most, step] : std::vector<std::pair<int, int>>{{8, 1}, {32, 2}, {64, 4}, {256, 8}})
        if (batch <= most) {
          while (batch % step != 0) ++batch;
          break;
        }
    }
    const std::vector<int>* own = nullptr;
    for (const auto& [from, lengths] : candidates)
      if (from <= batch) own = &lengths;
    int best = length;
    double best_score = -1.0;
    for (const int steps : *own) {
      double expected = 1.0;
      std::vector<double> rates;
      for (std::size_t at = 0; at < static_cast<std::size_t>(steps); ++at) {
        double own_rate = 0.0;
        if (!shares[at].empty())
          own_rate = rate(at);
        else if (carries_on && rates.size() == 1)
          own_rate = rates[0];
        else if (carries_on && rates[0] > 0.0)
          own_rate = std::min(rates.back(),
                              rates.back() * std::pow(rates.back() / rates[0], 1.0 / (static_cast<double>(rates.size()) - 1.0)));
        rates.push_back(own_rate);
        expected += own_rate;
      }
      const int priced = std::min(batch, 128);
      const double score = expected / seconds({static_cast<std::uint32_t>(priced), 0, priced * 2048.0}, steps);
      if (score > best_score) {
        best_score = score;
        best = steps;
      }
    }
    if (best < length && clears)
      for (std::size_t at = static_cast<std::size_t>(best); at < shares.size(); ++at) shares[at].clear();
    return length = best;
  }
  void observe(const Played& played) {
    for (int at = 0; at < length; ++at) {
      double share = 0.0;
      for (const int one : played.accepted) share += one > at ? 1.0 : 0.0;
      shares[static_cast<std::size_t>(at)].push_back(share / static_cast<double>(played.accepted.size()));
    }
    ++count;
  }
};

// strategy ema with its default configuration, with the faults of mutants.
struct EmaOracle {
  bool apart = true;  // each range of batches has an average of its own
  double weight = 0.2;
  bool down_early = true;  // down_hysteresis of -.25 at batch 1
  struct Slot {
    int from;
    std::vector<int> tiers;
    double down;
    int length;
    double average;
    int count = 0;
  };
  std::vector<Slot> slots = {
      {1, {1, 3, 5, 7}, -0.25, 5, 4.0}, {8, {0, 1, 3}, 0.0, 1, 0.0}, {32, {0, 1}, 0.0, 1, 0.0}, {64, {0}, 0.0, 0, -1.0}};

  Slot& of(int batch) {
    Slot* own = &slots.front();
    for (Slot& slot : slots)
      if (apart && slot.from <= batch) own = &slot;
    return *own;
  }
  int next(int batch) { return of(batch).length; }
  void observe(const Played& played) {
    Slot& slot = of(static_cast<int>(played.accepted.size()));
    if (slot.length > 0) {
      double mean = 0.0;
      for (const int one : played.accepted) mean += one;
      mean /= static_cast<double>(played.accepted.size());
      slot.average = (1.0 - weight) * slot.average + weight * mean;
    }
    if (++slot.count <= 10 || (slot.count - 10) % 5 != 0) return;
    const auto found = std::find(slot.tiers.begin(), slot.tiers.end(), slot.length);
    auto at = static_cast<std::size_t>(found - slot.tiers.begin());
    const std::size_t begun = at;
    if (slot.length == 0) {
      at = std::min(at + 1, slot.tiers.size() - 1);
      if (slot.tiers[at] > 0 && slot.average < 0.0) slot.average = slot.tiers[at] - 1.0;
    } else {
      while (at > 0) {
        const int below = slot.tiers[at - 1];
        const double threshold = (below == 0 ? 0.5 : below - 0.5) + (down_early ? slot.down : 0.0);
        if (slot.average > threshold) break;
        --at;
      }
      while (at >= begun && at + 1 < slot.tiers.size() && slot.average > slot.tiers[at] - 0.5) ++at;
    }
    slot.length = slot.tiers[at];
  }
};

// Steps of batches that come and go, with acceptance that drifts, until the two diverge; the number of steps if they do not.
template <class Oracle>
int steps_alike(const std::string& yaml, Oracle oracle, std::uint64_t seed) {
  const std::unique_ptr<serve::ServerPolicy> policy = made(yaml);
  std::mt19937_64 random(seed);
  int batch = 1;
  double rate = 0.7;
  constexpr int kSteps = 4000;
  for (int step = 0; step < kSteps; ++step) {
    if (step % 97 == 0) batch = std::array{1, 2, 5, 9, 15, 31, 33, 61, 130, 300}[random() % 10];
    if (step % 61 == 0) rate = std::uniform_real_distribution<double>(0.05, 0.98)(random);
    const int length = policy->draft_length({static_cast<std::uint32_t>(batch), 0, batch * 700.0});
    if (length != oracle.next(batch)) return step;
    const Played played = play(batch, length, rate, random);
    tell(*policy, played);
    oracle.observe(played);
  }
  return kSteps;
}

}  // namespace

TEST_CASE("throughput_aware chooses as SGLang's controller, and no nearby rule does") {
  const std::string yaml = "{kind: throughput_aware}";
  for (std::uint64_t seed = 1; seed <= 3; ++seed) CHECK(steps_alike(yaml, ThroughputOracle{}, seed) == 4000);
  ThroughputOracle mutant;
  mutant.window = 19;
  CHECK(steps_alike(yaml, mutant, 1) < 4000);
  mutant = {};
  mutant.clears = false;
  CHECK(steps_alike(yaml, mutant, 1) < 4000);
  mutant = {};
  mutant.carries_on = false;
  CHECK(steps_alike(yaml, mutant, 1) < 4000);
  mutant = {};
  mutant.pads = false;
  CHECK(steps_alike(yaml, mutant, 1) < 4000);
  CHECK(made(yaml)->lengths() == std::vector<int>{1, 3, 5, 7});
}

TEST_CASE("ema_tiers of the batch keeps an average for each range of batches, as SGLang's slots") {
  const std::string yaml = "{kind: adaptive, policy: ema_tiers, per: batch, batches: [1, 8, 32, 64]}";
  for (std::uint64_t seed = 1; seed <= 3; ++seed) CHECK(steps_alike(yaml, EmaOracle{}, seed) == 4000);
  EmaOracle mutant;
  mutant.apart = false;
  CHECK(steps_alike(yaml, mutant, 1) < 4000);
  mutant = {};
  mutant.weight = 0.25;
  CHECK(steps_alike(yaml, mutant, 1) < 4000);
  mutant = {};
  mutant.down_early = false;
  CHECK(steps_alike(yaml, mutant, 1) < 4000);
}

TEST_CASE("speculation_gate stops for good once the mean of a whole window is below the threshold") {
  const std::string yaml = "{kind: speculation_gate, draft_length: 4, window: 3, threshold: 0.5";
  const BatchState batch{2, 0, 0.0};
  const auto gate = made(yaml + "}");
  tell(*gate, {{0, 0}, 4});
  tell(*gate, {{1, 1}, 4});
  CHECK(gate->draft_length(batch) == 4);  // the window is not full. Mutant: the mean of the observations so far
  tell(*gate, {{4, 4}, 4});
  CHECK(gate->draft_length(batch) == 0);  // (0 + .25 + 1) / 3
  for (int i = 0; i < 5; ++i) tell(*gate, {{4, 4}, 4});
  CHECK(gate->draft_length(batch) == 0);  // Mutant: on again when the newest steps are good
  // A step's acceptance is that of all its sequences: 4 of 8, exactly the threshold. Mutant: only above, not at the threshold.
  const auto even = made(yaml + "}");
  for (int i = 0; i < 6; ++i) tell(*even, {{4, 0}, 4});
  CHECK(even->draft_length(batch) == 4);
  // The oldest step is dropped; steps without drafts do not count. Mutant: the mean of all steps, .42.
  const auto rolling = made(yaml + "}");
  for (const int accepted : {4, 4, 0, 2, 4, 0}) {
    tell(*rolling, {{accepted, accepted}, 4});
    tell(*rolling, {{0, 0}, 0});
  }
  CHECK(rolling->draft_length(batch) == 4);  // (2 + 4 + 0) / 12
  tell(*rolling, {{1, 1}, 4});
  CHECK(rolling->draft_length(batch) == 0);  // (4 + 0 + 1) / 12
  // A step of four sequences that accepts one token less than half. Mutant: a threshold that is a little lower.
  const auto near = made(yaml + "}");
  for (int i = 0; i < 3; ++i) tell(*near, {{4, 4, 4, 4, 0, 0, 0, 0}, 4});
  CHECK(near->draft_length(batch) == 4);
  tell(*near, {{4, 4, 4, 3, 0, 0, 0, 0}, 4});
  CHECK(near->draft_length(batch) == 0);
  const auto small = made(yaml + ", disable_above_batch: 1}");
  CHECK(small->draft_length(batch) == 0);
  CHECK(small->draft_length({1, 0, 0.0}) == 4);
}

TEST_CASE("contradictory settings of batch policies are refused") {
  CHECK(
      refused("{kind: adaptive, policy: additive, per: batch}") ==
      "additive chooses for each sequence, allowed with per: batch: a policy with one length per batch, as ema_tiers or goodput");
  CHECK(refused("{kind: adaptive, policy: ema_tiers, per: batch, batches: [1, 8, 8]}") ==
        "batches has 8, allowed: increasing integers from 1");
  CHECK(refused("{kind: adaptive, policy: ema_tiers, per: batch, batches: [2]}") ==
        "batches has 2, allowed: increasing integers from 1");
  CHECK(refused("{kind: adaptive, policy: ema_tiers, per: batch, batch: 4}") ==
        "batch with per: batch, allowed: batches, or with per: request");
  CHECK(refused("{kind: adaptive, policy: ema_tiers, batches: [1, 4]}") ==
        "batches with a length for each request, allowed: batch, or with per: batch");
  CHECK(refused("{kind: throughput_aware, candidates: [[4, 1]]}") ==
        "a row of candidates starts at batch 4, allowed: 1, for the first");
  CHECK(refused("{kind: throughput_aware, candidates: [[1, 3, 1]]}") ==
        "candidates has the draft length 1, allowed: increasing ones in [1, 64]");
  CHECK(refused("{kind: throughput_aware, candidates: [[1]]}") ==
        "a row of candidates has no draft length, allowed: [smallest batch, draft lengths]");
}

}  // namespace specsim::batch_policies_test
