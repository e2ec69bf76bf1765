// The registry of context processes, and the parts of a configured process.
#pragma once

#include "sim/rounds/families/context_process.h"
#include "sim/rounds/families/pair.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace specsim::families {

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
