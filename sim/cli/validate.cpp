// specsim validate: real runs of held-out prompts against what the simulator says from a calibration on other prompts.
#include "sim/base/output.h"
#include "sim/base/whole_file.h"
#include "sim/cli/command.h"
#include "sim/cli/validation.h"
#include "sim/cost/cost_model.h"
#include "sim/run/journal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

// Times that a repetition comes by each point of the table: a round of the table is one, a run's are many, and what the machine
// does changes within tenths of a second.
constexpr std::size_t kVisits = 3;

// A run's seconds by part, given what its clock does not decide. The target's part holds what is judged. Of each round it is
// known how many drafts have a token to catch up with: no chance, as cost::round_time takes it.
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

struct Line : ValidationRow {
  llm::RoundSeconds measured_parts;
  llm::RoundSeconds predicted_parts;
  double timing_noise = 0.0;  // standard error of timing_error(): of the run's time and of the table's
  double speedup_noise = 0.0;
};

const std::vector<Column<Line>>& columns() {
  static const std::vector<Column<Line>> list = validation_columns_and<Line>({
      {"timing_noise", "1",
       "standard error of timing_error: of the run, from repetitions drawn anew, and of the table's samples, all taken as "
       "independent",
       [](const Line& l) { return csv_number(l.timing_noise, 3); }},
      {"measured_first_draft_s", "s", "of measured_s, in first draft passes of rounds",
       [](const Line& l) { return csv_number(l.measured_parts.first_draft); }},
      {"predicted_first_draft_s", "s", "the same of predicted_s",
       [](const Line& l) { return csv_number(l.predicted_parts.first_draft); }},
      {"measured_other_drafts_s", "s", "of measured_s, in the other draft passes",
       [](const Line& l) { return csv_number(l.measured_parts.other_drafts); }},
      {"predicted_other_drafts_s", "s", "the same of predicted_s",
       [](const Line& l) { return csv_number(l.predicted_parts.other_drafts); }},
      {"measured_target_s", "s", "of measured_s, in target passes",
       [](const Line& l) { return csv_number(l.measured_parts.target); }},
      {"measured_judging_s", "s", "of measured_s, in acceptance",
       [](const Line& l) { return csv_number(l.measured_parts.judging); }},
      {"predicted_target_s", "s", "of predicted_s, in target passes with acceptance",
       [](const Line& l) { return csv_number(l.predicted_parts.target); }},
      {"speedup_noise", "1", "standard error of speedup, from repetitions and from tokens_per_round_se",
       [](const Line& l) { return csv_number(l.speedup_noise, 3); }},
  });
  return list;
}

void print_lines(const std::vector<Line>& lines) {
  print_output("+-: one standard error of what stands before it\n");
  print_output("{:>5}{:>6}{:>6}{:>11}{:>9}{:>7}{:>11}{:>10}{:>7}{:>4}{:>9}{:>10}{:>8}{:>10}{:>8}\n", "temp", "batch", "draft",
               "measured s", "error", "+-", "tok/round", "predicted", "t", "", "iid", "speedup", "+-", "predicted", "error");
  for (const Line& line : lines) {
    const Apart acceptance = line.acceptance();
    print_output(
        "{:>5g}{:>6}{:>6}{:>11.4f}{:>+8.1f}%{:>6}%{:>11.4f}{:>10.4f}{:>7}{:>4}{:>9.4f}{:>10.4f}{:>8}{:>10.4f}{:>+7.1f}%"
        "\n",
        line.temperature, line.batch, line.draft_length, line.measured, 100.0 * line.timing_error(),
        error_text(100.0 * line.timing_noise, 1), line.tokens_per_round.value, line.predicted_tokens_per_round.value,
        line.draft_length > 0 ? error_text(acceptance.t, 2) : "",
        !acceptance.judged()  ? ""
        : acceptance.inside() ? "in"
                              : "out",
        line.iid_tokens_per_round, line.speedup, error_text(line.speedup_noise, 4), line.predicted_speedup,
        100.0 * line.speedup_error());
  }
}

// Predicted less measured, part by part, in % of the measured time of all runs of a batch.
std::string waterfall_text(const std::vector<Line>& lines, std::size_t batch) {
  llm::RoundSeconds measured;
  llm::RoundSeconds predicted;
  double whole = 0.0;
  for (const Line& line : lines) {
    if (line.batch != batch) continue;
    whole += line.measured;
    const auto add = [](llm::RoundSeconds& sum, const llm::RoundSeconds& one) {
      sum.first_draft += one.first_draft;
      sum.other_drafts += one.other_drafts;
      sum.target += one.target;
      sum.judging += one.judging;
    };
    add(measured, line.measured_parts);
    add(predicted, line.predicted_parts);
  }
  const auto share = [&](double seconds) { return 100.0 * seconds / whole; };
  return fmt::format(
      "batch {}, all runs, in % of the measured time: first draft passes {:.2f} ({:+.2f}), other draft passes {:.2f} ({:+.2f}), "
      "target and judging {:.2f} ({:+.2f}; judging alone {:.2f}); in brackets predicted less measured\n",
      batch, share(measured.first_draft), share(predicted.first_draft - measured.first_draft), share(measured.other_drafts),
      share(predicted.other_drafts - measured.other_drafts), share(measured.target + measured.judging),
      share(predicted.target - measured.target - measured.judging), share(measured.judging));
}

std::string summary_text(const std::vector<Line>& lines, const std::vector<std::size_t>& batches) {
  ValidationSummary summary;
  std::vector<double> noise;
  for (const Line& line : lines) {
    summary.add(line, line.batch == batches.front());  // tokens per round are the same at every batch
    if (!std::isnan(line.timing_noise)) noise.push_back(line.timing_noise);
  }
  std::string text = summary.text();
  text += fmt::format("noise of a point's timing: median {} %\n",
                      noise.empty() ? "-" : error_text(100.0 * llm::spread(noise).median, 1));
  for (const std::size_t batch : batches) text += waterfall_text(lines, batch);
  return text;
}

// Finished work of an unfinished run: cell 0 has tokens per round of held-out prompts, cell 1 + r the samples of repetition r.
class Kept {
 public:
  Kept(const std::string& path, const std::string& identity, bool resume)
      : journal_(path, identity, resume, [this](std::uint64_t cell, std::uint64_t slab, const std::string& text) {
          std::istringstream numbers(text);
          std::vector<double>& values = kept_[{cell, slab}];
          values.clear();
          for (std::string x; numbers >> x;) values.push_back(std::strtod(x.c_str(), nullptr));  // errors may be no numbers
        }) {}
  // Empty where there is nothing.
  [[nodiscard]] std::vector<double> find(std::uint64_t cell, std::uint64_t slab) const {
    const auto found = kept_.find({cell, slab});
    return found == kept_.end() ? std::vector<double>() : found->second;
  }
  void keep(std::uint64_t cell, std::uint64_t slab, const std::vector<double>& values) {
    journal_.append(cell, slab, fmt::format("{}", fmt::join(values, " ")));
  }

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<double>> kept_;
  run::Journal journal_;
};

// Tokens per round at every temperature and draft length: [temperature][draft length's place].
std::vector<std::vector<Estimate>> held_out_acceptance(const LoadedModels& models, const ModelOptions& options,
                                                       const std::vector<llm::Prompt>& prompts, Kept& kept) {
  std::vector<std::vector<Estimate>> all;
  std::uint64_t slab = 0;
  for (const double temperature : options.temperatures) {
    all.emplace_back();
    for (const int draft_length : options.draft_lengths) {
      std::vector<double> values = kept.find(0, slab);
      if (values.empty()) {
        const llm::Acceptance acceptance =
            measure_acceptance(models.acceptance_target(), models.acceptance_draft(), models.method(options), options, prompts,
                               temperature, draft_length, options.seed + 1);
        const Estimate measured = tokens_per_round(acceptance);
        values = {measured.value, measured.error};
        kept.keep(0, slab, values);
      }
      all.back().push_back({values.at(0), values.at(1), static_cast<double>(prompts.size()) - 1.0});
      ++slab;
    }
  }
  return all;
}

// Relative standard error of a table's times for verifying `tokens` in this batch, mean over contexts.
double table_noise(const std::vector<llm::PassRow>& rows, std::size_t tokens, std::size_t batch) {
  double sum = 0.0;
  double count = 0.0;
  for (const llm::PassRow& row : rows) {
    if (row.model != "target" || row.tokens != tokens || row.batch != batch) continue;
    const llm::Spread spread = llm::spread(row.samples);
    sum += spread.median_error() / spread.median;
    count += 1.0;
  }
  return sum / count;
}

// A table serves the temperatures that cost the same: 0 by itself.
struct Table {
  bool greedy = false;
  std::size_t first_job = 0;
  std::vector<llm::PassRow> rows = {};
  std::unique_ptr<cost::CostModel> cost = nullptr;
};

void run_validation(const LoadedModels& models, const ModelOptions& read, const std::vector<llm::Prompt>& fitted,
                    const std::vector<llm::Prompt>& held_out, Kept& kept, double begin) {
  std::vector<Forecast> forecasts;
  for (const double temperature : read.temperatures)
    forecasts.push_back(
        forecast(models.acceptance_target(), models.acceptance_draft(), models.method(read), read, fitted, temperature));
  const std::vector<std::vector<Estimate>> seen = held_out_acceptance(models, read, held_out, kept);

  // Rounds for the tables and whole runs in turn, so that whatever else the machine does falls on both.
  const llm::Method method = models.method(read);
  const std::vector<llm::TablePoint> points = models.table_points(read);
  std::vector<Table> tables;
  std::vector<llm::Job> jobs;
  for (const double temperature : {read.temperatures.front(), read.temperatures.back()}) {
    const bool greedy = temperature == 0.0;
    if (!tables.empty() && tables.back().greedy == greedy) continue;
    tables.push_back({.greedy = greedy, .first_job = jobs.size()});
    const std::vector<llm::Job> own = llm::table_jobs(models.pair, method, read.draft_lengths, points, temperature, read.clock);
    for (std::size_t visit = 0; visit < kVisits; ++visit) jobs.insert(jobs.end(), own.begin(), own.end());
  }
  const std::size_t first_run = jobs.size();
  std::vector<llm::RunGroup> groups = llm::run_groups(read.temperatures, read.batches);
  std::vector<llm::Job> runs =
      llm::run_jobs(models.pair, method, read.draft_lengths, held_out, read.tokens, read.seed, read.clock, groups);
  std::move(runs.begin(), runs.end(), std::back_inserter(jobs));
  const llm::SampleStore store{
      [&](int repetition, std::size_t job) { return kept.find(1 + static_cast<std::uint64_t>(repetition), job); },
      [&](int repetition, std::size_t job, const std::vector<double>& samples) {
        kept.keep(1 + static_cast<std::uint64_t>(repetition), job, samples);
      }};
  Progress progress("timings");
  llm::interleave(
      jobs, read.repetitions, [&](double done, double all) { progress.show(done, all); }, store);
  progress.finish();

  for (Table& table : tables) {
    const auto begin_of = [&](std::size_t visit) {
      return jobs.begin() + static_cast<std::ptrdiff_t>(table.first_job + visit * points.size());
    };
    std::vector<llm::Job> own(begin_of(0), begin_of(1));
    for (std::size_t i = points.size(); i < kVisits * points.size(); ++i) {
      const llm::Job& again = begin_of(0)[static_cast<std::ptrdiff_t>(i)];
      for (std::size_t part = 0; part < again.parts.size(); ++part) {
        std::vector<double>& samples = own[i % points.size()].parts[part];
        samples.insert(samples.end(), again.parts[part].begin(), again.parts[part].end());
      }
    }
    const auto rows = [&] { return llm::pass_rows(read.draft_lengths, points, own, models.longest_context); };
    table.rows = llm::settle_dips(rows, own, read.repetitions);
    const std::string path = read.out + (table.greedy ? "/cost_table_t0.csv" : "/cost_table.csv");
    write_whole_file(path, llm::cost_table(table.rows));
    table.cost = table_cost(path);
  }

  std::vector<Line> lines;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const llm::RunGroup& group = groups[g];
    const llm::Job& job = jobs[first_run + g];
    const std::size_t t = g / read.batches.size();
    const Table& table = group.temperature == 0.0 ? tables.front() : tables.back();
    const llm::TimedRun plain = llm::timed_run(group, job, 0);
    double plain_predicted = 0.0;  // seconds a round
    for (std::size_t i = 0; i < group.runs.size(); ++i) {
      const llm::RunRecord& run = group.runs[i];
      Line line;
      line.temperature = group.temperature;
      line.batch = group.batch;
      line.draft_length = run.draft_length;
      const llm::TimedRun run_time = llm::timed_run(group, job, i);
      line.measured = run_time.seconds;
      line.measured_parts = run_time.typical;
      line.predicted_parts = predicted_run(*table.cost, group.batch, run);
      line.predicted = line.predicted_parts.total();
      line.timing_noise = std::hypot(run_time.error() / run_time.seconds,
                                     table_noise(table.rows, static_cast<std::size_t>(run.draft_length) + 1, group.batch));
      const auto rounds = static_cast<double>(run.rounds.size());
      if (i == 0) plain_predicted = line.predicted / rounds;
      if (i > 0) {
        line.tokens_per_round = seen[t][i - 1];
        line.set_forecast(forecasts[t]);
      }
      // Tokens per round of all held-out prompts in both: how long rounds take, and how many they are, are two questions.
      const llm::Speedup timed = llm::speedup_of(group, plain, run_time, i);
      const double own_tokens = static_cast<double>(run.emitted) / (rounds * static_cast<double>(group.batch));
      line.speedup = timed.value * line.tokens_per_round.value / own_tokens;
      line.speedup_noise =
          line.speedup * std::hypot(timed.error / timed.value, line.tokens_per_round.error / line.tokens_per_round.value);
      line.predicted_speedup = line.predicted_tokens_per_round.value * plain_predicted / (line.predicted / rounds);
      lines.push_back(line);
    }
  }
  std::string csv = csv_header(columns()) + "\n";
  for (const Line& line : lines) csv += csv_line(columns(), line) + "\n";
  write_whole_file(read.out + "/validation.csv", csv);
  print_lines(lines);
  const std::string summary = summary_text(lines, read.batches);
  print_output("\n{}", summary);
  write_whole_file(read.out + "/summary.txt", summary);
  write_model_manifest(read.out, models.description, models.pair.team->size(), lines.size(), wall_clock() - begin);
}

// The weights' sizes and ages: samples of others are not gone on with.
std::string files_of(const po::variables_map& values) {
  std::string text;
  for (const char* const option : {"target", "draft"}) {
    if (values.count(option) == 0) continue;
    std::set<std::filesystem::path> paths;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(values[option].as<std::string>(), none))
      if (entry.path().extension() == ".safetensors") paths.insert(entry.path());
    for (const std::filesystem::path& path : paths)
      fmt::format_to(std::back_inserter(text), "{} {} ", std::filesystem::file_size(path, none),
                     std::filesystem::last_write_time(path, none).time_since_epoch().count());
  }
  return text;
}

}  // namespace

CsvFile validate_file() { return csv_file("validation.csv of validate", columns()); }

ExitCode validate_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  add_model_options(options);
  options.add_options()("held-out", po::value<std::string>(),
                        "the prompts whose runs are predicted; --prompts: those that acceptance is fitted on")(
      "resume", "go on with the unfinished run in --out")("force", "drop an unfinished run in --out");
  po::variables_map values;
  if (!parse(arguments, options, "",
             "specsim validate --target DIR --draft DIR --prompts FILE --held-out FILE --out DIR [options]",
             "  specsim validate --target models/target --draft models/draft --prompts some.jsonl --held-out others.jsonl --out "
             "results/mine\n",
             values))
    return ExitCode::fine;
  const double begin = wall_clock();
  const ModelOptions read = read_model_options(values);
  const LoadedModels models = load_models(values, read);
  if (models.random)
    throw BadInput({"--target", 0, 0}, "a shape with random weights, allowed: two models' directories (acceptance is measured)");
  const std::vector<llm::Prompt> fitted = models.prompts(values, "prompts", read);
  const std::vector<llm::Prompt> held_out = models.prompts(values, "held-out", read);
  check_held_out(values, fitted, held_out);
  if (models.rule->entry().info.name != "token" || read.block != nullptr)
    throw BadInput({read.block != nullptr ? "--drafter" : "--verifier", 0, 0},
                   "no prediction from other prompts, allowed: --verifier token with --drafter model, argmax or early-exit:N");
  make_directories(read.out);
  const auto hash_of = [](const std::vector<llm::Prompt>& prompts) {
    std::uint64_t hash = 0;
    for (const llm::Prompt& prompt : prompts) hash = rng::hash_text(fmt::format("{} {}", hash, fmt::join(prompt.tokens, " ")));
    return hash;
  };
  const std::string identity = fmt::format(
      "{:016x}",
      rng::hash_text(fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", kVisits, models.description,
                                 files_of(values), hash_of(fitted), hash_of(held_out), fmt::join(read.temperatures, ","),
                                 fmt::join(read.draft_lengths, ","), fmt::join(read.batches, ","), read.tokens, read.seed,
                                 static_cast<int>(read.clock), models.pair.team->size(), read.cuts.top_k, read.cuts.top_p,
                                 read.cuts.min_p, values["precision"].as<std::string>(), models.longest_context)));
  const std::string journal = read.out + "/journal.txt";
  if (values.count("force") > 0) std::filesystem::remove(journal);
  {
    Kept kept(journal, identity, values.count("resume") > 0);
    run_validation(models, read, fitted, held_out, kept, begin);
  }
  std::filesystem::remove(journal);
  return ExitCode::fine;
}

}  // namespace specsim::cli
