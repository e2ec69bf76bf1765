// specsim calibrate: what two real models' passes cost here, how often the target accepts the draft, and what speculation gives.
#include "sim/base/output.h"
#include "sim/base/whole_file.h"
#include "sim/cli/calibrate_gpu.h"
#include "sim/cli/command.h"
#include "sim/cli/numbers.h"
#include "sim/cli/validation.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <iterator>

namespace specsim::cli {

namespace po = boost::program_options;

namespace {

constexpr std::size_t kReadBytes = std::size_t{192} << 20;  // several times a core's share of the caches
constexpr std::size_t kReads = 3;                           // a repetition, among the passes

struct Passes {
  std::vector<llm::PassRow> rows;
  llm::Spread bandwidth;  // bytes per second
};

Passes time_passes(LoadedModels& models, const ModelOptions& options) {
  const std::vector<llm::TablePoint> points = models.table_points(options);
  std::vector<llm::Job> jobs = llm::table_jobs(models.pair, models.method(options), options.draft_lengths, points,
                                               options.temperatures.back(), options.clock);
  llm::MemoryReader memory(*models.pair.team, kReadBytes);
  const std::size_t first_read = jobs.size();
  for (std::size_t i = 0; i < kReads; ++i)
    jobs.push_back({"memory", [&] {
                      const double begin = llm::now(options.clock);
                      memory.read();
                      return std::vector<double>{static_cast<double>(memory.bytes()) / (llm::now(options.clock) - begin)};
                    }});
  Progress progress("passes");
  llm::interleave(jobs, options.repetitions, [&](double done, double all) { progress.show(done, all); });
  Passes passes;
  std::vector<double> rates;
  for (std::size_t i = first_read; i < jobs.size(); ++i)
    rates.insert(rates.end(), jobs[i].parts.at(0).begin(), jobs[i].parts.at(0).end());
  passes.bandwidth = llm::spread(std::move(rates));
  const auto rows = [&] { return llm::pass_rows(options.draft_lengths, points, jobs, models.longest_context); };
  passes.rows = llm::settle_dips(rows, jobs, options.repetitions);
  return passes;
}

double bytes_per_second(const llm::PassRow& row, const LoadedModels& models) {
  const llm::Model& model = row.model == "target" ? *models.pair.target : *models.pair.draft;
  return static_cast<double>(model.pass_bytes()) / row.seconds();
}

struct TimedPass {
  const llm::PassRow& row;
  llm::Spread spread;
  double weight_rate = 0.0;  // bytes per second
  llm::Spread read_rate;
};

const std::vector<Column<TimedPass>>& pass_columns() {
  using Row = TimedPass;
  static const std::vector<Column<Row>> list = {
      {"model", "", "target, draft_first (follows the target's pass), draft", [](const Row& r) { return r.row.model; }},
      {"tokens", "tokens", "of each sequence in the pass", [](const Row& r) { return std::to_string(r.row.tokens); }},
      {"batch", "sequences", "in the pass", [](const Row& r) { return std::to_string(r.row.batch); }},
      {"context", "tokens", "that each sequence has cached", [](const Row& r) { return std::to_string(r.row.context); }},
      {"ms", "ms", "median, with what is done to the pass's distributions",
       [](const Row& r) { return csv_number(1e3 * r.spread.median); }},
      {"ms_quartile_1", "ms", "lower quartile", [](const Row& r) { return csv_number(1e3 * r.spread.low); }},
      {"ms_quartile_3", "ms", "upper quartile", [](const Row& r) { return csv_number(1e3 * r.spread.high); }},
      {"samples", "1", "times that it was timed", [](const Row& r) { return std::to_string(r.spread.samples); }},
      {"outliers", "1", "samples beyond the quartiles by more than three times their distance",
       [](const Row& r) { return std::to_string(r.spread.outliers); }},
      {"weight_gb_per_s", "GB/s", "bytes of the model's weights / median",
       [](const Row& r) { return csv_number(1e-9 * r.weight_rate, 4); }},
      {"read_gb_per_s", "GB/s", "at which memory is read here, the same in every row",
       [](const Row& r) { return csv_number(1e-9 * r.read_rate.median, 4); }},
      {"read_gb_per_s_quartile_1", "GB/s", "its lower quartile",
       [](const Row& r) { return csv_number(1e-9 * r.read_rate.low, 4); }},
      {"read_gb_per_s_quartile_3", "GB/s", "its upper quartile",
       [](const Row& r) { return csv_number(1e-9 * r.read_rate.high, 4); }},
  };
  return list;
}

std::string passes_csv(const Passes& passes, const LoadedModels& models) {
  std::string text = csv_header(pass_columns()) + "\n";
  for (const llm::PassRow& row : passes.rows)
    text += csv_line(pass_columns(), {row, llm::spread(row.samples), bytes_per_second(row, models), passes.bandwidth}) + "\n";
  return text;
}

void print_passes(const Passes& passes, const LoadedModels& models) {
  print_output(
      "memory reads at {:.2f} GB/s (quartiles {:.2f} to {:.2f}); weights of a pass: target {:.1f} MB, draft {:.1f} "
      "MB\n\n{:<12}{:>7}{:>6}{:>9}{:>10}{:>18}{:>9}{:>7}{:>10}\n",
      1e-9 * passes.bandwidth.median, 1e-9 * passes.bandwidth.low, 1e-9 * passes.bandwidth.high,
      1e-6 * static_cast<double>(models.pair.target->pass_bytes()), 1e-6 * static_cast<double>(models.pair.draft->pass_bytes()),
      "model", "tokens", "batch", "context", "ms", "quartiles", "to one", "GB/s", "outliers");
  double one = 0.0;
  for (const llm::PassRow& row : passes.rows) {
    const llm::Spread s = llm::spread(row.samples);
    if (row.tokens == 1) one = s.median;
    print_output("{:<12}{:>7}{:>6}{:>9}{:>10.4f}{:>18}{:>9.3f}{:>7.2f}{:>10}\n", row.model, row.tokens, row.batch, row.context,
                 1e3 * s.median, fmt::format("{:.4f}-{:.4f}", 1e3 * s.low, 1e3 * s.high), s.median / one,
                 1e-9 * bytes_per_second(row, models), s.outliers);
  }
}

// Positions that were judged under one condition.
struct Condition {
  double temperature = 1.0;
  std::string name;
  const llm::Tally& tally;
  std::uint64_t rounds = 0;
  [[nodiscard]] double judged() const { return static_cast<double>(tally.judged); }
};

const std::vector<Column<Condition>>& acceptance_columns() {
  using Row = Condition;
  static const std::vector<Column<Row>> list = {
      {"temperature", "1", "of both models", [](const Row& r) { return csv_number(r.temperature); }},
      {"condition", "",
       "depth D: the D-th draft of a round, given that it is reached; after rejection, after full: the first one, by how the "
       "round before ended",
       [](const Row& r) { return r.name; }},
      {"judged", "1", "positions", [](const Row& r) { return std::to_string(r.tally.judged); }},
      {"accepted", "1", "of them", [](const Row& r) { return std::to_string(r.tally.accepted); }},
      {"accepted_per_round", "1", "accepted / all rounds",
       [](const Row& r) { return csv_number(static_cast<double>(r.tally.accepted) / static_cast<double>(r.rounds)); }},
      {"alpha_outcomes", "1", "accepted / judged", [](const Row& r) { return csv_number(r.tally.alpha()); }},
      {"alpha_distributions", "1",
       "mean of how likely the rule accepts, given the two distributions; of rule token the sum over x of min(target(x), "
       "draft(x))",
       [](const Row& r) { return csv_number(r.tally.alpha_of_distributions()); }},
      {"z", "1", "(alpha_outcomes - alpha_distributions) / its standard error",
       [](const Row& r) { return csv_number(r.tally.z(), 4); }},
      {"kl_nats_of_finite", "nats", "mean of KL(target, draft) where it is finite",
       [](const Row& r) {
         const double finite = r.judged() - static_cast<double>(r.tally.kl_infinite);
         return finite > 0.0 ? csv_number(r.tally.kl / finite) : "";
       }},
      {"kl_infinite", "1", "positions where it is not: a token that the draft never gives",
       [](const Row& r) { return std::to_string(r.tally.kl_infinite); }},
      {"target_entropy_nats", "nats", "mean entropy of the target's distributions",
       [](const Row& r) { return csv_number(r.tally.target_entropy / r.judged()); }},
      {"draft_entropy_nats", "nats", "of the draft's",
       [](const Row& r) { return csv_number(r.tally.draft_entropy / r.judged()); }},
  };
  return list;
}

void add_tally(std::string& csv, const Condition& condition) {
  if (condition.tally.judged > 0) csv += csv_line(acceptance_columns(), condition) + "\n";
}

void print_tally(const std::string& condition, const llm::Tally& tally) {
  if (tally.judged == 0) return;
  const auto n = static_cast<double>(tally.judged);
  print_output("  {:<16}{:>8}{:>10.4f}{:>10.4f}{:>7.2f}{:>9}{:>9.3f}\n", condition, tally.judged, tally.alpha(),
               tally.alpha_of_distributions(), tally.z(), tally.kl_infinite > 0 ? "inf" : fmt::format("{:.3f}", tally.kl / n),
               tally.target_entropy / n);
}

// Tokens per round of all prompts, [temperature][draft length], NaN where it was not measured.
using PerRound = std::vector<std::vector<double>>;

PerRound measure_and_write_acceptance(LoadedModels& models, const ModelOptions& options,
                                      const std::vector<llm::Prompt>& prompts) {
  const int longest = options.draft_lengths.back();
  PerRound per_round;
  std::string csv = csv_header(acceptance_columns()) + "\n";
  std::string distributions = "temperature,accepted,rounds\n";
  for (const double temperature : options.temperatures) {
    const llm::Acceptance acceptance =
        measure_acceptance(models.acceptance_target(), models.acceptance_draft(), models.method(options), options, prompts,
                           temperature, longest, options.seed);
    print_output("\nacceptance at temperature {:g}, {} prompts, draft length {}: {:.4f} tokens per round (+- {}, 95 %)\n",
                 temperature, prompts.size(), options.draft_lengths.back(), acceptance.tokens_per_round(),
                 error_text(half_of_95(tokens_per_round(acceptance)), 4));
    if (acceptance.by_depth[0].judged > 0)  // else blocks were judged, and no position by itself
      print_output("  {:<16}{:>8}{:>10}{:>10}{:>7}{:>9}{:>9}\n", "given", "judged", "outcomes", "laws", "z", "KL nats",
                   "entropy");
    for (std::size_t depth = 0; depth < acceptance.by_depth.size(); ++depth) {
      const std::string condition = fmt::format("depth {}", depth + 1);
      print_tally(condition, acceptance.by_depth[depth]);
      add_tally(csv, {temperature, condition, acceptance.by_depth[depth], acceptance.rounds()});
    }
    print_tally("after rejection", acceptance.after_rejection);
    print_tally("after full", acceptance.after_full);
    add_tally(csv, {temperature, "after rejection", acceptance.after_rejection, acceptance.rounds()});
    add_tally(csv, {temperature, "after full", acceptance.after_full, acceptance.rounds()});
    for (std::size_t accepted = 0; accepted < acceptance.accepted_counts.size(); ++accepted)
      fmt::format_to(std::back_inserter(distributions), "{:g},{},{}\n", temperature, accepted,
                     acceptance.accepted_counts[accepted]);
    write_whole_file(fmt::format("{}/rounds_t{:g}.jsonl", options.out, temperature),
                     llm::rounds_trace(acceptance, options.draft_lengths.back(), options.block != nullptr));
    if (!acceptance.requests.front().distributions.empty())
      write_whole_file(fmt::format("{}/distributions_t{:g}.jsonl", options.out, temperature),
                       llm::distribution_trace(acceptance));
    std::vector<double>& own = per_round.emplace_back(static_cast<std::size_t>(longest) + 1, std::nan(""));
    if (!acceptance.requests.front().given_text.empty()) own = write_trace(options, temperature, acceptance).tokens_per_round;
    own.resize(static_cast<std::size_t>(longest) + 1, std::nan(""));  // where no request is as long
    own[0] = 1.0;
    own.back() = acceptance.tokens_per_round();
  }
  write_whole_file(options.out + "/acceptance.csv", csv);
  write_whole_file(options.out + "/accepted_distribution.csv", distributions);
  return per_round;
}

// Runs of the first prompts at one draft length.
struct Speed {
  const llm::RunGroup* group = nullptr;
  const llm::RunRecord* run = nullptr;
  double tokens_per_round = 1.0;
  double tokens_per_second = 0.0;
  llm::Speedup speedup;
  double of_all_prompts = 1.0;
};

const std::vector<Column<Speed>>& speed_columns() {
  using Row = Speed;
  static const std::vector<Column<Row>> list = {
      {"temperature", "1", "of both models", [](const Row& r) { return csv_number(r.group->temperature); }},
      {"batch", "sequences", "decoded together: the first prompts", [](const Row& r) { return std::to_string(r.group->batch); }},
      {"draft_length", "tokens", "drafted a round; 0: plain decoding",
       [](const Row& r) { return std::to_string(r.run->draft_length); }},
      {"rounds", "1", "of the whole batch", [](const Row& r) { return std::to_string(r.run->rounds.size()); }},
      {"emitted", "tokens", "of all sequences", [](const Row& r) { return std::to_string(r.run->emitted); }},
      {"tokens_per_round", "tokens", "emitted / (rounds * batch)", [](const Row& r) { return csv_number(r.tokens_per_round); }},
      {"tokens_per_second", "tokens/s", "emitted / sum over rounds of each round's median time",
       [](const Row& r) { return csv_number(r.tokens_per_second); }},
      {"speedup", "1", "tokens_per_second / that of plain decoding", [](const Row& r) { return csv_number(r.speedup.value); }},
      {"speedup_se", "1", "standard error of its timing, from repetitions drawn anew, the same ones for plain decoding",
       [](const Row& r) { return csv_number(r.speedup.error, 3); }},
      {"speedup_of_all_prompts", "1", "speedup at the tokens per round of all prompts",
       [](const Row& r) { return csv_number(r.of_all_prompts); }},
  };
  return list;
}

void measure_and_write_speed(LoadedModels& models, const ModelOptions& options, const std::vector<llm::Prompt>& prompts,
                             const PerRound& per_round_of_all) {
  std::vector<llm::RunGroup> groups = llm::run_groups(options.temperatures, options.batches);
  std::vector<llm::Job> jobs = llm::run_jobs(models.pair, models.method(options), options.draft_lengths, prompts, options.tokens,
                                             options.seed, options.clock, groups);
  Progress progress("runs");
  llm::interleave(jobs, options.repetitions, [&](double done, double all) { progress.show(done, all); });
  progress.finish();
  std::string csv = csv_header(speed_columns()) + "\n";
  print_output(
      "\ndecoding timed, of the first prompt alone (batch b: the first b); +-: one standard error of the timing; all prompts: "
      "the "
      "same at their tokens per round\n");
  if (options.block != nullptr && options.block->shape().reads_text && options.block->work(0).verified_rows > 1.0)
    print_output("Lookahead's window is a target pass of its own here: a server puts it into the one that verifies\n");
  print_output("{:>11}{:>7}{:>14}{:>14}{:>11}{:>10}{:>9}{:>13}\n", "temperature", "batch", "draft_length", "tokens/round",
               "tokens/s", "speedup", "+-", "all prompts");
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const llm::RunGroup& group = groups[g];
    const llm::TimedRun plain = llm::timed_run(group, jobs[g], 0);
    for (std::size_t i = 0; i < group.runs.size(); ++i) {
      const llm::RunRecord& run = group.runs[i];
      const llm::TimedRun timed = llm::timed_run(group, jobs[g], i);
      const auto emitted = static_cast<double>(run.emitted);
      Speed speed;
      speed.group = &group;
      speed.run = &run;
      speed.tokens_per_round = emitted / static_cast<double>(run.rounds.size() * group.batch);
      speed.tokens_per_second = emitted / timed.seconds;
      speed.speedup = llm::speedup_of(group, plain, timed, i);
      speed.of_all_prompts = speed.speedup.value / speed.tokens_per_round *
                             per_round_of_all[g / options.batches.size()].at(static_cast<std::size_t>(run.draft_length));
      print_output("{:>11g}{:>7}{:>14}{:>14.4f}{:>11.1f}{:>10.4f}{:>9}{:>13}\n", group.temperature, group.batch, run.draft_length,
                   speed.tokens_per_round, speed.tokens_per_second, speed.speedup.value, error_text(speed.speedup.error, 4),
                   error_text(speed.of_all_prompts, 4));
      csv += csv_line(speed_columns(), speed) + "\n";
    }
  }
  write_whole_file(options.out + "/speed.csv", csv);
}

}  // namespace

std::vector<CsvFile> calibrate_files() {
  return {csv_file("passes.csv of calibrate", pass_columns()), csv_file("acceptance.csv of calibrate", acceptance_columns()),
          csv_file("speed.csv of calibrate", speed_columns())};
}

ExitCode calibrate_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  add_model_options(options);
  add_gpu_options(options);
  options.add_options()(
      "laws", po::value<std::string>()->default_value("0"),
      "above 0: keep the distributions of every position too, so many tokens by themselves, the rest in classes");
  po::variables_map values;
  if (!parse(
          arguments, options, "", "specsim calibrate --target DIR --draft DIR --prompts FILE --out DIR [options]",
          "  specsim calibrate --target models/target --draft models/draft --prompts prompts.jsonl --out results/mine\n"
          "  specsim calibrate --target models/target --draft models/draft --prompts prompts.jsonl --quick --out results/first\n"
          "  specsim calibrate --target llama-160m --draft llama-68m --out results/shapes     (random weights: timing "
          "alone)\n"
          "  specsim calibrate --device cuda --target llama-3.1-8b --draft llama-3.2-1b --batches 1,4,16 --out results/gpu\n",
          values))
    return ExitCode::fine;
  const bool on_gpu = values["device"].as<std::string>() == "cuda";
  const std::vector<std::string> of_the_other =
      on_gpu ? std::vector<std::string>{"precision", "widen", "longest-context", "clock", "laws"}
             : std::vector<std::string>{"gpu",      "contexts",    "enlarge",        "enlarge-draft",
                                        "held-out", "only-device", "no-early-start", "peers"};
  for (const std::string& option : of_the_other)
    if (values.count(option) > 0 && !values[option].defaulted())
      throw BadInput({"--" + option, 0, 0}, on_gpu ? "given with --device cuda, allowed: with --device cpu"
                                                   : "given with --device cpu, allowed: with --device cuda");
  if (on_gpu) return calibrate_on_gpu(values);
  const double begin = wall_clock();
  ModelOptions read = read_model_options(values);
  read.distribution_tokens =
      static_cast<std::size_t>(read_integer(values["laws"].as<std::string>(), "--laws", config::between(0, 1024)));
  LoadedModels models = load_models(values, read);
  std::vector<llm::Prompt> prompts;
  if (!models.random) {
    prompts = models.prompts(values, "prompts", read);
  }
  if (models.random && read.block != nullptr)
    throw BadInput({"--drafter", 0, 0},
                   "a tree with random weights, allowed: with two models' directories (nothing else is timed)");
  make_directories(read.out);
  remove_calibration(read.out);
  const bool passes_vary = read.block != nullptr;  // by the text, or by the level of a tree
  if (!passes_vary) {
    const Passes passes = time_passes(models, read);
    write_whole_file(read.out + "/cost_table.csv", llm::cost_table(passes.rows));
    write_whole_file(read.out + "/passes.csv", passes_csv(passes, models));
    print_passes(passes, models);
  }
  if (!models.random) {
    const PerRound per_round = measure_and_write_acceptance(models, read, prompts);
    measure_and_write_speed(models, read, prompts, per_round);
  }
  write_model_manifest(read.out, models.description, models.pair.team->size(),
                       read.temperatures.size() * read.batches.size() * (read.draft_lengths.size() + 1), wall_clock() - begin);
  print_output("\nwrote {}:", read.out);
  if (!passes_vary) print_output(" cost_table.csv for cost: {{model: table}};");
  if (!models.random) print_output(" acceptance.csv; speed.csv; rounds_t*.jsonl{}", passes_vary ? "" : " for specsim fit");
  if (!models.random && models.rule->get().position != nullptr && models.rule->entry().lossless)
    print_output("; trace_t*.jsonl, for specsim plan --trace and context process trace");
  print_output("\n");
  return ExitCode::fine;
}

}  // namespace specsim::cli
