#include "sim/rounds/families/distribution.h"

#include "sim/foundation/config/choose.h"

#include <algorithm>

namespace specsim::families {

namespace {

constexpr int kMaxNesting = 32;

// "from: target": the target model's own distribution, before the target's sampling settings, for a draft that shares the
// target's logits.
class TargetItself final : public Distribution {
 public:
  void draw(const DistributionAddress&, const TargetDistributions& target, std::span<double> distribution) const override {
    std::copy(target.model.begin(), target.model.end(), distribution.begin());
  }
  [[nodiscard]] bool is_target() const override { return true; }
};

}  // namespace

std::unique_ptr<Distribution> DistributionBuilder::build(const config::Value& value, const std::string& what) {
  if (!value.is_map()) {
    diagnostics_->add(value.where, what + " is " + config::description_of_found(value) + ", allowed: {family: NAME, ...}" +
                                       (is_draft_ ? " or {from: target, transform: NAME, ...}" : ""));
    return nullptr;
  }
  if (++depth_ > kMaxNesting) {
    diagnostics_->add(value.where, what.substr(0, what.find(".from.")) + " is nested too deep, allowed: at most " +
                                       std::to_string(kMaxNesting) + " levels");
    return nullptr;
  }
  std::unique_ptr<Distribution> distribution;
  const config::Value* family = value.find("family");
  const config::Value* transform = value.find("transform");
  const config::Value* from = value.find("from");
  if (family != nullptr && (transform != nullptr || from != nullptr)) {
    diagnostics_->add(value.where,
                      what + " has both family and from or transform, allowed: a family alone, or from and transform");
  } else if (family != nullptr) {
    const auto choice = config::choose(families(), value, "family", what, *diagnostics_);
    if (choice.entry != nullptr) distribution = choice.entry->make(choice.arguments, *this);
  } else if (transform != nullptr || from != nullptr) {
    std::unique_ptr<Distribution> source;
    if (from == nullptr) {
      diagnostics_->add(value.where, what + " lacks \"from\", allowed: target or a distribution");
    } else if (from->is_scalar()) {
      if (from->text == "target" && is_draft_)
        source = std::make_unique<TargetItself>();
      else
        diagnostics_->add(from->where, what + ".from is " + config::description_of_found(*from) +
                                           ", allowed: " + (is_draft_ ? "target or a distribution" : "a distribution"));
    } else {
      source = build(*from, what + ".from");
    }
    const auto choice = config::choose(transforms(), value, "transform", what, *diagnostics_, {"from"});
    if (choice.entry != nullptr && source != nullptr)
      distribution = choice.entry->make(choice.arguments, std::move(source), *this);
  } else {
    diagnostics_->add(value.where, what + " lacks \"family\"" + (is_draft_ ? " (or from: target and a transform)" : "") +
                                       ", allowed: " + families().names());
  }
  --depth_;
  return distribution;
}

}  // namespace specsim::families
