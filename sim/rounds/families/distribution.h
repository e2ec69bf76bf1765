// A distribution gives a probability for each token. It is the same in all contexts or differs from context to context.
#pragma once

#include "sim/foundation/base/error.h"
#include "sim/foundation/config/registry.h"
#include "sim/foundation/rng/address.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace specsim::families {

// How many plausible tokens a context leaves the target, and how hard it is for the draft. Each is the deviation of the logarithm
// of its scale from the median, in standard deviations over contexts.
struct ContextScales {
  double target = 0.0;
  double draft = 0.0;
};

// The address of one random distribution: the same address gives the same distribution, on any thread and in any order.
struct DistributionAddress {
  rng::Key key;
  std::uint64_t context = 0;              // pool index, or a number for (sequence, text position)
  const ContextScales* scales = nullptr;  // if the process sets the scales; otherwise each scale with a spread draws its own

  // The deviate of a part of the draft, or of the target.
  [[nodiscard]] const double* deviate(bool of_draft) const {
    if (scales == nullptr) return nullptr;
    return of_draft ? &scales->draft : &scales->target;
  }
};

// The target's distributions in a draft's context: the model's own, and the verified one, after the target's sampling settings.
struct TargetDistributions {
  std::span<const double> model;
  std::span<const double> verified;

  TargetDistributions() = default;
  TargetDistributions(std::span<const double> model_distribution, std::span<const double> verified_distribution)
      : model(model_distribution), verified(verified_distribution) {}
  // Without sampling settings both are the same.
  // NOLINTNEXTLINE(google-explicit-constructor)
  TargetDistributions(std::span<const double> distribution) : TargetDistributions(distribution, distribution) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  TargetDistributions(const std::vector<double>& distribution) : TargetDistributions(distribution, distribution) {}
};

class Distribution {
 public:
  Distribution() = default;
  Distribution(const Distribution&) = delete;
  Distribution& operator=(const Distribution&) = delete;
  virtual ~Distribution() = default;
  // Writes probabilities that sum to 1. `target`: for a draft, the target in the same context; empty for a target.
  virtual void draw(const DistributionAddress& address, const TargetDistributions& target,
                    std::span<double> distribution) const = 0;
  // False if every context has the same distribution, given the same target, so that it need not be drawn again.
  [[nodiscard]] virtual bool random() const { return false; }
  // "from: target" itself, without a transform.
  [[nodiscard]] virtual bool is_target() const { return false; }
};

// Builds nested distributions from YAML and provides what their parts share.
class DistributionBuilder {
 public:
  // `is_draft`: "from: target" is allowed.
  DistributionBuilder(int vocab, bool is_draft, Diagnostics& diagnostics)
      : vocab_(vocab), is_draft_(is_draft), diagnostics_(&diagnostics) {}
  [[nodiscard]] int vocab() const { return vocab_; }
  [[nodiscard]] bool is_draft() const { return is_draft_; }
  [[nodiscard]] Diagnostics& diagnostics() const { return *diagnostics_; }
  // {family: NAME, ...} or {from: target | DISTRIBUTION, transform: NAME, ...}. nullptr after reporting. `what`: "pair.target".
  std::unique_ptr<Distribution> build(const config::Value& value, const std::string& what);
  // A distinct number for each part of a distribution, so that their random streams differ.
  [[nodiscard]] std::uint32_t next_stream() { return streams_++; }
  void skip_streams(std::uint32_t count) { streams_ += count; }

 private:
  int vocab_;
  bool is_draft_;
  Diagnostics* diagnostics_;
  std::uint32_t streams_ = 0;
  int depth_ = 0;
};

// A family is used alone: {family: zipf, exponent: 1.1}.
struct FamilyEntry {
  config::PartInfo info;
  // May return nullptr after reporting.
  std::function<std::unique_ptr<Distribution>(const config::Arguments&, DistributionBuilder&)> make;
};
config::Registry<FamilyEntry>& families();

// A transform makes a distribution from another one: {from: target, transform: temperature, value: 0.8}.
struct TransformEntry {
  config::PartInfo info;
  std::function<std::unique_ptr<Distribution>(const config::Arguments&, std::unique_ptr<Distribution> source,
                                              DistributionBuilder&)>
      make;
};
config::Registry<TransformEntry>& transforms();

}  // namespace specsim::families
