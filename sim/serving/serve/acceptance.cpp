#include "sim/serving/serve/acceptance.h"

#include "sim/foundation/base/token.h"
#include "sim/foundation/rng/address.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

namespace specsim::serve {

namespace {

// The draft token at a text position is accepted, given that it is reached, if the position's own uniform is below the rate of
// its place in the draft. Classes of requests have rates of their own.
class RateAcceptance final : public Acceptance {
 public:
  using Class = ClassRates::Class;
  RateAcceptance(std::vector<Class> classes, rng::Key key, RequestContexts contexts)
      : classes_(std::move(classes)), key_(key), contexts_(std::move(contexts)) {
    for (const Class& one : classes_) limits_.push_back(limits_of(one.rates));
    some_look_up_ = std::any_of(classes_.begin(), classes_.end(), [](const Class& one) { return one.looks_up; });
  }
  [[nodiscard]] bool uneven() const override { return some_look_up_; }
  [[nodiscard]] bool looks_up(arrivals::RequestId request) const override {
    return some_look_up_ && classes_[class_of(request)].looks_up;
  }
  [[nodiscard]] std::uint32_t accepted(arrivals::RequestId request, std::uint32_t emitted, std::uint32_t drafted) const override {
    const std::size_t own = class_of(request);
    const std::vector<spec::ContextRates>& by_context = classes_[own].by_context;
    const std::vector<std::uint64_t> here =
        by_context.empty() ? std::vector<std::uint64_t>() : limits_of(spec::rates_at(by_context, context_of(request, emitted)));
    const std::vector<std::uint64_t>& limits = by_context.empty() ? limits_[own] : here;
    std::uint32_t place = 0;
    rng::Block block{};
    std::uint32_t drawn = ~std::uint32_t{0};
    for (; place < drafted; ++place) {
      const std::uint32_t position = emitted + place + 1;
      if (position / 4 != drawn) {
        drawn = position / 4;
        block = rng::philox4x32_10({rng::counter_word0(rng::Purpose::draft_accept, 0), drawn, request, 0}, key_);
      }
      if (block[position % 4] >= limits[std::min<std::size_t>(place, limits.size() - 1)]) break;
    }
    return place;
  }
  [[nodiscard]] double tokens_per_round(int draft_length) const override {
    double sum = 0.0;
    double before = 0.0;
    for (const Class& one : classes_) {
      double tokens = 1.0;
      double reached = 1.0;
      const PlaceRates rates = one.by_context.empty() ? one.rates : spec::rates_at(one.by_context, contexts_.mean);
      for (int place = 0; place < draft_length; ++place) {
        reached *= spec::rate_of_position(rates, static_cast<std::size_t>(place));
        tokens += reached;
      }
      sum += (one.up_to - before) * tokens;
      before = one.up_to;
    }
    return sum;
  }
  [[nodiscard]] std::vector<std::string> classes() const override {
    std::vector<std::string> names;
    if (classes_.size() > 1)
      for (const Class& one : classes_) names.push_back(one.name.empty() ? std::to_string(names.size() + 1) : one.name);
    return names;
  }
  [[nodiscard]] std::size_t class_of(arrivals::RequestId request) const override {
    if (classes_.size() == 1) return 0;
    const rng::Block block = rng::philox4x32_10({rng::counter_word0(rng::Purpose::start, 0), 0, request, 0}, key_);
    const double u = 0x1.0p-32 * block[0];
    std::size_t at = 0;
    while (at + 1 < classes_.size() && u >= classes_[at].up_to) ++at;
    return at;
  }

 private:
  static std::vector<std::uint64_t> limits_of(const PlaceRates& rates) {
    std::vector<std::uint64_t> limits;
    for (const double rate : rates) limits.push_back(static_cast<std::uint64_t>(std::llround(rate * 0x1.0p32)));
    return limits;
  }
  [[nodiscard]] double context_of(arrivals::RequestId request, std::uint32_t emitted) const {
    return (request < contexts_.prompts.size() ? contexts_.prompts[request] : 0.0) + emitted;
  }
  std::vector<Class> classes_;
  rng::Key key_;
  RequestContexts contexts_;
  std::vector<std::vector<std::uint64_t>> limits_;  // [class][place]: of 2^32
  bool some_look_up_ = false;
};

// Reads the uniforms of every request and position from a file.
class ReplayedAcceptance final : public Acceptance {
 public:
  explicit ReplayedAcceptance(ReplayedUniforms replayed)
      : rates_(std::move(replayed.rates)), uniforms_(std::move(replayed.uniforms)) {}
  [[nodiscard]] std::uint32_t accepted(arrivals::RequestId request, std::uint32_t emitted, std::uint32_t drafted) const override {
    std::uint32_t place = 0;
    for (; place < drafted; ++place) {
      const auto at = uniforms_.find(ReplayedUniforms::name(request, emitted + place + 1));
      if (at == uniforms_.end() || at->second >= rates_[std::min<std::size_t>(place, rates_.size() - 1)]) break;
    }
    return place;
  }
  [[nodiscard]] double tokens_per_round(int draft_length) const override {
    double tokens = 1.0;
    double reached = 1.0;
    for (int place = 0; place < draft_length; ++place)
      tokens += reached *= rates_[std::min<std::size_t>(static_cast<std::size_t>(place), rates_.size() - 1)];
    return tokens;
  }

 private:
  PlaceRates rates_;
  std::unordered_map<std::uint64_t, double> uniforms_;
};

// Rounds whose ends an Acceptance gives; it knows every position, whatever was verified before.
class StatedRounds final : public Rounds {
 public:
  explicit StatedRounds(const Acceptance& acceptance) : acceptance_(&acceptance) {}
  std::uint32_t play(arrivals::RequestId request, std::uint32_t emitted, std::uint32_t verified) override {
    return verified > 0 ? acceptance_->accepted(request, emitted, verified) : 0;
  }

 private:
  const Acceptance* acceptance_;
};

}  // namespace

std::unique_ptr<Rounds> Acceptance::rounds() const { return std::make_unique<StatedRounds>(*this); }

bool needs_contexts(const StatedAcceptance& stated) {
  const auto* const own = std::get_if<ClassRates>(&stated);
  return own != nullptr && std::any_of(own->classes.begin(), own->classes.end(),
                                       [](const ClassRates::Class& one) { return !one.by_context.empty(); });
}

std::unique_ptr<Acceptance> make_acceptance(const StatedAcceptance& stated, rng::Key key, RequestContexts contexts) {
  return std::visit(
      [&](const auto& own) -> std::unique_ptr<Acceptance> {
        using Own = std::decay_t<decltype(own)>;
        if constexpr (std::is_same_v<Own, ClassRates>)
          return std::make_unique<RateAcceptance>(own.classes, key, std::move(contexts));
        else if constexpr (std::is_same_v<Own, ReplayedUniforms>)
          return std::make_unique<ReplayedAcceptance>(own);
        else if constexpr (std::is_same_v<Own, RecordedPrefixes>)
          return make_recorded_acceptance(own);
        else
          return make_recorded_acceptance(own, key);
      },
      stated);
}

int stated_places(const StatedAcceptance& stated) {
  const auto* const own = std::get_if<ClassRates>(&stated);
  if (own == nullptr) return kMaxDraftLength;
  std::size_t least = kMaxDraftLength;
  for (const ClassRates::Class& one : own->classes) {
    if (!one.everywhere) least = std::min(least, one.rates.size());
    for (const spec::ContextRates& at : one.by_context) least = std::min(least, at.rates.size());
  }
  return static_cast<int>(least);
}

}  // namespace specsim::serve
