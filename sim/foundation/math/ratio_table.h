// A target's and a draft's distribution over one vocabulary, prepared so that each query of a verifier takes one memory access or
// a search of log2(vocab) steps.
//
// All rules that reject resample from a distribution of the form (target - c draft)+ for some c >= 0: recursive rejection
// sampling raises c with each rejected sibling, block verification has c = 1 / p, K-SEQ c = rho. With tokens in decreasing order
// of target / draft, the tokens of positive weight are a prefix of that order. Running sums of both distributions along it give
// the mass and a draw.
#pragma once

#include "sim/foundation/base/standard_library.h"
#include "sim/foundation/base/token.h"
#include "sim/foundation/math/alias_table.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace specsim::math {

// The weights (target - c draft)+, prepared for draws. The default is the target itself; use RatioTable::pick_target for that,
// since RatioTable::pick cannot draw from it.
struct Residual {
  double c = 0.0;
  double mass = 1.0;        // the sum of the weights, never negative
  std::uint32_t count = 0;  // how many tokens have a positive weight: target / draft > c
};

// Bounds of a residual's mass.
struct MassBounds {
  double least = 0.0;
  double most = 1.0;
};

class RatioTable {
 public:
  // Both of the same size, each summing to 1.
  RatioTable(std::span<const double> target, std::span<const double> draft, AliasScratch& scratch);
  static std::size_t bytes_needed(std::size_t vocab);

  [[nodiscard]] std::size_t vocab() const { return distributions_.size(); }
  [[nodiscard]] double target(Token x) const { return distributions_[x].target; }
  [[nodiscard]] double draft(Token x) const { return distributions_[x].draft; }
  // target(x) / draft(x): infinite if only the draft is 0, 0 if the target is.
  [[nodiscard]] double ratio(Token x) const { return ratio_of_[x]; }
  [[nodiscard]] Token pick_target(std::uint64_t bits) const { return alias_pick(target_alias_.data(), vocab(), bits); }
  [[nodiscard]] Token pick_draft(std::uint64_t bits) const { return alias_pick(draft_alias_.data(), vocab(), bits); }
  // Start the memory accesses of pick_draft(bits), and of target(x) and draft(x), before these calls.
  void prefetch_draft(std::uint64_t bits) const { __builtin_prefetch(draft_alias_.data() + scale_bits(bits, vocab())); }
  void prefetch_distributions(Token x) const { __builtin_prefetch(distributions_.data() + x); }
  // The entries of pick_draft's table, see alias_pick.
  [[nodiscard]] const std::uint64_t* draft_alias() const { return draft_alias_.data(); }

  // The weights max(target - c draft, 0) by token, and their sum; c is at least 0.
  [[nodiscard]] Residual residual(double c) const;
  // Bounds of residual(c).mass by one memory access, at most a hundredth apart for most c: enough for most verdicts.
  [[nodiscard]] MassBounds mass_bounds(double c) const { return bounds_[bucket(c)]; }
  // A token drawn from the weights of a residual of positive mass; u in [0, 1).
  [[nodiscard]] Token pick(const Residual& residual, double u) const;

  // Number of tokens that the draft can draw.
  [[nodiscard]] std::uint32_t draft_support() const { return draft_support_; }
  // A token drawn from the draft's distribution without the tokens `drawn`, which are distinct and fewer than draft_support(); u
  // in [0, 1).
  [[nodiscard]] Token pick_draft_without(std::span<const Token> drawn, double u) const;
  // The draft's probability of all tokens except `drawn`, accurate to the last digit however small it is.
  [[nodiscard]] double draft_without(std::span<const Token> drawn) const;

 private:
  struct Pair {
    double target = 0.0;
    double draft = 0.0;
  };
  static constexpr std::size_t kStride = 64;
  void set_bounds();
  void set_unit_guide();
  // The bucket of c by its high bits, see first_bucket_ and shift_; smaller c are in the first, larger c in the last.
  [[nodiscard]] std::uint64_t bucket(double c) const {
    return std::clamp(bit_cast<std::uint64_t>(c) >> shift_, first_bucket_, last_bucket_) - first_bucket_;
  }

  std::vector<Pair> distributions_;  // [token]
  std::vector<Pair> sums_;           // [rank + 1]: over the first rank + 1 tokens in order; [0] is zero
  std::vector<double> ratio_;        // [rank], decreasing
  std::vector<Pair> coarse_;         // every kStride-th of sums_: most steps of a search stay in the first-level cache
  std::vector<Token> order_;         // [rank]
  std::vector<std::uint32_t> rank_;  // [token]
  std::vector<std::uint64_t> target_alias_;
  std::vector<std::uint64_t> draft_alias_;
  std::vector<double> ratio_of_;      // [token]
  std::vector<std::uint32_t> guide_;  // [bucket]: number of ratios above the bucket's beginning; [buckets] is 0
  std::vector<MassBounds> bounds_;    // [bucket]
  // [part]: the rank at which pick(residual(1), u) ends for u at the beginning of that part of [0, 1), divided into 2^k equal
  // parts; [parts] is the count of the residual. Most residuals used for draws have c = 1.
  std::vector<std::uint32_t> unit_guide_;
  int shift_ = 0;  // right shift of c's bits that gives a bucket
  std::uint64_t first_bucket_ = 0;
  std::uint64_t last_bucket_ = 0;
  std::uint32_t draft_support_ = 0;
};

}  // namespace specsim::math
