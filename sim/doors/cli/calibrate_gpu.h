// calibrate --device cuda.
#pragma once

#include "sim/foundation/base/exit_code.h"

#include <boost/program_options.hpp>

namespace specsim::cli {

void add_gpu_options(boost::program_options::options_description& options);
ExitCode calibrate_on_gpu(const boost::program_options::variables_map& values);

}  // namespace specsim::cli
