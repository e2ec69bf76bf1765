#include "sim/rounds/theory/length_policies.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/round_distribution.h"
#include "sim/rounds/theory/stationary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace specsim::theory {
namespace {

void check_inputs(double alpha, const std::vector<double>& round_time) {
  SPECSIM_CHECK(alpha >= 0.0 && alpha <= 1.0, "alpha = {}", alpha);
  SPECSIM_CHECK(!round_time.empty(), "no round times");
  for (const double time : round_time) SPECSIM_CHECK(time > 0.0, "round time = {}", time);
}

// tokens[k]: mean tokens emitted by a round of length k.
PolicyFigures mixed(std::vector<double> length_distribution, const std::vector<double>& tokens,
                    const std::vector<double>& round_time) {
  math::CompensatedSum emitted;
  math::CompensatedSum time;
  for (std::size_t k = 0; k < length_distribution.size(); ++k) {
    emitted += length_distribution[k] * tokens[k];
    time += length_distribution[k] * round_time[k];
  }
  return {std::move(length_distribution), emitted.value(), time.value()};
}

}  // namespace

PolicyFigures oracle_length(double alpha, const std::vector<double>& round_time) {
  check_inputs(alpha, round_time);
  std::vector<double> emitted;
  for (std::size_t k = 0; k < round_time.size(); ++k) emitted.push_back(static_cast<double>(k + 1));
  return mixed(constant_alpha(alpha, static_cast<int>(round_time.size()) - 1).accepted, emitted, round_time);
}

PolicyFigures additive_length(double alpha, int increase, int decrease, int shortest, const std::vector<double>& round_time) {
  check_inputs(alpha, round_time);
  const int longest = static_cast<int>(round_time.size()) - 1;
  SPECSIM_CHECK(shortest >= 1 && shortest <= longest, "lengths {} to {}", shortest, longest);
  SPECSIM_CHECK(increase >= 1 && decrease >= 1, "increase = {}, decrease = {}", increase, decrease);
  const std::size_t states = round_time.size() - static_cast<std::size_t>(shortest);
  std::vector<double> transition(states * states, 0.0);
  for (int k = shortest; k <= longest; ++k) {
    const double rise = std::pow(alpha, k);
    const auto row = static_cast<std::size_t>(k - shortest) * states;
    transition[row + static_cast<std::size_t>(std::min(k + increase, longest) - shortest)] += rise;
    transition[row + static_cast<std::size_t>(std::max(k - decrease, shortest) - shortest)] += 1.0 - rise;
  }
  std::vector<double> distribution(static_cast<std::size_t>(shortest), 0.0);
  for (const double share : stationary_distribution(transition, states)) distribution.push_back(share);
  std::vector<double> tokens;
  for (std::size_t k = 0; k < round_time.size(); ++k) tokens.push_back(tokens_per_round(alpha, static_cast<int>(k)));
  return mixed(std::move(distribution), tokens, round_time);
}

LengthRule additive_rule(int first, int up, int down, int longest) {
  return {{0.0, std::min(first, longest)}, [=](const LengthMemory& memory, int drafted, int accepted) {
            const int length = accepted == drafted ? memory.length + up : memory.length - down;
            return LengthMemory{0.0, std::clamp(length, 1, longest)};
          }};
}

LengthRule ratio_tiers_rule(std::vector<int> tiers, double weight, double up, double down) {
  SPECSIM_CHECK(!tiers.empty() && std::is_sorted(tiers.begin(), tiers.end()), "{} tiers", tiers.size());
  const double middle = (up + down) / 2.0;
  const LengthMemory first{middle, tiers[tiers.size() / 2]};
  return {first, [=](const LengthMemory& memory, int drafted, int accepted) {
            if (drafted == 0) return memory;
            const double average = memory.value + weight * (static_cast<double>(accepted) / drafted - memory.value);
            const auto at = std::find(tiers.begin(), tiers.end(), memory.length) - tiers.begin();
            const auto last = static_cast<std::ptrdiff_t>(tiers.size()) - 1;
            if (average > up && at < last) return LengthMemory{middle, tiers[static_cast<std::size_t>(at + 1)]};
            if (average < down && at > 0) return LengthMemory{middle, tiers[static_cast<std::size_t>(at - 1)]};
            return LengthMemory{average, memory.length};
          }};
}

LengthRule sglang_tiers_rule(const SglangTiers& own) {
  SPECSIM_CHECK(!own.tiers.empty() && std::is_sorted(own.tiers.begin(), own.tiers.end()), "{} tiers", own.tiers.size());
  const auto next_length = [own](int length, double& average) {
    // The tiers below and above the present one.
    std::vector<int> below;
    std::vector<int> above;
    for (const int tier : own.tiers) {
      if (tier < length) below.insert(below.begin(), tier);
      if (tier > length) above.push_back(tier);
    }
    if (length == 0) {
      const int next = above.empty() ? 0 : above.front();
      if (next > 0 && average < 0.0) average = next - 1.0;
      return next;
    }
    int now = length;
    for (const int tier : below) {
      const double bar = (tier == 0 ? 0.5 : tier - 0.5) + own.down;
      if (average > bar) break;
      now = tier;
    }
    if (now == length) {
      for (const int tier : above) {
        if (!(average > now - 0.5 + own.up)) break;
        now = tier;
      }
    }
    if (own.ceiling > 0.0 && now <= length) {
      const double most = std::max(1.0, std::ceil(own.ceiling * average));
      while (now > most && now > own.tiers.front()) now = *(std::find(own.tiers.begin(), own.tiers.end(), now) - 1);
    }
    return now;
  };
  return {{own.first - 1.0, own.first, 0}, [own, next_length](const LengthMemory& memory, int drafted, int accepted) {
            LengthMemory after = memory;
            if (drafted > 0) after.value = (1.0 - own.weight) * memory.value + own.weight * accepted;
            ++after.rounds;
            const int late = after.rounds - own.warm_up;
            if (late > 0 && late % own.every == 0) after.length = next_length(memory.length, after.value);
            return after;
          }};
}

LengthRule goodput_rule(double first_alpha, double weight, int probe, std::vector<double> round_time) {
  check_inputs(first_alpha, round_time);
  const std::size_t longest = round_time.size() - 1;
  const auto best = [round_time = std::move(round_time)](double alpha) {
    std::size_t length = 0;
    for (std::size_t k = 1; k < round_time.size(); ++k) {
      const auto rate = [&](std::size_t of) { return tokens_per_round(alpha, static_cast<int>(of)) / round_time[of]; };
      if (rate(k) > rate(length)) length = k;
    }
    return LengthMemory{alpha, static_cast<int>(length)};
  };
  return {best(first_alpha), [=](const LengthMemory& memory, int drafted, int accepted) {
            const int tries = std::min(accepted + 1, drafted);
            const double seen = tries > 0 ? static_cast<double>(accepted) / tries : memory.value;
            LengthMemory after = best((1.0 - weight) * memory.value + weight * seen);
            if (drafted == 0) after.rounds = memory.rounds + 1;
            if (after.rounds >= probe && after.length == 0 && longest > 0) after.length = 1;
            return after;
          }};
}

}  // namespace specsim::theory
