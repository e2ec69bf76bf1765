#include "sim/hardware/placement/two_gpu_run.h"

#include <algorithm>

namespace specsim::placement {

namespace {

// A round: sequences whose outcome was not prepared draft now, while the target waits; then the target verifies, and meanwhile
// the draft prepares the outcomes of this round for all sequences. The next round begins when both are done.
class PreparedRun final : public TwoGpuRun {
 public:
  using TwoGpuRun::TwoGpuRun;

 private:
  void begin() override {
    const Upcoming round = upcoming();
    batch_ = size();
    draft_ = draft_latency(batch_, round.work, context(), 0.0);
    verify_ = verify_latency();
    meanwhile_ = draft_latency(batch_, {round.work.meanwhile_rows}, context(), 0.0);
    book_prepared(round);
    outcomes_ = round.work.meanwhile_rows.empty() ? 1.0 : std::max(round.work.meanwhile_rows.back(), 1.0);
    result_.draft_busy += draft_.total();
    spend(&Parts::draft, draft_.total(), draft_);
    block_ += draft_.total();
    if (draft_.total() > Duration()) span(draft_lane_, "draft", engine_.now(), draft_.total(), this->round(), batch_);
    engine_.schedule_after(draft_.total(), [this] { verify(); });
  }
  void verify() {
    began_ = engine_.now();
    engine_.schedule_after(
        verify_.total(), [this] { verified(); }, engine::kNormal, 1);
  }
  void verified() {
    const BatchRound outcome = finish_round();
    spend(&Parts::verify, verify_.total(), verify_);
    result_.target_busy += verify_.total();
    span(target_lane_, "verify", began_, verify_.total(), outcome);
    waste(block_, outcome.accepted, outcome.drafted);
    block_ = {};
    prepared_ = done() ? std::min(meanwhile_.total(), verify_.total()) : meanwhile_.total();
    result_.draft_busy += prepared_;
    span(draft_lane_, "prepare outcomes", began_, prepared_, outcome.round + 1, outcome.batch);
    if (done()) return add_wasted_ahead(prepared_);
    const SimTime ready = std::max(engine_.now(), began_ + prepared_);
    spend(&Parts::waiting, ready - engine_.now());
    engine_.schedule_at(ready, [this] { begin(); });
  }
  // Of the time that prepared outcomes, one chain of a sequence's many is used if its outcome was among them.
  void book_prepared(const Upcoming& round) {
    if (prepared_ == Duration()) return;
    const double missed = round.work.pass_rows.empty() ? 0.0 : round.work.pass_rows.front();
    const auto used = Duration::from_ps(static_cast<double>(prepared_.ps()) * std::max(0.0, 1.0 - missed) / outcomes_);
    add_wasted_ahead(prepared_ - used);
    block_ = used;
    prepared_ = {};
  }

  PassLatency draft_;
  PassLatency verify_;
  PassLatency meanwhile_;
  Duration prepared_;  // time spent on the outcomes of the last round
  Duration block_;     // time of drafting the blocks under verification
  SimTime began_;
  std::uint64_t batch_ = 0;
  double outcomes_ = 1.0;  // prepared for a sequence
};

class OutcomeCache final : public Placement {
 public:
  [[nodiscard]] bool second_gpu() const override { return true; }
  [[nodiscard]] bool prepares_outcomes() const override { return true; }
  [[nodiscard]] Result simulate(const Generation& generation, engine::Timeline* timeline) const override {
    return PreparedRun(generation, timeline).simulate();
  }
};

}  // namespace

PlacementEntry outcome_cache_placement() {
  return {{"outcome_cache",
           "the draft on a second GPU: while the target verifies, it prepares the next block for each likely outcome",
           "Kumar, Dao and May (speculative speculative decoding), arXiv 2603.03251; tanishqkumar/ssd, commit 6ed3022",
           {},
           "Only for drafter saguaro. A round takes max(verify, prepare) if the outcome of every sequence of the batch was "
           "prepared, and otherwise the draft's passes before it, while the other sequences wait. prepare is one pass of the "
           "draft over the block and one pass over all prepared outcomes for each token of their chains. Draft passes take the "
           "time of the cost model; a second GPU makes them neither faster nor slower."},
          [](const config::Arguments&, Diagnostics&) { return std::make_unique<OutcomeCache>(); }};
}

}  // namespace specsim::placement
