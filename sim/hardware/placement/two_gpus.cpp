#include "sim/foundation/base/check.h"
#include "sim/hardware/placement/two_gpu_run.h"

#include <algorithm>

namespace specsim::placement {

namespace {

// A round: the target verifies a block while the draft drafts the next one as a continuation of its first path. Sequences that
// accept exactly that path have their next block already; the others' block is wasted, and they draft again. All blocks must be
// ready before the next verification because the batch is in lockstep.
class OverlappedRun final : public TwoGpuRun {
 public:
  OverlappedRun(const Generation& generation, engine::Timeline* timeline) : TwoGpuRun(generation, timeline) {
    SPECSIM_CHECK(generation.accepted->bonus == decode::Bonus::none && draft_length() >= 1, "draft_length {}", draft_length());
  }

 private:
  void begin() override { draft_again(size(), upcoming()); }

  // Neither GPU is busy: this many sequences get a block for the text as it is now.
  void draft_again(std::uint64_t sequences, const Upcoming& block) {
    draft_ = draft_latency(sequences, block.work, context(), 0.0);
    const Duration link = link_time(sequences, block.work.verified_rows);
    block_ += draft_.total();
    result_.draft_busy += draft_.total();
    spend(&Parts::draft, draft_.total(), draft_);
    spend(&Parts::network, link);
    span(draft_lane_, "draft", engine_.now(), draft_.total(), round(), sequences);
    engine_.schedule_after(draft_.total() + link, [this] { verify(); });
  }

  void verify() {
    began_ = engine_.now();
    batch_ = size();
    verify_ = verify_latency();
    // The next block continues the one that is being verified; the draft assumes that its first path is accepted.
    const draft::BlockWork block = ahead();
    ahead_ = draft_latency(batch_, block, ahead_context(), 0.0);
    ahead_link_ = link_time(batch_, block.verified_rows);
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
    // If no sequence can use the block, drafting stops; else it runs to its end.
    const Duration drafted = outcome.full > 0 ? ahead_.total() : std::min(ahead_.total(), verify_.total());
    result_.draft_busy += drafted;
    const double unused = 1.0 - static_cast<double>(outcome.full) / static_cast<double>(batch_);
    const auto wasted = std::min(drafted, Duration::from_ps(static_cast<double>(drafted.ps()) * unused));
    add_wasted_ahead(wasted);
    block_ = drafted - wasted;
    if (outcome.full > 0)
      span(draft_lane_, "draft", began_, drafted, outcome.round + 1, outcome.full);
    else
      span(draft_lane_, "draft in vain", began_, drafted, outcome.round + 1, batch_, "terrible");
    if (done()) return;
    // The outcome of the round before reaches the draft, and the next block the target, while the target verifies.
    const SimTime ready = std::max(engine_.now(), began_ + drafted + (outcome.full > 0 ? ahead_link_ : Duration()));
    spend(&Parts::waiting, ready - engine_.now());
    rejected_ = outcome.rejected;
    engine_.schedule_at(ready, [this] { rejected_ > 0 ? draft_again(rejected_, upcoming_of_missed()) : verify(); });
  }

  PassLatency draft_;
  PassLatency verify_;
  PassLatency ahead_;
  Duration ahead_link_;
  Duration block_;  // time of drafting the block under verification
  SimTime began_;
  std::uint64_t batch_ = 0;
  std::uint64_t rejected_ = 0;
};

class TwoGpus final : public Placement {
 public:
  [[nodiscard]] decode::Bonus bonus() const override { return decode::Bonus::none; }
  [[nodiscard]] bool second_gpu() const override { return true; }
  [[nodiscard]] Result simulate(const Generation& generation, engine::Timeline* timeline) const override {
    return OverlappedRun(generation, timeline).simulate();
  }
};

}  // namespace

PlacementEntry two_gpus_placement() {
  return {
      {"two_gpus",
       "the draft on a second GPU: the next block is drafted while this one is verified",
       "PEARL, arXiv 2408.11850; DSI, arXiv 2405.14105",
       {},
       "If a token is rejected, the pre-drafted block is thrown away and drafting begins again once the verification has "
       "ended: a round takes alpha^K max(draft, verify) + (1 - alpha^K)(verify + draft) for one sequence. Full acceptance adds "
       "no bonus token, because the next block was drafted before the target's own token was known: (1 - alpha^K) / (1 - "
       "alpha) tokens per round. In a batch the sequences that rejected draft again while the others wait. Draft passes take "
       "the time of the cost model: on another kind of GPU if cost.draft_hardware names one, whose messages (cost.draft_link_us) "
       "lengthen each block's drafting. With trees the next tree is drafted "
       "after the path of first children, each the likeliest of its siblings or the first that was drawn: K is that path's "
       "length and alpha^K the probability that it is accepted; a path that ends elsewhere keeps the target's own token, and "
       "the pre-drafted tree is lost. A block after an empty block is lost too. A draft length policy chooses the pre-drafted "
       "block as after full acceptance; if it looks at the tokens, a lost block counts as one of the size of its replacement, "
       "and so do trees without a fixed shape. Not for heads on the target's state (medusa, hydra, redrafter, parallel, "
       "dflash) and drafters of what the target predicts (lookahead, token_recycling, sam_decoding that recycles), which have "
       "to wait for its pass over the block; nor for policies that depend on what a whole batch accepted, or foresee it "
       "(oracle)."},
      [](const config::Arguments&, Diagnostics&) { return std::make_unique<TwoGpus>(); }};
}

}  // namespace specsim::placement
