// calibrate --device cuda.
#pragma once

#include "sim/doors/cli/model_commands.h"
#include "sim/foundation/base/exit_code.h"
#include "sim/lab/calibrate/gpu_setup.h"

namespace specsim::cli {

void add_gpu_options(CommandLine& line, ModelOptions& options, calibrate::GpuSettings& gpu, bool& only_device);
ExitCode calibrate_on_gpu(const CommandLine& line, ModelOptions& options, calibrate::GpuSettings gpu, bool only_device);

}  // namespace specsim::cli
