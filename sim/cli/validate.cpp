// specsim validate: real runs of held-out prompts against what the simulator says from a calibration on other prompts.
#include "sim/base/whole_file.h"
#include "sim/cli/command.h"
#include "sim/cli/models.h"
#include "sim/cost/cost_model.h"
#include "sim/cost/round_time.h"
#include "sim/experiment/acceptance_curve.h"
#include "sim/llm/acceptance.h"
#include "sim/theory/round_law.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

constexpr double kZ99 = 2.575829;

// The calibration's table, read as a user's config would have it read.
std::unique_ptr<cost::CostModel> table_cost(const std::string& path, double overhead_ms) {
  const cost::CostEntry& entry = *cost::cost_models().find("table");
  Diagnostics diagnostics;
  const config::Value section = config::parse_text(
      fmt::format("{{file: {}, overhead_ms: {:.9g}}}", config::quote_for_message(path), overhead_ms), "validate", diagnostics);
  diagnostics.throw_if_any();
  const config::Arguments arguments = config::read_arguments(section, entry.info.parameters, {}, "cost model table", diagnostics);
  diagnostics.throw_if_any();
  std::unique_ptr<cost::CostModel> model = entry.make(arguments, diagnostics);
  diagnostics.throw_if_any();
  return model;
}

// Seconds of one round of a run, given what its clock does not decide.
double predicted_round(const cost::CostModel& cost, const llm::RunPoint& point, const llm::RoundRecord& round) {
  const cost::Workload workload{static_cast<double>(point.batch), round.context};
  return cost::round_time(cost, workload, point.draft_length, round.caught_up).total();
}

struct Line {
  llm::RunPoint point;
  // Timing, given the run's own accepted counts.
  double measured_s = 0.0;
  double predicted_s = 0.0;
  // Acceptance, from other prompts.
  double tokens_per_round = 1.0;
  double tokens_per_round_error = 0.0;
  double expected_tokens_per_round = 1.0;
  double expected_error = 0.0;
  double iid_tokens_per_round = 1.0;
  // Both.
  double speedup = 1.0;
  double expected_speedup = 1.0;

  [[nodiscard]] double timing_error() const { return predicted_s / measured_s - 1.0; }
  [[nodiscard]] double z() const {
    const double error = std::hypot(tokens_per_round_error, expected_error);
    return error > 0.0 ? (tokens_per_round - expected_tokens_per_round) / error : 0.0;
  }
};

// What one temperature's acceptance says of every draft length, and how sure it is.
struct Forecast {
  experiment::AcceptanceCurve curve;
  std::vector<double> errors;  // standard, from parts of the requests
  double alpha = 0.0;
};

Forecast forecast(llm::Model& target, llm::Model& draft, const std::vector<llm::Prompt>& prompts, const ModelOptions& options,
                  double temperature) {
  const auto rule = token_rule();
  Progress progress("prompts");
  const int longest = options.draft_lengths.back();
  const llm::Acceptance acceptance = llm::measure_acceptance(
      target, draft, *rule, prompts,
      {.sampling = {.temperature = temperature}, .draft_length = longest, .tokens = options.tokens, .seed = options.seed},
      [&](double done, double all) { progress.show(done, all); });
  const std::string path = fmt::format("{}/trace_t{:g}.jsonl", options.out, temperature);
  write_whole_file(path, llm::overlap_trace(acceptance));
  Forecast result;
  result.curve = experiment::trace_acceptance(path, longest);
  for (std::size_t k = 0; k <= static_cast<std::size_t>(longest); ++k) {
    double mean = 0.0;
    for (const auto& part : result.curve.parts) mean += part[k] / static_cast<double>(result.curve.parts.size());
    double squares = 0.0;
    for (const auto& part : result.curve.parts) squares += (part[k] - mean) * (part[k] - mean);
    const auto n = static_cast<double>(result.curve.parts.size());
    result.errors.push_back(n > 1.0 ? std::sqrt(squares / (n * (n - 1.0))) : 0.0);
  }
  double judged = 0.0;
  for (const llm::Tally& tally : acceptance.by_depth) {
    result.alpha += tally.overlap;
    judged += static_cast<double>(tally.judged);
  }
  result.alpha /= judged;
  return result;
}

std::string report(const std::vector<Line>& lines, const std::string& directory) {
  std::string csv =
      "temperature,batch,draft_length,measured_s,predicted_s,timing_error,tokens_per_round,tokens_per_round_se,predicted_tokens_"
      "per_round,"
      "predicted_se,acceptance_z,iid_tokens_per_round,speedup,predicted_speedup,speedup_error\n";
  std::vector<double> timing;
  std::vector<double> speed;
  std::size_t outside = 0;
  std::size_t judged = 0;
  double iid_gap = 0.0;
  fmt::print("{:>5}{:>6}{:>6}{:>12}{:>8}{:>10}{:>10}{:>7}{:>8}{:>10}{:>10}{:>8}\n", "temp", "batch", "draft", "measured s",
             "error", "tok/round", "predicted", "z", "iid", "speedup", "predicted", "error");
  for (const Line& line : lines) {
    const double speed_error = line.expected_speedup / line.speedup - 1.0;
    fmt::print("{:>5g}{:>6}{:>6}{:>12.4f}{:>+7.1f}%{:>10.4f}{:>10.4f}{:>7.2f}{:>8.4f}{:>10.4f}{:>10.4f}{:>+7.1f}%\n",
               line.point.temperature, line.point.batch, line.point.draft_length, line.measured_s, 100.0 * line.timing_error(),
               line.tokens_per_round, line.expected_tokens_per_round, line.z(), line.iid_tokens_per_round, line.speedup,
               line.expected_speedup, 100.0 * speed_error);
    fmt::format_to(std::back_inserter(csv),
                   "{:g},{},{},{:.6g},{:.6g},{:.5f},{:.6g},{:.4g},{:.6g},{:.4g},{:.4f},{:.6g},{:.6g},{:.6g},{:.5f}\n",
                   line.point.temperature, line.point.batch, line.point.draft_length, line.measured_s, line.predicted_s,
                   line.timing_error(), line.tokens_per_round, line.tokens_per_round_error, line.expected_tokens_per_round,
                   line.expected_error, line.z(), line.iid_tokens_per_round, line.speedup, line.expected_speedup, speed_error);
    timing.push_back(std::abs(line.timing_error()));
    if (line.point.draft_length == 0) continue;
    speed.push_back(std::abs(speed_error));
    ++judged;
    if (std::abs(line.z()) > kZ99) ++outside;
    iid_gap = std::max(iid_gap, std::abs(line.iid_tokens_per_round / line.expected_tokens_per_round - 1.0));
  }
  write_whole_file(directory + "/validation.csv", csv);
  return fmt::format(
      "timing given the accepted counts: median error {:.1f} %, worst {:.1f} %\nacceptance of other prompts: {} of {} points "
      "outside the 99 % interval\n"
      "alpha taken as one constant (iid) instead of the trace: up to {:.1f} % off\nspeedup, both together: median error {:.1f} "
      "%, worst {:.1f} %\n",
      100.0 * llm::spread(timing).median, 100.0 * *std::max_element(timing.begin(), timing.end()), outside, judged,
      100.0 * iid_gap, 100.0 * llm::spread(speed).median, 100.0 * *std::max_element(speed.begin(), speed.end()));
}

}  // namespace

int validate_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  add_model_options(options);
  options.add_options()("held-out", po::value<std::string>(),
                        "the prompts whose runs are predicted; --prompts: those that acceptance is fitted on");
  po::variables_map values;
  if (!parse(arguments, options, "",
             "specsim validate --target DIR --draft DIR --prompts FILE --held-out FILE --out DIR [options]",
             "  specsim validate --target models/target --draft models/draft --prompts some.jsonl --held-out others.jsonl --out "
             "results/mine\n",
             values))
    return 0;
  const double begin = wall_clock();
  const ModelOptions read = read_model_options(values);
  LoadedModels models = load_models(values, read);
  if (models.random)
    throw BadInput({"--target", 0, 0}, "a shape with random weights, allowed: two models' directories (acceptance is measured)");
  for (const char* const option : {"prompts", "held-out"})
    if (values.count(option) == 0) throw BadInput({"", 0, 0}, fmt::format("--{} is missing; --help shows examples", option));
  const std::vector<llm::Prompt> fitted = load_prompts(values["prompts"].as<std::string>(), models, read);
  const std::vector<llm::Prompt> held_out = load_prompts(values["held-out"].as<std::string>(), models, read);
  make_directories(read.out);

  const auto rule = token_rule();
  std::vector<Line> lines;
  std::vector<llm::RunPoint> points;
  for (const double temperature : read.temperatures) {
    const Forecast expected = forecast(models.acceptance_target(), *models.pair.draft, fitted, read, temperature);
    std::map<int, llm::Acceptance> seen;
    for (const int draft_length : read.draft_lengths) {
      Progress progress("prompts");
      seen[draft_length] = llm::measure_acceptance(
          models.acceptance_target(), *models.pair.draft, *rule, held_out,
          {.sampling = {.temperature = temperature}, .draft_length = draft_length, .tokens = read.tokens, .seed = read.seed + 1},
          [&](double done, double all) { progress.show(done, all); });
    }
    for (const std::size_t batch : read.batches) {
      std::vector<int> lengths = {0};
      lengths.insert(lengths.end(), read.draft_lengths.begin(), read.draft_lengths.end());
      std::vector<std::size_t> group(batch);
      for (std::size_t i = 0; i < batch; ++i) group[i] = i;
      for (const int draft_length : lengths) {
        Line line;
        line.point = {temperature, draft_length, batch, {group}};
        points.push_back(line.point);
        if (draft_length > 0) {
          const auto k = static_cast<std::size_t>(draft_length);
          line.tokens_per_round = seen[draft_length].tokens_per_round();
          line.tokens_per_round_error = seen[draft_length].tokens_per_round_error();
          line.expected_tokens_per_round = expected.curve.tokens_per_round[k];
          line.expected_error = expected.errors[k];
          line.iid_tokens_per_round = theory::tokens_per_round(expected.alpha, draft_length);
        }
        lines.push_back(line);
      }
    }
  }

  // Passes and runs in turn, so that whatever else the machine does falls on both.
  const std::vector<llm::PassPoint> passes = llm::pass_grid(read.draft_lengths, read.batches, models.contexts);
  std::vector<llm::Job> jobs = llm::pass_jobs(models.pair, passes, read.clock);
  std::vector<llm::RunRecord> records;
  std::vector<llm::Job> runs = llm::run_jobs(models.pair, *rule, points, held_out, read.tokens, read.seed, read.clock, records);
  std::move(runs.begin(), runs.end(), std::back_inserter(jobs));
  Progress progress("timings");
  llm::interleave(jobs, read.repetitions, [&](double done, double all) { progress.show(done, all); });
  progress.finish();
  runs.assign(std::make_move_iterator(jobs.begin() + static_cast<std::ptrdiff_t>(passes.size())),
              std::make_move_iterator(jobs.end()));
  jobs.resize(passes.size());
  llm::settle_dips(passes, jobs, read.repetitions);
  const std::string table = read.out + "/cost_table.csv";
  write_whole_file(table, llm::cost_table(passes, jobs));
  const std::unique_ptr<cost::CostModel> cost = table_cost(table, 0.0);

  double plain_measured = 0.0;  // seconds a token of each sequence
  double plain_expected = 0.0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Line& line = lines[i];
    line.measured_s = llm::typical_seconds(runs[i]);
    for (const llm::RoundRecord& round : records[i].rounds) line.predicted_s += predicted_round(*cost, line.point, round);
    const auto rounds = static_cast<double>(records[i].rounds.size());
    if (line.point.draft_length == 0) {
      plain_measured = line.measured_s / rounds;
      plain_expected = line.predicted_s / rounds;
    }
    // Tokens per round of all held-out prompts in both: how long rounds take, and how many they are, are two questions.
    line.speedup = line.tokens_per_round * plain_measured / (line.measured_s / rounds);
    line.expected_speedup = line.expected_tokens_per_round * plain_expected / (line.predicted_s / rounds);
  }
  const std::string summary = report(lines, read.out);
  fmt::print("\n{}", summary);
  write_whole_file(read.out + "/summary.txt", summary);
  write_model_manifest(read.out, models.description, models.pair.team->size(), lines.size(), wall_clock() - begin);
  return 0;
}

}  // namespace specsim::cli
