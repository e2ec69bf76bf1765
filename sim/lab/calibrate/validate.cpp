#include "sim/lab/calibrate/validate.h"

#include "sim/foundation/rng/address.h"
#include "sim/hardware/latency/table.h"
#include "sim/lab/calibrate/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

namespace specsim::calibrate {

namespace {

// Visits to each point of the table per repetition. A visit times only one round, but a run has many, and the machine's state
// changes within tenths of a second.
constexpr std::size_t kVisits = 3;

// A cost table and the predictions made from it.
struct TableLatency {
  CostTable table;
  std::size_t first_job = 0;
  std::unique_ptr<cost::CostModel> cost;
};

// All timings, taken in turn: rounds for the tables, and whole runs.
struct Timings {
  std::vector<llm::TablePoint> points;
  std::vector<TableLatency> tables;
  std::vector<llm::RunGroup> groups;
  std::vector<llm::TimedTask> tasks;
  std::size_t first_run = 0;  // index of the first run among the tasks
};

// Tokens per round of the held-out prompts, [temperature][index of the draft length].
std::vector<std::vector<report::Estimate>> held_out_acceptance(const LoadedModels& models, const CalibrationSettings& settings,
                                                               const std::vector<llm::Prompt>& prompts,
                                                               const ValidationCheckpoint& kept, const OnProgress& progress) {
  std::vector<std::vector<report::Estimate>> all;
  std::uint64_t index = 0;
  for (const double temperature : settings.temperatures) {
    all.emplace_back();
    for (const int draft_length : settings.draft_lengths) {
      std::vector<double> values = kept.find(0, index);
      if (values.empty()) {
        const report::Estimate measured = tokens_per_round(
            measure_acceptance(models, settings, prompts, temperature, draft_length, settings.seed + 1, progress));
        values = {measured.value, measured.error};
        kept.keep(0, index, values);
      }
      all.back().push_back({values.at(0), values.at(1), static_cast<double>(prompts.size()) - 1.0});
      ++index;
    }
  }
  return all;
}

// The rows of a table, from all visits to its points.
std::vector<llm::PassRow> table_rows(const Timings& timings, const TableLatency& table_latency,
                                     const CalibrationSettings& settings, std::size_t longest_context) {
  const std::size_t points = timings.points.size();
  const auto visit = [&](std::size_t i) {
    return timings.tasks.begin() + static_cast<std::ptrdiff_t>(table_latency.first_job + i * points);
  };
  std::vector<llm::TimedTask> own(visit(0), visit(1));
  for (std::size_t i = points; i < kVisits * points; ++i) {
    const llm::TimedTask& again = visit(0)[static_cast<std::ptrdiff_t>(i)];
    for (std::size_t part = 0; part < again.parts.size(); ++part) {
      std::vector<double>& samples = own[i % points].parts[part];
      samples.insert(samples.end(), again.parts[part].begin(), again.parts[part].end());
    }
  }
  const auto rows = [&] { return llm::pass_rows(settings.draft_lengths, timings.points, own, longest_context); };
  return llm::remeasure_dips(rows, own, settings.repetitions);
}

// Times everything in turn, so that other load on the machine affects tables and runs alike.
Timings time_all(const LoadedModels& models, const CalibrationSettings& settings, const std::vector<llm::Prompt>& held_out,
                 const ValidationCheckpoint& kept, const OnProgress& progress) {
  const llm::Method method = models.method(settings);
  Timings timings;
  timings.points = models.table_points(settings);
  for (const double temperature : {settings.temperatures.front(), settings.temperatures.back()}) {
    const bool greedy = temperature == 0.0;
    if (!timings.tables.empty() && timings.tables.back().table.greedy == greedy) continue;
    timings.tables.push_back({{greedy, {}}, timings.tasks.size(), nullptr});
    const std::vector<llm::TimedTask> own =
        llm::table_tasks(models.pair, method, settings.draft_lengths, timings.points, temperature, settings.clock);
    for (std::size_t visit = 0; visit < kVisits; ++visit) timings.tasks.insert(timings.tasks.end(), own.begin(), own.end());
  }
  timings.first_run = timings.tasks.size();
  timings.groups = llm::run_groups(settings.temperatures, settings.batches);
  std::vector<llm::TimedTask> runs = llm::run_tasks(models.pair, method, settings.draft_lengths, held_out, settings.tokens,
                                                    settings.seed, settings.clock, timings.groups);
  std::move(runs.begin(), runs.end(), std::back_inserter(timings.tasks));
  const llm::SampleStore store{
      [&](int repetition, std::size_t task) { return kept.find(1 + static_cast<std::uint64_t>(repetition), task); },
      [&](int repetition, std::size_t task, const std::vector<double>& samples) {
        kept.keep(1 + static_cast<std::uint64_t>(repetition), task, samples);
      }};
  llm::interleave(
      timings.tasks, settings.repetitions, [&](double done, double all) { progress("timings", done, all); }, store);
  for (TableLatency& table_latency : timings.tables) {
    table_latency.table.rows = table_rows(timings, table_latency, settings, models.longest_context);
    table_latency.cost =
        cost::cost_of_passes(measured_passes(table_latency.table.rows),
                             fmt::format("the passes that were timed{}", table_latency.table.greedy ? " at temperature 0" : ""));
  }
  return timings;
}

// A run's predicted seconds by part, given all that does not depend on the clock. The target's part includes judging. It is known
// how many drafts of each round have an extra token to read, so nothing is left to chance, as in cost::round_time.
llm::RoundSeconds predicted_run(const cost::CostModel& cost, std::size_t batch, const llm::RunRecord& run) {
  llm::RoundSeconds time;
  const double tokens = run.draft_length + 1.0;
  for (const llm::RoundRecord& round : run.rounds) {
    const cost::Workload workload{static_cast<double>(batch), round.context};
    if (run.draft_length > 0) time.first_draft += cost.draft_pass(workload, 0, round.catch_up_share).total();
    for (int i = 1; i < run.draft_length; ++i) time.other_drafts += cost.draft_pass(workload, i, 0.0).total();
    time.target += cost.pass(cost::Role::target, {workload.batch, tokens, workload.context, tokens}).total();
  }
  return time;
}

// Relative standard error of a table's times for verifying `tokens` in this batch, mean over contexts.
double table_noise(const std::vector<llm::PassRow>& rows, std::size_t tokens, std::size_t batch) {
  double sum = 0.0;
  double count = 0.0;
  for (const llm::PassRow& row : rows) {
    if (row.model != "target" || row.tokens != tokens || row.batch != batch) continue;
    const llm::Quartiles spread = llm::quartiles_of(row.samples);
    sum += spread.median_error() / spread.median;
    count += 1.0;
  }
  return sum / count;
}

// The rows of one group: decoding without drafts first, then each draft length.
void add_lines(const llm::RunGroup& group, const llm::TimedTask& task, const TableLatency& table_latency,
               const std::vector<report::Estimate>& held_out, const Forecast& forecast, std::vector<ValidationLine>& lines) {
  const llm::TimedRun plain = llm::timed_run(group, task, 0);
  double plain_predicted = 0.0;  // seconds per round
  for (std::size_t i = 0; i < group.runs.size(); ++i) {
    const llm::RunRecord& run = group.runs[i];
    const llm::TimedRun timed = llm::timed_run(group, task, i);
    ValidationLine line;
    line.temperature = group.temperature;
    line.batch = group.batch;
    line.draft_length = run.draft_length;
    line.measured = timed.seconds;
    line.measured_parts = timed.typical;
    line.predicted_parts = predicted_run(*table_latency.cost, group.batch, run);
    line.predicted = line.predicted_parts.total();
    line.timing_noise =
        std::hypot(timed.error() / timed.seconds,
                   table_noise(table_latency.table.rows, static_cast<std::size_t>(run.draft_length) + 1, group.batch));
    const auto rounds = static_cast<double>(run.rounds.size());
    if (i == 0) plain_predicted = line.predicted / rounds;
    if (i > 0) {
      line.tokens_per_round = held_out[i - 1];
      line.set_forecast(forecast);
    }
    // Both use the tokens per round of all held-out prompts, because the duration of rounds and their number are separate
    // questions.
    const llm::Speedup speedup = llm::speedup_of(group, plain, timed, i);
    const double own_tokens = static_cast<double>(run.emitted) / (rounds * static_cast<double>(group.batch));
    line.speedup = speedup.value * line.tokens_per_round.value / own_tokens;
    line.speedup_noise =
        line.speedup * std::hypot(speedup.error / speedup.value, line.tokens_per_round.error / line.tokens_per_round.value);
    line.predicted_speedup = line.predicted_tokens_per_round.value * plain_predicted / (line.predicted / rounds);
    lines.push_back(line);
  }
}

// Predicted less measured time by part, in % of the measured time of all runs of a batch.
std::string waterfall_text(const std::vector<ValidationLine>& lines, std::size_t batch) {
  llm::RoundSeconds measured;
  llm::RoundSeconds predicted;
  double whole = 0.0;
  for (const ValidationLine& line : lines) {
    if (line.batch != batch) continue;
    whole += line.measured;
    measured += line.measured_parts;
    predicted += line.predicted_parts;
  }
  const auto share = [&](double seconds) { return 100.0 * seconds / whole; };
  return fmt::format(
      "batch {}, all runs, in % of the measured time: first draft passes {:.2f} ({:+.2f}), other draft passes {:.2f} ({:+.2f}), "
      "target and judging {:.2f} ({:+.2f}; judging alone {:.2f}); in brackets predicted less measured\n",
      batch, share(measured.first_draft), share(predicted.first_draft - measured.first_draft), share(measured.other_drafts),
      share(predicted.other_drafts - measured.other_drafts), share(measured.target + measured.judging),
      share(predicted.target - measured.target - measured.judging), share(measured.judging));
}

std::string summary_text(const std::vector<ValidationLine>& lines, const std::vector<std::size_t>& batches,
                         const std::vector<TableLatency>& tables) {
  ValidationSummary summary;
  std::vector<double> noise;
  for (const ValidationLine& line : lines) {
    summary.add(line, line.batch == batches.front());  // tokens per round are the same at every batch
    if (!std::isnan(line.timing_noise)) noise.push_back(line.timing_noise);
  }
  std::string text = summary.text();
  text += fmt::format("noise of a point's timing: median {} %\n",
                      noise.empty() ? "-" : fmt::format("{:.1f}", 100.0 * llm::quartiles_of(noise).median));
  for (const std::size_t batch : batches) text += waterfall_text(lines, batch);
  for (const TableLatency& table_latency : tables)
    for (const std::string& warning : table_latency.cost->warnings()) text += warning + '\n';
  return text;
}

// Sizes and modification times of the weight files: samples of other weights are not continued.
std::string weight_files(const CalibrationSettings& settings) {
  std::string text;
  for (const std::string& directory : {settings.target, settings.draft}) {
    if (directory.empty()) continue;
    std::set<std::filesystem::path> paths;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(directory, none))
      if (entry.path().extension() == ".safetensors") paths.insert(entry.path());
    for (const std::filesystem::path& path : paths)
      text += fmt::format("{} {} ", std::filesystem::file_size(path, none),
                          std::filesystem::last_write_time(path, none).time_since_epoch().count());
  }
  return text;
}

}  // namespace

const std::vector<report::Column<ValidationLine>>& validation_line_columns() {
  using Row = ValidationLine;
  using report::csv_real;
  static const std::vector<report::Column<Row>> list = validation_columns_and<Row>({
      {"timing_noise", "1",
       "standard error of timing_error: of the run, from resampled repetitions, and of the table's samples, all taken as "
       "independent",
       report::field(&Row::timing_noise, 3)},
      {"measured_first_draft_s", "s", "part of measured_s in first draft passes of rounds",
       [](const Row& r) { return csv_real(r.measured_parts.first_draft, 6); }},
      {"predicted_first_draft_s", "s", "part of predicted_s in first draft passes of rounds",
       [](const Row& r) { return csv_real(r.predicted_parts.first_draft, 6); }},
      {"measured_other_drafts_s", "s", "part of measured_s in the other draft passes",
       [](const Row& r) { return csv_real(r.measured_parts.other_drafts, 6); }},
      {"predicted_other_drafts_s", "s", "part of predicted_s in the other draft passes",
       [](const Row& r) { return csv_real(r.predicted_parts.other_drafts, 6); }},
      {"measured_target_s", "s", "part of measured_s in target passes",
       [](const Row& r) { return csv_real(r.measured_parts.target, 6); }},
      {"measured_judging_s", "s", "part of measured_s in acceptance",
       [](const Row& r) { return csv_real(r.measured_parts.judging, 6); }},
      {"predicted_target_s", "s", "part of predicted_s in target passes with acceptance",
       [](const Row& r) { return csv_real(r.predicted_parts.target, 6); }},
      {"speedup_noise", "1", "standard error of speedup, from repetitions and from tokens_per_round_se",
       report::field(&Row::speedup_noise, 3)},
  });
  return list;
}

ValidationPrompts validation_prompts(const LoadedModels& models, const CalibrationSettings& settings) {
  if (models.random)
    throw BadInput({"--target", 0, 0},
                   "a shape with random weights, allowed: two models' directories, since acceptance is measured");
  ValidationPrompts prompts{models.prompts(settings.prompts, "--prompts", settings),
                            models.prompts(settings.held_out, "--held-out", settings)};
  check_held_out(settings.held_out, prompts.fitted, prompts.held_out);
  if (settings.verifier != CalibrationSettings().verifier || settings.drafts_blocks())
    throw BadInput(
        {settings.drafts_blocks() ? "--drafter" : "--verifier", 0, 0},
        "no prediction from other prompts is possible, allowed: --verifier token with --drafter model, argmax or early-exit:N");
  return prompts;
}

std::string validation_identity(const LoadedModels& models, const CalibrationSettings& settings,
                                const ValidationPrompts& prompts) {
  const auto hash_of = [](const std::vector<llm::Prompt>& list) {
    std::uint64_t hash = 0;
    for (const llm::Prompt& prompt : list) hash = rng::hash_text(fmt::format("{} {}", hash, fmt::join(prompt.tokens, " ")));
    return hash;
  };
  return fmt::format(
      "{:016x}",
      rng::hash_text(fmt::format(
          "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", kVisits, models.description, weight_files(settings),
          hash_of(prompts.fitted), hash_of(prompts.held_out), fmt::join(settings.temperatures, ","),
          fmt::join(settings.draft_lengths, ","), fmt::join(settings.batches, ","), settings.tokens, settings.seed,
          static_cast<int>(settings.clock), models.pair.team->size(), settings.cuts.top_k, settings.cuts.top_p,
          settings.cuts.min_p, settings.precision ? llm::to_text(*settings.precision) : "file", models.longest_context)));
}

Validation validate(const LoadedModels& models, const CalibrationSettings& settings, const ValidationPrompts& prompts,
                    const ValidationCheckpoint& kept, const OnProgress& progress) {
  Validation validation;
  const int longest = settings.draft_lengths.back();
  for (const double temperature : settings.temperatures)
    validation.forecasts.push_back(forecast_of(
        measure_acceptance(models, settings, prompts.fitted, temperature, longest, settings.seed, progress), longest));
  const std::vector<std::vector<report::Estimate>> seen = held_out_acceptance(models, settings, prompts.held_out, kept, progress);
  Timings timings = time_all(models, settings, prompts.held_out, kept, progress);
  for (std::size_t g = 0; g < timings.groups.size(); ++g) {
    const llm::RunGroup& group = timings.groups[g];
    const std::size_t t = g / settings.batches.size();
    const TableLatency& table_latency = group.temperature == 0.0 ? timings.tables.front() : timings.tables.back();
    add_lines(group, timings.tasks[timings.first_run + g], table_latency, seen[t], validation.forecasts[t], validation.lines);
  }
  validation.summary = summary_text(validation.lines, settings.batches, timings.tables);
  for (TableLatency& table_latency : timings.tables) validation.tables.push_back(std::move(table_latency.table));
  return validation;
}

}  // namespace specsim::calibrate
