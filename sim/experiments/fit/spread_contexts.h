// Simulated contexts of the family in docs/results/language.md, used to compute the statistics that its parameters lead to.
#pragma once

#include "sim/rounds/families/distribution.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace specsim::fit {

inline constexpr int kVocab = 1000;  // as in docs/results/language.md

struct SpreadValues {
  double sigma = 8.0;
  double sigma_spread = 0.4;
  double noise = 1.0;
  double noise_spread = 0.7;
};

// Always uses the same normal numbers, so that statistics are smooth in the parameters. The two scales of a context run through
// the quantiles of their distribution, which reduces the sampling error.
class SpreadContexts {
 public:
  // `set`: sets with different numbers are independent, so their spread measures the sampling error.
  explicit SpreadContexts(int vocab, std::uint64_t set = 0);
  [[nodiscard]] std::size_t count() const { return scales_.size(); }
  // [context]: the entropy of the target's distribution in nats; and the overlap of target and draft.
  [[nodiscard]] std::vector<double> entropies(const SpreadValues& values) const;
  [[nodiscard]] std::vector<double> overlaps(const SpreadValues& values) const;
  // The mean overlap of contexts that have these scales and are otherwise independent.
  [[nodiscard]] double mean_overlap(const SpreadValues& values, const families::ContextScales& scales,
                                    std::size_t contexts) const;

 private:
  void fill_target(const SpreadValues& values, double deviate, std::size_t context, std::span<double> logits) const;
  // The overlap with a target's distribution. `draft` holds the draft's logits, and afterwards its distribution.
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
