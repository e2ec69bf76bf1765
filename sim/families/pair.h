// The pair of laws of a context: target and draft after the sampling settings of each side.
#pragma once

#include "sim/families/law.h"
#include "sim/math/simplex.h"

#include <memory>
#include <span>

namespace specsim::families {

// One source of pairs. Immutable after building; draws are addressed, so threads may share it.
class PairSource {
 public:
  PairSource(std::unique_ptr<Law> target, std::vector<std::unique_ptr<Law>> drafts_by_depth, math::Sampling target_sampling,
             math::Sampling draft_sampling);
  // The target's law at a context, as it is verified: after its sampling settings.
  void draw_target(const LawAddress& address, std::span<double> target) const;
  // The draft's law at the same context and a depth (beyond the last given one: the last one), given the verified target.
  void draw_draft(const LawAddress& address, std::size_t depth, std::span<const double> target, std::span<double> draft) const;
  [[nodiscard]] std::size_t depths() const { return drafts_.size(); }
  // False: every context has the same pair.
  [[nodiscard]] bool random() const;

 private:
  std::unique_ptr<Law> target_;
  std::vector<std::unique_ptr<Law>> drafts_;
  math::Sampling target_sampling_;
  math::Sampling draft_sampling_;
};

}  // namespace specsim::families
