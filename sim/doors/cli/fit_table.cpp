#include "sim/doors/cli/fit_table.h"

#include "sim/doors/cli/numbers.h"
#include "sim/doors/cli/options.h"
#include "sim/experiments/spec/read_acceptance_table.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/config/value.h"
#include "sim/foundation/report/table.h"
#include "sim/hardware/presets/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <vector>

namespace specsim::cli {

namespace {

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

}  // namespace

namespace {

// Warns about an unknown model in the table. The fit does not need it, but plan and compare do.
void warn_of_unknown(const std::string& model, const Location& where) {
  std::error_code ignored;
  if (model.empty() || model == "none" || model.find('{') != std::string::npos || std::filesystem::exists(model, ignored)) return;
  const std::vector<std::string> names = cost::preset_names(cost::PresetKind::model);
  if (std::find(names.begin(), names.end(), model) == names.end())
    print_warning(fmt::format("{}: {}", to_string(where), config::unknown_name("unknown model", model, names)));
}

}  // namespace

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

}  // namespace specsim::cli
