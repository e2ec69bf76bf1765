#include "sim/foundation/base/overloaded.h"
#include "sim/hardware/engine/fifo_server.h"
#include "sim/hardware/engine/link.h"
#include "sim/hardware/placement/lockstep.h"

#include <algorithm>
#include <cmath>

namespace specsim::placement {

namespace {

struct Connection {
  Duration latency;  // one way
  double bytes_per_second = 0.0;
  std::uint64_t id_bytes = 4;
  bool probabilities = false;
  double probability_bits = 16.0;
};

bool drafts_are_drawn(const Drafting& drafting) {
  return std::visit(
      Overloaded{[](TokenByToken /*drafts*/) { return true; },
                 [](const draft::BlockDrafter& drafter) { return drafter.shape().siblings != tokens::Siblings::point_mass; }},
      drafting);
}

// Each round's tree is different and must be sent.
bool blocks_are_chosen(const Drafting& drafting) {
  return std::visit(Overloaded{[](TokenByToken /*drafts*/) { return false; },
                               [](const draft::BlockDrafter& drafter) { return drafter.tree() == nullptr; }},
                    drafting);
}

// Tokens count as emitted when they are delivered at the device that drafts.
class NetworkRun final : public Lockstep {
 public:
  NetworkRun(const Generation& generation, engine::Timeline* timeline, const Connection& connection)
      : Lockstep(generation, timeline),
        connection_(connection),
        vocab_(generation.vocab),
        states_(generation.states),
        prompt_tokens_(generation.prompt_tokens),
        drawn_(drafts_are_drawn(generation.drafting)),
        chosen_(blocks_are_chosen(generation.drafting)),
        up_(engine_, "uplink", connection.latency, connection.bytes_per_second),
        down_(engine_, "downlink", connection.latency, connection.bytes_per_second),
        target_lane_(lane("target GPU")),
        draft_lane_(lane("draft device")),
        up_lane_(lane("uplink")),
        down_lane_(lane("downlink")) {}

  Result simulate() {
    target_prefill_ = prefill_latency(cost::Role::target);
    if (draft_runs()) draft_prefill_ = prefill_latency(cost::Role::draft);
    span(target_lane_, "prefill", SimTime(), target_prefill_.total());
    gpu_.request(target_prefill_.total(), [this] {
      sent_ = engine_.now();
      bytes_ = size() * connection_.id_bytes + state_bytes(size() * prompt_tokens_);
      down_.send(bytes_, [this] { first_token(); });
    });
    return run();
  }

 private:
  // Bytes of states for this many tokens that the running sequences emit.
  [[nodiscard]] std::uint64_t state_bytes(std::uint64_t tokens) const {
    const auto read = static_cast<double>(states_.of_all ? tokens : size());
    return static_cast<std::uint64_t>(std::ceil(read * states_.bytes));
  }
  void first_token() {
    emit_first();
    spend(&Parts::prefill, target_prefill_.total(), target_prefill_);
    result_.target_busy += target_prefill_.total();
    network(down_lane_, "first token", down_);
    const Duration drafting = done() ? std::min(draft_prefill_.total(), engine_.now() - SimTime()) : draft_prefill_.total();
    result_.draft_busy += drafting;
    span(draft_lane_, "draft prefill", SimTime(), drafting);
    if (done()) return;
    const SimTime ready = std::max(engine_.now(), SimTime() + draft_prefill_.total());
    spend(&Parts::prefill, ready - engine_.now());
    engine_.schedule_at(ready, [this] { draft(); });
  }
  void draft() {
    batch_ = size();
    draft_ = draft_latency(batch_, upcoming().work, context(), catch_up_share());
    verify_ = verify_latency();
    began_ = engine_.now();
    device_.request(draft_.total(), [this] {
      const Upcoming round = upcoming();
      const double bits = connection_.probabilities && drawn_ ? connection_.probability_bits * vocab_ : 0.0;
      double distributions = 0.0;  // how many distributions a sequence sends: one for each row of the draft's passes
      for (const double rows : round.work.pass_rows) distributions += rows;
      bytes_ = round.drafted_by(batch_) * (chosen_ ? 2 : 1) * connection_.id_bytes +
               static_cast<std::uint64_t>(std::ceil(static_cast<double>(batch_) * distributions * bits / 8.0));
      sent_ = engine_.now();
      up_.send(bytes_, [this] {
        network(up_lane_, "drafts", up_);
        verifying_ = engine_.now();
        gpu_.request(verify_.total(), [this] {
          // Downlink: the accepted count, the token after it, and for a head the target's states of the emitted tokens.
          bytes_ = 2 * batch_ * connection_.id_bytes + state_bytes(emitted_by_round());
          sent_ = engine_.now();
          down_.send(bytes_, [this] { finish(); });
        });
      });
    });
  }
  void finish() {
    const BatchRound outcome = finish_round();
    network(down_lane_, "tokens", down_);
    spend(&Parts::draft, draft_.total(), draft_);
    spend(&Parts::verify, verify_.total(), verify_);
    result_.draft_busy += draft_.total();
    result_.target_busy += verify_.total();
    waste(draft_.total(), outcome.accepted, outcome.drafted);
    span(draft_lane_, "draft", began_, draft_.total(), outcome);
    span(target_lane_, "verify", verifying_, verify_.total(), outcome);
    if (!done()) draft();
  }
  // A message has arrived. The span shows its transmission; the arrival is one latency later.
  void network(engine::Timeline::Lane lane, const char* name, const engine::Link& link) {
    spend(&Parts::network, engine_.now() - sent_);
    span(lane, name, sent_, link.transmission(bytes_), round(), batch_);
  }

  Connection connection_;
  int vocab_;
  States states_;
  std::uint64_t prompt_tokens_;
  bool drawn_;   // verification needs the drafts' distributions
  bool chosen_;  // the tree differs in every round, and each token is sent with its parent's place
  engine::FifoServer gpu_{engine_, "target GPU"};
  engine::FifoServer device_{engine_, "draft device"};
  engine::Link up_;
  engine::Link down_;
  engine::Timeline::Lane target_lane_;
  engine::Timeline::Lane draft_lane_;
  engine::Timeline::Lane up_lane_;
  engine::Timeline::Lane down_lane_;
  PassLatency target_prefill_;
  PassLatency draft_prefill_;
  PassLatency draft_;
  PassLatency verify_;
  SimTime began_;
  SimTime verifying_;
  SimTime sent_;
  std::uint64_t bytes_ = 0;
  std::uint64_t batch_ = 0;
};

class Network final : public Placement {
 public:
  explicit Network(const Connection& connection) : connection_(connection) {}
  [[nodiscard]] bool draft_elsewhere() const override { return true; }
  [[nodiscard]] bool sends_distributions() const override { return connection_.probabilities; }
  [[nodiscard]] double longest_round(double passes, const PlacedBatch& setting, int drafted) const override {
    const double distribution = connection_.probabilities ? setting.vocab * connection_.probability_bits / 8.0 : 0.0;
    const double bytes = static_cast<double>(setting.batch) *
                         ((drafted + 2.0) * (2.0 * static_cast<double>(connection_.id_bytes) + distribution) +
                          (drafted + 2.0 + static_cast<double>(setting.prompt_tokens)) * setting.states.bytes);
    return passes + 2.0 * connection_.latency.seconds() + bytes / connection_.bytes_per_second;
  }
  [[nodiscard]] Result simulate(const Generation& generation, engine::Timeline* timeline) const override {
    return NetworkRun(generation, timeline, connection_).simulate();
  }

 private:
  Connection connection_;
};

}  // namespace

PlacementEntry network_placement() {
  struct P {
    double latency_ms = 0.0;
    double gbit_per_second = 0.0;
    bool probabilities = false;
    std::uint64_t id_bytes = 4;
    double probability_bits = 16.0;
  };
  static const config::Fields<P> fields = {
      {"latency_ms", &P::latency_ms, "one way", config::between(0, 1e6), config::required},
      {"gbit_per_second", &P::gbit_per_second, "bandwidth of either direction", config::above(0, 1e6), config::required},
      {"send", &P::probabilities, "data sent with each draft token: its id, or the draft's whole distribution as well",
       config::one_of<bool>({{"ids", false}, {"probabilities", true}})},
      {"id_bytes", &P::id_bytes, "bytes of a token id, and of an accepted count", config::between(1, 64)},
      {"probability_bits", &P::probability_bits,
       "bits of each of a draft's probabilities, one for each token of the draft model's vocabulary, or of pair.vocab if no "
       "model is named",
       config::between(1, 64), config::whole},
  };
  return {
      {"network", "the draft on a device across a network: drafts go up, accepted counts and tokens come down, round by round",
       "", fields,
       "A round takes draft + verify + two latencies + the bytes of both ways over the bandwidth. Rejection sampling at the "
       "target needs the draft's probabilities: draft_length vocab probability_bits / 8 bytes per sequence and round, unless "
       "both sides can draw them again from ids (send: ids). A tree sends one distribution for each node that has children, "
       "and none if children are chosen tokens; a tree of another shape in every round sends each token's parent along. "
       "Prompts are on both sides at the start; tokens count when they are delivered at the device. Heads read the target's "
       "hidden states, which are sent down with the tokens, two bytes per number, if the cost section's draft is such a head "
       "(EAGLE, EAGLE-3, MTP: of every token, the prompt's too; Medusa, Hydra: of the last); drafters that guess from that "
       "state (medusa, hydra, redrafter, parallel, dflash) need such a draft. Not for drafters whose layers are the target's "
       "own (early_exit) and for drafters of what the target predicts (lookahead, token_recycling, sam_decoding that "
       "recycles), because none of that is sent."},
      [](const config::Arguments& arguments, Diagnostics&) {
        const P params = fields.read(arguments);
        Connection connection;
        connection.latency = Duration::from_seconds(1e-3 * params.latency_ms);
        // Zero after a mistake that was reported.
        connection.bytes_per_second = std::max(1.25e8 * params.gbit_per_second, 1e-6);
        connection.id_bytes = params.id_bytes;
        connection.probabilities = params.probabilities;
        connection.probability_bits = params.probability_bits;
        return std::make_unique<Network>(connection);
      }};
}

}  // namespace specsim::placement
