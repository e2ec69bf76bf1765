// Contexts of the family that docs/results/language.md describes, to work out what its parameters lead to.
#pragma once

#include "sim/rounds/families/distribution.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace specsim::fit {

inline constexpr int kVocab = 1000;  // the one in docs/results/language.md

struct SpreadValues {
  double sigma = 8.0;
  double sigma_spread = 0.4;
  double noise = 1.0;
  double noise_spread = 0.7;
};

// Always of the same normal numbers, so that figures move smoothly with the parameters. The two scales of a context go through
// the quantiles of their distribution, which leaves less to chance.
class SpreadContexts {
 public:
  // `set`: sets of other numbers are independent of one another, which tells how much chance is in one.
  explicit SpreadContexts(int vocab, std::uint64_t set = 0);
  [[nodiscard]] std::size_t count() const { return scales_.size(); }
  // [context]: the entropy of the target's distribution in nats, and the overlap of target and draft.
  [[nodiscard]] std::vector<double> entropies(const SpreadValues& values) const;
  [[nodiscard]] std::vector<double> overlaps(const SpreadValues& values) const;
  // The mean overlap of some contexts that have these scales and nothing else in common.
  [[nodiscard]] double mean_overlap(const SpreadValues& values, const families::ContextScales& scales,
                                    std::size_t contexts) const;

 private:
  void fill_target(const SpreadValues& values, double deviate, std::size_t context, std::span<double> logits) const;
  // From a target's distribution; `draft` holds its logits, and the draft's distribution afterwards.
  [[nodiscard]] double overlap(const SpreadValues& values, double deviate, std::size_t context, std::span<const double> target,
                               std::span<double> draft) const;
  void settle_targets(const SpreadValues& values) const;

  std::size_t vocab_;
  std::vector<float> target_;  // [context][token], normal numbers
  std::vector<float> draft_;
  std::vector<families::ContextScales> scales_;  // [context]
  mutable std::vector<double> settled_;          // [context][token]
  mutable SpreadValues settled_at_;
};

}  // namespace specsim::fit
