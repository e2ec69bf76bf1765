// specsim calibrate --device cuda: bandwidth, passes, rounds and whole decoding runs on a GPU, and what the simulator says of the
// runs from the passes. Every table is written as soon as it has grown, so that a run that is cut short leaves what it has
// measured.
#include "sim/cli/calibrate_gpu.h"

#include "sim/cli/command.h"
#include "sim/cli/gpu_runs.h"

#include <fmt/format.h>

namespace specsim::cli {

namespace po = boost::program_options;

void add_gpu_options(po::options_description& options) {
  const auto text = [](const char* fallback) { return po::value<std::string>()->default_value(fallback); };
  options.add_options()("gpu", text("0"), "with --device cuda: its number")(
      "contexts", text("128,2048,8192,16384"), "with --device cuda: cached tokens of timed passes, of shapes")(
      "enlarge", text(""), "with --device cuda: HIDDENxFFNxLAYERS around the target that compute the same function")(
      "enlarge-draft", text(""), "the same of the draft")(
      "held-out", po::value<std::string>(),
      "with --device cuda: the prompts that are decoded; --prompts: those that acceptance is "
      "fitted on")("only-device", "with --device cuda: say what it is, and end")(
      "no-early-start", "with --device cuda: kernels start when those before them have ended, not as they end")(
      "peers",
      "with --device cuda: logits and decoding of the first of --held-out, for scripts/gpu_baselines.py, and nothing else");
}

ExitCode calibrate_on_gpu(const po::variables_map& values) {
  for (const auto& [option, allowed] : {std::pair{"drafter", "model"}, {"verifier", "token"}})
    if (values.count(option) > 0 && values[option].as<std::string>() != allowed)
      throw BadInput({fmt::format("--{}", option), 0, 0},
                     fmt::format("{}, allowed with --device cuda: {}",
                                 config::quote_for_message(values[option].as<std::string>()), allowed));
  const double begin = wall_clock();
  GpuSetup setup(values);
  const std::string& out = setup.options.out;
  if (values.count("only-device") > 0) {
    make_directories(out);
    setup.describe_device();
    return ExitCode::fine;
  }
  setup.load(values);
  make_directories(out);
  remove_calibration(out);
  setup.describe_device();
  GpuPasses passes(setup);
  std::size_t timed = 0;
  if (!setup.for_baselines) passes.measure_bandwidth();
  setup.place();
  if (setup.for_baselines) {
    timed = write_for_baselines(setup);
  } else {
    passes.time_passes();
    passes.time_terms();
    passes.time_streams();
    GpuRuns runs(setup, passes);
    if (setup.trained())
      runs.decode();
    else
      runs.time_rounds();
    timed = passes.timed();
  }
  write_model_manifest(out, setup.description(), setup.threads, timed, wall_clock() - begin);
  return ExitCode::fine;
}

}  // namespace specsim::cli
