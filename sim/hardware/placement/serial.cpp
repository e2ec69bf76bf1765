#include "sim/hardware/engine/fifo_server.h"
#include "sim/hardware/placement/lockstep.h"

namespace specsim::placement {

namespace {

class SerialRun final : public Lockstep {
 public:
  SerialRun(const Generation& generation, engine::Timeline* timeline) : Lockstep(generation, timeline), lane_(lane("GPU")) {}

  Result simulate() {
    if (draft_runs()) draft_ = prefill_latency(cost::Role::draft);
    verify_ = prefill_latency(cost::Role::target);
    gpu_.request(verify_.total(), [this] { first_token(); });
    return run();
  }

 private:
  void first_token() {
    emit_first();
    book(&Parts::prefill, verify_, result_.target_busy);
    span(lane_, "prefill", SimTime(), verify_.total());
    if (done()) return;
    gpu_.request(draft_.total(), [this] {
      book(&Parts::prefill, draft_, result_.draft_busy);
      span(lane_, "draft prefill", since(draft_.total()), draft_.total());
      begin();
    });
  }
  void begin() {
    draft_ = draft_latency(size(), upcoming().work, context(), catch_up_share());
    verify_ = verify_latency();
    link_ = draft_length() > 0 ? link_time(size(), upcoming().work.verified_rows) : Duration();
    const auto verify = [this] { gpu_.request(verify_.total(), [this] { finish(); }); };
    if (link_ > Duration())
      gpu_.request(draft_.total(), [this, verify] { engine_.schedule_after(link_, verify); });
    else
      gpu_.request(draft_.total(), verify);
  }
  void finish() {
    const BatchRound outcome = finish_round();
    book(&Parts::draft, draft_, result_.draft_busy);
    spend(&Parts::network, link_);
    book(&Parts::verify, verify_, result_.target_busy);
    waste(draft_.total(), outcome.accepted, outcome.drafted);
    span(lane_, "draft", since(draft_.total() + link_ + verify_.total()), draft_.total(), outcome);
    span(lane_, "verify", since(verify_.total()), verify_.total(), outcome);
    if (!done()) begin();
  }
  void book(Duration Parts::*part, const PassLatency& pass, Duration& busy) {
    spend(part, pass.total(), pass);
    busy += pass.total();
  }
  [[nodiscard]] SimTime since(Duration duration) const { return SimTime() + (engine_.now() - SimTime() - duration); }

  engine::FifoServer gpu_{engine_, "GPU"};
  engine::Timeline::Lane lane_;
  PassLatency draft_;
  PassLatency verify_;
  Duration link_;  // of a draft on its own GPU: messages there and back
};

class Serial final : public Placement {
 public:
  [[nodiscard]] bool passes_are_sequential() const override { return true; }
  [[nodiscard]] Result simulate(const Generation& generation, engine::Timeline* timeline) const override {
    return SerialRun(generation, timeline).simulate();
  }
};

}  // namespace

PlacementEntry serial_placement() {
  return {{"serial",
           "draft, then verify: on one GPU, or in turn with the draft on cost.draft_hardware",
           "Leviathan et al., arXiv 2211.17192",
           {},
           ""},
          [](const config::Arguments&, Diagnostics&) { return std::make_unique<Serial>(); }};
}

}  // namespace specsim::placement
