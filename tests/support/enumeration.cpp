#include "tests/support/enumeration.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/foundation/math/series.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

namespace specsim::theory {
namespace {

using Distribution = std::vector<double>;

int argmax_of(const Distribution& distribution) {
  return static_cast<int>(std::max_element(distribution.begin(), distribution.end()) - distribution.begin());
}

Distribution one_hot(std::size_t size, int token) {
  Distribution distribution(size, 0.0);
  distribution[index_of(token)] = 1.0;
  return distribution;
}

// (scale target - draft)+ divided by its sum. `weight` is the probability of the rejection that needs it: distributions that are
// equal up to their last digits can reject with a weight of one rounding unit and no residual; any distribution serves there.
Distribution residual_distribution(const Distribution& target, const Distribution& draft, double scale, double weight) {
  Distribution residual(target.size());
  double mass = 0.0;
  for (std::size_t x = 0; x < target.size(); ++x) mass += residual[x] = std::max(0.0, scale * target[x] - draft[x]);
  if (mass == 0.0) {
    SPECSIM_CHECK(weight < 1e-12, "rejected with probability {} without residual mass", weight);
    return target;
  }
  for (double& share : residual) share /= mass;
  return residual;
}

double residual_sum(const Distribution& target, const Distribution& draft, double scale) {
  double mass = 0.0;
  for (std::size_t x = 0; x < target.size(); ++x) mass += std::max(0.0, scale * target[x] - draft[x]);
  return mass;
}

// All branches of one round that begins in a given state.
class RoundWalk {
 public:
  RoundWalk(const Automaton& automaton, const RoundRule& rule) : automaton_(automaton), rule_(rule) {}

  std::map<std::vector<int>, math::CompensatedSum> run(int state) {
    states_ = {state};
    draft_on(1.0);
    return std::move(outcomes_);
  }

 private:
  [[nodiscard]] int length() const { return rule_.rule == Rule::plain ? 0 : rule_.draft_length; }
  [[nodiscard]] bool drafts_argmax() const { return rule_.drafting == Drafting::argmax || rule_.rule == Rule::soft_argmax; }
  [[nodiscard]] const Distribution& target(int position) const {
    return automaton_.target[index_of(states_[index_of(position)])];
  }
  [[nodiscard]] const Distribution& soft_draft(int position) const {
    return automaton_.draft_at(position, states_[index_of(position)]);
  }
  // The distribution of the drafted token.
  [[nodiscard]] Distribution drafted_distribution(int position) const {
    const Distribution& soft = soft_draft(position);
    return drafts_argmax() ? one_hot(soft.size(), argmax_of(soft)) : soft;
  }
  // The distribution that the rule receives.
  [[nodiscard]] Distribution told_distribution(int position) const {
    return rule_.rule == Rule::soft_argmax ? soft_draft(position) : drafted_distribution(position);
  }

  // Extends the block in every way, then verifies it.
  void draft_on(double probability) {
    const int position = static_cast<int>(block_.size());
    if (position == length()) {
      if (rule_.rule == Rule::block) {
        verify_block(probability);
      } else {
        verify_from(0, probability);
      }
      return;
    }
    const Distribution distribution = drafted_distribution(position);
    for (int token = 0; token < automaton_.vocab; ++token) {
      const double chance = distribution[index_of(token)];
      if (chance == 0.0) continue;
      block_.push_back(token);
      states_.push_back(automaton_.after(states_.back(), token));
      draft_on(probability * chance);
      states_.pop_back();
      block_.pop_back();
    }
  }

  // Ends the round after `accepted` drafts with a final token of the given distribution.
  void finish(int accepted, const Distribution& final_distribution, double probability) {
    if (probability == 0.0) return;
    std::vector<int> emitted(block_.begin(), block_.begin() + accepted);
    emitted.push_back(0);
    for (int token = 0; token < automaton_.vocab; ++token) {
      const double chance = final_distribution[index_of(token)];
      if (chance == 0.0) continue;
      emitted.back() = token;
      outcomes_[emitted] += probability * chance;
    }
  }

  // Rules that judge positions one after another.
  void verify_from(int position, double probability) {
    if (probability == 0.0) return;
    if (position == length()) {
      finish(position, target(position), probability);
      return;
    }
    const Distribution& wanted = target(position);
    const int token = block_[index_of(position)];
    double accept = 0.0;
    Distribution otherwise(wanted.size(), 0.0);
    switch (rule_.rule) {
      case Rule::token:
      case Rule::soft_argmax:
      case Rule::resample_target_mutant: {
        const Distribution told = told_distribution(position);
        accept = std::min(1.0, wanted[index_of(token)] / told[index_of(token)]);
        if (accept < 1.0) {
          otherwise =
              rule_.rule == Rule::resample_target_mutant ? wanted : residual_distribution(wanted, told, 1.0, 1.0 - accept);
        }
        break;
      }
      case Rule::greedy:
        accept = token == argmax_of(wanted) ? 1.0 : 0.0;
        otherwise = one_hot(wanted.size(), argmax_of(wanted));
        break;
      case Rule::sample_match:
        accept = wanted[index_of(token)];
        if (accept < 1.0) {
          for (std::size_t x = 0; x < wanted.size(); ++x) otherwise[x] = wanted[x] / (1.0 - accept);
          otherwise[index_of(token)] = 0.0;
        }
        break;
      case Rule::plain:
      case Rule::block:
        SPECSIM_CHECK(false, "rule {} does not judge positions singly", static_cast<int>(rule_.rule));
    }
    verify_from(position + 1, probability * accept);
    finish(position, otherwise, probability * (1.0 - accept));
  }

  // Sun et al. 2024: position i of the block passes with probability pass[i], independently; the longest passing prefix
  // is accepted, and the residual there is (carry target - draft)+ with carry the running clipped product of ratios.
  void verify_block(double probability) {
    const int count = length();
    std::vector<double> carry = {1.0};
    std::vector<double> pass = {1.0};
    for (int i = 0; i < count; ++i) {
      const std::size_t token = index_of(block_[index_of(i)]);
      carry.push_back(std::min(1.0, carry.back() * target(i)[token] / told_distribution(i)[token]));
    }
    for (int i = 1; i <= count; ++i) {
      if (i == count) {
        pass.push_back(carry.back());
        continue;
      }
      const double mass = residual_sum(target(i), told_distribution(i), carry[index_of(i)]);
      const double denominator = mass + 1.0 - carry[index_of(i)];
      // Carry 1 and no residual: the next position passes with certainty (equal distributions), so any value is valid.
      pass.push_back(denominator > 0.0 ? mass / denominator : 0.0);
    }
    double none_longer = probability;
    for (int i = count; i >= 0; --i) {
      const double here = none_longer * pass[index_of(i)];
      none_longer -= here;
      if (here == 0.0) continue;
      finish(i, i == count ? target(i) : residual_distribution(target(i), told_distribution(i), carry[index_of(i)], here), here);
    }
  }

  const Automaton& automaton_;
  RoundRule rule_;
  std::vector<int> block_;
  std::vector<int> states_;  // states_[i]: state at draft position i
  std::map<std::vector<int>, math::CompensatedSum> outcomes_;
};

std::size_t checked_power(int base, int exponent) {
  constexpr std::size_t kLargest = std::size_t{1} << 22U;
  std::size_t power = 1;
  for (int i = 0; i < exponent; ++i) {
    power *= index_of(base);
    SPECSIM_CHECK(power <= kLargest, "{}^{} sequences are too many to enumerate", base, exponent);
  }
  return power;
}

int state_after(const Automaton& automaton, std::size_t prefix, int tokens) {
  std::vector<int> digits(index_of(tokens));
  for (std::size_t i = digits.size(); i-- > 0;) {
    digits[i] = static_cast<int>(prefix % index_of(automaton.vocab));
    prefix /= index_of(automaton.vocab);
  }
  int state = automaton.start;
  for (const int token : digits) state = automaton.after(state, token);
  return state;
}

std::vector<RoundOutcome> unchecked_outcomes(const Automaton& automaton, const RoundRule& rule, int state) {
  std::vector<RoundOutcome> list;
  for (const auto& [emitted, probability] : RoundWalk(automaton, rule).run(state)) {
    int end = state;
    for (const int token : emitted) end = automaton.after(end, token);
    list.push_back({emitted, end, probability.value()});
  }
  return list;
}

}  // namespace

std::vector<RoundOutcome> round_outcomes(const Automaton& automaton, const RoundRule& rule, int state) {
  check_automaton(automaton, rule.draft_length);
  SPECSIM_CHECK(state >= 0 && state < automaton.states, "state = {}", state);
  (void)checked_power(automaton.vocab, rule.draft_length);
  return unchecked_outcomes(automaton, rule, state);
}

std::vector<double> target_joint_distribution(const Automaton& automaton, int tokens) {
  check_automaton(automaton, 0);
  std::vector<double> joint(checked_power(automaton.vocab, tokens), 0.0);
  const std::size_t vocab = index_of(automaton.vocab);
  for (std::size_t sequence = 0; sequence < joint.size(); ++sequence) {
    double probability = 1.0;
    int state = automaton.start;
    std::size_t divisor = joint.size();
    for (int position = 0; position < tokens; ++position) {
      divisor /= vocab;
      const std::size_t token = sequence / divisor % vocab;
      probability *= automaton.target[index_of(state)][token];
      state = automaton.after(state, static_cast<int>(token));
    }
    joint[sequence] = probability;
  }
  return joint;
}

Enumeration enumerate(const Automaton& automaton, const RoundRule& rule, int tokens) {
  check_automaton(automaton, rule.draft_length);
  (void)checked_power(automaton.vocab, rule.draft_length);
  return enumerate_rounds(
      automaton, [&](int state) { return unchecked_outcomes(automaton, rule, state); },
      rule.rule == Rule::plain ? 0 : rule.draft_length, tokens);
}

Enumeration enumerate_rounds(const Automaton& automaton, const std::function<std::vector<RoundOutcome>(int state)>& outcomes,
                             int longest_accepted, int tokens) {
  check_automaton(automaton, 0);
  SPECSIM_CHECK(longest_accepted >= 0 && tokens >= 1, "longest_accepted = {}, tokens = {}", longest_accepted, tokens);
  const std::size_t vocab = index_of(automaton.vocab);
  std::vector<std::optional<std::vector<RoundOutcome>>> by_state(index_of(automaton.states));
  const auto outcomes_of = [&](int state) -> const std::vector<RoundOutcome>& {
    auto& slot = by_state[index_of(state)];
    if (!slot) slot = outcomes(state);
    return *slot;
  };

  // boundary[m][prefix]: probability that some round ends exactly after these m tokens.
  std::vector<std::vector<math::CompensatedSum>> boundary;
  boundary.reserve(index_of(tokens));
  for (int m = 0; m < tokens; ++m) boundary.emplace_back(checked_power(automaton.vocab, m));
  std::vector<math::CompensatedSum> joint(checked_power(automaton.vocab, tokens));
  boundary[0][0].add(1.0);
  for (int m = 0; m < tokens; ++m) {
    for (std::size_t prefix = 0; prefix < boundary[index_of(m)].size(); ++prefix) {
      const double here = boundary[index_of(m)][prefix].value();
      if (here == 0.0) continue;
      for (const RoundOutcome& outcome : outcomes_of(state_after(automaton, prefix, m))) {
        std::size_t longer = prefix;
        int length = m;
        for (const int token : outcome.emitted) {
          if (length == tokens) break;
          longer = longer * vocab + index_of(token);
          ++length;
        }
        (length == tokens ? joint[longer] : boundary[index_of(length)][longer]).add(here * outcome.probability);
      }
    }
  }

  Enumeration result;
  result.target_joint = target_joint_distribution(automaton, tokens);
  for (std::size_t sequence = 0; sequence < joint.size(); ++sequence) {
    result.joint.push_back(joint[sequence].value());
    result.largest_difference =
        std::max(result.largest_difference, std::abs(result.joint.back() - result.target_joint[sequence]));
  }
  result.accepted.accepted.assign(index_of(longest_accepted) + 1, 0.0);
  result.next_state.assign(index_of(automaton.states), 0.0);
  math::CompensatedSum emitted;
  for (const RoundOutcome& outcome : outcomes_of(automaton.start)) {
    result.accepted.accepted[outcome.emitted.size() - 1] += outcome.probability;
    result.next_state[index_of(outcome.end_state)] += outcome.probability;
    emitted += outcome.probability * static_cast<double>(outcome.emitted.size());
  }
  result.expected_emitted = emitted.value();
  return result;
}

Modulation modulation_of(const Automaton& automaton, const RoundRule& rule) {
  check_automaton(automaton, rule.draft_length);
  SPECSIM_CHECK(rule.rule != Rule::plain && rule.rule != Rule::block, "rule {} has no one-position form",
                static_cast<int>(rule.rule));
  const std::size_t states = index_of(automaton.states);
  const std::size_t vocab = index_of(automaton.vocab);
  Modulation modulation;
  modulation.states = automaton.states;
  modulation.bonus.assign(states * states, 0.0);
  const auto cell = [&](std::size_t state, std::size_t token) {
    return state * states + index_of(automaton.next[state * vocab + token]);
  };
  for (std::size_t s = 0; s < states; ++s) {
    for (std::size_t x = 0; x < vocab; ++x) modulation.bonus[cell(s, x)] += automaton.target[s][x];
  }
  for (const std::vector<Distribution>& drafts : automaton.draft) {
    std::vector<double> accept(states * states, 0.0);
    std::vector<double> reject(states * states, 0.0);
    for (std::size_t s = 0; s < states; ++s) {
      const Distribution& target = automaton.target[s];
      const Distribution hot = one_hot(vocab, argmax_of(drafts[s]));
      const Distribution& draft = rule.drafting == Drafting::argmax ? hot : drafts[s];
      const std::size_t target_best = index_of(argmax_of(target));
      const std::size_t draft_best = index_of(argmax_of(drafts[s]));
      // Distances rather than 1 - overlap: no cancellation for nearly equal distributions.
      const double rejected = residual_sum(target, draft, 1.0);
      const double soft_rejected = residual_sum(target, drafts[s], 1.0);
      const double soft_accept = std::min(1.0, target[draft_best] / drafts[s][draft_best]);
      for (std::size_t x = 0; x < vocab; ++x) {
        double take = 0.0;  // x drafted and accepted
        double emit = 0.0;  // drafted token rejected, x emitted
        switch (rule.rule) {
          case Rule::token:
            take = std::min(target[x], draft[x]);
            emit = std::max(0.0, target[x] - draft[x]);
            break;
          case Rule::resample_target_mutant:
            take = std::min(target[x], draft[x]);
            emit = rejected * target[x];
            break;
          case Rule::greedy:
            if (x != target_best) break;
            take = draft[x];
            emit = 1.0 - draft[x];
            break;
          case Rule::sample_match:
            take = target[x] * draft[x];
            emit = target[x] * (1.0 - draft[x]);
            break;
          case Rule::soft_argmax:
            if (x == draft_best) take = soft_accept;
            if (soft_accept < 1.0 && soft_rejected > 0.0)
              emit = (1.0 - soft_accept) * std::max(0.0, target[x] - drafts[s][x]) / soft_rejected;
            break;
          case Rule::plain:
          case Rule::block:
            break;
        }
        accept[cell(s, x)] += take;
        reject[cell(s, x)] += emit;
      }
    }
    modulation.accept.push_back(std::move(accept));
    modulation.reject.push_back(std::move(reject));
  }
  return modulation;
}

}  // namespace specsim::theory
