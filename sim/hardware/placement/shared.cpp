#include "sim/foundation/base/check.h"
#include "sim/hardware/engine/shared_server.h"
#include "sim/hardware/placement/lockstep.h"

#include <algorithm>

namespace specsim::placement {

namespace {

// Like two_gpus, but on one GPU: a stream for each model, and the GPU's speed is shared between the two. A running draft pass
// cannot be interrupted: after a rejection it finishes before drafting begins again.
class SharedRun final : public Lockstep {
 public:
  SharedRun(const Generation& generation, engine::Timeline* timeline, double target_share, double draft_share)
      : Lockstep(generation, timeline),
        target_share_(target_share),
        draft_share_(draft_share),
        target_lane_(lane("GPU, target stream")),
        draft_lane_(lane("GPU, draft stream")) {
    SPECSIM_CHECK(generation.accepted->bonus == decode::Bonus::none && draft_length() >= 1, "draft_length {}", draft_length());
  }

  Result simulate() {
    const PassLatency target = prefill_latency(cost::Role::target);
    spend(&Parts::prefill, target.total(), target);
    result_.target_busy += target.total();
    span(target_lane_, "prefill", SimTime(), target.total());
    engine_.schedule_after(target.total(), [this] { first_token(); });
    return run();
  }

 private:
  // Prefills run alone on the GPU, one after the other.
  void first_token() {
    emit_first();
    if (done()) return;
    const PassLatency draft = draft_runs() ? prefill_latency(cost::Role::draft) : PassLatency();
    spend(&Parts::prefill, draft.total(), draft);
    result_.draft_busy += draft.total();
    span(draft_lane_, "draft prefill", engine_.now(), draft.total());
    engine_.schedule_after(draft.total(), [this] { draft_again(size(), upcoming().work); });
  }

  // A pass that takes `time` alone; `share` is the largest part of the full speed that it can use.
  void start(const PassLatency& time, double share, engine::Action on_finish) {
    const auto work = Duration::from_ps(static_cast<double>(time.total().ps()) * share);
    gpu_.request(work, on_finish, {.weight = share, .most = share});
  }

  void draft_again(std::uint64_t sequences, const draft::BlockWork& block) {
    drafted_block_ = block;
    stage_ = Stage::again;
    drafting_ = sequences;
    block_context_ = context();
    pass_ = 0;
    again_began_ = engine_.now();
    again_sampling_host_ = {};
    draft_began_ = engine_.now();
    if (block_is_whole()) return block_drafted();  // copying from the text takes no pass
    next_draft_pass();
  }
  void block_drafted() {
    spend(&Parts::draft, engine_.now() - again_began_, again_sampling_host_);
    span(draft_lane_, "draft", draft_began_, engine_.now() - draft_began_, round(), drafting_);
    block_ += spent_;
    spent_ = {};
    verify();
  }
  [[nodiscard]] bool block_is_whole() const { return pass_ == drafted_block_.pass_rows.size(); }
  void next_draft_pass() {
    const PassLatency latency = draft_pass_latency(drafting_, drafted_block_, pass_, block_context_);
    if (stage_ == Stage::again) {
      again_sampling_host_.sampling += latency.sampling;
      again_sampling_host_.host += latency.host;
    }
    pass_began_ = engine_.now();
    start(latency, draft_share_, [this] { draft_pass_done(); });
  }
  void draft_pass_done() {
    const Duration took = engine_.now() - pass_began_;
    result_.draft_busy += took;
    spent_ += took;
    ++pass_;
    const bool whole = block_is_whole();
    switch (stage_) {
      case Stage::again:
        if (!whole) return next_draft_pass();
        return block_drafted();
      case Stage::ahead:  // verification continues
        if (!whole) return next_draft_pass();
        ahead_done_ = true;
        ahead_end_ = engine_.now();
        return;
      case Stage::rest:  // at least one sequence can use the block
        if (!whole) return next_draft_pass();
        ahead_end_ = engine_.now();
        return settle();
      case Stage::wasted_ahead:
        ahead_end_ = engine_.now();
        return settle();
    }
  }

  void verify() {
    verify_began_ = engine_.now();
    batch_ = size();
    verify_ = verify_latency();
    stage_ = Stage::ahead;
    drafting_ = batch_;
    drafted_block_ = ahead();
    block_context_ = ahead_context();
    pass_ = 0;
    ahead_done_ = block_is_whole();
    ahead_end_ = engine_.now();
    draft_began_ = engine_.now();
    start(verify_, target_share_, [this] { verified(); });
    if (!ahead_done_) next_draft_pass();
  }
  void verified() {
    outcome_ = finish_round();
    const Duration wall = engine_.now() - verify_began_;
    spend(&Parts::verify, wall, verify_);
    result_.target_busy += wall;
    span(target_lane_, "verify", verify_began_, wall, outcome_);
    waste(block_, outcome_.accepted, outcome_.drafted);
    block_ = {};
    rest_began_ = engine_.now();
    if (done()) {
      if (!ahead_done_) {
        spent_ += engine_.now() - pass_began_;
        result_.draft_busy += engine_.now() - pass_began_;
        ahead_end_ = engine_.now();
      }
      book_ahead();
      engine_.stop();
      return;
    }
    if (ahead_done_) return settle();
    stage_ = outcome_.full > 0 ? Stage::rest : Stage::wasted_ahead;
  }
  // Verification and pre-drafting are finished.
  void settle() {
    spend(&Parts::draft, engine_.now() - rest_began_);
    book_ahead();
    if (outcome_.rejected > 0)
      draft_again(outcome_.rejected, upcoming_of_missed().work);
    else
      verify();
  }
  void book_ahead() {
    const double unused = 1.0 - static_cast<double>(outcome_.full) / static_cast<double>(batch_);
    const auto wasted = std::min(spent_, Duration::from_ps(static_cast<double>(spent_.ps()) * unused));
    add_wasted_ahead(wasted);
    block_ = spent_ - wasted;
    spent_ = {};
    if (outcome_.full > 0)
      span(draft_lane_, "draft", draft_began_, ahead_end_ - draft_began_, outcome_.round + 1, outcome_.full);
    else
      span(draft_lane_, "draft in vain", draft_began_, ahead_end_ - draft_began_, outcome_.round + 1, batch_, "terrible");
  }

  enum class Stage { again, ahead, rest, wasted_ahead };

  double target_share_;
  double draft_share_;
  engine::SharedServer gpu_{engine_, "GPU"};
  engine::Timeline::Lane target_lane_;
  engine::Timeline::Lane draft_lane_;
  Stage stage_ = Stage::again;
  BatchRound outcome_;
  PassLatency verify_;
  PassLatency again_sampling_host_;
  Duration spent_;  // time spent on the block that is being drafted
  Duration block_;  // drafting time of the block under verification
  SimTime pass_began_;
  SimTime draft_began_;
  SimTime again_began_;
  SimTime verify_began_;
  SimTime rest_began_;
  SimTime ahead_end_;
  bool ahead_done_ = false;
  std::uint64_t drafting_ = 0;
  std::uint64_t batch_ = 0;
  double block_context_ = 0.0;      // cached tokens at the start of the block that is being drafted
  draft::BlockWork drafted_block_;  // the block that is being drafted
  std::size_t pass_ = 0;            // its passes that are done
};

class Shared final : public Placement {
 public:
  struct Params {
    double target_share = 1.0;
    double draft_share = 1.0;
  };
  explicit Shared(const Params& params) : params_(params) {}
  [[nodiscard]] decode::Bonus bonus() const override { return decode::Bonus::none; }
  [[nodiscard]] double longest_round(double passes, const PlacedBatch& /*setting*/, int /*drafted*/) const override {
    return passes / std::min(params_.target_share, params_.draft_share);
  }
  [[nodiscard]] Result simulate(const Generation& generation, engine::Timeline* timeline) const override {
    return SharedRun(generation, timeline, params_.target_share, params_.draft_share).simulate();
  }

 private:
  Params params_;
};

}  // namespace

PlacementEntry shared_placement() {
  using P = Shared::Params;
  static const config::Fields<P> fields = {
      {"target_share", &P::target_share, "part of the GPU's speed that a verification alone can use", config::between(0.001, 1)},
      {"draft_share", &P::draft_share, "part of it that a draft pass alone can use", config::between(0.001, 1)},
  };
  return {
      {"shared", "one GPU: the next block is drafted while this one is verified, and both share the GPU", "", fields,
       "Passes that run at the same time divide the speed in proportion to their shares; one that cannot use all of it leaves "
       "the rest to the other. At shares of 1 both need the same bandwidth and nothing is gained. There is no bonus token, and "
       "trees and policies are handled, as with two_gpus; a draft pass that runs at a rejection finishes before drafting "
       "begins again."},
      [](const config::Arguments& arguments, Diagnostics&) { return std::make_unique<Shared>(fields.read(arguments)); }};
}

}  // namespace specsim::placement
