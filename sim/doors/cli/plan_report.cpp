#include "sim/doors/cli/plan_report.h"

#include "sim/answers/plan/stated_acceptance.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/output_form.h"
#include "sim/experiments/spec/axes.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/report/intervals.h"
#include "sim/foundation/report/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace specsim::cli {

namespace {

using plan::AcceptanceCurve;
using plan::Advice;
using plan::Plan;
using plan::PlanPoint;
using plan::ScanPoint;
using report::Align;

std::string length_text(int draft_length) { return draft_length > 0 ? std::to_string(draft_length) : "none"; }

// "llama-3.1-70b (8 bits, 4 GPUs)"
std::string described(const cost::ModelShape& model) {
  std::vector<std::string> how;
  if (model.weight_bits != 16.0) how.push_back(fmt::format("{:g} bits", model.weight_bits));
  if (model.kv_bits != 16.0) how.push_back(fmt::format("{:g} bits of KV", model.kv_bits));
  if (model.tensor_parallel != 1.0) how.push_back(fmt::format("{:g} GPUs", model.tensor_parallel));
  return model.name + (how.empty() ? "" : fmt::format(" ({})", fmt::join(how, ", ")));
}

// Before the user's acceptance, next to the one that pays just so.
const char* own_word(const AcceptanceCurve& curve) { return curve.assumed ? "assumed" : "yours"; }

void print_setting(const plan::Planned& planned) {
  const spec::Cell& cell = *planned.cell;
  const std::string load = fmt::format("batch {:g}, context {:g}", cell.workload.batch, cell.workload.context);
  if (const cost::Deployment* d = cell.cost().deployment(); d != nullptr && d->target) {
    if (d->draft_place)
      print_output("{} on {}, drafted by {} on {}, {}\n", described(*d->target), d->hardware.name, described(*d->draft),
                   d->draft_place->hardware.name, load);
    else
      print_output("{}{} on {}, {}\n", described(*d->target),
                   d->draft ? " drafted by " + described(*d->draft) : ", no draft model", d->hardware.name, load);
    if (const double gpus = plan::gpus_of(*d); gpus > 1.0)
      print_output("{:g} GPUs; {}\n", gpus,
                   d->target->expert_parallel > 1.0 ? "batch and tokens/s are those of each GPU"
                                                    : "batch and tokens/s are those of all of them together");
    if (!d->draft)
      print_words(
          "(proposals take no time here: set their host time with --set cost.round_us=MICROSECONDS. Every round drafts here, but "
          "an engine counts the acceptance of n-grams only over rounds that found a match)");
  } else {
    print_output("cost model {}, {}\n", cell.cost_choice->name(), load);
  }
  print_output("acceptance: {}\n", planned.curve.source);
}

void print_points(const Plan& plan, bool in_seconds) {
  const double unit = in_seconds ? 1e3 : 1.0;
  const std::string ms = in_seconds ? " ms" : "";
  report::Table table({{"draft_length"},
                       {"tokens/round"},
                       {"draft" + ms},
                       {"verify" + ms},
                       {"other" + ms},
                       {"round" + ms},
                       {in_seconds ? "tokens/s" : "-"},
                       {"speedup"},
                       {"low"},
                       {"high"},
                       {"", Align::left, "mark"}});
  for (const PlanPoint& p : plan.points)
    table.add({std::to_string(p.draft_length), fmt::format("{:.4f}", p.tokens_per_round),
               fmt::format("{:.4f}", unit * p.time.draft.total()), fmt::format("{:.4f}", unit * p.time.verify.total()),
               fmt::format("{:.4f}", unit * p.time.overhead), fmt::format("{:.4f}", unit * p.time.total()),
               in_seconds ? fmt::format("{:.1f}", p.tokens_per_second) : "-", fmt::format("{:.4f}", p.speedup),
               fmt::format("{:.2f}", p.gain.low()), fmt::format("{:.2f}", p.gain.high()),
               p.draft_length == plan.best ? "<- best" : ""});
  print_output("\ndraft lengths: times of a round, and the speedup over plain decoding\n");
  print_table(table);
  if (plan.best_point().time_error > 0.0) print_output("low, high: 95 % interval of the speedup\n");
}

// Prints the assumption about drafts longer than the measured ones, and the best measured length.
void print_assumed(const AcceptanceCurve& curve, const Plan& plan) {
  if (curve.measured >= curve.longest()) return;
  std::string text =
      fmt::format("(acceptance was measured up to draft length {}; beyond it the last rate is assumed", curve.measured);
  if (const plan::LastRateError held = plan::last_rate_error(curve.measured); held.tables > 0)
    text +=
        fmt::format("; on {} recorded drafts that are longer, tokens per round are off by {:+.1f} to {:+.1f} % with this rule",
                    held.tables, 100.0 * held.least, 100.0 * held.most);
  if (plan.best > curve.measured) {
    const auto end = plan.points.begin() + std::min(curve.measured + 1, static_cast<int>(plan.points.size()));
    const auto best =
        std::max_element(plan.points.begin(), end, [](const auto& a, const auto& b) { return a.speedup < b.speedup; });
    text += fmt::format(". The best measured length is {}, speedup {:.4f}", best->draft_length, best->speedup);
  }
  print_words(text + ")");
}

// The reason why drafting does not pay.
std::string reason_text(const Advice& advice) {
  const Plan& plan = advice.plan;
  if (plan.points.size() == 1) return "no draft fits into memory together with the target and its cache";
  const PlanPoint& one = plan.points[1];
  const double target = one.time.plain.total();
  switch (advice.regime) {
    case plan::Regime::low_acceptance:
      return "the acceptance is too low";
    case plan::Regime::expensive_draft:
      return fmt::format("drafting takes too long: one draft token costs {:.2f} target passes",
                         (one.time.draft.total() + one.time.overhead) / target);
    case plan::Regime::compute_bound:
      return fmt::format("verification takes too long: two tokens per sequence cost {:.2f} target passes",
                         one.time.verify.total() / target);
    default:
      return fmt::format("no draft length up to {} is faster", plan.points.size() - 1);
  }
}

// The last batch up to which speculation pays, from the scan.
std::string limit_text(const std::vector<ScanPoint>& points) {
  const ScanPoint* last = nullptr;
  for (const ScanPoint& point : points) {
    if (!plan::is_shown(point.at)) continue;
    if (point.plan.best == 0 || verdict_of(point.plan.best_point().gain) != plan::Verdict::pays)
      return last == nullptr ? "" : fmt::format("pays up to batch {:g}; at {:g} it is uncertain", last->at, point.at);
    last = &point;
  }
  return last == nullptr ? "" : fmt::format("pays up to batch {:g}, the largest within memory and the measured range", last->at);
}

// The command of the plan's engine, or why it has none; of an engine that is no server, the first that supports the pair.
const plan::EngineCommand* start_command(const plan::Planned& planned, const Advice& advice) {
  const cost::Deployment* const deployment = planned.cell->cost().deployment();
  const std::string server = deployment != nullptr ? plan::server_of(deployment->engine) : "";
  const auto at = std::find_if(advice.commands.begin(), advice.commands.end(), [&](const plan::EngineCommand& one) {
    return server.empty() ? !one.command.empty() : one.engine.starts_with(server);
  });
  return at == advice.commands.end() ? nullptr : &*at;
}

// The same as a table, which programs get with --quiet too. Without a draft length that pays, the figures are those of the
// fastest.
void print_answer_table(const plan::Planned& planned, const Advice& advice) {
  const PlanPoint* const drafted = advice.plan.best > 0 ? &advice.plan.best_point() : plan::fastest_draft(advice.plan);
  report::Table table({{"use"},
                       {"draft_length"},
                       {"speedup"},
                       {"low"},
                       {"high"},
                       {"pays", Align::left},
                       {"pays_probability"},
                       {"break-even alpha"},
                       {"start", Align::left}});
  const auto& even = advice.plan.best > 0 ? advice.break_even_chosen : advice.break_even;
  const plan::EngineCommand* const start = start_command(planned, advice);
  const auto figure = [&](auto of) { return drafted != nullptr ? of(*drafted) : std::string("-"); };
  constexpr std::array kVerdicts = {"yes", "no", "too close"};
  table.add({std::to_string(advice.plan.best), figure([](const PlanPoint& p) { return std::to_string(p.draft_length); }),
             figure([](const PlanPoint& p) { return fmt::format("{:.4f}", p.speedup); }),
             figure([](const PlanPoint& p) { return fmt::format("{:.2f}", p.gain.low()); }),
             figure([](const PlanPoint& p) { return fmt::format("{:.2f}", p.gain.high()); }),
             figure([&](const PlanPoint& p) { return std::string(kVerdicts[static_cast<std::size_t>(verdict_of(p.gain))]); }),
             figure([](const PlanPoint& p) { return fmt::format("{:.4f}", p.gain.pays()); }),
             even ? fmt::format("{:.4f}", even->alpha) : "-",
             start != nullptr && !start->command.empty() ? start->command : "-"});
  print_output("the answer: the draft length to use (0: do not speculate), and the gain of the best one\n");
  print_table(table);
}

// The answer in five lines: the recommendation, the gain, its range, the start command, and how to make it more certain.
void print_answer(const plan::Planned& planned, const Advice& advice) {
  constexpr double kWide = 0.08;  // above this standard error of a speedup the output recommends measuring
  const Plan& plan = advice.plan;
  const PlanPoint& best = plan.best_point();
  const auto interval = [](const plan::Gain& gain) {
    return gain.error > 0.0 ? fmt::format(" (95 %: {:.2f} to {:.2f})", gain.low(), gain.high()) : std::string();
  };
  if (plan.best == 0) {
    print_output("do not speculate: {}\n", reason_text(advice));
    if (const PlanPoint* const next = plan::fastest_draft(plan))
      print_words(fmt::format("draft length {} would give {:.2f}x{}: {}", next->draft_length, next->speedup, interval(next->gain),
                              verdict_text(next->gain)));
  } else {
    print_output("recommendation: draft length {}\n", plan.best);
    print_words(fmt::format("expected: {:.2f}x the speed of plain decoding{}; {}", best.speedup, interval(best.gain),
                            verdict_text(best.gain)));
  }
  const auto& even = plan.best > 0 ? advice.break_even_chosen : advice.break_even;
  std::string carries = limit_text(advice.by_batch);
  carries +=
      fmt::format("{}{}", carries.empty() ? "" : "; ",
                  even ? fmt::format("break-even alpha {:.2f} at draft length {}, {} {:.2f}", even->alpha, even->draft_length,
                                     own_word(planned.curve), planned.curve.equivalent_alpha(even->draft_length))
                       : "even a draft with acceptance 1 loses");
  print_words(carries);
  const cost::Deployment* const served = planned.cell->cost().deployment();
  const double gpus = served != nullptr ? plan::gpus_of(*served) : 1.0;
  if (const plan::EngineCommand* const start = start_command(planned, advice)) {
    const bool borrowed = served != nullptr && plan::server_of(served->engine).empty();
    print_output(
        "start{}{}: {}\n", gpus > 1.0 ? fmt::format(" on {:g} GPUs", gpus) : "",
        borrowed ? fmt::format(" ({}; {}, which the latencies are for, is no server)", start->engine, served->engine.name) : "",
        start->command.empty() ? fmt::format("{} cannot run this plan: {}", start->engine, start->notes.front())
                               : start->command);
    print_needs(*start);
  }
  const plan::Gain& gain = plan.best > 0                          ? best.gain
                           : plan::fastest_draft(plan) != nullptr ? plan::fastest_draft(plan)->gain
                                                                  : best.gain;
  const cost::Deployment* const deployment = planned.cell->cost().deployment();
  if (deployment != nullptr && !deployment->engine.tuned && gain.error > kWide)
    print_words(
        "to narrow the interval: benchmark your own server twice, with and without speculation: specsim tune --suggest 2");
}

// "3.71 J (95 %: 3.12 to 4.41)"; without the interval where no error is stated.
std::string with_interval(const std::string& before, double value, double error, const std::string& suffix) {
  const auto side = [&](double sign) { return value * std::exp(sign * report::kIn95 * error); };
  return fmt::format("{}{:.3g}{}{}", before, value, suffix,
                     error > 0.0 ? fmt::format(" (95 %: {:.3g} to {:.3g})", side(-1.0), side(1.0)) : "");
}

// Energy and cost of an output token, with speculation and without.
void print_spending(const plan::Planned& planned, const Plan& plan) {
  const PlanPoint* const drafted = plan.best > 0 ? &plan.best_point() : plan::fastest_draft(plan);
  const PlanPoint& plain = plan.points.front();
  const PlanPoint& own = drafted != nullptr ? *drafted : plain;
  const double rate = std::hypot(own.time_error, own.acceptance_error);
  const std::string with = drafted != nullptr ? fmt::format(" at draft length {}", own.draft_length) : "";
  const cost::Deployment* const deployment = planned.cell->cost().deployment();
  if (deployment == nullptr) return;
  if (!std::isnan(own.joules_per_token)) {
    std::string text =
        with_interval("energy: ", own.joules_per_token, std::hypot(rate, own.power_error), " J per output token" + with);
    if (drafted != nullptr) text += fmt::format(", {:.3g} J without speculation", plain.joules_per_token);
    const cost::PowerDraw& power = *deployment->hardware.power;
    print_words(fmt::format("{}; {:.0f} W per GPU{}", text, own.watts,
                            power.by_limit ? fmt::format(", a share of its {:g} W limit, not measured", power.limit_w) : ""));
  }
  if (!std::isnan(own.dollars_per_million)) {
    std::string text = with_interval("cost: $", own.dollars_per_million, rate, " per million output tokens" + with);
    if (drafted != nullptr) text += fmt::format(", ${:.3g} without speculation", plain.dollars_per_million);
    const cost::HourlyPrice& price = *deployment->hardware.price;
    text += fmt::format("; ${:g} per GPU-hour{}", price.dollars_per_hour, price.source.empty() ? "" : ", " + price.source);
    if (drafted != nullptr && deployment->draft_place && deployment->draft_place->hardware.price) {
      const cost::Hardware& other = deployment->draft_place->hardware;
      text += fmt::format("; the draft's {} ${:g}{}", other.name, other.price->dollars_per_hour,
                          other.price->source.empty() ? "" : ", " + other.price->source);
    }
    print_words(text);
  }
}

// Whether a GPU of the draft's own helps: the same draft on the target's GPU, there in turn, and there while the target verifies.
void print_placings(const std::vector<plan::DraftPlacing>& placings) {
  if (placings.empty()) return;
  report::Table table({{"the draft on", Align::left},
                       {"", Align::left, "way"},
                       {"K"},
                       {"tokens/round"},
                       {"tokens/s"},
                       {"speedup"},
                       {"low"},
                       {"high"},
                       {"to the first"},
                       {"at least"},
                       {"at most"}},
                      {.indent = 2});
  for (const plan::DraftPlacing& one : placings) {
    if (!one.why_not.empty()) {
      table.add({one.gpu, one.way, "-", "-", "-", "-", "-", "-", "-", "-", "-"});
      continue;
    }
    std::vector<std::string> cells = {one.gpu,
                                      one.way,
                                      std::to_string(one.draft_length),
                                      fmt::format("{:.4f}", one.tokens_per_round),
                                      fmt::format("{:.1f}", one.tokens_per_second),
                                      fmt::format("{:.3f}", one.speedup),
                                      fmt::format("{:.2f}", one.gain.low()),
                                      fmt::format("{:.2f}", one.gain.high())};
    const plan::Gain& other = one.over_target_gpu;
    const bool compared = placings.front().why_not.empty();
    for (const double ratio : {other.ratio(), other.low(), other.high()})
      cells.push_back(compared ? fmt::format("{:.2f}", ratio) : "-");
    table.add(cells);
  }
  print_output("the draft on a GPU of its own (each at its fastest draft length)\n");
  print_table(table);
  for (const plan::DraftPlacing& one : placings)
    if (!one.why_not.empty()) print_words(fmt::format("{}, {}: {}", one.gpu, one.way, one.why_not));
  const plan::DraftPlacing& in_turn = placings[1];
  if (placings.front().why_not.empty() && in_turn.why_not.empty())
    print_words(fmt::format("a draft on {} in turn is {:.2f}x as fast as one on {} (95 %: {:.2f} to {:.2f}); moving it: {}",
                            in_turn.gpu, in_turn.over_target_gpu.ratio(), placings.front().gpu, in_turn.over_target_gpu.low(),
                            in_turn.over_target_gpu.high(), verdict_text(in_turn.over_target_gpu)));
  print_words(
      "(overlapped: the draft writes the next block while the target verifies this one, as research code does; servers draft "
      "in turn)");
}

void print_break_even(const Advice& advice, const AcceptanceCurve& curve) {
  const auto& any = advice.break_even;
  const auto& own = advice.plan.best > 0 ? advice.break_even_chosen : any;
  if (!own) return;
  print_output("break-even alpha: {:.4f} at draft length {}{}; {} {:.4f}\n", own->alpha, own->draft_length,
               any && any->draft_length != own->draft_length ? fmt::format(", {:.4f} at {}", any->alpha, any->draft_length) : "",
               own_word(curve), curve.equivalent_alpha(own->draft_length));
}

void print_margins(const Plan& plan, const AcceptanceCurve& curve) {
  print_output("\n");
  if (plan.best > 0 && plan.best_point().speedup > plan.best_point().tokens_per_round)
    print_output(
        "speedup above tokens per round: the estimate of a pass over {} tokens per sequence is below that over one, because a "
        "kernel for more rows runs; a larger batch without speculation would gain as much\n",
        plan.best + 1);
  if (!plan.ties.empty())
    print_output("a tie with draft length{} {}: within the error of the comparison, {:.1f} %\n", plan.ties.size() == 1 ? "" : "s",
                 fmt::join(plan.ties, ", "), 100.0 * plan.noise);
  for (const plan::Margin& margin : plan.margins)
    print_output("  {:+.4f}{} over {}\n", margin.margin,
                 std::isnan(margin.half_width)
                     ? ""
                     : fmt::format(" +- {:.4f} (95 %, error of acceptance only, paired)", margin.half_width),
                 margin.over == 0 ? "plain decoding" : fmt::format("draft length {}", margin.over));
  if (curve.sampled && curve.parts.empty()) print_output("  no intervals of acceptance: too little data\n");
}

void print_scan(const char* axis, const std::vector<ScanPoint>& points, bool smoothed) {
  if (points.empty()) return;
  std::vector<report::Head> heads = {{axis}, {"best"}, {"speedup"}, {"low"}, {"high"}, {"tokens/s"}};
  if (smoothed) heads.insert(heads.end(), {{"smoothed"}, {"its loss"}});
  report::Table table(heads, {.indent = 2});
  for (const ScanPoint& point : points) {
    if (!plan::is_shown(point.at)) continue;
    const PlanPoint& best = point.plan.best_point();
    std::vector<std::string> cells = {fmt::format("{:g}", point.at),           length_text(point.plan.best),
                                      fmt::format("{:.3f}", best.speedup),     fmt::format("{:.2f}", best.gain.low()),
                                      fmt::format("{:.2f}", best.gain.high()), fmt::format("{:.0f}", best.tokens_per_second)};
    if (smoothed) cells.insert(cells.end(), {length_text(point.smooth), fmt::format("{:.1f} %", 100.0 * point.loss)});
    table.add(cells);
  }
  print_output("best draft length by {} (powers of two; omitted: out of memory or outside the measured range)\n", axis);
  print_table(table);
}

// The best draft length by batch and context, as a table for servers that switch by both.
void print_grid(const plan::LengthGrid& grid) {
  std::vector<report::Head> heads = {{"batch"}};
  for (const double context : grid.contexts) heads.push_back({fmt::format("{:g} tokens", context)});
  report::Table table(heads, {.indent = 2});
  bool any = false;
  for (std::size_t b = 0; b < grid.batches.size(); ++b) {
    std::vector<std::string> cells = {fmt::format("{:g}", grid.batches[b])};
    for (const std::optional<int>& best : grid.best[b]) {
      cells.push_back(best ? length_text(*best) : "-");
      any = any || best.has_value();
    }
    table.add(cells);
  }
  if (!any) return;
  print_output("best draft length by batch and context (-: out of memory or outside the measured range)\n");
  print_table(table);
}

void print_schedule(const std::vector<ScanPoint>& points) {
  if (points.empty()) return;
  std::string list;
  for (const plan::LengthRange& range : plan::ranges_of(points))
    list += fmt::format("{}{} for batch {}-{}", list.empty() ? "" : ", ",
                        range.draft_length > 0 ? fmt::format("K={}", range.draft_length) : "off", range.from, range.to);
  const auto worst =
      std::max_element(points.begin(), points.end(), [](const ScanPoint& a, const ScanPoint& b) { return a.loss < b.loss; });
  print_words(fmt::format(
      "schedule: {}{}", list,
      worst->loss > 0.0005 ? fmt::format("; costs at most {:.1f} % (batch {:g})", 100.0 * worst->loss, worst->at) : ""));
  if (const auto rise = plan::smooth_rise(points))
    print_words(
        fmt::format("(rises at {:g}: a non-increasing schedule would lose {:.0f} % at {:g}. vLLM's "
                    "num_speculative_tokens_per_batch_size accepts a rising table, TensorRT-LLM's draft_len_schedule does not)",
                    rise->at, 100.0 * rise->loss, rise->worst));
  else if (plan::rises(points))
    print_words("(the best length varies with the batch: passes are padded to captured sizes and cut into whole tiles)");
}

void print_cliff(const Advice& advice) {
  if (!advice.cliff) return;
  const plan::Cliff& cliff = *advice.cliff;
  print_words(fmt::format("at batch {:g}, where another tile or captured size begins, draft length {} drops to {:.4f}: {}",
                          cliff.batch, advice.plan.best, cliff.speedup,
                          cliff.best == advice.plan.best ? "it is still the best there"
                          : cliff.best == 0              ? "none pays there"
                                            : fmt::format("{} is best there, with {:.4f}", cliff.best, cliff.best_speedup)));
}

void print_sensitivities(const Advice& advice) {
  const PlanPoint* const drafted = advice.plan.best > 0 ? &advice.plan.best_point() : plan::fastest_draft(advice.plan);
  if (drafted == nullptr) return;
  const PlanPoint& best = *drafted;
  std::string steps;
  for (const cost::WaterfallStep& step : cost::waterfall(best.time, best.tokens_per_round)) {
    if (!steps.empty() && std::abs(step.seconds) < 5e-4 * best.time.total()) continue;
    steps += steps.empty() ? fmt::format("ideal {:.3f}", step.after) : fmt::format(", {} {:.3f}", step.name, step.after);
  }
  print_words(fmt::format("from tokens per round to speedup at draft length {}: {}", best.draft_length, steps));
  if (advice.plan.best == 0) return;
  std::string text = fmt::format("sensitivity: {:+.4f} for each .01 of alpha", 0.01 * advice.per_alpha);
  if (advice.with_more_bandwidth) text += fmt::format(", {:+.4f} with 10 % more bandwidth", *advice.with_more_bandwidth);
  if (advice.with_more_host_time) text += fmt::format(", {:+.4f} with 10 % more host time", *advice.with_more_host_time);
  print_words(text);
}

void print_memory(const Advice& advice, bool drafted) {
  if (!advice.memory) return;
  print_words("memory: " + advice.memory->to_text());
  print_words(
      fmt::format("largest batch at this context: {}{:g} without a draft{}",
                  drafted ? fmt::format("{:g} with the draft and its look-ahead slots, ", advice.largest_batch_with_draft) : "",
                  advice.largest_batch_without,
                  advice.memory->set_aside.empty() ? "; a server holds fewer if it reserves memory for activations and logits"
                                                   : " (server defaults; override with --set cost.memory_share=...)"));
}

void print_commands(const std::vector<plan::EngineCommand>& commands, double gpus) {
  if (commands.empty()) return;
  report::Table table({{"", Align::left, "engine"}, {"", Align::left, "command"}}, {.indent = 2, .headless = true});
  for (const plan::EngineCommand& own : commands) {
    table.add({own.engine, own.command.empty() ? "no: " + own.notes.front() : own.command});
    if (own.command.empty()) continue;
    for (const std::vector<std::string>* const list : {&own.needs, &own.notes})
      for (const std::string& note : *list) table.add({"", "(" + note + ")"});
  }
  print_output("start a server{} with\n{}", gpus > 1.0 ? fmt::format(" on {:g} GPUs", gpus) : "",
               table.text());  // not wrapped, so that they can be copied
}

// Memory and start commands for each of a few cells.
void print_servers(const std::vector<plan::Planned>& planned) {
  constexpr std::size_t kFew = 8;
  if (planned.size() > kFew) {
    print_words("memory and start commands are printed for at most 8 cells; plan fewer batches at once");
    return;
  }
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const spec::Cell& cell = *planned[i].cell;
    const int best = planned[i].plan.best;
    const auto memory = cell.cost().memory_budget(cell.workload, best + 1, best > 0 ? cost::Kept::both : cost::Kept::target);
    if (!memory) continue;
    print_words(fmt::format("cell {}, draft length {}: memory: {}", i, length_text(best), memory->to_text()));
    const cost::Deployment* const deployment = cell.cost().deployment();
    if (best > 0 && deployment != nullptr)
      print_commands(plan::engine_commands(*deployment, best, cell.workload.batch, cell.workload.context),
                     plan::gpus_of(*deployment));
  }
}

}  // namespace

void print_needs(const plan::EngineCommand& command) {
  if (command.command.empty()) return;
  for (const std::string& need : command.needs) print_words(fmt::format("({})", need));
}

void print_advice(const plan::Planned& planned, const Advice& advice, bool verbose) {
  const bool in_seconds = planned.cell->cost().in_seconds();
  const cost::Deployment* const deployment = planned.cell->cost().deployment();
  print_setting(planned);
  for (const std::string& warning : advice.warnings) print_words("WARNING: " + warning);
  print_output("\n");
  print_answer(planned, advice);
  print_points(advice.plan, in_seconds);
  if (for_machines()) print_answer_table(planned, advice);
  if (advice.longer_do_not_fit)
    print_words(fmt::format("(drafts longer than {} do not fit into memory with both models and their caches)",
                            advice.plan.points.size() - 1));
  print_assumed(planned.curve, advice.plan);
  if (planned.cell->cost().most_drafts() == planned.curve.longest())
    print_output("(no longer draft is tried: {} drafts at most {} tokens)\n",
                 deployment != nullptr && deployment->draft ? deployment->draft->name : "the drafter", planned.curve.longest());
  print_margins(advice.plan, planned.curve);
  print_sensitivities(advice);
  print_spending(planned, advice.plan);
  print_placings(advice.placings);
  print_scan("batch", advice.by_batch, true);
  if (verbose || !planned.curve.by_context.empty()) print_grid(advice.by_both);
  if (verbose) {
    print_break_even(advice, planned.curve);
    print_schedule(advice.by_batch);
    print_scan("context", advice.by_context, false);
    print_cliff(advice);
    print_memory(advice, deployment != nullptr && deployment->draft.has_value());
    print_commands(advice.commands, deployment != nullptr ? plan::gpus_of(*deployment) : 1.0);
  } else if (in_seconds) {
    print_output("--verbose prints best draft lengths by context, memory, and commands of other servers\n");
  }
}

void print_planned(const std::vector<plan::Planned>& planned) {
  const std::size_t shown = for_machines() ? planned.size() : std::min<std::size_t>(planned.size(), 60);
  constexpr std::size_t kLengthsShown = 8;
  const std::vector<std::string> axes = spec::axes_of(planned);
  std::vector<report::Head> heads = {{"cell"}};
  for (const std::string& axis : axes) heads.push_back({axis});
  const bool bounded = std::any_of(planned.begin(), planned.end(),
                                   [](const plan::Planned& one) { return one.plan.best_point().gain.error > 0.0; });
  for (const char* name : {"best", "tokens/round", "speedup"}) heads.push_back({name});
  if (bounded) heads.insert(heads.end(), {{"low"}, {"high"}});
  heads.push_back({"tokens/s"});
  std::size_t lengths = kLengthsShown;
  for (const plan::Planned& one : planned) lengths = std::min(lengths, one.plan.points.size() - 1);
  for (std::size_t k = 1; k <= lengths; ++k) heads.push_back({fmt::format("K={}", k)});
  report::Table table(heads, {.keys = 1 + axes.size()});
  for (std::size_t i = 0; i < shown; ++i) {
    const Plan& plan = planned[i].plan;
    const PlanPoint& best = plan.best_point();
    std::vector<std::string> cells = {std::to_string(i)};
    for (const std::string& axis : axes) cells.push_back(spec::axis_value(*planned[i].cell, axis));
    cells.insert(cells.end(),
                 {length_text(plan.best), fmt::format("{:.4f}", best.tokens_per_round), fmt::format("{:.4f}", best.speedup)});
    if (bounded) cells.insert(cells.end(), {fmt::format("{:.2f}", best.gain.low()), fmt::format("{:.2f}", best.gain.high())});
    cells.push_back(planned[i].cell->cost().in_seconds() ? fmt::format("{:.1f}", best.tokens_per_second) : "-");
    for (std::size_t k = 1; k <= lengths; ++k) cells.push_back(fmt::format("{:.3f}", plan.points[k].speedup));
    table.add(cells);
  }
  const bool one_curve = std::all_of(planned.begin(), planned.end(),
                                     [&](const plan::Planned& one) { return one.curve.source == planned[0].curve.source; });
  if (one_curve) print_output("acceptance: {}\n", planned[0].curve.source);
  print_output("speedup over plain decoding at the best draft length{}, and at draft lengths K\n",
               bounded ? " with its 95 % interval, low to high" : "");
  print_table(table);
  if (planned.size() > shown) print_output("  ... and {} more, in plan.csv with --out\n", planned.size() - shown);
  print_servers(planned);
}

}  // namespace specsim::cli
