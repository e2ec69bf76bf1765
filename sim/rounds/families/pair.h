// The pair of distributions of a context: target and draft after the sampling settings of each side.
#pragma once

#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/distribution.h"

#include <memory>
#include <span>

namespace specsim::families {

// One source of pairs. Immutable after building; draws are addressed, so threads may share it.
class PairSource {
 public:
  PairSource(std::unique_ptr<Distribution> target, std::vector<std::unique_ptr<Distribution>> drafts_by_depth,
             math::Sampling target_sampling, math::Sampling draft_sampling);
  // The target's verified distribution in a context: after its sampling settings.
  void draw_target(const DistributionAddress& address, std::span<double> target) const;
  // The draft's distribution in the same context, given the verified target. Deeper depths use the last configured one.
  void draw_draft(const DistributionAddress& address, std::size_t depth, std::span<const double> target,
                  std::span<double> draft) const;
  // The draft before its sampling settings: the draft model's own distribution, at temperature 1.
  void draw_draft_model(const DistributionAddress& address, std::size_t depth, std::span<const double> target,
                        std::span<double> draft) const;
  // Applies the draft's sampling settings to a distribution of its model.
  void sample_draft(std::span<double> draft) const;
  [[nodiscard]] const math::Sampling& draft_sampling() const { return draft_sampling_; }
  [[nodiscard]] std::size_t depths() const { return drafts_.size(); }
  // False if every context has the same pair.
  [[nodiscard]] bool random() const;

 private:
  std::unique_ptr<Distribution> target_;
  std::vector<std::unique_ptr<Distribution>> drafts_;
  math::Sampling target_sampling_;
  math::Sampling draft_sampling_;
};

}  // namespace specsim::families
