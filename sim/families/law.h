// A law: something that gives a probability for each token, the same at each context or drawn anew for each.
#pragma once

#include "sim/base/error.h"
#include "sim/config/registry.h"
#include "sim/rng/address.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace specsim::families {

// Which law is meant where laws are random. All randomness of a law is addressed by it: the same address gives the same
// law, on any thread and in any order.
struct LawAddress {
  rng::Key key;
  std::uint64_t context = 0;  // pool index, or a name of (sequence, text position)
};

// The target's law at a draft's context: the model's own, and the one that is verified, after the target's sampling settings.
struct TargetLaws {
  std::span<const double> model;
  std::span<const double> verified;

  TargetLaws() = default;
  TargetLaws(std::span<const double> model_law, std::span<const double> verified_law)
      : model(model_law), verified(verified_law) {}
  // Without sampling settings the two are one.
  TargetLaws(std::span<const double> law) : TargetLaws(law, law) {}     // NOLINT(google-explicit-constructor)
  TargetLaws(const std::vector<double>& law) : TargetLaws(law, law) {}  // NOLINT(google-explicit-constructor)
};

class Law {
 public:
  Law() = default;
  Law(const Law&) = delete;
  Law& operator=(const Law&) = delete;
  virtual ~Law() = default;
  // Writes probabilities that sum to 1. `target`: the target at the same context for a draft, empty for a target.
  virtual void draw(const LawAddress& address, const TargetLaws& target, std::span<double> law) const = 0;
  // False: the same at every context (given the same target), so drawing it again is waste.
  [[nodiscard]] virtual bool random() const { return false; }
  // "from: target" itself, without a transform.
  [[nodiscard]] virtual bool is_target() const { return false; }
};

// Builds nested laws from YAML and hands out what their parts share.
class LawBuilder {
 public:
  // `is_draft`: "from: target" is allowed.
  LawBuilder(int vocab, bool is_draft, Diagnostics& diagnostics)
      : vocab_(vocab), is_draft_(is_draft), diagnostics_(&diagnostics) {}
  [[nodiscard]] int vocab() const { return vocab_; }
  [[nodiscard]] bool is_draft() const { return is_draft_; }
  [[nodiscard]] Diagnostics& diagnostics() const { return *diagnostics_; }
  // {family: NAME, ...} or {from: target | LAW, transform: NAME, ...}. nullptr after reporting. `what`: "pair.target".
  std::unique_ptr<Law> build(const config::Value& value, const std::string& what);
  // A number of its own for each part of a law, so that their random streams differ.
  [[nodiscard]] std::uint32_t next_stream() { return streams_++; }
  void skip_streams(std::uint32_t count) { streams_ += count; }

 private:
  int vocab_;
  bool is_draft_;
  Diagnostics* diagnostics_;
  std::uint32_t streams_ = 0;
  int depth_ = 0;
};

// A family stands on its own: {family: zipf, exponent: 1.1}.
struct FamilyEntry {
  config::PartInfo info;
  // May return nullptr after reporting.
  std::function<std::unique_ptr<Law>(const config::Arguments&, LawBuilder&)> make;
};
const config::Registry<FamilyEntry>& families();

// A transform makes a law from another one: {from: target, transform: temperature, value: 0.8}.
struct TransformEntry {
  config::PartInfo info;
  std::function<std::unique_ptr<Law>(const config::Arguments&, std::unique_ptr<Law> source, LawBuilder&)> make;
};
const config::Registry<TransformEntry>& transforms();

}  // namespace specsim::families
