// specsim fit: which of the simulator's context processes reproduces recorded acceptance.
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/numbers.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/result_files.h"
#include "sim/doors/cli/stop.h"
#include "sim/experiments/fit/fit_files.h"
#include "sim/experiments/fit/process_fit.h"
#include "sim/experiments/fit/spread_fit.h"
#include "sim/experiments/fit/table_fit.h"
#include "sim/experiments/spec/read_acceptance_table.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/files_read.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/config/value.h"
#include "sim/foundation/report/intervals.h"
#include "sim/foundation/report/output_folder.h"
#include "sim/foundation/report/table.h"
#include "sim/hardware/presets/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace specsim::cli {

namespace {

bool has_states(const fit::FittedProcess& model) { return model.start.size() > 1; }

std::string parameters_text(const fit::FittedProcess& model) {
  constexpr std::size_t kShown = 8;  // depths
  std::string text;
  for (std::size_t s = 0; s < model.start.size(); ++s) {
    const std::size_t shown = std::min(model.alpha[s].size(), kShown);
    text += fmt::format("{}alpha {:.3f}{}", s == 0 ? "" : "; ",
                        fmt::join(model.alpha[s].begin(), model.alpha[s].begin() + static_cast<std::ptrdiff_t>(shown), " "),
                        shown < model.alpha[s].size() ? " ..." : "");
    if (model.process == fit::Process::kept_state) {
      text += fmt::format(" weight {:.3f}", model.start[s]);
    } else if (has_states(model)) {
      text += fmt::format(" then {:.3f}", fmt::join(model.transition[s], " "));
    }
  }
  return text;
}

void print_processes(const fit::FitReport& report) {
  report::Table table({{"process", report::Align::left},
                       {"parameters"},
                       {"held out"},
                       {"below best"},
                       {"+-"},
                       {"tok/round"},
                       {"depth"},
                       {"distribution"},
                       {"runs"},
                       {"requests"},
                       {report.short_length > 0 ? fmt::format("from {}", report.short_length) : "from -"},
                       {"z"},
                       {"", report::Align::left}});
  for (const fit::ProcessReport& one : report.processes) {
    const auto text = [](double x, const char* format) { return report::cell_text(x, format); };
    const bool tried = report.short_length > 0;
    table.add({to_text(one.model.process), std::to_string(one.model.parameters()), text(one.held_out, "{:.5f}"),
               text(one.behind_best, "{:.5f}"), text(one.behind_error, "{:.5f}"), text(one.tokens_per_round, "{:.4f}"),
               text(one.p_by_depth, "{:.3f}"), text(one.p_accepted, "{:.3f}"), text(one.p_runs, "{:.3f}"),
               text(one.p_requests, "{:.3f}"), tried ? text(one.extrapolated, "{:.4f}") : "-",
               tried ? text(one.extrapolated_z, "{:.1f}") : "-", one.rejected() ? "rejected" : ""});
  }
  print_table(table);
  print_output(
      "\ndepth, distribution, runs, requests: p-values from {} data sets of the fitted model{}; its parameters are not fitted "
      "again to each,\nso p tends to be too large\n",
      fit::kReplicates,
      report.checked < report.requests ? fmt::format(", compared with {} of the {} requests", report.checked, report.requests)
                                       : "");
  if (report.short_length > 0)
    print_output(
        "from {0}: tokens per round at draft length {1} by a fit to only the first {0} positions of each round, and how many "
        "standard errors\nthat is from the recorded {2:.4f}. It shows how well the process extrapolates to twice the length it "
        "was "
        "fitted to\n",
        report.short_length, report.draft_length, report.tokens_per_round);
  print_output("\n");
  report::Table parameters({{"", report::Align::left, "process"}, {"", report::Align::left, "parameters"}}, {.headless = true});
  for (const fit::ProcessReport& one : report.processes) parameters.add({to_text(one.model.process), parameters_text(one.model)});
  print_table(parameters);
}

// Prints the fits' predictions for draft lengths that they have not seen.
void print_foretold(const fit::FitReport& report) {
  if (report.processes[0].predicted.empty()) return;
  std::vector<report::Head> columns = {{"K"}, {"recorded"}, {"+-"}};
  for (const fit::ProcessReport& one : report.processes) columns.push_back({to_text(one.model.process)});
  report::Table table(columns);
  for (std::size_t i = 0; i < report.processes[0].predicted.size(); ++i) {
    const fit::HeldOutPrediction& at = report.processes[0].predicted[i];
    std::vector<std::string> row = {std::to_string(at.draft_length), fmt::format("{:.4f}", at.recorded),
                                    fmt::format("{:.4f}", at.recorded_error)};
    for (const fit::ProcessReport& one : report.processes)
      row.push_back(fmt::format("{:.4f} {:+.1f} %", one.predicted[i].predicted, 100.0 * one.predicted[i].relative_error()));
    table.add(std::move(row));
  }
  print_output(
      "\nheld out: tokens per round at draft lengths that the fit at {} has not seen; +- is the record's standard error\n{}",
      report.draft_length, table.text(output_width()));
}

void print_choice(const fit::FitReport& report) {
  const fit::ProcessReport& best = report.processes[report.best];
  if (best.rejected())
    print_output(
        "\nnone fits: the data reject every process. {} comes closest; recorded distributions, if available, can "
        "be replayed (context process trace)\n",
        to_text(best.model.process));
  else
    print_output("\nuse {}: the simplest that is not rejected, within one standard error of the best held-out score\n",
                 to_text(best.model.process));
  const fit::ProcessReport& nearest = report.processes[report.nearest];
  if (!best.predicted.empty()) {
    const fit::HeldOutPrediction& last = best.predicted.back();
    print_output("at draft length {}, held out, {} is {:+.1f} % off", last.draft_length, to_text(best.model.process),
                 100.0 * last.relative_error());
    if (report.nearest != report.best)
      print_output(", {}, the nearest over all held-out lengths, {:+.1f} %", to_text(nearest.model.process),
                   100.0 * nearest.predicted.back().relative_error());
    print_output("; beyond the recorded lengths a figure is a guess\n");
    return;
  }
  if (report.short_length == 0) {
    print_output("beyond draft length {} nothing is recorded: figures for longer drafts are a guess\n", report.draft_length);
    return;
  }
  print_output("beyond draft length {} nothing is recorded: a longer draft is extrapolated. From {} to {}, {} was {:+.1f} % off",
               report.draft_length, report.short_length, report.draft_length, to_text(best.model.process),
               100.0 * (best.extrapolated / report.tokens_per_round - 1.0));
  if (report.nearest != report.best)
    print_output(", {}, the nearest, {:+.1f} %", to_text(nearest.model.process),
                 100.0 * (nearest.extrapolated / report.tokens_per_round - 1.0));
  print_output("\n");
}

// Prints the record's own figures, how well each process fits them, the predictions for draft lengths that the fits have not
// seen, and which process to use.
void print_fit(const fit::FitReport& report) {
  print_output("{} requests, draft length {}: {:.4f} tokens per round, +- {:.4f}\n\n", report.requests, report.draft_length,
               report.tokens_per_round, report::half_width(report.tokens_per_round_error, report.tokens_per_round_freedom));
  print_processes(report);
  print_foretold(report);
  print_choice(report);
}

// Prints the parameters of distributions fitted to a record, and the figures that they match.
void print_spread(const fit::SpreadFit& fit) {
  print_output("{} requests, {} positions, vocabulary {}\n\n", fit.requests, fit.positions, fit.vocab);
  report::Table parameters(
      {{"parameter", report::Align::left}, {"value"}, {"+- standard error"}, {"", report::Align::left, "meaning"}});
  const auto add = [&](const char* name, const fit::SpreadParameter& one, const char* meaning) {
    parameters.add(
        {name, fmt::format("{:.4f}", one.value), one.fitted ? report::cell_text(one.error, "{:.4f}") : "not recorded", meaning});
  };
  add("sigma", fit.sigma, "standard deviation of the target's logits");
  add("its spread", fit.sigma_spread, "standard deviation of its logarithm over contexts");
  add("noise", fit.noise, "standard deviation of the draft's logits around the target's");
  add("its spread", fit.noise_spread, "standard deviation of its logarithm over contexts");
  if (fit.persistence.fitted) {
    add("persistence", fit.persistence, "probability that the next position belongs to the same stretch of text");
    add("between requests", fit.between_requests, "share of the scales' variance that lies between requests");
  }
  print_output("{}\n", parameters.text(output_width()));
  report::Table moments({{"figure", report::Align::left}, {"recorded"}, {"+- standard error"}, {"fitted"}});
  for (const fit::SpreadMoment& one : fit.moments)
    moments.add({one.name, fmt::format("{:.4f}", one.recorded), report::cell_text(one.error, "{:.4f}"),
                 fmt::format("{:.4f}", one.fitted)});
  print_output("{}", moments.text(output_width()));
}

// The table that `file` names: one of configs/acceptance, or a .yaml file; nullopt if it is neither. `temperature`: the value of
// --temperature, or "". Throws BadInput with the places of errors.
struct NamedTable {
  fit::TableRecord record;
  std::string temperature;  // source of the temperature, for messages
  std::string selection;    // source of `chosen`, for messages
  std::string derived;      // source of derived rates; "" if the rates are the table's own
  Location where;           // place of its figures
};

constexpr double kHottest = 10.0;

bool names_table(const std::string& file) {
  if (file.ends_with(".yaml") || file.ends_with(".yml")) return true;
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) return false;
  const std::vector<std::string> names = cost::preset_names(cost::PresetKind::acceptance);
  return std::find(names.begin(), names.end(), file) != names.end();
}

// The temperature of the table, and its source.
double temperature_of(const spec::AcceptanceTable& table, const std::string& option, std::string& from) {
  const bool stated = !table.temperature.empty() && table.temperature != "unknown";
  if (!stated) {
    from = option.empty() ? "assumed, since the table does not state it (--temperature sets it)" : "by --temperature";
    return option.empty() ? 0.0 : read_number(option, "--temperature", config::between(0, kHottest));
  }
  from = "as the table states";
  const std::optional<double> own = config::as_number(config::scalar(table.temperature, table.temperature_where));
  if (!own || !config::between(0, kHottest).contains(*own))
    throw BadInput(
        table.temperature_where,
        fmt::format("temperature is \"{}\", allowed for a fit: a number in [0, {:g}], or unknown", table.temperature, kHottest));
  if (!option.empty() && read_number(option, "--temperature", config::between(0, kHottest)) != *own)
    throw BadInput({"--temperature", 0, 0}, fmt::format("{}, allowed: without it, since the table states {:g}", option, *own));
  return *own;
}

// Whether the ranks are of chosen drafts, which matters above temperature 0.
bool chosen_drafts(const spec::AcceptanceTable& table, double temperature) {
  if (temperature > 0.0 && table.selection == spec::Selection::unsaid)
    throw BadInput(table.where,
                   fmt::format("acceptance at temperature {:g} of chosen drafts, or of drawn ones, whose acceptance "
                               "differs: the table does not state which, allowed: with selection: argmax, if the draft's "
                               "likeliest tokens were taken (vLLM, SGLang and llama.cpp by default), or selection: "
                               "sampled (most chains in papers)",
                               temperature));
  return table.selection == spec::Selection::argmax;
}

// Warns about an unknown model in the table. The fit does not need it, but plan and compare do.
void warn_of_unknown(const std::string& model, const Location& where) {
  std::error_code ignored;
  if (model.empty() || model == "none" || model.find('{') != std::string::npos || std::filesystem::exists(model, ignored)) return;
  const std::vector<std::string> names = cost::preset_names(cost::PresetKind::model);
  if (std::find(names.begin(), names.end(), model) == names.end())
    print_warning(fmt::format("{}: {}", to_string(where), config::unknown_name("unknown model", model, names)));
}

std::optional<NamedTable> find_table(const std::string& file, const std::string& temperature) {
  if (!names_table(file)) return std::nullopt;
  const spec::AcceptanceTable table = spec::named_acceptance_table(file, {"FILE", 0, 0});
  if (!table.rising().empty()) print_warning(table.rising());
  warn_of_unknown(table.draft, table.draft_where);
  warn_of_unknown(table.target, table.target_where);
  NamedTable result;
  result.record.acceptance = table.acceptance;
  const double used = temperature_of(table, temperature, result.temperature);
  result.record.kind = {used, chosen_drafts(table, used)};
  result.selection = table.selection_from;
  result.derived = table.derived;
  result.where = table.where;
  result.record.about = table.about;
  return result;
}

void print_table_fit(const NamedTable& table, const fit::TableFit& fit) {
  const double temperature = fit.record.kind.temperature;
  if (!fit.record.about.empty()) print_output("{}\n", fit.record.about);
  print_output(
      "temperature {:g}, {}; {}\n\n", temperature, table.temperature,
      temperature == 0.0 ? "rank: position of the target's likeliest token among the draft's likeliest tokens"
      : fit.record.kind.likeliest
          ? fmt::format("selection argmax, {}: rank: position of the target's drawn token among the draft's likeliest tokens",
                        table.selection)
          : fmt::format("selection sampled, {}: rank 1 is a drawn token, later ranks are siblings drawn without "
                        "replacement",
                        table.selection));
  if (!table.derived.empty()) print_output("rates by depth are derived {}\n\n", table.derived);
  report::Table parameters({{"parameter", report::Align::left}, {"value"}, {"+-"}, {"per .01"}, {"", report::Align::left}});
  constexpr const char* kDefault = "default, not determined by the table";
  const auto add = [&](const char* name, const fit::SpreadParameter& one, double per_point, const char* by) {
    parameters.add({name, fmt::format("{:.4f}", one.value), one.fitted ? report::cell_text(one.error, "{:.4f}") : "-",
                    one.fitted ? report::cell_text(per_point, "{:+.3f}") : "-", by});
  };
  const auto standard = [&](const char* name, double value) {
    add(name, {value, fit::kUnknown, false}, fit::kUnknown, kDefault);
  };
  const fit::SpreadValues family;
  add("target: sigma", fit.sigma, fit.sigma_per_point,
      fit.sigma.fitted ? "by rank 1 at depth 1, which the default target has too much entropy for" : kDefault);
  standard("target: spread", family.sigma_spread);
  add("draft: value", fit.noise, fit.noise_per_point,
      fit.noise.fitted ? "by rank 1 at depth 1" : "fixed at that of the best published draft: sigma was raised instead");
  add("draft: spread", fit.noise_spread, fit.noise_spread_per_point,
      !fit.noise_spread.fitted ? kDefault
      : fit.persistence.fitted ? "by the rise with depth: tokens per round of a chain as deep as the table"
                               : "by the share without any rank at depth 1");
  add("text: drift", fit.drift, fit.drift_per_point,
      fit.drift.fitted ? "by the fall with depth: tokens per round of a chain as deep as the table" : kDefault);
  add("text: persistence", fit.persistence, fit::kUnknown,
      !fit.persistence.fitted   ? kDefault
      : fit.noise_spread.fitted ? "by the rise with depth: smallest error of rates by depth"
                                : "by the rise with depth: tokens per round of a chain as deep as the table");
  standard("text: between_requests", 0.0);
  print_output("{}", parameters.text(output_width()));
  if (fit.persistence.fitted)
    print_output(
        "fitted too: persistence{}, since rates rise with depth: surviving positions lie in easy stretches, where the next "
        "position lies "
        "too. "
        "Drift, for\nfalling rates, stays 0; a table cannot separate between_requests from persistence. They hold at the draft "
        "length "
        "of the table\n",
        fit.noise_spread.fitted ? " and the draft's spread" : "");
  print_output(
      "+-: standard error of the fit's own simulated contexts; per .01: change of the value if its figure is .01 "
      "higher\n(the drift's: every first rank at later depths), since a table does not state its own errors\n\n");
  report::Table figures({{"figure", report::Align::left}, {"table"}, {"fit"}, {"off"}, {"", report::Align::left}});
  for (const fit::TableMoment& one : fit.moments)
    figures.add({one.name, fmt::format("{:.4f}", one.table), fmt::format("{:.4f}", one.fit),
                 fmt::format("{:+.4f}", one.fit - one.table), "fitted"});
  const auto name = [](const fit::TableFigure& one) {
    return one.last > one.depth ? fmt::format("depth {} to {}, rank {}", one.depth, one.last, one.rank)
                                : fmt::format("depth {}, rank {}", one.depth, one.rank);
  };
  for (const fit::TableFigure& one : fit.figures)
    figures.add({name(one), fmt::format("{:.4f}", one.table), fmt::format("{:.4f}", one.fit),
                 fmt::format("{:+.4f}", one.fit - one.table), to_text(one.role)});
  print_output("{}", figures.text(output_width()));
  const fit::TableFigure& worst = fit.worst();
  print_output("worst miss: {}, {:+.4f} ({})\n", name(worst), worst.fit - worst.table, to_text(worst.role));
}

struct FitOptions {
  std::vector<std::string> files;
  std::string kind;
  std::uint64_t seed = 0;
  std::optional<int> draft_length;
  std::string held_out;
  unsigned threads = 0;
  std::optional<std::string> out;
  std::string temperature;
  bool force = false;
};

void add_fit_options(CommandLine& line, FitOptions& options) {
  line.add_words("file", options.files);
  line.add({{"kind", options.kind, "only requests of this kind"},
            {"seed", options.seed, config::between(0, 9e15), "seed of the bootstrap"},
            {"draft-length", options.draft_length, config::between(1, kMaxDraftLength),
             "fit the rounds of this draft length; accepted prefixes by position contain every shorter length, and longer ones "
             "then test the fit (default: the longest)"},
            {"held-out", options.held_out, "recorded rounds at other draft lengths, which test the fit"},
            {"threads", options.threads, read_threads, kThreadsHelp},
            {"out", options.out,
             "directory for fit.csv, one experiment for each process (constant, by_depth, kept_state, regimes, regimes_by_depth, "
             "requests_and_regimes) and spread.yaml: synthetic distributions like those of the record; for recorded overlaps and "
             "distributions, and for a table, only spread.yaml"},
            {"temperature", options.temperature,
             "temperature of decoding of a table that does not state it (default: 0, which the fit reports)"},
            {"force", options.force, kForceHelp}});
}

using Claim = std::function<report::OutputClaim(std::vector<std::string> names)>;

void refuse(const CommandLine& line, const std::vector<std::string>& names, const char* allowed) {
  for (const std::string& name : names)
    if (const std::string text = line.text(name); !text.empty())
      throw BadInput({"--" + name, 0, 0}, fmt::format("{}, allowed: {}", text, allowed));
}

// Writes only spread.yaml, with the inputs of the fit.
void write_spread(const FitOptions& options, report::OutputFolder& folder, const std::string& yaml, double started) {
  folder.write(fit::kSpreadFile, yaml);
  report::Manifest manifest = report::new_manifest(command_line());
  manifest.files = options.files;
  manifest.configs = {"{}"};
  manifest.cells = 1;
  manifest.wall_seconds = wall_clock() - started;
  folder.finish(manifest);
  print_output("wrote {}: {} for specsim run and compare\n", folder.path(), fit::kSpreadFile);
}

void claim_spread(const FitOptions& options, const Claim& claim, std::optional<report::OutputFolder>& folder) {
  if (!options.out) return;
  folder.emplace(*options.out);
  folder->claim(claim({fit::kSpreadFile}));
}

// Fits distributions to a table's acceptance.
void fit_published(const CommandLine& line, const FitOptions& options, const NamedTable& table, const Claim& claim,
                   double started) {
  refuse(line, {"kind", "draft-length", "held-out"}, "with recorded acceptance");
  const fit::TableFit fit = fit::fit_table(table.record);
  std::optional<report::OutputFolder> folder;
  if (!fit.fails()) claim_spread(options, claim, folder);
  print_table_fit(table, fit);
  if (fit.fails())
    throw BadInput(table.where, fmt::format("not matched: {}; allowed: a table that the family of distributions can match",
                                            fit.out_of_reach()));
  if (!fit.out_of_reach().empty()) print_warning(fmt::format("not matched: {}", fit.out_of_reach()));
  if (!fit.warning().empty()) print_warning(fit.warning());
  if (folder) write_spread(options, *folder, fit.yaml(), started);
}

// Fits distributions to the record, if it contains more than outcomes. Then no process is fitted.
void fit_distributions(const CommandLine& line, const FitOptions& options, const fit::SpreadRecord& record, const Claim& claim,
                       double started) {
  refuse(line, {"draft-length", "held-out"}, "with recorded rounds or accepted prefixes");
  std::optional<report::OutputFolder> folder;
  claim_spread(options, claim, folder);
  const fit::SpreadFit fit = fit::fit_spread(record);
  print_spread(fit);
  if (!fit.warning().empty()) print_warning(fit.warning());
  if (folder) write_spread(options, *folder, fit.yaml(), started);
}

}  // namespace

ExitCode fit_command(const std::vector<std::string>& arguments) {
  FitOptions options;
  CommandLine line("specsim fit FILE [--draft-length K] [--held-out FILE] [--kind NAME] [--out DIR] [options]",
                   "  specsim fit results/calibration/novels/rounds_t1.jsonl --out results/mine\n"
                   "  specsim fit eagle-vicuna-7b-chat --out results/mine    (a table of acceptance: a name, or a .yaml file)\n");
  add_fit_options(line, options);
  if (!line.read(arguments)) return ExitCode::fine;
  const double started = wall_clock();
  line.check({{"force", {"out"}, {}, ""}});
  // The one file that the processes are fitted to.
  if (options.files.size() != 1)
    throw BadInput(
        {"", 0, 0},
        fmt::format(
            "{} files, allowed: one, rounds_t*.jsonl of specsim calibrate, a log of the same form, accepted prefixes, or a "
            "table of acceptance",
            options.files.size()));
  const std::string& file = options.files.front();
  const FilesRead read;
  const Claim claim = [&](std::vector<std::string> names) {
    return claim_at_once(std::move(names), line.identity(), options.force, read.sums());
  };
  const std::optional<NamedTable> table = find_table(file, options.temperature);
  if (table) {
    fit_published(line, options, *table, claim, started);
    return ExitCode::fine;
  }
  refuse(line, {"temperature"}, "with a table of acceptance, since a record has its own");
  const fit::SpreadRecord positions = fit::read_spread_record(file, options.kind);
  if (!positions.outcomes) {
    fit_distributions(line, options, positions, claim, started);
    return ExitCode::fine;
  }
  fit::FitData data = fit::read_fit_data(file, options.held_out, options.kind, options.draft_length.value_or(0));
  std::optional<report::OutputFolder> folder;
  if (options.out) {
    folder.emplace(*options.out);
    std::vector<std::string> names = fit::fit_file_names();
    names.emplace_back(fit::kSpreadFile);
    folder->claim(claim(std::move(names)));
  }
  fit::FitRun run;
  run.threads = options.threads;
  run.seed = options.seed;
  run.held_out = std::move(data.held_out);
  Progress progress("steps");
  run.progress = [&](double done, double all) { progress.show(done, all); };
  const StopOnSignal stop;
  run.stop = stop.flag();
  const fit::FitReport report = fit::fit_processes(data.requests, run);
  progress.finish();
  if (report.processes.empty()) {
    print_error("stopped before the end; nothing was kept\n");
    return ExitCode::interrupted;
  }
  print_fit(report);
  if (!folder) return ExitCode::fine;
  for (const auto& [name, content] : fit::fit_files(report)) folder->write(name, content);
  const fit::SpreadFit spread = fit::fit_spread(positions);
  if (!spread.warning().empty()) print_warning(spread.warning());
  folder->write(fit::kSpreadFile, spread.yaml());
  report::Manifest manifest = report::new_manifest(command_line());
  manifest.threads = run.threads;
  manifest.files = options.files;
  manifest.configs = {"{}"};
  manifest.cells = report.processes.size();
  manifest.wall_seconds = wall_clock() - started;
  folder->finish(manifest);
  print_output("wrote {}: fit.csv, and {}.yaml for specsim run, like the others\n", folder->path(),
               to_text(report.processes[report.best].model.process));
  return ExitCode::fine;
}

}  // namespace specsim::cli
