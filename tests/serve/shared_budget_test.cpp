// The server policy adaptive_verification, step by step next to an oracle written from vLLM's program. Batches come and go,
// prompts share steps, drafts are cut and requests end, so that a different rule diverges.
#include "sim/foundation/config/choose.h"
#include "sim/serving/serve/policy.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace specsim::shared_budget_test {

namespace {

using serve::DraftedChain;
using serve::SharedStep;

constexpr std::uint32_t kLength = 4;
constexpr double kContext = 300.0;
constexpr std::uint32_t kLargest = 48;

// Dips at some sizes, which vLLM's table smooths out, and a jump at the end of graphs.
double target_seconds(double rows) { return 1.0 + 0.01 * rows + 0.05 * std::sin(rows) + (rows > kLargest ? 0.3 : 0.0); }
double draft_seconds(double sequences) { return 0.2 + 0.004 * sequences; }

serve::PassSeconds seconds(double sequences, double rows, double context, int draft_length) {
  REQUIRE(context == kContext);
  REQUIRE(draft_length == static_cast<int>(kLength));
  REQUIRE(sequences == std::ceil(rows / (kLength + 1.0)));
  return {target_seconds(rows), draft_seconds(sequences)};
}

std::unique_ptr<serve::ServerPolicy> made(const std::string& more) {
  Diagnostics diagnostics;
  const std::string yaml =
      "{kind: adaptive_verification, draft_length: 4, context: 300, largest_graph: 48, refit: 20" + more + "}";
  const config::Value section = config::parse_text(yaml, "test", diagnostics);
  const auto chosen = config::choose(serve::server_policies(), section, "kind", "test", diagnostics);
  diagnostics.throw_if_any();
  const serve::PolicyMaker maker = chosen.entry->read(chosen.arguments, diagnostics);
  diagnostics.throw_if_any();
  return maker({{}, {}, seconds, [](draft::Confidence) { return true; }});
}

// AdaptiveVerificationManager of vLLM, with the faults of mutants.
struct Oracle {
  bool stale = true;     // the budget depends on the confidences of the step before
  bool pads = true;      // passes take the time of the next captured size
  bool rises = true;     // a larger size is never cheaper than a smaller one
  bool prompts = true;   // rows of prompts and requests that only prefill count
  bool sure = true;      // a request's first drafts count as sure
  bool drafting = true;  // the draft's time counts
  bool forgets = true;   // a request that returns is new
  std::map<arrivals::RequestId, std::vector<double>> confidences = {};

  [[nodiscard]] double verify_cost(std::uint32_t rows) const {
    static const std::vector<std::uint32_t> captured = {1, 2, 4, 8, 16, 24, 32, 40, 48};
    std::vector<std::uint32_t> sizes = captured;
    for (const std::uint32_t tail : {72U, 96U, 192U, 384U}) sizes.push_back(tail);
    std::vector<double> costs;
    for (const std::uint32_t size : sizes) {
      const double own = target_seconds(size);
      costs.push_back(rises && !costs.empty() ? std::max(costs.back(), own) : own);
    }
    if (!pads) return target_seconds(rows);
    if (rows <= kLargest) {
      std::size_t at = 0;
      while (sizes[at] < rows) ++at;
      return costs[at];
    }
    std::size_t at = captured.size();
    if (rows <= sizes[at]) return costs[at];
    while (sizes[at + 1] < rows) ++at;
    const double share = static_cast<double>(rows - sizes[at]) / (sizes[at + 1] - sizes[at]);
    return costs[at] + share * (costs[at + 1] - costs[at]);
  }
  [[nodiscard]] double draft_cost(std::uint32_t requests) const {
    // Requests of the captured sizes, five rows each: 1, 2, 4, 5, 7, 8, 10.
    for (const std::uint32_t size : {1U, 2U, 4U, 5U, 7U, 8U, 10U})
      if (size >= requests) return draft_seconds(size);
    return draft_seconds(10) + (requests - 10.0) * (draft_seconds(10) - draft_seconds(8)) / 2.0;
  }
  // (-survival, position, chain) of every drafted token, the likeliest first; vLLM does not define the order of ties.
  [[nodiscard]] std::vector<std::tuple<double, std::size_t, std::size_t>> slots_of(
      const std::vector<DraftedChain>& chains) const {
    std::vector<std::tuple<double, std::size_t, std::size_t>> all;
    for (std::size_t i = 0; i < chains.size(); ++i) {
      const auto own = confidences.find(chains[i].request);
      double product = 1.0;
      for (std::size_t k = 0; k < chains[i].drafted; ++k) {
        product *= own != confidences.end() ? own->second[k] : sure ? 1.0 : 0.45;
        all.emplace_back(-product, k, i);
      }
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  void take(const std::vector<DraftedChain>& chains) {
    for (const DraftedChain& chain : chains) {
      if (chain.ended) continue;
      std::vector<double>& own = confidences.try_emplace(chain.request, kLength, 1.0).first->second;
      for (std::size_t k = 0; k < chain.drafted; ++k) own[k] = chain.forecasts[k].overlap;
    }
  }
  std::vector<std::uint32_t> share(const SharedStep& step, const std::vector<DraftedChain>& chains) {
    if (!stale) take(chains);
    const auto scores = slots_of(chains);
    take(chains);
    const auto requests = prompts ? step.requests : static_cast<std::uint32_t>(chains.size());
    const auto rows = prompts ? step.rows : static_cast<std::uint32_t>(chains.size());
    double tokens = prompts ? step.emitting : static_cast<double>(chains.size());
    std::size_t budget = 0;
    double best = -1.0;
    for (std::size_t drafts = 0; drafts <= scores.size(); ++drafts) {
      if (drafts > 0) tokens -= std::get<0>(scores[drafts - 1]);
      const double rate =
          tokens / ((drafting ? draft_cost(requests) : 0.0) + verify_cost(rows + static_cast<std::uint32_t>(drafts)));
      if (rate <= best) continue;
      best = rate;
      budget = drafts;
    }
    const auto slots = slots_of(chains);
    std::vector<std::uint32_t> verified(chains.size(), 0);
    for (std::size_t i = 0; i < budget; ++i) ++verified[std::get<2>(slots[i])];
    return verified;
  }
  void forget(arrivals::RequestId request) {
    if (forgets) confidences.erase(request);
  }
};

// Steps until the two diverge; the number of steps if they do not.
int steps_alike(Oracle oracle, std::uint64_t seed) {
  const auto policy = made(", confidence: head");
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  const auto below = [&](std::uint32_t most) { return static_cast<std::uint32_t>(random() % most); };
  std::vector<arrivals::RequestId> running;
  std::vector<arrivals::RequestId> ended;
  constexpr int kSteps = 3000;
  std::size_t wanted = 8;
  for (int step = 0; step < kSteps; ++step) {
    if (step % 50 == 0) wanted = std::array<std::size_t, 6>{1, 3, 7, 11, 16, 30}[below(6)];
    while (running.size() < wanted) {  // some of the ended requests return
      const arrivals::RequestId request = below(100);
      if (std::find(running.begin(), running.end(), request) == running.end()) running.push_back(request);
    }
    std::vector<std::vector<draft::LengthPolicy::TokenForecast>> forecasts;
    std::vector<DraftedChain> chains;
    SharedStep shared;
    for (const arrivals::RequestId request : running) {
      const bool last = std::find(ended.begin(), ended.end(), request) != ended.end();
      if (!last && unit(random) < 0.1) {  // its prompt
        shared.rows += 1 + below(20);
        shared.emitting += below(2);
        ++shared.requests;
        continue;
      }
      const std::uint32_t drafted = unit(random) < 0.05 ? below(kLength) : kLength;
      ++shared.requests;
      ++shared.rows;
      ++shared.emitting;
      if (drafted == 0) continue;
      auto& own = forecasts.emplace_back(drafted);
      for (auto& one : own) one.overlap = 0.2 + 0.79 * unit(random);
      chains.push_back({request, drafted, {}, last});
    }
    std::size_t at = 0;
    for (DraftedChain& chain : chains) chain.forecasts = forecasts[at++];
    for (DraftedChain& chain : chains)
      if (chain.ended) chain.forecasts = {};
    if (chains.empty()) continue;
    std::vector<std::uint32_t> verified(chains.size());
    policy->share(shared, chains, verified);
    if (verified != oracle.share(shared, chains)) return step;
    std::vector<std::uint32_t> accepted;
    for (const std::uint32_t own : verified) accepted.push_back(below(own + 1));
    policy->observe_shared(chains, verified, accepted);
    for (const arrivals::RequestId request : ended) {
      policy->forget(request);
      oracle.forget(request);
      std::erase(running, request);
    }
    ended.clear();
    for (const arrivals::RequestId request : running)
      if (unit(random) < 0.03) ended.push_back(request);
    if (wanted < running.size()) ended.push_back(running.back());
    std::sort(ended.begin(), ended.end());
    ended.erase(std::unique(ended.begin(), ended.end()), ended.end());
  }
  return kSteps;
}

}  // namespace

TEST_CASE("adaptive_verification of a server chooses budgets as vLLM's program, and no nearby rule does") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) CHECK(steps_alike(Oracle{}, seed) == 3000);
  for (bool Oracle::*const part :
       {&Oracle::stale, &Oracle::pads, &Oracle::rises, &Oracle::prompts, &Oracle::sure, &Oracle::drafting, &Oracle::forgets}) {
    Oracle mutant;
    mutant.*part = false;
    CHECK(steps_alike(mutant, 1) < 3000);
  }
}

TEST_CASE("adaptive_verification of a server: history learns the rates of positions from verified and reached drafts") {
  const auto policy = made(", confidence: history, budget: previous");
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  // Four equal requests: rows pay as long as a position's survival is above its cost, whatever the initial belief.
  const std::vector<double> rates = {0.95, 0.9, 0.2, 0.9};
  std::vector<DraftedChain> chains;
  for (arrivals::RequestId request = 0; request < 12; ++request) chains.push_back({request, kLength, {}, false});
  std::vector<std::uint32_t> verified(chains.size());
  for (int step = 0; step < 4000; ++step) {
    policy->share({12, 12, 12}, chains, verified);
    std::vector<std::uint32_t> accepted(chains.size(), 0);
    for (std::size_t i = 0; i < chains.size(); ++i)
      while (accepted[i] < verified[i] && unit(random) < rates[accepted[i]]) ++accepted[i];
    policy->observe_shared(chains, verified, accepted);
  }
  // The third position survives with .171, so it is as vLLM's budget by the true rates.
  Oracle oracle;
  for (arrivals::RequestId request = 0; request < 12; ++request) oracle.confidences[request] = rates;
  std::vector<draft::LengthPolicy::TokenForecast> forecasts(kLength);
  for (std::size_t k = 0; k < kLength; ++k) forecasts[k].overlap = rates[k];
  for (DraftedChain& chain : chains) chain.forecasts = forecasts;
  policy->share({12, 12, 12}, chains, verified);
  CHECK(verified == oracle.share({12, 12, 12}, chains));
  CHECK(verified.front() > 0);
  CHECK(verified.front() < kLength);
}

}  // namespace specsim::shared_budget_test
