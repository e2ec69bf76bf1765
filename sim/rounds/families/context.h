// The registry of context processes, and the parts of a configured process.
#pragma once

#include "sim/foundation/math/simplex.h"
#include "sim/rounds/families/context_process.h"
#include "sim/rounds/families/distribution.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace specsim::families {

// The pair of distributions of a context: target and draft after the sampling settings of each side.

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

// A process and the pairs of distributions of its contexts.
struct ContextModel {
  std::string name;  // the process's name in the registry
  std::unique_ptr<ContextProcess> process;
  std::vector<PairSource> pairs;      // one for all contexts (drawn for each), or one per context
  std::vector<ContextScales> scales;  // [context], if the process defines them
  [[nodiscard]] const PairSource& pair(std::size_t context) const { return pairs.size() == 1 ? pairs[0] : pairs[context]; }
  [[nodiscard]] DistributionAddress address(rng::Key key, std::uint64_t context) const {
    return {key, context, scales.empty() ? nullptr : &scales[static_cast<std::size_t>(context)]};
  }
};

// Passes the config's `pair` to the processes, which may override the target or the draft context by context.
class ContextBuilder {
 public:
  ContextBuilder(int vocab, const config::Value& pair, Diagnostics& diagnostics);
  [[nodiscard]] int vocab() const { return vocab_; }
  [[nodiscard]] Diagnostics& diagnostics() const { return *diagnostics_; }
  // Reports the pair's sampling settings as errors, since the process `name` does not use them; `why`: the reason in the message.
  void refuse_sampling(const std::string& name, const std::string& why);
  // Adds the configured pair to `model`.
  void add_pair(ContextModel& model);
  // Adds a pair whose target gives `token` the probability `weight` and distributes the rest as the configured target does.
  void add_mixture_pair(ContextModel& model, Token token, double weight);
  // Adds the configured pair with `overrides` ({target: DISTRIBUTION, draft: DISTRIBUTION}, both optional). `by_depth`: the
  // overrides may have a list `drafts`, one entry per depth, instead of `draft`.
  void add_pair(ContextModel& model, const config::Value& overrides, const std::vector<std::string>& also_allowed,
                const std::string& what, bool by_depth = false);
  // Adds the configured pair with one draft for each of `depths` positions in a block: the configured draft with normal noise on
  // its logits. The noise's variance grows by drift^2 per position.
  void add_drifting_pair(ContextModel& model, int depths, double drift);
  // Adds the configured target with one draft for each depth.
  void add_pair_by_depth(ContextModel& model, const std::vector<config::Value>& drafts);

 private:
  // nullptr if there is none, or after reporting a mistake.
  std::unique_ptr<Distribution> build_target(const config::Value* target, const std::string& what);
  void add(ContextModel& model, std::unique_ptr<Distribution> target, const std::vector<const config::Value*>& drafts,
           const std::string& what);
  int vocab_;
  const config::Value* pair_;
  math::Sampling target_sampling_;
  math::Sampling draft_sampling_;
  Diagnostics* diagnostics_;
};

struct ContextEntry {
  config::PartInfo info;
  // May leave `process` empty after reporting a mistake.
  std::function<ContextModel(const config::Arguments&, ContextBuilder&)> make;
};
config::Registry<ContextEntry>& context_processes();

// The parameters of `pair.target_sampling` and `pair.draft_sampling`, for the reference page.
const config::Fields<math::Sampling>& sampling_fields();

}  // namespace specsim::families
