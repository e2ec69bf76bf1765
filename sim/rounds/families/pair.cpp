#include "sim/rounds/families/pair.h"

#include <algorithm>
#include <utility>

namespace specsim::families {

PairSource::PairSource(std::unique_ptr<Distribution> target, std::vector<std::unique_ptr<Distribution>> drafts_by_depth,
                       math::Sampling target_sampling, math::Sampling draft_sampling)
    : target_(std::move(target)),
      drafts_(std::move(drafts_by_depth)),
      target_sampling_(target_sampling),
      draft_sampling_(draft_sampling) {}

void PairSource::draw_target(const DistributionAddress& address, std::span<double> target) const {
  target_->draw(address, {}, target);
  math::apply_sampling(target, target_sampling_);
  math::drop_subnormal(target);
}

void PairSource::draw_draft(const DistributionAddress& address, std::size_t depth, std::span<const double> target,
                            std::span<double> draft) const {
  draw_draft_model(address, depth, target, draft);
  sample_draft(draft);
}

void PairSource::sample_draft(std::span<double> draft) const {
  math::apply_sampling(draft, draft_sampling_);
  math::drop_subnormal(draft);
}

void PairSource::draw_draft_model(const DistributionAddress& address, std::size_t depth, std::span<const double> target,
                                  std::span<double> draft) const {
  const Distribution& distribution = *drafts_[std::min(depth, drafts_.size() - 1)];
  if (target_sampling_ == math::Sampling()) {
    distribution.draw(address, target, draft);
  } else {  // the model's own distribution again
    std::vector<double> model(target.size());
    target_->draw(address, {}, model);
    distribution.draw(address, TargetDistributions(model, target), draft);
  }
  math::drop_subnormal(draft);
}

bool PairSource::random() const {
  return target_->random() || std::any_of(drafts_.begin(), drafts_.end(), [](const auto& draft) { return draft->random(); });
}

}  // namespace specsim::families
