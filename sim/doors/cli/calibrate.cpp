// specsim calibrate: measures the latency of two real models' passes on this machine, how often the target accepts the draft,
// and the speedup.
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/model_commands.h"
#include "sim/foundation/base/exit_code.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/plural.h"
#include "sim/foundation/report/output_folder.h"
#include "sim/foundation/report/table.h"
#include "sim/lab/calibrate/gpu_runs.h"
#include "sim/lab/calibrate/gpu_setup.h"
#include "sim/lab/calibrate/passes.h"
#include "sim/lab/calibrate/result_files.h"
#include "sim/lab/calibrate/speed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace specsim::cli {

namespace {

constexpr double kGiB = 0x1.0p30;

// Prints at once, since users watch such runs and may stop them.
template <class... Values>
void say(fmt::format_string<Values...> format, Values&&... values) {
  print_output(format, std::forward<Values>(values)...);
  flush_output();
}

// Writes files into the folder, and prints a line per measurement.
class GpuPrinter final : public calibrate::GpuObserver {
 public:
  GpuPrinter(report::OutputFolder& folder, const calibrate::GpuSetup& setup) : folder_(folder), setup_(setup) {}

  void file(const std::string& name, const std::string& text) override { folder_.write(name, text); }
  void progress(const std::string& unit, double done, double all) override { progress_(unit, done, all); }

  void bandwidth(const cuda::Bandwidth& bandwidth) override {
    say("reads {:.1f} GB/s, copies {:.1f} GB/s (read and written)\n", 1e-9 * bandwidth.read_rate(), 1e-9 * bandwidth.copy_rate());
  }
  void pass(const calibrate::GpuPass& pass) override {
    print_pass_heads();
    say("{:<7}{:>7}{:>6}{:>9}{:>11.4f}{:>10.1f}{:>8.3f}\n", pass.model, pass.tokens, pass.batch, pass.context,
        1e3 * pass.seconds.median, 1e-9 * pass.rate(), pass.read_share);
  }
  void no_room(const std::string& model, std::size_t batch, std::size_t context) override {
    print_pass_heads();
    say("{:<7}{:>7}{:>6}{:>9}  omitted: its cache does not fit\n", model, "all", batch, context);
  }
  void time_outside_passes(const calibrate::TimeOutsidePasses& shares) override {
    say("batch {}, draft length {}: the host, {} launches and the gaps between them are {:.2f} % of a round (goal: "
        "at most 3 %), draws and acceptance {:.2f} % (goal: at most 2 %)\n",
        shares.batch, shares.draft_length, shares.launches, 100.0 * shares.host_share, 100.0 * shares.sampling_share);
  }
  void streams(const calibrate::Streams& streams) override {
    say("two streams: target {:.3f} ms, draft {:.3f} ms, both {:.3f} ms\n", 1e3 * streams.target.median,
        1e3 * streams.draft.median, 1e3 * streams.both.median);
  }
  void warning(const std::string& text) override { print_error("warning: {}\n", text); }
  void no_predictions(const std::string& reason) override { print_error("no predictions: {}\n", reason); }
  void rounds(const calibrate::Errors& errors) override {
    if (!errors.values.empty()) say("rounds compared with their parts, {} points: {}\n", errors.values.size(), errors.text());
  }
  void run(const calibrate::GpuRun& run) override {
    if (!std::exchange(run_heads_, true))
      say("{:>5}{:>6}{:>6}{:>9}{:>11}{:>9}{:>11}{:>11}{:>7}{:>10}{:>9}{:>9}\n", "temp", "batch", "draft", "rounds", "measured s",
          "error", "tok/round", "predicted", "t", "tokens/s", "speedup", "bound");
    say("{:>5g}{:>6}{:>6}{:>9}{:>11.4f}{:>+8.2f}%{:>11.4f}{:>11.4f}{:>7}{:>10.1f}{:>9.4f}{:>9.4f}\n", run.temperature, run.batch,
        run.draft_length, run.rounds, run.measured, 100.0 * run.timing_error(), run.tokens_per_round.value,
        run.predicted_tokens_per_round.value, error_text(run.acceptance().t, 2), run.tokens_per_second(), run.speedup,
        run.bound / run.measured);
  }
  void device() {
    file("device.yaml", setup_.device_text());
    const cuda::DeviceInfo& info = setup_.device->info();
    say("{}, {}, {:.1f} GiB, products of many rows: {}\n", info.name, info.driver, static_cast<double>(info.memory) / kGiB,
        info.library.empty() ? "own kernels (no cuBLASLt was found)" : info.library);
  }
  void placed(double seconds) {
    const calibrate::OnDevice& target = setup_.target;
    const calibrate::OnDevice& draft = setup_.draft;
    say("target {} ({} weights, {:.2f} GB per pass), draft {} ({}, {:.2f} GB), loaded in {:.1f} s\n", target.name,
        to_text(target.weights->origin), 1e-9 * static_cast<double>(target.weights->pass_bytes()), draft.name,
        to_text(draft.weights->origin), 1e-9 * static_cast<double>(draft.weights->pass_bytes()), seconds);
  }

 private:
  void print_pass_heads() {
    if (!std::exchange(pass_heads_, true))
      say("{:<7}{:>7}{:>6}{:>9}{:>11}{:>10}{:>8}\n", "model", "tokens", "batch", "context", "ms", "GB/s", "share");
  }

  report::OutputFolder& folder_;
  const calibrate::GpuSetup& setup_;
  PhaseProgress progress_;
  bool pass_heads_ = false;
  bool run_heads_ = false;
};

std::vector<std::string> gpu_file_names(const calibrate::CalibrationSettings& settings, const calibrate::GpuSettings& gpu,
                                        bool only_device) {
  std::vector<std::string> names = {"device.yaml"};
  if (only_device) return names;
  if (gpu.for_baselines) {
    for (const char* const name : {"prompt.txt", "logits.f32", "generation.csv"}) names.emplace_back(name);
    return names;
  }
  for (const char* const name : {"bandwidth.csv", "passes.csv", "cost_table.csv", "terms.csv", "streams.csv", "rounds.csv",
                                 "validation.csv", "summary.txt"})
    names.emplace_back(name);
  for (const double temperature : settings.temperatures) names.push_back(fmt::format("trace_t{:g}.jsonl", temperature));
  return names;
}

// Measures everything for two models. Returns the number of timed passes, or runs.
std::size_t measure(calibrate::GpuSetup& setup, GpuPrinter& printer) {
  if (setup.gpu.for_baselines) {
    printer.placed(setup.place());
    const std::size_t timed = write_for_baselines(setup, printer);
    say("{} rows of logits, decoding at draft lengths 0 to {}\n", setup.held_out.front().tokens.size(),
        setup.settings.draft_lengths.back());
    return timed;
  }
  calibrate::GpuPasses passes(setup, printer);
  passes.measure_bandwidth();
  printer.placed(setup.place());
  passes.time_passes();
  passes.time_terms();
  passes.time_streams();
  calibrate::GpuRuns runs(setup, passes, printer);
  if (setup.trained())
    say("{}", runs.decode());
  else
    runs.time_rounds();
  return passes.timed();
}

void add_gpu_options(CommandLine& line, ModelOptions& options, calibrate::GpuSettings& gpu, bool& only_device) {
  line.add({{"gpu", gpu.number, config::between(0, 1024), "with --device cuda: the device's number"},
            {"contexts", gpu.contexts, config::between(1, 1e6), "with --device cuda: cached tokens of timed passes, of shapes"},
            {"enlarge", gpu.enlarge,
             "with --device cuda: enlarge the target to HIDDENxFFNxLAYERS, without changing the function that it computes"},
            {"enlarge-draft", gpu.enlarge_draft,
             "with --device cuda: enlarge the draft to HIDDENxFFNxLAYERS, without changing the function that it computes"},
            {"held-out", options.settings.held_out,
             "with --device cuda: prompts to decode; --prompts: prompts for fitting acceptance"},
            {"only-device", only_device, "with --device cuda: print the device and exit"},
            {"no-early-start", gpu.dependent_launch,
             "with --device cuda: a kernel starts only after the one before has ended (no overlap)"},
            {"peers", gpu.for_baselines,
             "with --device cuda: only write logits and decoding of the first prompts of --held-out, for "
             "scripts/gpu/gpu_baselines.py"}});
}

ExitCode calibrate_on_gpu(const CommandLine& line, ModelOptions& options, calibrate::GpuSettings gpu, bool only_device) {
  const auto require = [&](const char* option, const std::vector<std::string>& allowed) {
    const std::string given = line.text(option);
    if (line.given(option) && std::find(allowed.begin(), allowed.end(), given) == allowed.end())
      throw BadInput(
          {fmt::format("--{}", option), 0, 0},
          fmt::format("{}, allowed with --device cuda: {}", config::quote_for_message(given), fmt::join(allowed, ", ")));
  };
  require("drafter", {calibrate::CalibrationSettings().drafter});
  std::vector<std::string> judging;
  for (const verify::VerifierEntry& entry : verify::verifiers().entries())
    if (entry.on_gpu) judging.push_back(entry.info.name);
  require("verifier", judging);
  const double begin = wall_clock();
  complete_settings(line, options);
  const calibrate::CalibrationSettings& settings = options.settings;
  std::sort(gpu.contexts.begin(), gpu.contexts.end());
  gpu.contexts_given = line.given("contexts");
  calibrate::GpuSetup setup(settings, gpu);
  if (!only_device) setup.load();
  report::OutputFolder folder(options.out);
  folder.claim({gpu_file_names(settings, gpu, only_device), "specsim calibrate", options.force, false, report::Writing::growing});
  GpuPrinter printer(folder, setup);
  printer.device();
  const std::size_t timed = only_device ? 0 : measure(setup, printer);
  const std::string description = only_device ? setup.device_description() : setup.description();
  folder.finish(calibrate::manifest_of(command_line(), description, settings.threads, timed, wall_clock() - begin));
  return ExitCode::fine;
}

using report::Align;
using report::Table;

void print_passes(const calibrate::Passes& passes) {
  const llm::Quartiles& rate = passes.read_rate;
  print_output(
      "memory reads at {:.2f} GB/s (quartiles {:.2f} to {:.2f}); weights of a pass: target {:.1f} MB, draft {:.1f} MB\n\n",
      1e-9 * rate.median, 1e-9 * rate.low, 1e-9 * rate.high, 1e-6 * static_cast<double>(passes.target_bytes),
      1e-6 * static_cast<double>(passes.draft_bytes));
  Table table(
      {{"model", Align::left}, {"tokens"}, {"batch"}, {"context"}, {"ms"}, {"quartiles"}, {"to one"}, {"GB/s"}, {"outliers"}});
  for (const calibrate::TimedPass& pass : calibrate::timed_passes(passes))
    table.add({pass.model, std::to_string(pass.tokens), std::to_string(pass.batch), std::to_string(pass.context),
               fmt::format("{:.4f}", 1e3 * pass.seconds.median),
               fmt::format("{:.4f}-{:.4f}", 1e3 * pass.seconds.low, 1e3 * pass.seconds.high), fmt::format("{:.3f}", pass.to_one),
               fmt::format("{:.2f}", 1e-9 * pass.weight_rate), std::to_string(pass.seconds.outliers)});
  print_output("{}", table.text(output_width()));
}

void print_acceptance(const calibrate::TemperatureAcceptance& acceptance, int draft_length) {
  const report::Estimate mean = calibrate::tokens_per_round(acceptance.measured);
  print_output("\nacceptance at temperature {:g}, {}, draft length {}: {:.4f} tokens per round (+- {}, 95 %)\n",
               acceptance.temperature, plural(acceptance.measured.requests.size(), "prompt"), draft_length, mean.value,
               error_text(report::half_width(mean), 4));
  Table table({{"given", Align::left}, {"judged"}, {"outcomes"}, {"distributions"}, {"z"}, {"KL nats"}, {"entropy"}},
              {.indent = 2});
  for (const calibrate::Condition& condition : calibrate::conditions(acceptance)) {
    const llm::Tally& tally = condition.tally;
    table.add({condition.name, std::to_string(tally.judged), fmt::format("{:.4f}", tally.alpha()),
               fmt::format("{:.4f}", tally.alpha_of_distributions()), fmt::format("{:.2f}", tally.z()),
               tally.kl_infinite > 0 ? "inf" : fmt::format("{:.3f}", tally.kl / condition.judged()),
               fmt::format("{:.3f}", tally.target_entropy / condition.judged())});
  }
  if (!table.empty()) print_output("{}", table.text(output_width()));  // otherwise blocks were judged, not single positions
}

void print_speed(const std::vector<calibrate::Speed>& speeds, const calibrate::CalibrationSettings& settings) {
  print_output(
      "\ndecoding time of only the first prompt (batch b: the first b prompts); +-: one standard error of the timing; all "
      "prompts: the speedup at the tokens per round of all prompts\n");
  if (const auto* const blocks = std::get_if<draft::Blocks>(&settings.drafts);
      blocks != nullptr && (*blocks)->shape().looks_past_block && (*blocks)->work(0).verified_rows > 1.0)
    print_output("Lookahead's window is a separate target pass here; a server includes it in the verifying pass\n");
  Table table(
      {{"temperature"}, {"batch"}, {"draft_length"}, {"tokens/round"}, {"tokens/s"}, {"speedup"}, {"+-"}, {"all prompts"}});
  for (const calibrate::Speed& speed : speeds)
    table.add({fmt::format("{:g}", speed.temperature), std::to_string(speed.batch), std::to_string(speed.draft_length),
               fmt::format("{:.4f}", speed.tokens_per_round), fmt::format("{:.1f}", speed.tokens_per_second),
               fmt::format("{:.4f}", speed.speedup.value), error_text(speed.speedup.error, 4),
               error_text(speed.of_all_prompts, 4)});
  print_output("{}", table.text(output_width()));
}

// Files with the temperature in their names.
constexpr const char* kRounds = "rounds_t{:g}.jsonl";
constexpr const char* kDistributions = "distributions_t{:g}.jsonl";
constexpr const char* kTrace = "trace_t{:g}.jsonl";

std::vector<std::string> calibration_file_names(const calibrate::CalibrationSettings& settings) {
  std::vector<std::string> names = {"cost_table.csv", "passes.csv", "acceptance.csv", "accepted_distribution.csv", "speed.csv"};
  for (const double temperature : settings.temperatures)
    for (const char* const name : {kRounds, kDistributions, kTrace})
      names.push_back(fmt::format(fmt::runtime(name), temperature));
  return names;
}

void write_acceptance(const std::vector<calibrate::TemperatureAcceptance>& acceptance,
                      const calibrate::CalibrationSettings& settings, report::OutputFolder& folder) {
  std::vector<calibrate::Condition> conditions;
  std::vector<calibrate::AcceptedCount> counts;
  for (const calibrate::TemperatureAcceptance& one : acceptance) {
    for (calibrate::Condition& condition : calibrate::conditions(one)) conditions.push_back(std::move(condition));
    for (const calibrate::AcceptedCount& count : calibrate::accepted_counts(one)) counts.push_back(count);
    const auto write = [&](const char* name, const std::string& text) {
      folder.write(fmt::format(fmt::runtime(name), one.temperature), text);
    };
    write(kRounds, llm::rounds_trace(one.measured, settings.draft_lengths.back(), settings.drafts_blocks()));
    if (!one.measured.requests.front().distributions.empty()) write(kDistributions, llm::distribution_trace(one.measured));
    if (one.curve) write(kTrace, llm::overlap_trace(one.measured));
  }
  folder.write("acceptance.csv", report::csv(calibrate::acceptance_columns(), conditions));
  folder.write("accepted_distribution.csv", report::csv(calibrate::accepted_count_columns(), counts));
}

ExitCode calibrate_on_cpu(const ModelOptions& options) {
  const calibrate::CalibrationSettings& settings = options.settings;
  const double begin = wall_clock();
  require_cpu(options);
  report::OutputFolder folder(options.out);
  folder.claim({calibration_file_names(settings), "specsim calibrate", options.force, false, report::Writing::at_once});
  calibrate::LoadedModels models = calibrate::load_models(settings, false);
  std::vector<llm::Prompt> prompts;
  if (!models.random) prompts = models.prompts(settings.prompts, "--prompts", settings);
  if (models.random && settings.drafts_blocks())
    throw BadInput({"--drafter", 0, 0},
                   "a tree with random weights has nothing to time, allowed: with the directories of two models");
  const bool passes_vary = settings.drafts_blocks();  // with the text, or with the level of a tree
  if (!passes_vary) {
    const calibrate::Passes passes = calibrate::time_passes(models, settings, PhaseProgress());
    folder.write("cost_table.csv", report::csv(calibrate::cost_table_columns(), calibrate::measured_passes(passes.rows)));
    folder.write("passes.csv", report::csv(calibrate::pass_columns(), calibrate::timed_passes(passes)));
    print_passes(passes);
  }
  if (!models.random) {
    const std::vector<calibrate::TemperatureAcceptance> acceptance =
        calibrate::measure_acceptances(models, settings, prompts, PhaseProgress());
    write_acceptance(acceptance, settings, folder);
    for (const calibrate::TemperatureAcceptance& one : acceptance) print_acceptance(one, settings.draft_lengths.back());
    const std::vector<calibrate::Speed> speeds = calibrate::measure_speed(models, settings, prompts, acceptance, PhaseProgress());
    folder.write("speed.csv", report::csv(calibrate::speed_columns(), speeds));
    print_speed(speeds, settings);
  }
  folder.finish(calibrate::manifest_of(
      command_line(), models.description, models.pair.team->size(),
      settings.temperatures.size() * settings.batches.size() * (settings.draft_lengths.size() + 1), wall_clock() - begin));
  const std::string written = fmt::format("{}", fmt::join(folder.written(), ", "));
  print_output("\nwrote {}: {}, manifest.yaml\n", folder.path(), written);
  if (!passes_vary) print_output("cost_table.csv is for cost: {{model: table}}\n");
  if (!models.random && !passes_vary) print_output("rounds_t*.jsonl is for specsim fit\n");
  if (!models.random && models.rule->get().each_position() != nullptr && models.rule->entry().lossless)
    print_output("trace_t*.jsonl is for specsim plan --trace and context process trace\n");
  return ExitCode::fine;
}

}  // namespace

ExitCode calibrate_command(const std::vector<std::string>& arguments) {
  ModelOptions options;
  calibrate::GpuSettings gpu;
  bool only_device = false;
  CommandLine line(
      "specsim calibrate --target DIR --draft DIR --prompts FILE --out DIR [options]",
      "  specsim calibrate --target models/target --draft models/draft --prompts prompts.jsonl --out results/mine\n"
      "  specsim calibrate --target models/target --draft models/draft --prompts prompts.jsonl --quick --out results/first\n"
      "  specsim calibrate --target llama-160m --draft llama-68m --out results/shapes     (random weights: timing only)\n"
      "  specsim calibrate --device cuda --target llama-3.1-8b --draft llama-3.2-1b --batches 1,4,16 --out results/gpu\n");
  add_model_options(line, options);
  add_gpu_options(line, options, gpu, only_device);
  line.add(
      {{"laws", options.settings.distribution_tokens, config::between(0, 1024),
        "above 0: also record the distributions at every position, with this many single tokens and all others in classes"}});
  if (!line.read(arguments)) return ExitCode::fine;
  const bool on_gpu = options.device == "cuda";
  const std::vector<std::string> of_the_other =
      on_gpu ? std::vector<std::string>{"precision", "widen", "longest-context", "clock", "laws"}
             : std::vector<std::string>{"gpu",      "contexts",    "enlarge",        "enlarge-draft",
                                        "held-out", "only-device", "no-early-start", "peers"};
  for (const std::string& option : of_the_other)
    if (line.given(option))
      throw BadInput({"--" + option, 0, 0}, on_gpu ? "given with --device cuda, allowed: with --device cpu"
                                                   : "given with --device cpu, allowed: with --device cuda");
  if (on_gpu) return calibrate_on_gpu(line, options, gpu, only_device);
  complete_settings(line, options);
  return calibrate_on_cpu(options);
}

}  // namespace specsim::cli
