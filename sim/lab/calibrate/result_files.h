// The files that a calibration or a validation of real models writes, for the reference page, and its manifest.
#pragma once

#include "sim/foundation/report/column.h"
#include "sim/foundation/report/manifest.h"

#include <cstddef>
#include <string>
#include <vector>

namespace specsim::calibrate {

// The columns of the CSV files that other programs read, for the reference page.
std::vector<report::FileInfo> described_files();

// The manifest of results on two models. `description`: the models, in one line of YAML.
report::Manifest manifest_of(const std::string& command, const std::string& description, unsigned threads, std::size_t cells,
                             double seconds);

}  // namespace specsim::calibrate
