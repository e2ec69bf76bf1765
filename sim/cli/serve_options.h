// What the options of specsim serve mean.
#pragma once

#include "sim/base/error.h"
#include "sim/config/value.h"
#include "sim/serve/curve.h"

#include <boost/program_options.hpp>

#include <string>
#include <vector>

namespace specsim::cli {

// The config that the options name, with what they say put into it; without one, the server that they describe alone. `file`: its
// name in messages. Throws BadInput.
config::Value serve_config(const boost::program_options::variables_map& values, Diagnostics& diagnostics, std::string& file);

struct Sweep {
  serve::Load load = serve::Load::rate;
  std::vector<double> values;
};
// rate=1:40:8 (from, to, how many), rate=1,2,4, concurrency=1,2,4,8. Throws BadInput.
Sweep read_sweep(const std::string& text);

}  // namespace specsim::cli
