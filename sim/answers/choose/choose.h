// Which GPUs to rent, and how to set them up: settings estimated without queues, the best of them simulated as servers, ranked.
#pragma once

#include "sim/answers/choose/estimate.h"
#include "sim/answers/plan/engines.h"
#include "sim/foundation/report/column.h"

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace specsim::choose {

struct Choice {
  std::shared_ptr<const Engine> engine;
  std::int64_t replicas = 1;
  std::int64_t prefill = 0;  // additional engines that only compute prompts
  Estimate estimate;
  std::optional<serve::Summary> summary;  // of the simulated server; nothing: the estimate ruled it out, or others are better
  bool keeps_slo = false;                 // of the simulated server
  double capacity =
      std::numeric_limits<double>::quiet_NaN();  // requests per second that the server completes; NaN: not asked, or unknown
  double keeps_up =
      std::numeric_limits<double>::quiet_NaN();  // probability that the capacity is above the rate; NaN: not asked, or unknown
  double worse = std::numeric_limits<double>::quiet_NaN();  // probability that the best is better in the objective; NaN: no rank
  bool tied = false;                                        // `worse` is below plan::kSure, so this choice ties with the best
  bool pareto = false;  // no other is at least as good in the objective and in time per output token, and better in one

  // By Question::rates_by_hour; else NaN. `by_hour`: if so many engines are rented in each hour that none has a larger share of
  // the load than in the busiest one.
  double dollars_per_day = std::numeric_limits<double>::quiet_NaN();
  double dollars_by_hour = std::numeric_limits<double>::quiet_NaN();
  std::int64_t fewest_replicas = 0;  // of an hour

  [[nodiscard]] double gpus() const { return estimate.gpus; }
  // By the simulated server where there is one.
  [[nodiscard]] double tokens_per_second() const;
  [[nodiscard]] double tpot_ms() const;  // mean
  [[nodiscard]] double ttft_ms() const;  // mean
  [[nodiscard]] double joules_per_token() const;
  [[nodiscard]] double dollars_per_million() const;
  [[nodiscard]] double objective(Objective which) const;  // lower is better
  // Standard deviation of its logarithm. If clients do not wait for answers, the load decides tokens and cost, and the error of
  // latencies only decides whether the server keeps up.
  [[nodiscard]] double error(Objective which) const;
  [[nodiscard]] double speed_error() const;  // of the speed of a step
};

struct Chosen {
  std::vector<Choice> ranked;  // simulated ones that keep the SLO, best first
  std::vector<Choice> others;  // all others: simulated ones that miss it first, then by their estimate
  std::size_t combinations = 0;
  std::size_t cannot_run = 0;  // types, cuts or draft lengths that the GPU, the model or the draft does not have
  std::size_t above_gpus = 0;  // more GPUs than allowed
  std::size_t do_not_fit = 0;  // into memory
  std::size_t overloaded = 0;  // by the estimate, even without queues
  std::size_t miss_slo = 0;    // the same
  std::size_t simulated = 0;
  std::vector<std::string> reasons;  // why combinations cannot run, each once
};

struct SearchOptions {
  unsigned threads = 1;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double done, double all)> progress;  // one call at a time
};

// Throws BadInput for names and figures that no combination can have.
Chosen choose(const Question& question, const SearchOptions& options);
// Engine hours of a day in which each hour has as many engines as its rate needs, if the busiest hour needs `busiest`.
double engine_hours(const std::vector<double>& rates, std::int64_t busiest);

// The mean request of the load. Throws BadInput.
MeanLoad mean_load(const load::ServeRequest& request);
// The options of specsim serve that run the setting.
load::ServeRequest server_of(const Question& question, const Choice& choice, const MeanLoad& load);
// The command of its engine's server, or the reason why there is none; nothing where the engine is no server (the GPU alone).
std::optional<plan::EngineCommand> start_command(const Choice& choice);
// The smallest number from 1 to `most` that keeps something that all larger ones keep too; nothing if none does. It looks around
// `guess` first.
std::optional<std::int64_t> fewest(std::int64_t guess, std::int64_t most, const std::function<bool(std::int64_t)>& keeps);
constexpr std::int64_t kMostReplicas = 4096;  // of a fleet
// Simulates fleets of the setting, with the figures of streamed runs, until the fewest engines are found that keep the limits in
// the busiest hour of Question::rates_by_hour: its replicas, estimate, summary and costs. Round robin gives each engine the same
// load, so that some engines of a fleet of hundreds represent it, with their share of the requests. keeps_slo is false if no
// fleet keeps the limits.
void size_fleet(const Question& question, const MeanLoad& load, const serve::Slo& slo, const SearchOptions& options,
                Choice& choice);
// Number of servers to start with that command; replicas that share the experts count as one.
double servers_of(const Choice& choice);

std::string choices_csv(const Chosen& chosen);
report::FileInfo choices_info();

}  // namespace specsim::choose
