// specsim calibrate --device cuda: measures bandwidth, passes, rounds and whole decoding runs on a GPU, and compares the runs
// with the simulator's predictions from the passes.
#include "sim/doors/cli/calibrate_gpu.h"

#include "sim/doors/cli/command.h"
#include "sim/doors/cli/model_commands.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/report/output_folder.h"
#include "sim/lab/calibrate/gpu_runs.h"
#include "sim/lab/calibrate/result_files.h"

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

}  // namespace

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

}  // namespace specsim::cli
