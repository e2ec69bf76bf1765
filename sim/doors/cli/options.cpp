#include "sim/doors/cli/options.h"
#include "sim/doors/cli/output_form.h"
#include "sim/doors/cli/resources.h"

#include "sim/doors/cli/command.h"
#include "sim/foundation/base/memory.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/config/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <utility>

namespace specsim::cli {

std::vector<spec::Override> read_overrides(const ConfigOptions& configs, Diagnostics& diagnostics) {
  std::vector<spec::Override> overrides;
  for (const std::string& set : configs.sets) {
    const std::size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0)
      diagnostics.add({"--set", 0, 0}, fmt::format("{} is no path=value, allowed: a path and a value, such as rounds=1e5",
                                                   config::quote_for_message(set)));
    else if (auto change = spec::read_override(set.substr(0, equals), set.substr(equals + 1), "--set " + set.substr(0, equals),
                                               diagnostics))
      overrides.push_back(*std::move(change));
  }
  if (!configs.seed.empty())
    if (auto change = spec::read_override("seed", configs.seed, "--seed", diagnostics)) overrides.push_back(*std::move(change));
  return overrides;
}

std::vector<spec::Experiment> read_experiments(const ConfigOptions& configs, spec::Misfits misfits,
                                               const std::vector<spec::Override>& more) {
  Diagnostics diagnostics;
  std::vector<spec::Override> overrides = read_overrides(configs, diagnostics);
  overrides.insert(overrides.end(), more.begin(), more.end());
  std::vector<spec::Experiment> experiments;
  for (const std::string& file : configs.files) {
    experiments.push_back(spec::read_experiment(resource_path(file), overrides, diagnostics, misfits));
    for (std::size_t i = 0; i + 1 < experiments.size() && diagnostics.empty(); ++i)
      if (experiments[i].name == experiments.back().name)
        diagnostics.add({file, 0, 0}, fmt::format("experiment \"{}\" is also in {}, allowed: one name each", experiments[i].name,
                                                  experiments[i].file));
  }
  if (!diagnostics.empty()) throw BadInput(by_place(diagnostics.list()));
  return experiments;
}

std::vector<const spec::Cell*> cells_of(const std::vector<spec::Experiment>& experiments) {
  std::vector<const spec::Cell*> cells;
  for (const spec::Experiment& one : experiments)
    for (const spec::Cell& cell : one.cells) cells.push_back(&cell);
  return cells;
}

std::string bytes_text(std::size_t bytes) {
  if (bytes >= std::size_t{1} << 30) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

void check_tables(const std::vector<const spec::Cell*>& cells, unsigned threads, const std::string& file, unsigned draws) {
  const run::RunEstimate needs = run::estimate(cells, threads);
  const std::size_t memory = std::max(needs.memory_bytes, needs.largest_tables_bytes * std::min(threads, draws));
  const std::size_t available = available_memory();
  const bool blocks = std::any_of(cells.begin(), cells.end(), [](const auto* cell) { return cell->judges_blocks(); });
  if (memory > available)
    throw BadInput({file, 0, 0}, fmt::format("needs {} for the tables of its contexts, this machine has {} available; allowed: a "
                                             "smaller vocabulary or pool{} fewer --threads{}",
                                             bytes_text(memory), bytes_text(available), blocks ? " or" : ",",
                                             blocks ? "" : ", or context.fresh"));
}

void check_not_read(const std::string& path, const std::string& option, const FilesRead& read) {
  std::error_code ignored;  // a path that does not exist yet is not a file that was read
  for (const FileSum& one : read.sums())
    if (std::filesystem::is_regular_file(path, ignored) && std::filesystem::equivalent(path, one.name, ignored))
      throw BadInput({option, 0, 0}, fmt::format("{} is an input of this command, allowed: another file", path));
}

void print_table(const report::Table& table) { print_output("{}", table.text(output_width())); }

void print_warning(const std::string& warning) {
  if (!quiet()) print_error("warning: {}\n", warning);
}

void print_warnings(const std::vector<const spec::Cell*>& cells) {
  std::set<std::string> seen;
  for (const spec::Cell* cell : cells)
    for (const std::string& warning : cell->warnings())
      if (seen.insert(warning).second) print_warning(warning);
}

double wall_clock() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

report::Manifest new_manifest(const std::vector<spec::Experiment>& experiments, unsigned threads, double started) {
  report::Manifest manifest = report::new_manifest(command_line());
  manifest.threads = threads;
  for (const spec::Experiment& one : experiments) {
    manifest.files.push_back(one.file);
    manifest.configs.push_back(one.config.line);
    manifest.cells += one.cells.size();
  }
  manifest.wall_seconds = wall_clock() - started;
  return manifest;
}

namespace {

std::string duration_text(double seconds) {
  const auto whole = std::lround(seconds);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

// One line for a terminal with `columns` columns, of which the last stays free. On a narrow terminal the bar shrinks and then
// disappears, then the rate does.
std::string progress_line(double share, const std::string& rate, const std::string& left, std::size_t columns) {
  constexpr std::size_t kWidest = 30;
  constexpr std::size_t kNarrowest = 5;
  constexpr std::size_t kFrame = 3;  // brackets and a space
  const std::string percent = fmt::format("{:5.1f}%", 100.0 * share);
  const std::string rest = fmt::format("  {} left", left);
  std::string text = percent + rate + rest;
  if (text.size() >= columns) text = percent + rest;
  if (text.size() >= columns) text = percent;
  if (text.size() + kFrame + kNarrowest >= columns) return text;
  const std::size_t width = std::min(kWidest, columns - 1 - kFrame - text.size());
  const std::size_t filled = std::min(width, static_cast<std::size_t>(share * static_cast<double>(width)));
  return fmt::format("[{}{}] {}", std::string(filled, '#'), std::string(width - filled, '.'), text);
}

}  // namespace

Progress::Progress(std::string unit) : unit_(std::move(unit)), started_(wall_clock()), draws_(error_draws()) {}

void Progress::show(double done, double all) {
  if (quiet()) return;
  const double now = wall_clock();
  const double pause = draws_ ? 0.1 : 10.0;
  if (now - (shown_ ? last_shown_ : started_) < pause) return;
  last_shown_ = now;
  shown_ = true;
  const double share = all > 0.0 ? done / all : 1.0;
  const double spent = now - started_;
  const double rate = done / spent;
  const std::string left = share > 0.0 ? duration_text(spent * (1.0 - share) / share) : "?";
  if (draws_)
    write_raw_error("\r" + progress_line(share, fmt::format("  {:.3g} {}/s", rate, unit_), left, error_width()) + "\033[K");
  else
    print_error("{:.1f}% of {:.3g} {}, {:.3g} {}/s, {} left\n", 100.0 * share, all, unit_, rate, unit_, left);
}

void Progress::clear() const {
  if (draws_ && shown_) write_raw_error("\r\033[K");
}

void Progress::finish() {
  clear();
  shown_ = false;
}

}  // namespace specsim::cli
