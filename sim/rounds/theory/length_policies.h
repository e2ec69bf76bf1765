// Policies that choose the draft length round by round, at constant alpha and a time per round of each length.
//
// round_time[k] is the time of a round of draft length k in any unit, k = 0 .. longest; [0] is plain decoding. Positions accept
// with probability alpha in [0, 1], independently.
#pragma once

#include <functional>
#include <vector>

namespace specsim::theory {

// A policy as a rule: the draft length of a sequence's first round, and the next length after each round's outcome. Lengths are
// 0..longest.
struct LengthMemory {
  double value = 0.0;  // a moving average, if it keeps one
  int length = 0;
  int rounds = 0;  // a counter, if it keeps one
  bool operator==(const LengthMemory&) const = default;
  bool operator<(const LengthMemory& other) const {
    return value != other.value ? value < other.value : length != other.length ? length < other.length : rounds < other.rounds;
  }
};
struct LengthRule {
  LengthMemory first;
  std::function<LengthMemory(const LengthMemory& memory, int drafted, int accepted)> next;
};

// Additive steps (Hugging Face's heuristic): `up` more after full acceptance, otherwise `down` fewer, within 1..longest.
[[nodiscard]] LengthRule additive_rule(int first, int up, int down, int longest);
// Tiers by a moving average of accepted / drafted. The average starts in the centre of the band, and returns there after every
// step. Above `up` the next longer tier is used, below `down` the next shorter one. The first tier is tiers[size / 2].
[[nodiscard]] LengthRule ratio_tiers_rule(std::vector<int> tiers, double weight, double up, double down);
// SGLang's tiers for a batch of one. They follow a moving average of accepted tokens, which begins one below the first length.
// Every `every` rounds after the first `warm_up` the length is chosen again. If the average is at most the shorter tier - .5 +
// down (tier 0 counts as 1), the length becomes the first shorter tier for which that no longer holds. Otherwise it becomes the
// first tier, from the present one on, that the average - up + .5 does not exceed. A tier without drafts is followed by the next
// one; if nothing was ever drafted, the average is one below that tier. ceiling > 0: a length that did not rise is cut to tiers
// of at most ceiling times the average, rounded up, at least 1.
struct SglangTiers {
  std::vector<int> tiers;
  int first = 0;
  double weight = 0.2;
  int warm_up = 10;
  int every = 5;
  double up = 0.0;
  double down = 0.0;
  double ceiling = 0.0;
};
[[nodiscard]] LengthRule sglang_tiers_rule(const SglangTiers& own);
// Goodput (SmartSpec) by a moving average of the rounds' own alpha, accepted / trials. It takes the shortest length that
// maximises the sum over i <= k of alpha^i / round_time[k]. A round without drafts does not change the average. After `probe`
// such rounds in a row, the next round drafts at least one token.
[[nodiscard]] LengthRule goodput_rule(double first_alpha, double weight, int probe, std::vector<double> round_time);

struct PolicyFigures {
  std::vector<double> length_distribution;  // share of rounds at draft length k
  double tokens_per_round = 1.0;
  double time_per_round = 1.0;
  [[nodiscard]] double rate() const { return tokens_per_round / time_per_round; }
};

// A policy that knows how many draft tokens would be accepted, up to the longest length, and drafts exactly these. A round of
// length k has probability alpha^k (1 - alpha), or alpha^longest at the end, and always emits k + 1 tokens. At cost ratios below
// 1 no policy with the same limit is faster: every token is a final token or a draft token, and these rounds are the fewest.
[[nodiscard]] PolicyFigures oracle_length(double alpha, const std::vector<double>& round_time);
// Additive steps (Hugging Face's heuristic: +2 after full acceptance, -1 otherwise, at least 1). The draft length is a Markov
// chain that rises with probability alpha^length. This is its stationary distribution, with lengths clamped to shortest..longest
// (longest is round_time.size() - 1). Requires 1 <= shortest <= longest, increase and decrease >= 1.
[[nodiscard]] PolicyFigures additive_length(double alpha, int increase, int decrease, int shortest,
                                            const std::vector<double>& round_time);

}  // namespace specsim::theory
