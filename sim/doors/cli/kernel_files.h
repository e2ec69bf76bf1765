// The CSV files that specsim kernels writes, with estimates and their errors.
#pragma once

#include "sim/foundation/report/column.h"
#include "sim/hardware/latency/kernel_tables.h"
#include "sim/hardware/latency/step_tables.h"

#include <string>
#include <vector>

namespace specsim::cli {

// The input table with the latency estimates in additional last columns.
std::string estimates_csv(const cost::EstimatedKernels& table);
std::string estimates_csv(const cost::EstimatedSteps& table);
std::string errors_csv(const std::vector<cost::KernelErrors>& errors);
std::string errors_csv(const std::vector<cost::StepErrors>& errors);
// The files and their columns, for the reference page.
std::vector<report::FileInfo> kernel_file_infos();

}  // namespace specsim::cli
