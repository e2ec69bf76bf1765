#include "sim/rounds/families/context.h"

#include "sim/foundation/base/token.h"
#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/logit_noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace specsim::families {

const config::Fields<math::Sampling>& sampling_fields() {
  using P = math::Sampling;
  static const config::Fields<P> fields = {
      {"temperature", &P::temperature, "divides the logits; 0: one-hot at the argmax, ties to the lowest token",
       config::between(0, 1e6)},
      {"top_k", &P::top_k, "keeps the k likeliest tokens; 0: off", config::between(0, kMaxVocab)},
      {"top_p", &P::top_p, "keeps the shortest run of likeliest tokens that reaches this mass", config::above(0, 1)},
      {"min_p", &P::min_p, "keeps tokens with at least this share of the likeliest one's probability", config::between(0, 1)},
  };
  return fields;
}

namespace {

// A draft's random streams are numbered from here, so they never coincide with the target's.
constexpr std::uint32_t kDraftStreams = 1U << 16;

math::Sampling read_sampling(const config::Value& pair, const std::string& key, Diagnostics& diagnostics) {
  const config::Value* section = pair.find(key);
  if (section == nullptr) return {};
  return sampling_fields().read(config::read_arguments(*section, sampling_fields(), {}, "pair." + key, diagnostics));
}

// A distribution mixed with a point mass on one token.
class TowardsToken final : public Distribution {
 public:
  TowardsToken(std::unique_ptr<Distribution> other, Token token, double weight)
      : other_(std::move(other)), token_(token), weights_{weight, 1.0 - weight} {
    math::normalise(weights_);
  }
  void draw(const DistributionAddress& address, const TargetDistributions& target,
            std::span<double> distribution) const override {
    other_->draw(address, target, distribution);
    for (double& probability : distribution) probability *= weights_[1];
    distribution[token_] += weights_[0];
  }
  [[nodiscard]] bool random() const override { return other_->random(); }

 private:
  std::unique_ptr<Distribution> other_;
  Token token_;
  std::array<double, 2> weights_;  // weight of the token, weight of the other distribution
};

}  // namespace

ContextBuilder::ContextBuilder(int vocab, const config::Value& pair, Diagnostics& diagnostics)
    : vocab_(vocab),
      pair_(&pair),
      target_sampling_(read_sampling(pair, "target_sampling", diagnostics)),
      draft_sampling_(read_sampling(pair, "draft_sampling", diagnostics)),
      diagnostics_(&diagnostics) {}

std::unique_ptr<Distribution> ContextBuilder::build_target(const config::Value* target, const std::string& what) {
  if (target == nullptr) return nullptr;  // the missing target of that pair has been reported
  return DistributionBuilder(vocab_, false, *diagnostics_).build(*target, what + ".target");
}

void ContextBuilder::add(ContextModel& model, std::unique_ptr<Distribution> target,
                         const std::vector<const config::Value*>& drafts, const std::string& what) {
  DistributionBuilder draft_builder(vocab_, true, *diagnostics_);
  draft_builder.skip_streams(kDraftStreams);
  std::vector<std::unique_ptr<Distribution>> draft_distributions;
  for (const config::Value* draft : drafts) {
    if (draft == nullptr) {
      diagnostics_->add(pair_->where,
                        what + " lacks \"draft\", allowed: {family: NAME, ...} or {from: target, transform: NAME, ...}");
      return;
    }
    if (auto distribution = draft_builder.build(*draft, what + ".draft")) draft_distributions.push_back(std::move(distribution));
  }
  if (target != nullptr && draft_distributions.size() == drafts.size())
    model.pairs.emplace_back(std::move(target), std::move(draft_distributions), target_sampling_, draft_sampling_);
}

void ContextBuilder::refuse_sampling(const std::string& name, const std::string& why) {
  for (const char* const key : {"target_sampling", "draft_sampling"})
    if (const config::Value* sampling = pair_->find(key))
      diagnostics_->add(sampling->where, fmt::format("{} with context process {}, allowed: none ({})", key, name, why));
}

void ContextBuilder::add_pair(ContextModel& model) {
  add(model, build_target(pair_->find("target"), "pair"), {pair_->find("draft")}, "pair");
}

void ContextBuilder::add_mixture_pair(ContextModel& model, Token token, double weight) {
  std::unique_ptr<Distribution> target = build_target(pair_->find("target"), "pair");
  if (target != nullptr) target = std::make_unique<TowardsToken>(std::move(target), token, weight);
  add(model, std::move(target), {pair_->find("draft")}, "pair");
}

void ContextBuilder::add_pair(ContextModel& model, const config::Value& overrides, const std::vector<std::string>& also_allowed,
                              const std::string& what, bool by_depth) {
  struct P {
    config::Value target;
    config::Value draft;
    config::Value drafts;
  };
  static const config::Declaration<P> own_target = {"target", &P::target, "the target's distribution here; default: pair.target"};
  static const config::Declaration<P> own_draft = {"draft", &P::draft, "the draft's distribution here; default: pair.draft"};
  static const config::Fields<P> pair = {own_target, own_draft};
  static const config::Fields<P> pair_by_depth = {
      own_target,
      own_draft,
      {"drafts", &P::drafts, "the draft's distribution at position 1, 2, ... of a block", config::as_list},
  };
  const config::Arguments arguments =
      config::read_arguments(overrides, by_depth ? pair_by_depth : pair, also_allowed, what, *diagnostics_);
  const config::Value* target = overrides.find("target");
  const config::Value* draft = overrides.find("draft");
  std::vector<const config::Value*> drafts = {draft != nullptr ? draft : pair_->find("draft")};
  if (by_depth && arguments.has("drafts")) {
    drafts.clear();
    for (const config::Value& one : arguments.value("drafts").items) drafts.push_back(&one);
    if (draft != nullptr || drafts.empty() || drafts.size() > static_cast<std::size_t>(kMaxDraftLength)) {
      diagnostics_->add(arguments.where("drafts"),
                        fmt::format("drafts has {} entries{}, allowed: 1 to {}, instead of draft", drafts.size(),
                                    draft != nullptr ? " together with draft" : "", kMaxDraftLength));
      return;
    }
  }
  add(model, build_target(target != nullptr ? target : pair_->find("target"), what), drafts, what);
}

void ContextBuilder::add_drifting_pair(ContextModel& model, int depths, double drift) {
  std::unique_ptr<Distribution> target = build_target(pair_->find("target"), "pair");
  const config::Value* draft = pair_->find("draft");
  if (draft == nullptr || target == nullptr) return add(model, std::move(target), {draft}, "pair");
  std::vector<std::unique_ptr<Distribution>> drafts;
  for (int depth = 0; depth < depths; ++depth) {
    // Stream numbers restart, so that a text position meets the same noise at every place; only its size differs.
    DistributionBuilder builder(vocab_, true, *diagnostics_);
    builder.skip_streams(kDraftStreams);
    std::unique_ptr<Distribution> own = builder.build(*draft, "pair.draft");
    if (own == nullptr) return;
    if (depth > 0)
      own = logit_noise(std::move(own), drift * std::sqrt(static_cast<double>(depth)), 0.0, true, builder.next_stream());
    drafts.push_back(std::move(own));
  }
  model.pairs.emplace_back(std::move(target), std::move(drafts), target_sampling_, draft_sampling_);
}

void ContextBuilder::add_pair_by_depth(ContextModel& model, const std::vector<config::Value>& drafts) {
  std::vector<const config::Value*> list;
  for (const config::Value& draft : drafts) list.push_back(&draft);
  add(model, build_target(pair_->find("target"), "pair"), list, "pair");
}

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
