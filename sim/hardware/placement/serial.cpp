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
    gpu_.request(draft_.total(), [this] { gpu_.request(verify_.total(), [this] { finish(); }); });
  }
  void finish() {
    const BatchRound outcome = finish_round();
    book(&Parts::draft, draft_, result_.draft_busy);
    book(&Parts::verify, verify_, result_.target_busy);
    waste(draft_.total(), outcome.accepted, outcome.drafted);
    span(lane_, "draft", since(draft_.total() + verify_.total()), draft_.total(), outcome);
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
  return {{"serial", "one GPU: draft, then verify", "Leviathan et al., arXiv 2211.17192", {}, ""},
          [](const config::Arguments&, Diagnostics&) { return std::make_unique<Serial>(); }};
}

}  // namespace specsim::placement
