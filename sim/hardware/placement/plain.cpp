#include "sim/foundation/base/check.h"
#include "sim/hardware/engine/fifo_server.h"
#include "sim/hardware/placement/lockstep.h"

namespace specsim::placement {

namespace {

class PlainRun final : public Lockstep {
 public:
  PlainRun(const Generation& generation, engine::Timeline* timeline) : Lockstep(generation, timeline), lane_(lane("target GPU")) {
    SPECSIM_CHECK(draft_length() == 0, "plain decoding at draft_length {}", draft_length());
  }

  Result simulate() {
    const PassLatency pass = prefill_latency(cost::Role::target);
    gpu_.request(pass.total(), [this] {
      emit_first();
      next();
    });
    spend(&Parts::prefill, pass.total(), pass);
    result_.target_busy += pass.total();
    span(lane_, "prefill", SimTime(), pass.total());
    return run();
  }

 private:
  void next() {
    if (done()) return;
    pass_ = verify_latency();
    gpu_.request(pass_.total(), [this] { finish(); });
  }
  void finish() {
    const BatchRound outcome = finish_round();
    spend(&Parts::verify, pass_.total(), pass_);
    result_.target_busy += pass_.total();
    span(lane_, "decode", SimTime() + (engine_.now() - SimTime() - pass_.total()), pass_.total(), outcome.round, outcome.batch);
    next();
  }

  engine::FifoServer gpu_{engine_, "target GPU"};
  engine::Timeline::Lane lane_;
  PassLatency pass_;
};

class Plain final : public Placement {
 public:
  [[nodiscard]] bool speculates() const override { return false; }
  [[nodiscard]] Result simulate(const Generation& generation, engine::Timeline* timeline) const override {
    return PlainRun(generation, timeline).simulate();
  }
};

}  // namespace

std::unique_ptr<Placement> plain_decoding() { return std::make_unique<Plain>(); }

PlacementEntry plain_placement() {
  return {{"plain", "no speculation: one target pass per token, whatever the drafter", "", {}, ""},
          [](const config::Arguments&, Diagnostics&) { return plain_decoding(); }};
}

}  // namespace specsim::placement
