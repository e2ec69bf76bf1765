#include "sim/answers/load/experiment.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/base/memory.h"
#include "sim/foundation/rng/address.h"
#include "sim/hardware/latency/deployment.h"
#include "sim/hardware/latency/energy.h"
#include "sim/serving/serve/simulate_streamed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::load {

namespace {

rng::Key key_of(const ServeExperiment& experiment, const char* what) {
  return rng::make_key(experiment.seed, rng::hash_text(what));
}

// Seconds of the passes of a step whose decoding sequences have so many rows in total and so many cached tokens each.
struct TimedRows {
  double sequences = 0.0;
  double rows = 0.0;
  double context = 0.0;
};
serve::PassSeconds pass_seconds(const serve::StepLatency& latency, const serve::Acceptance& acceptance, const TimedRows& of,
                                int draft_length) {
  serve::StepWork work;
  work.decoding = serve::decoding_alike(of.sequences, of.rows / of.sequences, of.sequences * of.context);
  work.logits = of.rows;
  work.cached_after = of.sequences * (of.context + 1.0);
  std::vector<double> rows;
  if (const std::vector<double>* const passes = acceptance.passes(acceptance.widest(draft_length))) {
    for (const double each : *passes) rows.push_back(of.sequences * each);
    work.draft_rows = &rows;
  }
  const auto parts = latency.parts(work, draft_length);
  return {parts.target, parts.draft};
}

serve::Server::Parts make_engine(const ServeExperiment& experiment, const serve::Acceptance* acceptance,
                                 const serve::StepLatency& latency) {
  serve::Server::Parts parts;
  parts.scheduler = experiment.scheduler();
  parts.pool = std::make_unique<serve::BlockPool>(experiment.pool.blocks, experiment.pool.block_tokens,
                                                  parts.scheduler->prefix_caching(), experiment.pool.host);
  parts.saves_states = experiment.saves_states;
  parts.acceptance = acceptance;
  parts.latency = &latency;
  parts.in_step = in_step(experiment);
  if (!experiment.speculation) return parts;
  const Speculation& speculation = *experiment.speculation;
  serve::PolicySetting setting;
  setting.seconds = [&latency, acceptance](const serve::BatchState& batch, int draft_length) {
    return step_seconds(latency, *acceptance, batch, batch.cached + batch.requests, draft_length);
  };
  setting.offers = [acceptance](int draft_length) { return acceptance->offers(draft_length); };
  setting.passes = [&latency, acceptance](double sequences, double rows, double context, int draft_length) {
    return pass_seconds(latency, *acceptance, {sequences, rows, context}, draft_length);
  };
  setting.knows = [acceptance](draft::Confidence confidence) { return acceptance->knows(confidence); };
  setting.class_of = [acceptance](arrivals::RequestId request) { return acceptance->class_of(request); };
  parts.policy = speculation.policy(setting);
  const bool cached = speculation.method != serve::DraftMethod::ngram && parts.policy->longest() > 0;
  parts.lookahead = cached ? acceptance->widest(parts.policy->longest()) : 0;
  parts.drafts_cached = cached && speculation.method == serve::DraftMethod::eagle;
  parts.loses_drafts = cached && experiment.pool.host && !experiment.pool.host->keeps_draft;
  parts.extra_rows = cached && speculation.method == serve::DraftMethod::draft_model ? 1 : 0;
  return parts;
}

// The number of requests of the mean length that the pool holds at their ends, and how many fewer that is than without a draft.
void add_fitting(serve::Summary& summary, const ServeExperiment& experiment, double mean_tokens, std::uint32_t lookahead) {
  const auto mean = static_cast<std::uint64_t>(std::ceil(mean_tokens));
  const auto fitting = [&](const serve::PoolSize& size, std::uint32_t ahead) {
    const serve::BlockPool pool(size.blocks, size.block_tokens, false);
    return pool.unlimited() ? std::nan("") : std::floor(pool.usable() / static_cast<double>(pool.blocks_for(mean + ahead)));
  };
  summary.fitting_requests = fitting(experiment.pool, lookahead);
  summary.draft_cost_requests = fitting(experiment.plain_pool, 0) - summary.fitting_requests;
}

// Energy and cost of the run's GPUs.
void add_energy(serve::Summary& summary, const ServeExperiment& experiment, const serve::SimulationResult& result) {
  const double engines = experiment.replicas + experiment.prefill_engines;
  const bool drafts = experiment.speculation && experiment.speculation->longest > 0;
  summary.gpus = engines * cost::gpus_of(*experiment.cost, drafts);
  if (const std::optional<double> dollars = cost::dollars(*experiment.cost, summary.duration_s, drafts))
    summary.dollars = engines * *dollars;
  const std::optional<double> idle = cost::idle_watts(*experiment.cost, drafts);
  if (!idle) return;
  double work = 0.0;
  for (const serve::ServerTotals& one : result.totals) work += one.work_joules;
  summary.joules = cost::gpus_of(*experiment.cost) * work + *idle * engines * summary.duration_s;
  summary.power_error = cost::power_of(*experiment.cost)->spread;
}

void draw_lengths(const DrawnLengths& drawn, rng::Key key, std::size_t i, arrivals::Request& request) {
  rng::Stream prompt_bits(key, rng::Purpose::length, 0, i);
  rng::Stream output_bits(key, rng::Purpose::length, 1, i);
  request.prompt = drawn.prompts->draw(i, prompt_bits);
  const std::uint32_t output = drawn.outputs->draw(i, output_bits);
  request.output = drawn.max_tokens > 0 ? std::min(output, drawn.max_tokens) : output;
  request.limit = drawn.max_tokens;
}

// Host time per request before it is queued.
arrivals::Picoseconds request_time(const ServeExperiment& experiment) {
  const cost::Deployment* const deployment = experiment.cost->deployment();
  if (deployment == nullptr) return 0;
  const cost::Engine& engine = deployment->engine;
  const double times = engine.tuned ? engine.tuned->mean.times(cost::Factor::request) : 1.0;
  return std::llround(arrivals::kPicosecondsPerSecond * times * 1e-6 * engine.host.request_us);
}

// Checked before the requests are made, if their number is known, and before the run.
void check_memory(const ServeExperiment& experiment, std::size_t requests) {
  if (requests * (sizeof(serve::Sequence) + 64) > available_memory())
    throw BadInput({experiment.file, 0, 0},
                   fmt::format("{} requests need more memory than this machine has free, allowed: fewer, such as --requests "
                               "{:.0f}, or serve.metrics: streamed",
                               requests, 0.5 * static_cast<double>(available_memory()) / (sizeof(serve::Sequence) + 64)));
}

}  // namespace

bool in_step(const ServeExperiment& experiment) {
  const cost::Deployment* const deployment = experiment.cost->deployment();
  return deployment != nullptr && deployment->target && deployment->target->expert_parallel > 1.0;
}

double step_seconds(const serve::StepLatency& latency, const serve::Acceptance& acceptance, const serve::BatchState& batch,
                    double cached_after, int draft_length) {
  const std::uint32_t block = acceptance.widest(draft_length);
  serve::StepWork work;
  work.decoding = serve::decoding_alike(batch.requests, 1.0 + block, batch.cached);
  work.logits = work.decoding.rows;
  work.cached_after = cached_after;
  std::vector<double> rows;
  if (const std::vector<double>* const passes = draft_length > 0 ? acceptance.passes(block) : nullptr) {
    for (const double each : *passes) rows.push_back(batch.requests * each);
    work.draft_rows = &rows;
  }
  return latency.seconds(work, draft_length);
}

arrivals::RequestTrace make_requests(const ServeExperiment& experiment, const std::atomic<bool>* stop) {
  check_memory(experiment, experiment.arrivals->requests());
  arrivals::RequestTrace workload;
  workload.stop = stop;
  try {
    experiment.arrivals->fill(workload, key_of(experiment, "arrivals"));
  } catch (const BadInput& bad) {
    std::vector<Diagnostic> list = bad.list();
    for (Diagnostic& one : list)
      if (one.where.file.empty()) one.where.file = experiment.file;
    throw BadInput(list);
  }
  if (const auto* const drawn = std::get_if<DrawnLengths>(&experiment.lengths)) {
    const rng::Key key = key_of(experiment, "lengths");
    for (std::size_t i = 0; i < workload.requests.size() && !workload.stopped(); ++i)
      draw_lengths(*drawn, key, i, workload.requests[i]);
  }
  workload.stop = nullptr;
  return workload;
}

std::unique_ptr<serve::ServerPolicy> untimed_policy(const serve::PolicyMaker& policy,
                                                    std::function<bool(int draft_length)> offers,
                                                    std::function<bool(draft::Confidence)> knows) {
  return policy({[](const serve::BatchState&, int) { return 1.0; }, std::move(offers), {}, std::move(knows)});
}

std::unique_ptr<serve::Acceptance> make_acceptance(const ServeExperiment& experiment, const arrivals::RequestTrace& workload) {
  const Speculation& speculation = *experiment.speculation;
  if (const serve::StatedAcceptance* const stated = speculation.stated()) {
    serve::RequestContexts contexts;
    if (needs_contexts(*stated)) {
      double tokens = 0.0;
      for (const arrivals::Request& request : workload.requests) {
        contexts.prompts.push_back(request.prompt);
        contexts.mean += (request.prompt + 0.5 * request.output) * request.output;
        tokens += request.output;
      }
      contexts.mean /= std::max(tokens, 1.0);
    }
    return make_acceptance(*stated, key_of(experiment, "acceptance"), std::move(contexts));
  }
  const spec::Cell& cell = *speculation.executed();
  std::uint32_t longest = 1;
  for (const arrivals::Request& request : workload.requests) longest = std::max(longest, request.output);
  const std::uint64_t text = cell.contexts->process->shape().request_tokens;
  if (text > 0 && longest > text)
    throw BadInput(cell.places.process,
                   fmt::format("the text of a request has {} tokens and the longest output {}, allowed: outputs within the text",
                               text, longest));
  const auto policy =
      untimed_policy(speculation.policy, [&](int draft_length) { return serve::executed_supports(cell, draft_length); });
  return serve::executed_acceptance(spec::reseeded(cell, experiment.seed, cell.rounds), policy->lengths(),
                                    workload.requests.size(), longest, policy->shares_rows());
}

namespace {

// The engines of an experiment, and what they refer to.
struct Engines {
  std::unique_ptr<serve::Acceptance> own;
  std::unique_ptr<serve::StepLatency> latency;
  std::unique_ptr<serve::StepLatency> plain_latency;
  serve::RunSetting setting;
};
Engines engines_of(const ServeExperiment& experiment, const arrivals::RequestTrace& workload, const ServeOptions& options) {
  Engines engines;
  if (experiment.speculation && options.acceptance == nullptr) engines.own = make_acceptance(experiment, workload);
  const serve::Acceptance* const acceptance = options.acceptance != nullptr ? options.acceptance : engines.own.get();
  const serve::HostTime host = experiment.scheduler()->host_time();
  engines.latency = std::make_unique<serve::StepLatency>(
      *experiment.cost, experiment.speculation ? experiment.speculation->method : serve::DraftMethod::ngram, host,
      experiment.speculation && experiment.speculation->longest > 0);
  engines.plain_latency = std::make_unique<serve::StepLatency>(*experiment.cost, serve::DraftMethod::ngram, host);
  serve::RunSetting& setting = engines.setting;
  setting.make_engine = [&experiment, acceptance, latency = engines.latency.get()] {
    return make_engine(experiment, acceptance, *latency);
  };
  setting.replicas = experiment.replicas;
  setting.in_step = in_step(experiment);
  setting.routing = experiment.routing;
  if (experiment.prefill_engines > 0) {
    setting.prefill.engines = experiment.prefill_engines;
    setting.prefill.link_ps_per_token = experiment.link_ps_per_token;
    setting.prefill.link_latency = experiment.link_latency;
    setting.prefill.silent = experiment.first_token_of_decode;
    setting.prefill.make_engine = [&experiment, latency = engines.plain_latency.get()] {
      return make_engine(without_speculation(experiment), nullptr, *latency);
    };
  }
  setting.frontend = experiment.frontend + request_time(experiment);
  setting.horizon = experiment.horizon;
  setting.observer = options.observer;
  setting.stop = options.stop;
  setting.progress = options.progress;
  return engines;
}

// Calls run(); errors during a run have no place, and get the experiment's file.
template <class Run>
void with_place(const ServeExperiment& experiment, const Run& run) {
  try {
    run();
  } catch (const BadInput& bad) {
    std::vector<Diagnostic> list = bad.list();
    for (Diagnostic& one : list)
      if (one.where.file.empty()) one.where.file = experiment.file;
    throw BadInput(list);
  }
}

void check_warm_up(const ServeExperiment& experiment, std::size_t requests) {
  if (!experiment.warm_up.by_mser && experiment.warm_up.requests >= requests)
    throw BadInput({experiment.file, 0, 0}, fmt::format("warm_up is {} and the run has {} requests, allowed: fewer",
                                                        experiment.warm_up.requests, requests));
}

}  // namespace

ServeResult serve(const ServeExperiment& experiment, const arrivals::RequestTrace& workload, const ServeOptions& options) {
  const Engines engines = engines_of(experiment, workload, options);
  check_memory(experiment, workload.requests.size());
  check_warm_up(experiment, workload.requests.size());
  const serve::Server engine(0, engines.setting.make_engine(), workload, nullptr, nullptr);
  for (std::size_t i = 0; i < workload.requests.size(); ++i)
    if (const std::string why = engine.refusal(workload.requests[i]); !why.empty()) {
      if (!workload.file.empty())
        throw BadInput({workload.file, static_cast<int>(workload.requests[i].line), 1},
                       fmt::format("request {} can never be served: {}", i, why));
      const bool drawn = std::holds_alternative<DrawnLengths>(experiment.lengths);
      throw BadInput(experiment.lengths_where,
                     fmt::format("request {} of {} can never be served: {}", i, drawn ? "serve.lengths" : "serve.arrivals", why));
    }

  ServeResult served;
  with_place(experiment, [&] { served.result = serve::simulate(workload, engines.setting); });
  if (!options.summarise) return served;
  served.summary = serve::summarise(workload, served.result, experiment.slo, experiment.replicas + experiment.prefill_engines,
                                    experiment.warm_up);
  double tokens = 0.0;
  for (const arrivals::Request& request : workload.requests) tokens += request.prompt + request.output;
  add_fitting(served.summary, experiment, tokens / static_cast<double>(workload.requests.size()),
              engines.setting.make_engine().lookahead);
  add_energy(served.summary, experiment, served.result);
  if (!served.result.interrupted) served.summary.latency_error = latency_error(experiment, served.summary);
  return served;
}

ServeResult serve_streamed(const ServeExperiment& experiment, const ServeOptions& options, unsigned threads) {
  const arrivals::RequestTrace nothing;
  const Engines engines = engines_of(experiment, nothing, options);
  serve::StreamSetting stream;
  stream.requests = experiment.arrivals->requests();
  stream.slo = experiment.slo;
  stream.warm_up = experiment.warm_up.requests;
  stream.threads = threads;
  check_warm_up(experiment, stream.requests);
  const serve::Server engine(0, engines.setting.make_engine(), nothing, nullptr, nullptr);
  const auto& drawn = std::get<DrawnLengths>(experiment.lengths);
  const rng::Key lengths = key_of(experiment, "lengths");
  stream.fill = [&, due = experiment.arrivals->due_times(key_of(experiment, "arrivals"))](
                    std::size_t first, std::span<arrivals::Request> requests) mutable {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].due = due();
      draw_lengths(drawn, lengths, first + i, requests[i]);
      if (const std::string why = engine.refusal(requests[i]); !why.empty())
        throw BadInput(experiment.lengths_where,
                       fmt::format("request {} of serve.lengths can never be served: {}", first + i, why));
    }
  };
  ServeResult served;
  with_place(experiment, [&] {
    serve::StreamedRun run = serve::simulate_streamed(engines.setting, stream);
    served = {std::move(run.result), run.summary};
  });
  if (served.result.interrupted) return served;
  add_fitting(served.summary, experiment,
              (served.summary.prompt_tokens + served.summary.output_tokens) / static_cast<double>(served.summary.completed),
              engines.setting.make_engine().lookahead);
  add_energy(served.summary, experiment, served.result);
  served.summary.latency_error = latency_error(experiment, served.summary);
  return served;
}

std::vector<ClassSummary> class_summaries(const ServeExperiment& experiment, const arrivals::RequestTrace& workload,
                                          const serve::SimulationResult& result) {
  std::vector<ClassSummary> list;
  if (!experiment.speculation || experiment.speculation->stated() == nullptr) return list;
  const std::unique_ptr<serve::Acceptance> acceptance = make_acceptance(experiment, workload);
  const std::vector<std::string> names = acceptance->classes();
  for (std::size_t i = 0; i < names.size(); ++i)
    list.push_back({names[i], serve::summarise(workload, result, experiment.slo, experiment.replicas + experiment.prefill_engines,
                                               experiment.warm_up,
                                               [&](arrivals::RequestId request) { return acceptance->class_of(request) == i; })});
  return list;
}

ServeExperiment with_fixed_length(ServeExperiment experiment, int draft_length) {
  Speculation& speculation = *experiment.speculation;
  const Location where{"--draft-lengths", 0, 0};
  if (const spec::Cell* const cell = speculation.executed()) {
    if (!serve::executed_supports(*cell, draft_length))
      throw BadInput(where, fmt::format("{} is no draft length of decode's method, allowed: {}{}", draft_length,
                                        serve::executed_supports(*cell, 1) ? "up to " : "0 or ", cell->draft_length()));
  } else if (!make_acceptance(*speculation.stated(), rng::Key{})->offers(draft_length)) {
    throw BadInput(where, fmt::format("{} is longer than the drafts in the trace, allowed: shorter ones", draft_length));
  }
  speculation.longest = draft_length;
  speculation.policy = serve::fixed_length(draft_length);
  return experiment;
}

ServeExperiment with_requests(ServeExperiment experiment, std::size_t requests) {
  experiment.arrivals = experiment.arrivals->with_requests(requests);
  experiment.chosen_requests = requests;
  return experiment;
}

ServeExperiment without_speculation(ServeExperiment experiment) {
  experiment.speculation.reset();
  experiment.scheduler = experiment.plain_scheduler;
  experiment.pool = experiment.plain_pool;
  return experiment;
}

}  // namespace specsim::load
