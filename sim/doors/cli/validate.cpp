// specsim validate: compares real runs of held-out prompts with the simulator's predictions from a calibration on other prompts.
#include "sim/lab/calibrate/validate.h"

#include "sim/doors/cli/command.h"
#include "sim/doors/cli/model_commands.h"
#include "sim/doors/cli/result_files.h"
#include "sim/experiments/run/journal.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/report/output_folder.h"
#include "sim/foundation/report/table.h"
#include "sim/lab/calibrate/passes.h"
#include "sim/lab/calibrate/result_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace specsim::cli {

namespace {

// The finished part of an unfinished validation, in a journal.
class ValidationJournal {
 public:
  ValidationJournal(const std::string& path, const std::string& identity, bool resume)
      : journal_(path, run::new_origin(identity), resume, [this](const run::Record& record) {
          std::istringstream numbers(record.counts);
          std::vector<double>& values = kept_[{record.cell, record.slab}];
          values.clear();
          for (std::string x; numbers >> x;) values.push_back(std::strtod(x.c_str(), nullptr));  // errors may be NaN
        }) {}
  [[nodiscard]] calibrate::ValidationCheckpoint work() {
    return {[this](std::uint64_t group, std::uint64_t index) {
              const auto found = kept_.find({group, index});
              return found == kept_.end() ? std::vector<double>() : found->second;
            },
            [this](std::uint64_t group, std::uint64_t index, const std::vector<double>& values) {
              journal_.append(group, index, fmt::format("{}", fmt::join(values, " ")));
            }};
  }

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<double>> kept_;
  run::Journal journal_;
};

// Removes an unfinished validation's journal. Throws BadInput if the file of that name is not a journal.
void drop_journal(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path, ignored);
  if (status.type() == std::filesystem::file_type::not_found) return;
  constexpr std::string_view kTitle = "specsim journal ";
  std::string first;
  const bool regular = std::filesystem::is_regular_file(status);
  if (regular) std::getline(std::ifstream(path), first);
  // A full disk leaves an empty file, or the beginning of the title.
  const bool torn = regular && kTitle.starts_with(first) && std::filesystem::file_size(path) == first.size();
  if (!torn && !first.starts_with(kTitle))
    throw BadInput({path, 0, 0}, "is no journal of an unfinished run, allowed: another --out, or none of this name there");
  std::filesystem::remove(path);
}

std::vector<std::string> validation_file_names(const calibrate::CalibrationSettings& settings) {
  std::vector<std::string> names = {"validation.csv", "summary.txt", "cost_table.csv", "cost_table_t0.csv"};
  for (const double temperature : settings.temperatures) names.push_back(fmt::format("trace_t{:g}.jsonl", temperature));
  return names;
}

void write_results(const calibrate::Validation& validation, const calibrate::CalibrationSettings& settings,
                   report::OutputFolder& folder) {
  for (std::size_t t = 0; t < settings.temperatures.size(); ++t)
    folder.write(fmt::format("trace_t{:g}.jsonl", settings.temperatures[t]), validation.forecasts[t].trace);
  for (const calibrate::CostTable& table : validation.tables)
    folder.write(table.greedy ? "cost_table_t0.csv" : "cost_table.csv",
                 report::csv(calibrate::cost_table_columns(), calibrate::measured_passes(table.rows)));
  folder.write("validation.csv", report::csv(calibrate::validation_line_columns(), validation.lines));
  folder.write("summary.txt", validation.summary);
}

void print_lines(const std::vector<calibrate::ValidationLine>& lines) {
  print_output("+-: one standard error of the figure before it\n");
  report::Table table({{"temp"},
                       {"batch"},
                       {"draft"},
                       {"measured s"},
                       {"error"},
                       {"+-"},
                       {"tok/round"},
                       {"predicted"},
                       {"t"},
                       {"", report::Align::right, "inside"},
                       {"iid"},
                       {"speedup"},
                       {"+-"},
                       {"predicted"},
                       {"error"}},
                      {.keys = 3});
  for (const calibrate::ValidationLine& line : lines) {
    const report::WelchTest test = line.acceptance();
    table.add({fmt::format("{:g}", line.temperature), std::to_string(line.batch), std::to_string(line.draft_length),
               fmt::format("{:.4f}", line.measured), fmt::format("{:+.1f}%", 100.0 * line.timing_error()),
               error_text(100.0 * line.timing_noise, 1) + "%", fmt::format("{:.4f}", line.tokens_per_round.value),
               fmt::format("{:.4f}", line.predicted_tokens_per_round.value), line.draft_length > 0 ? error_text(test.t, 2) : "",
               !test.judged()  ? ""
               : test.inside() ? "in"
                               : "out",
               fmt::format("{:.4f}", line.iid_tokens_per_round), fmt::format("{:.4f}", line.speedup),
               error_text(line.speedup_noise, 4), fmt::format("{:.4f}", line.predicted_speedup),
               fmt::format("{:+.1f}%", 100.0 * line.speedup_error())});
  }
  print_output("{}", table.text(output_width()));
}

}  // namespace

ExitCode validate_command(const std::vector<std::string>& arguments) {
  ModelOptions options;
  bool resume = false;
  CommandLine line(
      "specsim validate --target DIR --draft DIR --prompts FILE --held-out FILE --out DIR [options]",
      "  specsim validate --target models/target --draft models/draft --prompts some.jsonl --held-out others.jsonl --out "
      "results/mine\n");
  add_model_options(line, options);
  line.add(
      {{"held-out", options.settings.held_out, "prompts whose runs are predicted; --prompts: prompts for fitting acceptance"},
       {"resume", resume, "continue the unfinished run in --out"}});
  if (!line.read(arguments)) return ExitCode::fine;
  const double begin = wall_clock();
  complete_settings(line, options);
  const calibrate::CalibrationSettings& settings = options.settings;
  require_cpu(options);
  report::OutputFolder folder(options.out);
  folder.claim({validation_file_names(settings), "specsim validate", options.force, false, report::Writing::at_once});
  const calibrate::LoadedModels models = calibrate::load_models(settings, true);
  const calibrate::ValidationPrompts prompts = calibrate::validation_prompts(models, settings);
  const std::string journal = folder.file(kJournal);
  if (options.force) drop_journal(journal);
  {
    ValidationJournal kept(journal, calibrate::validation_identity(models, settings, prompts), resume);
    const calibrate::Validation validation = calibrate::validate(models, settings, prompts, kept.work(), PhaseProgress());
    write_results(validation, settings, folder);
    folder.finish(calibrate::manifest_of(command_line(), models.description, models.pair.team->size(), validation.lines.size(),
                                         wall_clock() - begin));
    print_lines(validation.lines);
    print_output("\n{}", validation.summary);
  }
  folder.remove(kJournal);
  return ExitCode::fine;
}

}  // namespace specsim::cli
