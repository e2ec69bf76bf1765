#include "sim/doors/cli/serve_report.h"

#include "sim/answers/load/best_lengths.h"
#include "sim/answers/load/slo.h"
#include "sim/answers/plan/engines.h"
#include "sim/doors/cli/output_form.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/report/csv.h"
#include "sim/foundation/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::cli {

using serve::Summary;

namespace {

using load::CurvePoint;
using serve::Summary;

double mean_of(const CurvePoint& point, double (*of)(const Summary&)) { return load::figure(point, of).mean; }

std::string figure_text(double x) { return report::cell_text(x, x >= 1000.0 ? "{:.0f}" : x >= 100.0 ? "{:.1f}" : "{:.2f}"); }

}  // namespace

void print_summaries(const Summaries& summaries) {
  std::vector<report::Head> heads = {{"", report::Align::left, "figure"}};
  for (const auto& [name, summary] : summaries) heads.push_back({name});
  report::Table table(heads, {.indent = 2});
  const auto row = [&](const std::string& name, auto of) {
    std::vector<std::string> cells = {name};
    for (const auto& [unused, summary] : summaries) cells.push_back(of(summary));
    table.add(cells);
  };
  const auto number = [&](const std::string& name, double (*of)(const Summary&)) {
    row(name, [&](const Summary& s) { return figure_text(of(s)); });
  };
  const auto spread = [&](const char* name, serve::Statistics Summary::*of) {
    for (const auto& [figure, value] :
         {std::pair("mean", &serve::Statistics::mean), {"p50", &serve::Statistics::p50}, {"p99", &serve::Statistics::p99}})
      row(fmt::format("{} ms, {}", name, figure), [&, at = value](const Summary& s) { return figure_text(s.*of.*at); });
  };
  const auto interval = [&](const std::string& name, auto bounds_of) {
    row(name + ", 95 % low", [&](const Summary& s) { return figure_text(bounds_of(s).low); });
    row(name + ", 95 % high", [&](const Summary& s) { return figure_text(bounds_of(s).high); });
  };
  const auto bounds_of = [](serve::Bounded which) { return [which](const Summary& s) { return serve::bounds(s, which); }; };
  row("requests sent", [](const Summary& s) { return fmt::format("{}", s.requests); });
  row("requests completed", [](const Summary& s) { return fmt::format("{}", s.completed); });
  if (std::any_of(summaries.begin(), summaries.end(), [](const auto& one) { return one.second.warm_up_requests > 0; }))
    row("first requests excluded", [](const Summary& s) { return fmt::format("{}", s.warm_up_requests); });
  number("requests/s", [](const Summary& s) { return s.request_throughput; });
  number("output tokens/s", [](const Summary& s) { return s.output_throughput; });
  spread("TTFT", &Summary::ttft_ms);
  spread("TPOT", &Summary::tpot_ms);
  spread("ITL between chunks", &Summary::itl_ms);
  spread("ITL between tokens", &Summary::itl_token_ms);
  spread("end to end", &Summary::e2el_ms);
  if (std::any_of(summaries.begin(), summaries.end(), [](const auto& one) { return one.second.latency_error > 0.0; }))
    for (const auto& [name, which] : {std::pair("output tokens/s", serve::Bounded::throughput),
                                      {"TTFT ms, mean", serve::Bounded::ttft},
                                      {"TPOT ms, mean", serve::Bounded::tpot}})
      interval(name, bounds_of(which));
  const auto any_has = [&](double (*of)(const Summary&)) {
    return std::any_of(summaries.begin(), summaries.end(), [&](const auto& one) { return !std::isnan(of(one.second)); });
  };
  const auto bounded = [&](const char* name, double (*of)(const Summary&), serve::Bounded which) {
    if (!any_has(of)) return;
    row(name, [&](const Summary& s) { return figure_text(of(s)); });
    interval(name, bounds_of(which));
  };
  bounded("joules/output token", serve::joules_per_token, serve::Bounded::joules_per_token);
  bounded("dollars/million output tokens", serve::dollars_per_million, serve::Bounded::dollars_per_million);
  if (any_has([](const Summary& s) { return s.last_tenth_s; })) {
    number("makespan, s", [](const Summary& s) { return s.duration_s; });
    interval("makespan, s", [](const Summary& s) {
      const serve::Bounds rate = serve::bounds(s, serve::Bounded::throughput);
      const double tokens = s.duration_s * s.output_throughput;
      return serve::Bounds{tokens / rate.high, tokens / rate.low};
    });
    number("last tenth of the requests, s", [](const Summary& s) { return s.last_tenth_s; });
    number("places of the largest batch left empty, %", [](const Summary& s) { return 100.0 * s.idle_places; });
  }
  number("mean batch", [](const Summary& s) { return s.mean_batch; });
  number("mean concurrency", [](const Summary& s) { return s.mean_concurrency; });
  number("tokens/round", [](const Summary& s) { return s.tokens_per_round; });
  number("accepted/drafted", [](const Summary& s) { return s.acceptance_rate; });
  row("overloaded", [](const Summary& s) { return std::string(s.overloaded ? "yes: the queue grew to the end" : "no"); });
  number("preemptions", [](const Summary& s) { return s.preemptions; });
  if (std::any_of(summaries.begin(), summaries.end(), [](const auto& one) { return one.second.prefix_hit_tokens > 0.0; })) {
    number("tokens found in the prefix cache", [](const Summary& s) { return s.prefix_hit_tokens; });
    number("prefix hit rate, %", [](const Summary& s) { return 100.0 * s.prefix_hit_tokens / s.prefix_lookup_tokens; });
    number("tokens of prompts computed", [](const Summary& s) { return s.prefix_lookup_tokens - s.prefix_hit_tokens; });
  }
  if (std::any_of(summaries.begin(), summaries.end(), [](const auto& one) { return one.second.host_stored_bytes > 0.0; })) {
    number("tokens loaded from host memory", [](const Summary& s) { return s.host_hit_tokens; });
    number("GB loaded over the link of a GPU", [](const Summary& s) { return 1e-9 * s.host_loaded_bytes; });
    number("link busy with loads, %", [](const Summary& s) { return 100.0 * s.host_link_share; });
    number("loaded tokens that the draft computed again", [](const Summary& s) { return s.draft_recomputed_tokens; });
  }
  number("cache, tokens (0: no limit)", [](const Summary& s) { return s.pool_tokens; });
  number("requests of mean length that fit the cache", [](const Summary& s) { return s.fitting_requests; });
  number("requests displaced by the draft's memory", [](const Summary& s) { return s.draft_cost_requests; });
  bool limits = false;
  for (const auto& [unused, summary] : summaries) limits = limits || !std::isnan(summary.request_goodput);
  if (limits) {
    interval("TTFT ms, p99", bounds_of(serve::Bounded::ttft_p99));
    interval("TPOT ms, p99", bounds_of(serve::Bounded::tpot_p99));
    number("goodput, requests/s within the SLO", [](const Summary& s) { return s.request_goodput; });
    row("SLO kept", [](const Summary& s) { return std::string(s.meets_slo ? "yes" : "no"); });
  }
  print_output("{}", table.text(output_width()));
  std::vector<report::Head> causes = {{"mean ms of a request's life", report::Align::left}};
  for (const auto& [name, summary] : summaries) causes.push_back({name});
  report::Table waterfall(causes, {.indent = 2});
  for (std::size_t cause = 0; cause < serve::kCauses; ++cause) {
    std::vector<std::string> cells = {serve::cause_names()[cause]};
    for (const auto& [name, summary] : summaries) cells.push_back(figure_text(summary.life_ms[cause]));
    waterfall.add(cells);
  }
  print_output("\n{}", waterfall.text(output_width()));
}

void print_classes(const load::ClassTable& classes) {
  if (classes.empty()) return;
  report::Table table({{"class", report::Align::left},
                       {"server", report::Align::left},
                       {"requests"},
                       {"TTFT ms"},
                       {"p99"},
                       {"TPOT ms"},
                       {"p99"},
                       {"tokens/round"}},
                      {.indent = 2, .keys = 2});
  for (const auto& [server, one] : classes) {
    const Summary& s = one.summary;
    table.add({one.name, server, fmt::format("{}", s.completed), figure_text(s.ttft_ms.mean), figure_text(s.ttft_ms.p99),
               figure_text(s.tpot_ms.mean), figure_text(s.tpot_ms.p99), figure_text(s.tokens_per_round)});
  }
  print_output("\n{}", table.text(output_width()));
}

void print_curve(const std::vector<load::CurvePoint>& curve, load::Load load, const serve::Slo& slo) {
  report::Table table({{load_name(load)},
                       {"speculation", report::Align::left},
                       {"TTFT ms"},
                       {"p99"},
                       {"TPOT ms"},
                       {"p99"},
                       {"tokens/s"},
                       {"batch"},
                       {"tokens/round"},
                       {"SLO", report::Align::left}},
                      {.indent = 2, .keys = 2});
  for (const load::CurvePoint& point : curve) {
    const auto mean = [&](double (*of)(const Summary&)) { return figure_text(load::figure(point, of).mean); };
    const auto interval = [](const load::CurveFigure& one) {
      return figure_text(one.mean) + (std::isnan(one.half_width) ? "" : fmt::format(" ± {}", figure_text(one.half_width)));
    };
    const bool kept = load::keeps_slo(point, slo);
    table.add({fmt::format("{:g}", point.load), point.speculative ? "yes" : "no",
               interval(load::mean_latency(point, serve::Latency::ttft)),
               figure_text(load::p99_latency(point, serve::Latency::ttft).mean),
               interval(load::mean_latency(point, serve::Latency::tpot)),
               figure_text(load::p99_latency(point, serve::Latency::tpot).mean),
               interval(load::figure(point, [](const Summary& s) { return s.output_throughput; })),
               mean([](const Summary& s) { return s.mean_batch; }), mean([](const Summary& s) { return s.tokens_per_round; }),
               load::overloaded(point) ? "overloaded"
               : kept                  ? "kept"
                                       : "-"});
  }
  print_output("{}", table.text(output_width()));
}

namespace {

// Whether steps of up to `most` requests have several draft lengths.
bool lengths_differ(const std::vector<plan::LengthRange>& ranges, double most) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const plan::LengthRange& range) {
    return range.from <= most && range.draft_length != ranges.front().draft_length;
  });
}

// Prints the server's flags: with a table if its engine honours one and steps of up to `most` requests have several lengths,
// otherwise with the length for steps of so many requests.
void print_flags(const load::ServeExperiment& experiment, const load::LengthTable& table, double requests, double most,
                 double context) {
  const std::string& engine = experiment.product;
  const cost::Deployment* const deployment = experiment.cost->deployment();
  if (engine.empty() || deployment == nullptr) return;
  std::vector<plan::LengthRange> by_batch;
  int length = load::length_at(table.best, requests);
  bool faster_without = load::baseline_is_faster(table.best, requests);
  const bool takes_table = plan::takes_lengths_by_batch(engine, *deployment);
  if (takes_table && lengths_differ(table.best.ranges, most)) {
    by_batch = table.best.ranges;
    length = 0;
    for (const plan::LengthRange& range : by_batch) length = std::max(length, range.draft_length);
    faster_without = load::baseline_is_faster(table.best);
  } else if (takes_table && table.best.ranges.size() > 1) {
    print_words(
        fmt::format("{}: no table, since steps of this load, of up to {:.0f} requests, all draft {}", engine, most, length));
  } else if (table.best.ranges.size() > 1) {
    print_words(fmt::format("{} takes one draft length for all steps: {} is best with {:.0f} requests in a step", engine, length,
                            requests));
  }
  if (length == 0 || faster_without) {
    print_words("flags: none, the server is faster without speculation");
    return;
  }
  const auto own = plan::engine_command(engine, *deployment, length, table.running, by_batch, context);
  if (!own) return;
  const double gpus = plan::gpus_of(*deployment);
  if (!own->command.empty())
    print_output("flags for {}{}{}:\n  {}\n", own->engine,
                 experiment.prefill_engines > 0 ? ", for the decoding engines (prompt engines do not draft)" : "",
                 gpus > 1.0 ? fmt::format(" on {:g} GPUs", gpus) : "", own->command);
  for (const std::vector<std::string>* const list : {&own->needs, &own->notes})
    for (const std::string& note : *list) print_words(fmt::format("{}: {}", own->engine, note));
  const std::string& policy = experiment.speculation->policy_name;
  const bool simulated = policy == "fixed" && by_batch.empty() && length == experiment.speculation->longest;
  if (own->command.empty() || simulated) return;
  const bool by_flags = policy == "fixed" || policy == "table";
  print_words(fmt::format(
      "{}--policy 'table:{}' simulates them",
      by_flags ? "these are the best lengths, perhaps not those of this run: "
               : fmt::format("these lengths were not simulated: the run's policy is {}, which no flag selects. ", policy),
      by_batch.empty() ? fmt::format("[[1, {}, {}]]", table.running, length) : plan::ranges_text(by_batch)));
}

}  // namespace

void print_best_lengths(const load::ServeExperiment& experiment, const arrivals::RequestTrace& workload, double requests,
                        double most) {
  const load::LengthTable table = load::length_table(
      experiment, workload, plan::takes_lengths_that_rise(experiment.product) ? plan::Rise::once : plan::Rise::never);
  if (table.longest == 0) return;
  std::string words = fmt::format(
      "most tokens per second of steps without prompts, [from, to, draft length] by requests in the step, at {:.0f} cached "
      "tokens "
      "each: {}; at most {:.1f} % below the best length for each number",
      table.cached, plan::ranges_text(table.best.ranges), 100.0 * table.best.worst_loss);
  if (const std::string plain = load::plain_text(table.best); !plain.empty()) words += "; " + plain;
  if (table.fitting > 0) words += fmt::format("; the cache holds {} such requests", table.fitting);
  if (table.stated < table.longest)
    words +=
        fmt::format("; drafts longer than {} are not considered, since acceptance is stated for as many positions", table.stated);
  print_words(words);
  double longest = 0.0;  // tokens of a request when it ends
  for (const arrivals::Request& one : workload.requests)
    longest = std::max(longest, static_cast<double>(one.prompt) + one.output);
  print_flags(experiment, table, requests, most, longest);
}

std::string latency_ties(const load::ServeExperiment& experiment, const std::vector<CurvePoint>& curve, load::Load load) {
  struct Figure {
    const char* name;
    double (*of)(const Summary&);
    bool asked_for;  // at a rate that both servers keep up with, output equals demand, whatever the latencies
    std::string loads;
  };
  std::vector<Figure> figures = {{"TPOT", [](const Summary& s) { return s.tpot_ms.mean; }, false, ""},
                                 {"output throughput", [](const Summary& s) { return s.output_throughput; }, true, ""}};
  double most = 0.0;
  for (std::size_t i = 0; i + 1 < curve.size(); ++i) {
    const CurvePoint& plain = curve[i];
    const CurvePoint& own = curve[i + 1];
    if (plain.speculative || !own.speculative) continue;
    const double noise = load::comparison_error(experiment, own.replications.front(), plain.replications.front());
    for (Figure& figure : figures) {
      const bool limited = load != load::Load::rate || load::overloaded(plain) || load::overloaded(own);
      if ((figure.asked_for && !limited) || !(std::abs(std::log(mean_of(own, figure.of) / mean_of(plain, figure.of))) < noise))
        continue;
      figure.loads += fmt::format("{}{:g}", figure.loads.empty() ? "" : ", ", plain.load);
      most = std::max(most, noise);
    }
  }
  std::string text;
  for (const Figure& figure : figures)
    if (!figure.loads.empty())
      text += fmt::format("{}{} at {} {}", text.empty() ? "" : ", ", figure.name, load::load_name(load), figure.loads);
  if (text.empty()) return "";
  return fmt::format("with and without speculation tie within the error of the latency model, {:.1f} %: {}", 100.0 * most, text);
}

}  // namespace specsim::cli
