// A server under load, as a config asks for it.
#pragma once

#include "sim/experiments/spec/sections.h"
#include "sim/experiments/spec/spec.h"
#include "sim/hardware/latency/cost_model.h"
#include "sim/serving/arrivals/arrivals.h"
#include "sim/serving/arrivals/lengths.h"
#include "sim/serving/serve/metrics.h"
#include "sim/serving/serve/policy.h"
#include "sim/serving/serve/scheduler.h"
#include "sim/serving/serve/simulate.h"
#include "sim/serving/serve/step_price.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace specsim::load {

// How drafts are accepted: as the config states it, or as the rounds of its distributions and method do, which are executed.
using AcceptanceSource = std::variant<std::shared_ptr<const serve::StatedAcceptance>, std::shared_ptr<const spec::Cell>>;

struct Speculation {
  serve::PolicyMaker policy;  // called for every replica and run
  std::string policy_name;
  AcceptanceSource acceptance;
  serve::DraftMethod method = serve::DraftMethod::eagle;
  int longest = 0;  // drafts that the policy may choose, as num_speculative_tokens
  // One of the two; nullptr: it is the other.
  [[nodiscard]] const serve::StatedAcceptance* stated() const { return held<serve::StatedAcceptance>(); }
  [[nodiscard]] const spec::Cell* executed() const { return held<spec::Cell>(); }

 private:
  template <class Source>
  [[nodiscard]] const Source* held() const {
    const auto* const source = std::get_if<std::shared_ptr<const Source>>(&acceptance);
    return source != nullptr ? source->get() : nullptr;
  }
};

// Prompts and outputs of requests: as the arrivals bring them, or drawn.
struct LengthsOfArrivals {};
struct DrawnLengths {
  std::shared_ptr<const arrivals::LengthDistribution> prompts;
  std::shared_ptr<const arrivals::LengthDistribution> outputs;
  std::uint32_t max_tokens = 0;  // the most tokens that requests ask for; 0: as many as they get
};

struct ServeExperiment {
  std::string file;
  spec::ConfigText config;  // the config, with --set applied
  std::uint64_t seed = 1;
  std::shared_ptr<const arrivals::ArrivalProcess> arrivals;
  bool counts_requests = false;     // the config says how many are sent; otherwise the run chooses it
  std::size_t chosen_requests = 0;  // how many the run chose; 0: it did not
  std::variant<LengthsOfArrivals, DrawnLengths> lengths;
  Location lengths_where;           // the key that gives them
  serve::SchedulerMaker scheduler;  // called for every engine and run
  std::string product;              // SchedulerEntry::product
  std::shared_ptr<const cost::CostModel> cost;
  std::uint32_t block_tokens = 16;
  std::uint32_t blocks = serve::kUnlimitedBlocks;        // blocks of the pool
  std::uint32_t plain_blocks = serve::kUnlimitedBlocks;  // blocks of the pool where no draft lies beside the target
  std::optional<Speculation> speculation;                // nullopt: plain decoding
  std::uint32_t replicas = 1;
  std::shared_ptr<const serve::Routing> routing;
  std::uint32_t prefill_engines = 0;  // engines that compute prompts alone; 0: every engine does both
  double link_ps_per_token = 0.0;     // time for the cache of a token on the link from them to those that decode
  arrivals::Picoseconds link_latency = 0;
  bool first_token_of_decode = false;  // the client gets no token from the engines that compute prompts
  arrivals::Picoseconds frontend = 0;
  arrivals::Picoseconds horizon = arrivals::kNever;
  serve::Slo slo;
  serve::WarmUp warm_up;
  std::vector<std::string> assumed;   // what the options left out and the command took, as options
  std::vector<std::string> warnings;  // options that a real server would not start with
};

// Reads a config's `serve` and `cost`; every mistake goes to `diagnostics`.
ServeExperiment read_serve_experiment(const config::Value& config, const std::string& file, Diagnostics& diagnostics);

// The sections of such a config and their keys, for the reference.
const std::vector<spec::SectionInfo>& serve_sections();

// The requests that its seed gives; throws BadInput for one that the server can never serve.
arrivals::RequestTrace make_requests(const ServeExperiment& experiment);

// Whether its engines share the target's experts, so that they compute every step together.
bool in_step(const ServeExperiment& experiment);

// Seconds of a step in which every request of the batch verifies the drafts of a policy's length and drafts as many anew.
// `cached_after`: cached tokens behind the step.
double step_seconds(const serve::StepPricer& pricer, const serve::Acceptance& acceptance, const serve::BatchState& batch,
                    double cached_after, int draft_length);

// The policy of an experiment that speculates, where no step is timed, as for the lengths that it may choose. `knows`: of drafts.
std::unique_ptr<serve::ServerPolicy> untimed_policy(const serve::PolicyMaker& policy,
                                                    std::function<bool(int draft_length)> offers,
                                                    std::function<bool(draft::Confidence)> knows = {});

// How drafts are accepted, as the experiment says; it must speculate.
std::unique_ptr<serve::Acceptance> make_acceptance(const ServeExperiment& experiment, const arrivals::RequestTrace& workload);

struct Served {
  serve::SimulationResult result;
  serve::Summary summary;
};
struct ServeOptions {
  serve::StepObserver* observer = nullptr;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::size_t finished)> progress;
  const serve::Acceptance* acceptance = nullptr;  // what make_acceptance() gave; nullptr: serve() calls it
  bool summarise = true;                          // false: the summary is left empty
};
// Runs the server on the requests once, and sums it up. Throws BadInput for requests that the server refuses, and where the run
// takes more memory than the machine has free.
Served serve(const ServeExperiment& experiment, const arrivals::RequestTrace& workload, const ServeOptions& options);

// How wrong the latency model may be about a run (latency_error.cpp).
// Standard deviation of the logarithm of a decoding step's or round's time at the run's mean batch and context; 0 where the cost
// model states none or the run completed nothing.
double latency_error(const ServeExperiment& experiment, const serve::Summary& summary);
// The same of how the speeds of the experiment's server and of the plain one compare, without what the two have in common.
double comparison_error(const ServeExperiment& experiment, const serve::Summary& speculative, const serve::Summary& plain);

// The experiment's server, clients and texts without speculation, and with the pool that it has without the draft.
ServeExperiment without_speculation(ServeExperiment experiment);
// The experiment's server and clients, who go on for so many requests. Their number must not be recorded.
ServeExperiment with_requests(ServeExperiment experiment, std::size_t requests);
// The experiment with policy fixed: this draft length for all. It must speculate. Throws BadInput where its acceptance has no
// such length.
ServeExperiment with_fixed_length(ServeExperiment experiment, int draft_length);

}  // namespace specsim::load
