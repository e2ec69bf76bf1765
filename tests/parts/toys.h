// Parts that only this test program has. Each has only what docs/development/parts.md requires: an entry.
#pragma once

#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/placement/lockstep.h"
#include "sim/hardware/placement/placement.h"
#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/draft/length_policy.h"
#include "sim/rounds/families/context.h"
#include "sim/rounds/verify/verifier.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

namespace specsim::tests {

// ---- verifiers --------------------------------------------------------------------------------------------------------------

// [a position rule]
// Accepts half as often as the token verifier, and makes up for it: lossless.
class HalfRule final : public verify::PositionRule {
 public:
  [[nodiscard]] verify::Odds odds(const verify::PositionDistributions& d, Token x) const override {
    const auto at = static_cast<std::size_t>(x);
    return {0.5 * std::min(d.target[at], d.drafted[at]), d.drafted[at]};
  }
  void rejected(const verify::PositionDistributions& d, std::span<double> weights) const override {
    for (std::size_t x = 0; x < weights.size(); ++x) weights[x] = d.target[x] - 0.5 * std::min(d.target[x], d.drafted[x]);
  }
};
// [end of a position rule]

// Accepts every draft.
class CredulousRule final : public verify::PositionRule {
 public:
  [[nodiscard]] verify::Odds odds(const verify::PositionDistributions& /*d*/, Token /*x*/) const override { return {1.0, 1.0}; }
  void rejected(const verify::PositionDistributions& d, std::span<double> weights) const override {
    std::copy(d.target.begin(), d.target.end(), weights.begin());
  }
};

// Follows the target's own sample through the tree, the last child first: lossless.
class FollowRule final : public verify::NodeRule {
 protected:
  int step(verify::Block& block, int node, Token& final_token) const override {
    final_token = block.pick_target(node);
    const int first = block.tree().nodes[static_cast<std::size_t>(node)].first_child;
    for (int child = first + block.children(node) - 1; child >= first; --child)
      if (block.token(child) == final_token) return child;
    return kNone;
  }
};

// Accepts the first child, whatever it is.
class FirstChildRule final : public verify::NodeRule {
 protected:
  int step(verify::Block& block, int node, Token& /*final_token*/) const override {
    static_cast<void>(block.children(node));
    return block.tree().nodes[static_cast<std::size_t>(node)].first_child;
  }
};

// [a position rule's entry]
template <class Rule>
verify::VerifierEntry position_verifier(const std::string& name, bool lossless) {
  return {{name, "a toy", "", {}, ""}, lossless, {}, [](const config::Arguments&) { return std::make_unique<Rule>(); }, {}};
}
// [end of a position rule's entry]

template <class Rule>
verify::VerifierEntry block_verifier(const std::string& name, bool lossless) {
  return {{name, "a toy", "", {}, ""},
          lossless,
          {.trees = {tokens::Siblings::independent, tokens::Siblings::point_mass}},
          {},
          [](const config::Arguments&) { return std::make_unique<Rule>(); }};
}

// ---- drafters ---------------------------------------------------------------------------------------------------------------

// [a drafter]
// Drafts the text's last token, again and again.
class EchoDrafter final : public draft::BlockDrafter {
 public:
  struct Params {
    int draft_length = 2;
  };
  explicit EchoDrafter(const Params& params) {
    shape_.siblings = tokens::Siblings::point_mass;  // tokens are chosen, not drawn
    shape_.draft_length = params.draft_length;
    shape_.nodes = params.draft_length;
    shape_.reads_text = true;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }
  // Adds the round's tokens to the empty block; node 0 is the text so far.
  void choose(draft::DrafterInput& input, Memory* /*memory*/, draft::ChosenBlock& block) const override {
    if (input.text().empty()) return;
    int node = 0;
    for (int i = 0; i < shape_.draft_length; ++i) node = block.add(node, input.text().back());
  }
  // No pass of a draft model; one target pass over the drafted tokens and the text's last one.
  [[nodiscard]] draft::BlockWork work(int nodes) const override { return {{}, 1.0 + nodes}; }

 private:
  Shape shape_;
};

inline draft::DrafterEntry echo_drafter() {
  using P = EchoDrafter::Params;
  static const config::Fields<P> fields = {
      {"draft_length", &P::draft_length, "tokens drafted per round", config::between(1, kMaxDraftLength)},
  };
  return {{"toy_echo", "a toy", "", fields},
          [](const config::Arguments& arguments, Diagnostics&) { return std::make_shared<EchoDrafter>(fields.read(arguments)); }};
}
// [end of a drafter]

// The two likeliest tokens, and the likeliest one below the first where the draft is surer of it than not.
class BushDrafter final : public draft::BlockDrafter {
 public:
  BushDrafter() {
    shape_.siblings = tokens::Siblings::point_mass;
    shape_.draft_length = 2;
    shape_.nodes = 3;
    shape_.ranks = 2;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }
  void choose(draft::DrafterInput& input, Memory* /*memory*/, draft::ChosenBlock& block) const override {
    const std::vector<draft::Ranked> first(input.likeliest(block, 0).begin(), input.likeliest(block, 0).end());
    for (std::size_t rank = 0; rank < first.size(); ++rank) block.add(0, first[rank].token, static_cast<int>(rank));
    if (first.front().probability > 0.5) block.add(1, input.likeliest(block, 1).front().token, 0);
  }
  [[nodiscard]] draft::BlockWork work(int nodes) const override { return {{1.0, 1.0}, 1.0 + nodes}; }

 private:
  Shape shape_;
};

template <class Drafter>
draft::DrafterEntry block_drafter(const std::string& name) {
  return {{name, "a toy", "", {}, ""}, [](const config::Arguments&, Diagnostics&) { return std::make_shared<Drafter>(); }};
}

// ---- policies ---------------------------------------------------------------------------------------------------------------

// [a policy]
// Drafts one token more than were accepted.
class OneMorePolicy final : public draft::LengthPolicy {
 public:
  explicit OneMorePolicy(int longest) : longest_(longest) {}
  [[nodiscard]] Memory start() const override { return {.length = 1}; }
  void observe(Memory& memory, int /*drafted*/, int accepted) const override { memory.length = std::min(accepted + 1, longest_); }

 private:
  int longest_;
};
// [end of a policy]

// Stops after a token that the draft finds likely.
class ShyPolicy final : public draft::LengthPolicy {
 public:
  explicit ShyPolicy(int longest) : longest_(longest) {}
  [[nodiscard]] Memory start() const override { return {.length = longest_}; }
  [[nodiscard]] bool goes_on(const Memory& /*memory*/, double probability, double /*entropy*/) const override {
    return probability < 0.5;
  }
  [[nodiscard]] bool looks() const override { return true; }

 private:
  int longest_;
};

// [a policy's entry]
template <class Policy>
draft::PolicyEntry length_policy(const std::string& name) {
  return {{name, "a toy", "", {}, ""},
          [](const config::Arguments&, const draft::LengthChoice& choice, Diagnostics&) -> std::unique_ptr<draft::LengthPolicy> {
            return std::make_unique<Policy>(choice.longest);
          }};
}
// [end of a policy's entry]

// ---- context processes ------------------------------------------------------------------------------------------------------

// [a context process]
// An even token leads to context 0, an odd one to context 1. Tokens alone decide, so theory and the audit follow it.
class ParityProcess final : public families::ContextProcess {
 public:
  ParityProcess() {
    shape_.kind = families::ContextShape::Kind::markov;
    shape_.contexts = 2;
  }
  [[nodiscard]] const families::ContextShape& shape() const override { return shape_; }
  void start(rng::Key, std::uint64_t, std::size_t count, std::uint32_t* context) const override {
    std::fill_n(context, count, 0U);
  }
  [[nodiscard]] bool moves() const override { return true; }
  void step(rng::Key, std::uint64_t, const std::uint32_t* lanes, std::size_t count, const std::uint32_t*, const Token* token,
            std::uint32_t* context) const override {
    for (std::size_t i = 0; i < count; ++i) context[lanes[i]] = next(context[lanes[i]], token[i]);
  }
  [[nodiscard]] std::uint32_t next(std::uint32_t, Token token) const override { return static_cast<std::uint32_t>(token % 2); }

 private:
  families::ContextShape shape_;
};
// [end of a context process]

// Every fourth text position moves on to the next of three contexts: of no kind that theory or the audit knows.
class DriftProcess final : public families::ContextProcess {
 public:
  DriftProcess() { shape_.contexts = kContexts; }
  [[nodiscard]] const families::ContextShape& shape() const override { return shape_; }
  void start(rng::Key, std::uint64_t first_sequence, std::size_t count, std::uint32_t* context) const override {
    for (std::size_t i = 0; i < count; ++i) context[i] = static_cast<std::uint32_t>((first_sequence + i) % kContexts);
  }
  [[nodiscard]] bool moves() const override { return true; }
  void step(rng::Key, std::uint64_t, const std::uint32_t* lanes, std::size_t count, const std::uint32_t* text_position,
            const Token*, std::uint32_t* context) const override {
    for (std::size_t i = 0; i < count; ++i)
      if (text_position[lanes[i]] % 4 == 3) context[lanes[i]] = (context[lanes[i]] + 1) % kContexts;
  }

 private:
  static constexpr std::uint32_t kContexts = 3;
  families::ContextShape shape_;
};

// Context 0 has the configured pair, the others have a draft that knows less.
template <class Process>
families::ContextEntry context_process(const std::string& name) {
  return {{name, "a toy", "", {}, ""}, [](const config::Arguments&, families::ContextBuilder& builder) {
            families::ContextModel model;
            model.process = std::make_unique<Process>();
            builder.add_pair(model);
            const config::Value uniform = config::parse_text("{draft: {family: uniform}}", "toy", builder.diagnostics());
            for (int context = 1; context < model.process->shape().contexts; ++context)
              builder.add_pair(model, uniform, {}, "toy");
            return model;
          }};
}

// ---- a family, a transform, a cost model, a placement -----------------------------------------------------------------------

// [a family]
// Falls in even steps.
class StairsDistribution final : public families::Distribution {
 public:
  void draw(const families::DistributionAddress&, const families::TargetDistributions&,
            std::span<double> distribution) const override {
    const auto n = static_cast<double>(distribution.size());
    for (std::size_t x = 0; x < distribution.size(); ++x) distribution[x] = 2.0 * (n - static_cast<double>(x)) / (n * (n + 1.0));
  }
};

inline families::FamilyEntry stairs_family() {
  return {{"toy_stairs", "a toy", "", {}, ""},
          [](const config::Arguments&, families::DistributionBuilder&) { return std::make_unique<StairsDistribution>(); }};
}
// [end of a family]

// The source, read from its last token to its first.
class MirrorTransform final : public families::Distribution {
 public:
  explicit MirrorTransform(std::unique_ptr<families::Distribution> source) : source_(std::move(source)) {}
  void draw(const families::DistributionAddress& address, const families::TargetDistributions& target,
            std::span<double> distribution) const override {
    source_->draw(address, target, distribution);
    std::reverse(distribution.begin(), distribution.end());
  }
  [[nodiscard]] bool random() const override { return source_->random(); }

 private:
  std::unique_ptr<families::Distribution> source_;
};

inline families::TransformEntry mirror_transform() {
  return {{"toy_mirror", "a toy", "", {}, ""},
          [](const config::Arguments&, std::unique_ptr<families::Distribution> source, families::DistributionBuilder&) {
            return std::make_unique<MirrorTransform>(std::move(source));
          }};
}

// [a cost model]
// A draft pass takes a fixed time, a target pass a fixed time and more for each token of a sequence.
class FlatCost final : public cost::CostModel {
 public:
  struct Params {
    double draft_ms = 1.0;
    double target_ms = 10.0;
    double token_ms = 1.0;
  };
  explicit FlatCost(const Params& params) : params_(params) {}
  // Seconds, in the part of a pass's time that they belong to.
  [[nodiscard]] cost::PassTime pass(cost::Role role, const cost::Pass& pass) const override {
    cost::PassTime time;
    time.weights = 1e-3 * (role == cost::Role::draft ? params_.draft_ms : params_.target_ms + params_.token_ms * pass.tokens);
    return time;
  }
  [[nodiscard]] double round_overhead(double /*batch*/) const override { return 0.0; }

 private:
  Params params_;
};

inline cost::CostEntry flat_cost() {
  using P = FlatCost::Params;
  static const config::Fields<P> fields = {
      {"draft_ms", &P::draft_ms, "time of a draft pass, milliseconds", config::above(0, 1e6)},
      {"target_ms", &P::target_ms, "time of a target pass before its first token, milliseconds", config::above(0, 1e6)},
      {"token_ms", &P::token_ms, "and for each token of a sequence, milliseconds", config::between(0, 1e6)},
  };
  return {{"toy_flat", "a toy", "", fields},
          [](const config::Arguments& arguments, Diagnostics&) { return std::make_unique<FlatCost>(fields.read(arguments)); }};
}
// [end of a cost model]

// [a placement]
// One GPU drafts, then verifies: the placement `serial` without a link.
class OneGpuRun final : public placement::Lockstep {
 public:
  using Lockstep::Lockstep;
  placement::Result simulate() {
    verify_ = prefill_latency(cost::Role::target);
    if (draft_runs()) draft_ = prefill_latency(cost::Role::draft);
    engine_.schedule_after(verify_.total(), [this] {
      emit_first();
      took(&placement::Parts::prefill, verify_, result_.target_busy);
      if (done()) return;
      engine_.schedule_after(draft_.total(), [this] {
        took(&placement::Parts::prefill, draft_, result_.draft_busy);
        begin();
      });
    });
    return run();
  }

 private:
  void begin() {
    draft_ = draft_latency(size(), upcoming().work, context(), catch_up_share());
    verify_ = verify_latency();
    engine_.schedule_after(draft_.total() + verify_.total(), [this] { finish(); });
  }
  void finish() {
    const BatchRound outcome = finish_round();  // emits the tokens
    took(&placement::Parts::draft, draft_, result_.draft_busy);
    took(&placement::Parts::verify, verify_, result_.target_busy);
    waste(draft_.total(), outcome.accepted, outcome.drafted);
    if (!done()) begin();
  }
  // The parts of the time must add up to the total.
  void took(Duration placement::Parts::*part, const placement::PassLatency& pass, Duration& busy) {
    spend(part, pass.total(), pass);
    busy += pass.total();
  }

  placement::PassLatency draft_;
  placement::PassLatency verify_;
};

class OneGpu final : public placement::Placement {
 public:
  [[nodiscard]] bool passes_are_sequential() const override { return true; }
  [[nodiscard]] placement::Result simulate(const placement::Generation& generation, engine::Timeline* timeline) const override {
    return OneGpuRun(generation, timeline).simulate();
  }
};

inline placement::PlacementEntry one_gpu_placement() {
  return {{"toy_one_gpu", "a toy", "", {}, ""},
          [](const config::Arguments&, Diagnostics&) { return std::make_unique<OneGpu>(); }};
}
// [end of a placement]

}  // namespace specsim::tests
