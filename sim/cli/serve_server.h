// The server that the options of specsim serve describe.
#pragma once

#include "sim/serve/experiment.h"

#include <boost/program_options.hpp>

namespace specsim::cli {

// The server of the config that the options name, with what they say in its place; without a config, the one that they describe
// alone. Throws BadInput.
serve::ServeExperiment read_server(const boost::program_options::variables_map& values);

}  // namespace specsim::cli
