#include "sim/answers/choose/choose.h"

#include "sim/answers/load/capacity.h"
#include "sim/answers/plan/gain.h"
#include "sim/answers/plan/latency_noise.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/parallel.h"
#include "sim/foundation/report/csv.h"
#include "sim/foundation/report/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <tuple>
#include <utility>

namespace specsim::choose {

namespace {

// So many settings are simulated at most for each that is asked for.
constexpr std::size_t kSimulatedEach = 4;

struct Counts {
  std::int64_t replicas = 1;
  std::int64_t prefill = 0;
};

// Engines before their cost models are made, each with the counts that are allowed.
std::vector<std::pair<Engine, std::vector<Counts>>> engines_of(const Question& question, Chosen& chosen) {
  std::vector<std::pair<Engine, std::vector<Counts>>> list;
  for (const std::string& hardware : question.hardware)
    for (const std::string& type : question.types)
      for (const std::string& bits : question.cache_bits)
        for (const std::int64_t gpus : question.tensor_parallel)
          for (const std::int64_t shared : question.expert_parallel)
            for (const DraftChoice& draft : question.drafts) {
              std::vector<Counts> counts;
              for (const std::int64_t replicas : question.replicas)
                for (const std::int64_t prefill : question.prefill) {
                  ++chosen.combinations;
                  if (question.rates_by_hour.empty() && (replicas + prefill) * gpus > question.most_gpus)
                    ++chosen.above_gpus;
                  else if (shared == 1 || (shared == replicas * gpus && prefill == 0))
                    counts.push_back({replicas, prefill});
                  else
                    ++chosen.cannot_run;
                }
              if (counts.empty()) continue;
              Engine engine;
              engine.hardware = hardware;
              engine.type = type;
              engine.cache_bits = bits;
              engine.tensor_parallel = gpus;
              engine.expert_parallel = shared;
              engine.draft = &draft;
              list.emplace_back(std::move(engine), std::move(counts));
            }
  return list;
}

plan::RoundEstimate estimate_of(const Choice& choice) {
  const Estimate& own = choice.estimate;
  return {choice.engine->cost.get(), {own.batch, own.context}, own.draft_length + 1.0, own.point.time};
}

// Standard deviation of the logarithm of how two settings compare.
double comparison_error(const Choice& a, const Choice& b, Objective objective) {
  if (objective != Objective::joules && !a.estimate.closed) return 0.0;
  const double own = a.estimate.point.acceptance_error;
  const double other = b.estimate.point.acceptance_error;
  const bool same_table = a.engine->draft->source == b.engine->draft->source;
  const double acceptance = same_table ? std::abs(own - other) : std::hypot(own, other);
  const double times = std::hypot(plan::latency_noise(estimate_of(a), estimate_of(b)), acceptance);
  const bool same_board = a.engine->hardware == b.engine->hardware;
  return objective == Objective::joules && !same_board ? std::hypot(times, a.estimate.power_error, b.estimate.power_error)
                                                       : times;
}

void mark_pareto(std::vector<Choice>& ranked, Objective objective) {
  for (Choice& own : ranked) {
    own.pareto = std::none_of(ranked.begin(), ranked.end(), [&](const Choice& other) {
      const double objectives = other.objective(objective) - own.objective(objective);
      const double times = other.tpot_ms() - own.tpot_ms();
      return objectives <= 0.0 && times <= 0.0 && (objectives < 0.0 || times < 0.0);
    });
  }
}

}  // namespace

// Of a load that does not wait for answers the tokens are those that are asked for, however a short run ends.
double Choice::tokens_per_second() const {
  return summary && estimate.closed ? summary->output_throughput : estimate.tokens_per_second;
}
double Choice::tpot_ms() const { return summary ? summary->tpot_ms.mean : estimate.tpot_ms; }
double Choice::ttft_ms() const { return summary ? summary->ttft_ms.mean : estimate.ttft_ms; }
double Choice::joules_per_token() const { return summary ? serve::joules_per_token(*summary) : estimate.joules_per_token; }
double Choice::dollars_per_million() const {
  return summary && estimate.closed ? serve::dollars_per_million(*summary) : estimate.dollars_per_million;
}

double Choice::objective(Objective which) const {
  if (which == Objective::cost) return dollars_per_million();
  return which == Objective::joules ? joules_per_token() : gpus() / tokens_per_second();
}

double Choice::speed_error() const { return std::hypot(estimate.error, estimate.point.acceptance_error); }

double Choice::error(Objective which) const {
  if (which == Objective::joules) return std::hypot(speed_error(), estimate.power_error);
  return estimate.closed ? speed_error() : 0.0;
}

MeanLoad mean_load(const load::ServeRequest& request) {
  load::ServeRequest alone = request;
  // Any latency will do: requests do not depend on it, and no memory is filled.
  Diagnostics diagnostics;
  alone.changes.push_back(*spec::read_override("cost", "{model: affine, target_fixed_ms: 10}", "the load", diagnostics));
  alone.hardware = alone.target = alone.draft = std::nullopt;
  alone.slo.clear();
  const load::ServeExperiment experiment = load::read_request(alone, diagnostics);
  const arrivals::RequestTrace requests = load::make_requests(experiment);
  MeanLoad load;
  load.prompt = load.output = 0.0;
  const auto count = static_cast<double>(requests.requests.size());
  for (const arrivals::Request& one : requests.requests) {
    load.prompt += one.prompt / count;
    load.output += one.output / count;
    load.longest = std::max(load.longest, static_cast<double>(one.prompt) + static_cast<double>(one.output));
  }
  const double seconds =
      static_cast<double>(requests.requests.back().due - requests.requests.front().due) / arrivals::kPicosecondsPerSecond;
  if (requests.concurrency > 0)
    load.users = requests.concurrency;
  else if (request.rate)
    load.rate = config::as_number(*request.rate).value_or(1.0);
  else
    load.rate = seconds > 0.0 ? (count - 1.0) / seconds : 1.0;
  return load;
}

load::ServeRequest server_of(const Question& question, const Choice& choice, const MeanLoad& load) {
  load::ServeRequest request = question.load;
  const Engine& engine = *choice.engine;
  request.hardware = engine.hardware;
  std::string target = fmt::format("{{preset: {}", question.target);
  if (!engine.type.empty()) target += ", dtype: " + engine.type;
  if (!engine.cache_bits.empty()) target += ", kv_bits: " + engine.cache_bits;
  if (engine.expert_parallel > 1) target += fmt::format(", expert_parallel: {}", engine.expert_parallel);
  request.target = target + "}";
  request.draft = engine.draft->model;
  request.engine = question.engine;
  request.tensor_parallel = std::to_string(engine.tensor_parallel);
  if (choice.replicas > 1) request.replicas = std::to_string(choice.replicas);
  if (choice.prefill > 0) {
    Diagnostics diagnostics;
    const std::string text = std::to_string(choice.prefill);
    request.changes.push_back(*spec::read_override("serve.replicas.prefill", text, "--prefill", diagnostics));
  }
  if (question.power_cap) request.power_cap = fmt::format("{}", *question.power_cap);
  if (const std::optional<double> price = question.price(engine.hardware)) request.dollars_per_hour = fmt::format("{}", *price);
  const int length = choice.estimate.draft_length;
  if (length > 0) {
    request.policy = fmt::format("fixed:{}", length);
    const std::vector<double>& all = engine.draft->curve.full_rate;
    request.position_rates = std::vector<double>(all.begin() + 1, all.begin() + 1 + length);
    if (engine.draft->model == "none") request.method = "ngram";
  } else {
    request.policy = "off";
  }
  if (!request.trace && !request.warm_up) request.warm_up = "mser";  // the start is no part of the load
  if (!request.requests && !request.trace) {
    constexpr double kLeast = 400.0;
    constexpr double kMost = 4000.0;
    request.requests = fmt::format("{:.0f}", std::clamp(load.users > 0.0 ? 40.0 * load.users : 60.0 * load.rate, kLeast, kMost));
  }
  return request;
}

std::optional<plan::EngineCommand> start_command(const Choice& choice) {
  const cost::Deployment& deployment = *choice.engine->cost->deployment();
  const Estimate& own = choice.estimate;
  return plan::engine_command(plan::server_of(deployment.engine), deployment, own.draft_length, own.batch, {}, own.longest);
}

double servers_of(const Choice& choice) {
  return choice.engine->expert_parallel > 1 ? 1.0 : static_cast<double>(choice.replicas + choice.prefill);
}

Chosen choose(const Question& question, const SearchOptions& options) {
  Chosen chosen;
  const MeanLoad load = mean_load(question.load);
  auto engines = engines_of(question, chosen);
  // The limits as the server reads them.
  serve::Slo slo;
  {
    Diagnostics diagnostics;
    load::ServeRequest alone = question.load;
    alone.changes.push_back(*spec::read_override("cost", "{model: affine, target_fixed_ms: 10}", "the load", diagnostics));
    slo = load::read_request(alone, diagnostics).slo;
  }
  std::mutex mutex;
  std::vector<Choice> candidates;
  std::size_t done = 0;
  const auto stopped = [&] { return options.stop != nullptr && options.stop->load(); };
  const auto all = static_cast<double>(engines.size());
  for_each(engines.size(), options.threads, [&](std::size_t i) {
    if (stopped()) return;
    auto& [own, allowed] = engines[i];
    const auto engine = std::make_shared<const Engine>(make_engine(question, std::move(own)));
    std::vector<Choice> found;
    if (engine->cost != nullptr) {
      EnginePlans plans(*engine, load, question.lengths);
      if (!question.rates_by_hour.empty()) {
        const auto may_keep = [&](std::int64_t replicas) {
          return plans.estimate(static_cast<double>(replicas), 0.0, slo).verdict == Estimate::Verdict::kept;
        };
        allowed = {{fewest(1, kMostReplicas, may_keep).value_or(kMostReplicas), 0}};
      }
      for (const Counts& counts : allowed) {
        Choice choice;
        choice.engine = engine;
        choice.replicas = counts.replicas;
        choice.prefill = counts.prefill;
        choice.estimate = plans.estimate(static_cast<double>(counts.replicas), static_cast<double>(counts.prefill), slo);
        found.push_back(std::move(choice));
      }
    }
    const std::lock_guard lock(mutex);
    if (engine->cost == nullptr) {
      chosen.cannot_run += allowed.size();
      if (std::find(chosen.reasons.begin(), chosen.reasons.end(), engine->why) == chosen.reasons.end())
        chosen.reasons.push_back(engine->why);
    }
    for (Choice& one : found) candidates.push_back(std::move(one));
    if (options.progress) options.progress(static_cast<double>(++done), all);
  });
  if (stopped()) return chosen;
  if (candidates.empty())
    throw BadInput({"", 0, 0},
                   fmt::format("none of {} combinations can run{}", chosen.combinations,
                               chosen.reasons.empty() ? ": more GPUs than --gpus allows" : ": " + chosen.reasons.front()));
  std::sort(chosen.reasons.begin(), chosen.reasons.end());
  // Whichever thread found them: in one order.
  const auto names = [](const Choice& choice) {
    const Engine& own = *choice.engine;
    return std::tie(own.hardware, own.type, own.cache_bits, own.tensor_parallel, own.expert_parallel, choice.replicas,
                    choice.prefill, own.draft->label);
  };
  std::sort(candidates.begin(), candidates.end(), [&](const Choice& a, const Choice& b) { return names(a) < names(b); });
  std::vector<Choice> open;
  for (Choice& one : candidates) {
    using Verdict = Estimate::Verdict;
    chosen.do_not_fit += one.estimate.verdict == Verdict::does_not_fit ? 1 : 0;
    chosen.overloaded += one.estimate.verdict == Verdict::overloaded ? 1 : 0;
    chosen.miss_slo += one.estimate.verdict == Verdict::misses_slo ? 1 : 0;
    if (one.estimate.verdict == Verdict::kept && question.objective == Objective::cost &&
        std::isnan(one.estimate.dollars_per_million))
      throw BadInput({"--price", 0, 0}, fmt::format("the cost of {} per hour is not known, allowed: {}=DOLLARS",
                                                    one.engine->hardware, one.engine->hardware));
    if (one.estimate.verdict == Verdict::kept && question.objective == Objective::joules &&
        std::isnan(one.estimate.joules_per_token))
      throw BadInput({"--hardware", 0, 0},
                     fmt::format("the power of {} is not known, allowed: {{preset: {}, power: {{limit_w: WATTS}}}}",
                                 one.engine->hardware, one.engine->hardware));
    (one.estimate.verdict == Verdict::kept ? open : chosen.others).push_back(std::move(one));
  }
  std::stable_sort(open.begin(), open.end(), [&](const Choice& a, const Choice& b) {
    const double own = a.objective(question.objective);
    const double other = b.objective(question.objective);
    // Settings that cost the same under this load are ranked by the time that users see.
    return own != other ? own < other : a.estimate.tpot_ms < b.estimate.tpot_ms;
  });

  // The best by their estimates are simulated until so many keep the SLO that none of the rest can be among them.
  std::vector<double> kept;
  std::size_t next = 0;
  while (next < open.size() && chosen.simulated < kSimulatedEach * question.shown && !stopped()) {
    std::sort(kept.begin(), kept.end());
    if (kept.size() >= question.shown && kEstimatesMiss * open[next].objective(question.objective) >= kept[question.shown - 1])
      break;
    if (kept.size() >= 2 * question.shown) break;
    constexpr std::size_t kTogether = 4;  // whatever the threads: which settings are simulated does not depend on them
    const auto count = std::min<std::size_t>({kTogether, open.size() - next, kSimulatedEach * question.shown - chosen.simulated});
    for_each(count, options.threads, [&](std::size_t i) {
      Choice& one = open[next + i];
      if (!question.rates_by_hour.empty()) return size_fleet(question, load, slo, options, one);
      Diagnostics diagnostics;
      const load::ServeExperiment experiment = load::read_request(server_of(question, one, load), diagnostics);
      load::ServeOptions how;
      how.stop = options.stop;
      one.summary = load::serve(experiment, load::make_requests(experiment), how).summary;
      const serve::Summary& summary = *one.summary;
      one.keeps_slo = summary.stable && !summary.overloaded && (!slo.any() || summary.meets_slo);
      if (!one.keeps_slo || one.estimate.closed) return;
      // However good a short run looks, no server keeps up with more than its capacity.
      const std::optional<double> capacity = load::saturated_rate(experiment, options.stop);
      if (!capacity) return;
      one.capacity = *capacity;
      one.keeps_up = 0.5 * std::erfc(std::log(load.rate / one.capacity) / (std::sqrt(2.0) * one.speed_error()));
      one.keeps_slo = one.capacity > load.rate;
    });
    for (std::size_t i = 0; i < count; ++i)
      if (open[next + i].keeps_slo) kept.push_back(open[next + i].objective(question.objective));
    next += count;
    chosen.simulated += count;
    if (options.progress) options.progress(all, all);
  }
  std::vector<Choice> missed;
  std::vector<Choice> rest;
  for (Choice& one : open) (one.keeps_slo ? chosen.ranked : one.summary ? missed : rest).push_back(std::move(one));
  std::stable_sort(chosen.ranked.begin(), chosen.ranked.end(), [&](const Choice& a, const Choice& b) {
    const double own = a.objective(question.objective);
    const double other = b.objective(question.objective);
    return own != other ? own < other : a.tpot_ms() < b.tpot_ms();
  });
  for (Choice& one : chosen.ranked) {
    const Choice& best = chosen.ranked.front();
    if (&one == &best) continue;
    const plan::Gain lost{std::log(one.objective(question.objective) / best.objective(question.objective)),
                          comparison_error(best, one, question.objective)};
    one.worse = lost.pays();
    one.tied = plan::verdict_of(lost) != plan::Verdict::pays;
  }
  mark_pareto(chosen.ranked, question.objective);
  missed.insert(missed.end(), std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
  missed.insert(missed.end(), std::make_move_iterator(chosen.others.begin()), std::make_move_iterator(chosen.others.end()));
  chosen.others = std::move(missed);
  return chosen;
}

namespace {

struct ChoiceLine {
  const Choice* choice = nullptr;
  std::size_t rank = 0;  // 0: none
};

const char* outcome_of(const Choice& choice) {
  if (choice.summary) return choice.keeps_slo ? "kept" : "misses_slo";
  switch (choice.estimate.verdict) {
    case Estimate::Verdict::kept:
      return "not_simulated";
    case Estimate::Verdict::does_not_fit:
      return "does_not_fit";
    case Estimate::Verdict::overloaded:
      return "overloaded_by_estimate";
    case Estimate::Verdict::misses_slo:
      break;
  }
  return "misses_slo_by_estimate";
}

const std::vector<report::Column<ChoiceLine>>& choice_columns() {
  using Line = ChoiceLine;
  const auto text = [](auto of) { return [of](const Line& line) { return fmt::format("{}", of(*line.choice)); }; };
  // Empty where there is no such figure.
  const auto real = [](auto of) {
    return [of](const Line& line) {
      const Estimate::Verdict verdict = line.choice->estimate.verdict;
      const bool none = verdict == Estimate::Verdict::does_not_fit || verdict == Estimate::Verdict::overloaded;
      return none ? std::string() : report::csv_real(of(*line.choice));
    };
  };
  const auto side = [real](auto of, Objective which, double sign) {
    return real([=](const Choice& one) { return of(one) * std::exp(sign * report::kIn95 * one.error(which)); });
  };
  const auto tokens = [](const Choice& one) { return one.tokens_per_second(); };
  const auto joules = [](const Choice& one) { return one.joules_per_token(); };
  const auto dollars = [](const Choice& one) { return one.dollars_per_million(); };
  const auto simulated = [](auto of) {
    return [of](const Line& line) { return line.choice->summary ? report::csv_real(of(*line.choice->summary)) : std::string(); };
  };
  static const std::vector<report::Column<Line>> list = {
      {"rank", "1", "place among the settings that keep the SLO, from 1; empty for others",
       [](const Line& line) { return line.rank > 0 ? std::to_string(line.rank) : ""; }},
      {"outcome", "",
       "kept or misses_slo of simulated servers; not_simulated; or the result of the estimate: does_not_fit, "
       "overloaded_by_estimate, "
       "misses_slo_by_estimate",
       [](const Line& line) { return outcome_of(*line.choice); }},
      {"hardware", "", "the GPU", text([](const Choice& one) { return one.engine->hardware; })},
      {"tensor_parallel", "GPUs", "GPUs of one engine", text([](const Choice& one) { return one.engine->tensor_parallel; })},
      {"expert_parallel", "GPUs", "GPUs that share the experts",
       text([](const Choice& one) { return one.engine->expert_parallel; })},
      {"replicas", "1", "engines that decode", text([](const Choice& one) { return one.replicas; })},
      {"prefill", "1", "additional engines that only compute prompts", text([](const Choice& one) { return one.prefill; })},
      {"dtype", "", "type of the target's weights; empty: that of its file",
       text([](const Choice& one) { return one.engine->type; })},
      {"kv_bits", "bits", "of a cached key or value; empty: that of its file",
       text([](const Choice& one) { return one.engine->cache_bits; })},
      {"draft", "", "what drafts", text([](const Choice& one) { return one.engine->draft->label; })},
      {"acceptance", "", "source of its acceptance", text([](const Choice& one) { return one.engine->draft->source; })},
      {"acceptance_text", "", "kind of text that it was measured on; empty: given by the user, or not stated",
       text([](const Choice& one) { return one.engine->draft->text; })},
      {"acceptance_unverified", "0 or 1", "whether its table is marked as unverified",
       [](const Line& line) { return line.choice->engine->draft->unverified ? "1" : "0"; }},
      {"draft_length", "tokens", "drafted in a round", real([](const Choice& one) { return one.estimate.draft_length; })},
      {"batch", "requests", "by the estimate, of each engine", real([](const Choice& one) { return one.estimate.batch; })},
      {"tokens_per_second", "1/s", "output tokens of all engines", real(tokens)},
      {"tokens_per_second_low", "1/s", "lower bound of its 95 % interval", side(tokens, Objective::tokens, -1.0)},
      {"tokens_per_second_high", "1/s", "upper bound", side(tokens, Objective::tokens, 1.0)},
      {"tokens_per_second_per_gpu", "1/s", "tokens_per_second / GPUs",
       real([](const Choice& one) { return one.tokens_per_second() / one.gpus(); })},
      {"mean_ttft_ms", "ms", "time to first token", real([](const Choice& one) { return one.ttft_ms(); })},
      {"p99_ttft_ms", "ms", "of the simulated server", simulated([](const serve::Summary& s) { return s.ttft_ms.p99; })},
      {"mean_tpot_ms", "ms", "time per output token", real([](const Choice& one) { return one.tpot_ms(); })},
      {"p99_tpot_ms", "ms", "of the simulated server", simulated([](const serve::Summary& s) { return s.tpot_ms.p99; })},
      {"dollars_per_million_tokens", "$", "for a million output tokens", real(dollars)},
      {"dollars_per_million_tokens_low", "$", "lower bound of its 95 % interval", side(dollars, Objective::cost, -1.0)},
      {"dollars_per_million_tokens_high", "$", "upper bound", side(dollars, Objective::cost, 1.0)},
      {"joules_per_token", "J", "energy of all boards for an output token", real(joules)},
      {"joules_per_token_low", "J", "lower bound of its 95 % interval", side(joules, Objective::joules, -1.0)},
      {"joules_per_token_high", "J", "upper bound", side(joules, Objective::joules, 1.0)},
      {"dollars_per_day", "$", "of the replicas around the clock, for --rate-by-hour",
       [](const Line& line) { return report::csv_real(line.choice->dollars_per_day); }},
      {"dollars_per_day_by_hour", "$", "if each hour has as many of them as its rate needs",
       [](const Line& line) { return report::csv_real(line.choice->dollars_by_hour); }},
      {"estimated_tokens_per_second", "1/s", "estimate without queues, by which the settings to simulate were chosen",
       real([](const Choice& one) { return one.estimate.tokens_per_second; })},
      {"capacity", "1/s", "requests that the simulated server completes if they never run out; empty: clients wait for answers",
       [](const Line& line) { return report::csv_real(line.choice->capacity); }},
      {"keeps_up", "1", "probability that its capacity is above the rate; empty: the same",
       [](const Line& line) { return report::csv_real(line.choice->keeps_up); }},
      {"probability_worse", "1", "that the first is better in the objective; empty: the first, or no rank",
       [](const Line& line) { return report::csv_real(line.choice->worse); }},
      {"tied", "0 or 1", "whether that probability is too small for a verdict",
       [](const Line& line) { return line.choice->tied ? "1" : "0"; }},
      {"pareto", "0 or 1", "whether no ranked setting is better in the objective without a longer time per output token",
       [](const Line& line) { return line.choice->pareto ? "1" : "0"; }}};
  return list;
}

}  // namespace

std::string choices_csv(const Chosen& chosen) {
  std::vector<ChoiceLine> lines;
  for (std::size_t i = 0; i < chosen.ranked.size(); ++i) lines.push_back({&chosen.ranked[i], i + 1});
  for (const Choice& one : chosen.others) lines.push_back({&one, 0});
  return report::csv(choice_columns(), lines);
}

report::FileInfo choices_info() { return {"choices.csv of choose", report::column_infos(choice_columns())}; }

}  // namespace specsim::choose
