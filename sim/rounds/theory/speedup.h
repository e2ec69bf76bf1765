// The ratio model of time: speedup, best draft length, break-even acceptance, sensitivities.
//
// Time is measured in target passes over one token. alpha is constant over positions and in [0, 1] throughout.
#pragma once

#include <optional>
#include <span>

namespace specsim::theory {

struct RatioCost {
  double cost_ratio = 0.0;        // draft pass / target pass, >= 0
  double verify_inflation = 1.0;  // target pass over draft_length + 1 tokens / over one
  double overhead = 0.0;          // per round, in target passes

  // Time of a round: draft_length cost_ratio + verify_inflation + overhead; 1 at draft length 0, which is plain decoding.
  [[nodiscard]] double round_time(int draft_length) const {
    return draft_length == 0 ? 1.0 : draft_length * cost_ratio + verify_inflation + overhead;
  }
};

// tokens_per_round / round_time (Leviathan et al. 2022, theorem 3.8, with verify inflation and overhead added).
[[nodiscard]] double speedup(double tokens_per_round, int draft_length, const RatioCost& cost);
// The same with tokens per round at constant alpha.
[[nodiscard]] double constant_alpha_speedup(double alpha, int draft_length, const RatioCost& cost);
// tokens_per_round / (1 + draft_length / target_to_draft_ratio): the inverse convention, target pass / draft pass > 0.
[[nodiscard]] double speedup_by_target_to_draft_ratio(double tokens_per_round, int draft_length, double target_to_draft_ratio);
// tokens_per_round / (draft_length draft_seconds + target_seconds), in tokens per second.
[[nodiscard]] double tokens_per_second(double tokens_per_round, int draft_length, double draft_seconds, double target_seconds);

inline constexpr int kLongestSearched = 1024;

struct BestDraftLength {
  int draft_length = 0;  // 0: decoding without speculation is fastest
  double speedup = 1.0;
};
// The draft length in 1..longest with the largest speedup (ties: the shortest); 0 and 1 if none exceeds 1.
[[nodiscard]] BestDraftLength best_draft_length(double alpha, const RatioCost& cost, int longest = kLongestSearched);
// The same with tokens per round given: tokens_by_length[k] at draft length k (entry 0 is ignored).
[[nodiscard]] BestDraftLength best_draft_length(std::span<const double> tokens_by_length, const RatioCost& cost);

// The real draft length >= 0 that maximises (1 - a^(x+1)) / (1 - a) / (x c + v + o). With r = (v + o) / c, A = 1 - (r - 1) ln a
// and y = -W_-1(-e^-A), it is (A - y) / ln a - 1 = -ln y / ln a - 1. It is 0 if that is negative or A < 1, and infinite at alpha
// 1 (if r > 1) and at cost_ratio 0 (if alpha > 0).
[[nodiscard]] double continuous_best_draft_length(double alpha, const RatioCost& cost);

// z = -W_-1(-e^-(1 + excess)) - 1 for excess >= 0: the solution z >= 0 of z - ln(1 + z) = excess. No underflow at large
// excess, and relative accuracy near the branch point, where z is about sqrt(2 excess).
[[nodiscard]] double lambert_w_lower(double excess);

// The alpha at which speedup is 1 at this draft length >= 1; 0 if every alpha reaches 1, empty if none does.
[[nodiscard]] std::optional<double> break_even_alpha(int draft_length, const RatioCost& cost);

struct BreakEven {
  double alpha = 0.0;
  int draft_length = 0;
};
// The least alpha at which some draft length in 1..longest reaches speedup 1; empty if none does.
[[nodiscard]] std::optional<BreakEven> break_even_alpha_any(const RatioCost& cost, int longest = kLongestSearched);

// Partial derivatives of constant_alpha_speedup.
struct SpeedupSensitivity {
  double by_alpha = 0.0;
  double by_cost_ratio = 0.0;
  double by_verify_inflation = 0.0;  // equals that by overhead
};
[[nodiscard]] SpeedupSensitivity speedup_sensitivity(double alpha, int draft_length, const RatioCost& cost);

}  // namespace specsim::theory
