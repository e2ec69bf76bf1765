// A server under load, as a config describes it.
#pragma once

#include "sim/experiments/spec/sections.h"
#include "sim/experiments/spec/spec.h"
#include "sim/hardware/latency/cost_model.h"
#include "sim/serving/arrivals/arrivals.h"
#include "sim/serving/arrivals/lengths.h"
#include "sim/serving/serve/memory.h"
#include "sim/serving/serve/metrics.h"
#include "sim/serving/serve/policy.h"
#include "sim/serving/serve/scheduler.h"
#include "sim/serving/serve/simulate.h"
#include "sim/serving/serve/step_time.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace specsim::load {

// Acceptance of drafts: as stated in the config, or by executing rounds of its distributions and method.
using AcceptanceSource = std::variant<std::shared_ptr<const serve::StatedAcceptance>, std::shared_ptr<const spec::Cell>>;

struct Speculation {
  serve::PolicyMaker policy;  // called once per replica and run
  std::string policy_name;
  AcceptanceSource acceptance;
  serve::DraftMethod method = serve::DraftMethod::eagle;
  int longest = 0;  // most drafts that the policy may choose, like num_speculative_tokens
  // One of the two is set; the other is nullptr.
  [[nodiscard]] const serve::StatedAcceptance* stated() const { return held<serve::StatedAcceptance>(); }
  [[nodiscard]] const spec::Cell* executed() const { return held<spec::Cell>(); }

 private:
  template <class Source>
  [[nodiscard]] const Source* held() const {
    const auto* const source = std::get_if<std::shared_ptr<const Source>>(&acceptance);
    return source != nullptr ? source->get() : nullptr;
  }
};

// Prompts and outputs of requests: from the arrivals, or drawn.
struct LengthsOfArrivals {};
struct DrawnLengths {
  std::shared_ptr<const arrivals::LengthDistribution> prompts;
  std::shared_ptr<const arrivals::LengthDistribution> outputs;
  std::uint32_t max_tokens = 0;  // most tokens that requests ask for; 0: exactly the tokens they get
};

struct ServeExperiment {
  std::string file;
  spec::ConfigText config;  // the config, with --set applied
  std::uint64_t seed = spec::kDefaultSeed;
  std::shared_ptr<const arrivals::ArrivalProcess> arrivals;
  bool counts_requests = false;     // the config sets the number of requests; otherwise the run chooses it
  std::size_t chosen_requests = 0;  // number of requests that the run chose; 0: it did not choose
  std::variant<LengthsOfArrivals, DrawnLengths> lengths;
  Location lengths_where;                 // the key that sets them
  serve::SchedulerMaker scheduler;        // called once per engine and run
  serve::SchedulerMaker plain_scheduler;  // of the server without speculation
  std::string product;                    // SchedulerEntry::product
  std::shared_ptr<const cost::CostModel> cost;
  serve::PoolSize pool;
  serve::PoolSize plain_pool;              // without a draft on the target's GPUs
  bool saves_states = false;               // the target has layers with a state, and prefixes are cached
  std::optional<Speculation> speculation;  // nullopt: no speculation
  std::uint32_t replicas = 1;
  std::shared_ptr<const serve::Routing> routing;
  std::uint32_t prefill_engines = 0;  // engines that only compute prompts; 0: every engine does both
  double link_ps_per_token = 0.0;     // time per token's cache on the link from them to the decoding engines
  arrivals::Picoseconds link_latency = 0;
  bool first_token_of_decode = false;  // the prompt engines send no token to the client
  arrivals::Picoseconds frontend = 0;
  arrivals::Picoseconds horizon = arrivals::kNever;
  serve::Slo slo;
  serve::WarmUp warm_up;
  bool streamed = false;              // no request is kept after its end: serve_streamed() instead of serve()
  std::vector<std::string> assumed;   // defaults that the command filled in, as options
  std::vector<std::string> warnings;  // options with which a real server would not start
};

// Reads a config's `serve` and `cost`. Reports every error to `diagnostics`.
ServeExperiment read_serve_experiment(const config::Value& config, const std::string& file, Diagnostics& diagnostics);

// The sections of such a config and their keys, for the reference.
const std::vector<spec::SectionInfo>& serve_sections();

// The requests of its seed. Throws BadInput for a request that the server can never serve.
arrivals::RequestTrace make_requests(const ServeExperiment& experiment, const std::atomic<bool>* stop = nullptr);

// Whether its engines share the target's experts, so that they compute every step together.
bool in_step(const ServeExperiment& experiment);

// Seconds of a step in which every request of the batch verifies the policy's draft length and drafts as many tokens for the
// next step. `cached_after`: cached tokens after the step.
double step_seconds(const serve::StepLatency& latency, const serve::Acceptance& acceptance, const serve::BatchState& batch,
                    double cached_after, int draft_length);

// The policy of a speculating experiment when no step is timed, for example to list the lengths that it may choose. `knows`:
// information on drafts.
std::unique_ptr<serve::ServerPolicy> untimed_policy(const serve::PolicyMaker& policy,
                                                    std::function<bool(int draft_length)> offers,
                                                    std::function<bool(draft::Confidence)> knows = {});

// The acceptance that the experiment describes; it must speculate.
std::unique_ptr<serve::Acceptance> make_acceptance(const ServeExperiment& experiment, const arrivals::RequestTrace& workload);

struct ServeResult {
  serve::SimulationResult result;
  serve::Summary summary;
};
struct ServeOptions {
  serve::StepObserver* observer = nullptr;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::size_t finished)> progress;
  const serve::Acceptance* acceptance = nullptr;  // result of make_acceptance(); nullptr: serve() calls it
  bool summarise = true;                          // false: leave the summary empty
};
// Runs the server on the requests once, and sums it up. Throws BadInput for requests that the server rejects, and if the run
// needs more memory than the machine has free.
ServeResult serve(const ServeExperiment& experiment, const arrivals::RequestTrace& workload, const ServeOptions& options);

// The same without keeping requests, for as many as a fleet gets in a day: `experiment.streamed`. The result has no sequences.
// `threads`: replicas are simulated in parallel if the routing ignores their state; the bytes do not depend on it.
ServeResult serve_streamed(const ServeExperiment& experiment, const ServeOptions& options, unsigned threads);

// The figures of each class of requests that acceptance has, for a run of the experiment with speculation or without; empty if
// there are no classes. Totals of steps are those of the whole run.
struct ClassSummary {
  std::string name;
  serve::Summary summary;
};
std::vector<ClassSummary> class_summaries(const ServeExperiment& experiment, const arrivals::RequestTrace& workload,
                                          const serve::SimulationResult& result);

// The error of the latency model for a run (latency_error.cpp): the standard deviation of the logarithm of a decoding step's or
// round's time at the run's mean batch and context. 0 if the cost model states none or the run completed nothing.
double latency_error(const ServeExperiment& experiment, const serve::Summary& summary);
// The same for the comparison of the experiment's server with the one without speculation. Errors that both share cancel, and
// so do steps that verify no drafts: the error counts by the share of time in the others, at their mean batch.
double comparison_error(const ServeExperiment& experiment, const serve::Summary& speculative, const serve::Summary& plain);

// The experiment's server, clients and texts without speculation, and with the pool that it has without the draft.
ServeExperiment without_speculation(ServeExperiment experiment);
// The experiment's server and clients with this many requests, which must not be recorded ones.
ServeExperiment with_requests(ServeExperiment experiment, std::size_t requests);
// The experiment with policy fixed: this draft length for all. It must speculate. Throws BadInput if its acceptance has no such
// length.
ServeExperiment with_fixed_length(ServeExperiment experiment, int draft_length);

}  // namespace specsim::load
