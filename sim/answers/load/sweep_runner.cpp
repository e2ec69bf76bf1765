#include "sim/answers/load/sweep_runner.h"

#include "sim/foundation/base/parallel.h"
#include "sim/foundation/base/standard_library.h"
#include "sim/foundation/rng/address.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <map>
#include <mutex>
#include <type_traits>

namespace specsim::load {

namespace {

template <class Figures, class F>
void each_field(Figures& s, F&& f) {
  f(s.requests), f(s.warm_up_requests), f(s.completed), f(s.duration_s), f(s.sending_s), f(s.prompt_tokens), f(s.output_tokens);
  for (auto* one : {&s.ttft_ms, &s.tpot_ms, &s.itl_ms, &s.itl_token_ms, &s.e2el_ms, &s.queue_ms})
    f(one->count), f(one->mean), f(one->p50), f(one->p90), f(one->p95), f(one->p99), f(one->max);
  f(s.request_throughput), f(s.output_throughput), f(s.total_token_throughput), f(s.request_goodput), f(s.slo_share);
  f(s.meets_slo), f(s.mean_concurrency), f(s.mean_batch), f(s.steps), f(s.prefill_steps), f(s.busy_share);
  f(s.tokens_per_round), f(s.drafted), f(s.accepted), f(s.acceptance_rate), f(s.wasted_drafts), f(s.preemptions);
  f(s.recomputed_tokens), f(s.prefix_hit_tokens), f(s.prefix_lookup_tokens), f(s.largest_batch), f(s.fewest_free_blocks),
      f(s.pool_tokens);
  f(s.fitting_requests), f(s.draft_cost_requests), f(s.uniform_steps), f(s.mixed_steps), f(s.eager_steps);
  for (auto* causes : {&s.life_ms, &s.ttft_by_cause_ms, &s.tpot_by_cause_ms})
    for (auto& one : *causes) f(one);
  for (auto& spread : s.spreads) {
    f(spread.mean_half_width), f(spread.p99_half_width);
    for (auto& value : spread.tail) f(value);
  }
  for (auto& one : s.within_limit) f(one);
  f(s.within_all), f(s.overloaded), f(s.stable), f(s.latency_error), f(s.output_throughput_half_width), f(s.server_limits);
  f(s.last_tenth_s), f(s.idle_places), f(s.gpus), f(s.joules), f(s.power_error), f(s.dollars);
  f(s.host_hit_tokens), f(s.host_loaded_bytes), f(s.host_stored_bytes), f(s.host_link_share), f(s.draft_recomputed_tokens);
  f(s.verifying_share), f(s.verifying_batch);
}

}  // namespace

std::string pack_summary(const serve::Summary& summary) {
  std::string text;
  each_field(summary, [&](const auto& value) {
    text += fmt::format("{}{:x}", text.empty() ? "" : ",", bit_cast<std::uint64_t>(static_cast<double>(value)));
  });
  return text;
}

std::optional<serve::Summary> unpack_summary(std::string_view text) {
  serve::Summary summary;
  bool good = true;
  bool first = true;
  each_field(summary, [&](auto& value) {
    if (!std::exchange(first, false)) {
      good = good && text.starts_with(',');
      if (good) text.remove_prefix(1);
    }
    std::uint64_t bits = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
    good = good && error == std::errc();
    if (!good) return;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const auto number = bit_cast<double>(bits);
    using Value = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, bool>)
      value = number != 0.0;
    else
      value = static_cast<Value>(number);
  });
  if (!good || !text.empty()) return std::nullopt;
  return summary;
}

ServeExperiment replicated(ServeExperiment experiment, std::size_t replication) {
  if (replication > 0) experiment.seed = rng::hash_text(fmt::format("replication {} of seed {}", replication, experiment.seed));
  return experiment;
}

std::vector<std::vector<serve::Summary>> SweepRunner::run(const std::vector<ServeExperiment>& points) {
  const auto runs = static_cast<std::size_t>(setting_.replications);
  std::vector<std::vector<serve::Summary>> result(points.size(), std::vector<serve::Summary>(runs));
  const std::uint64_t first = points_;
  points_ += points.size();
  struct Shared {
    std::once_flag made;
    std::unique_ptr<serve::Acceptance> acceptance;
  };
  // [requests][replication]: one execution of rounds serves all points with as many requests
  std::map<std::size_t, std::vector<Shared>> shared;
  for (const ServeExperiment& point : points)
    if (auto& those = shared[point.chosen_requests]; those.empty()) those = std::vector<Shared>(runs);
  std::mutex telling;
  for_each(points.size() * runs, setting_.threads, [&](std::size_t task) {
    const std::size_t point = task / runs;
    const std::size_t replication = task % runs;
    if (stopped()) return;
    {
      const std::lock_guard lock(telling);
      const std::optional<serve::Summary> known = setting_.known ? setting_.known(first + point, replication) : std::nullopt;
      if (known) {
        result[point][replication] = *known;
        ++finished_;
        return;
      }
    }
    const ServeExperiment one = replicated(points[point], replication);
    const arrivals::RequestTrace workload = make_requests(one, setting_.stop);
    if (stopped()) return;
    ServeOptions options;
    options.stop = setting_.stop;
    if (one.speculation) {
      Shared& those = shared.at(one.chosen_requests)[replication];
      std::call_once(those.made, [&] { those.acceptance = make_acceptance(one, workload); });
      options.acceptance = those.acceptance.get();
    }
    const ServeResult served = serve(one, workload, options);
    if (served.result.interrupted) return;
    result[point][replication] = served.summary;
    const std::lock_guard lock(telling);
    ++finished_;
    if (setting_.done) setting_.done(first + point, replication, served.summary);
    if (setting_.progress) setting_.progress(finished_);
  });
  return result;
}

}  // namespace specsim::load
