// Small distributions and automata for tests of the theory, from a generator of their own.
#pragma once

#include "sim/rounds/theory/automaton.h"
#include "sim/rounds/theory/bounds.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace specsim::tests {

inline theory::Automaton one_state(std::vector<double> target, std::vector<double> draft) {
  theory::Automaton automaton;
  automaton.vocab = static_cast<int>(target.size());
  automaton.states = 1;
  automaton.next.assign(target.size(), 0);
  automaton.target = {std::move(target)};
  automaton.draft = {{std::move(draft)}};
  return automaton;
}

// The two known pairs: at draft length 2 token accepts 10/9 and 65/64, block 11/9 and 71/64.
inline theory::Automaton first_pair() { return one_state({1.0 / 3.0, 2.0 / 3.0}, {2.0 / 3.0, 1.0 / 3.0}); }
inline theory::Automaton second_pair() { return one_state({2.0 / 8.0, 3.0 / 8.0, 3.0 / 8.0}, {1.0 / 8.0, 1.0 / 8.0, 6.0 / 8.0}); }

class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  double next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state_ >> 11U) * 0x1p-53;
  }
  int below(int bound) { return static_cast<int>(next() * bound); }
  std::vector<double> distribution(int size, bool zeros) {
    std::vector<double> distribution(static_cast<std::size_t>(size));
    double sum = 0.0;
    for (double& share : distribution) {
      share = next();
      if (zeros && next() < 0.3) share = 0.0;
      sum += share;
    }
    if (sum == 0.0) distribution[0] = sum = 1.0;
    for (double& share : distribution) share /= sum;
    return distribution;
  }

 private:
  std::uint64_t state_;
};

inline theory::Automaton random_automaton(Numbers& numbers, int vocab, int states, int depths, bool zeros,
                                          bool one_hot_target = false) {
  theory::Automaton automaton;
  automaton.vocab = vocab;
  automaton.states = states;
  automaton.start = numbers.below(states);
  for (int i = 0; i < vocab * states; ++i) automaton.next.push_back(numbers.below(states));
  for (int s = 0; s < states; ++s) {
    std::vector<double> distribution = numbers.distribution(vocab, zeros);
    if (one_hot_target) {
      const int best = theory::argmax(distribution);
      distribution.assign(distribution.size(), 0.0);
      distribution[static_cast<std::size_t>(best)] = 1.0;
    }
    automaton.target.push_back(distribution);
  }
  for (int j = 0; j < depths; ++j) {
    automaton.draft.emplace_back();
    for (int s = 0; s < states; ++s) automaton.draft.back().push_back(numbers.distribution(vocab, zeros));
  }
  return automaton;
}

}  // namespace specsim::tests
