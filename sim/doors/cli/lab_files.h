// The files that the lab's commands write (calibrate, validate), for the reference page.
#pragma once

#include "sim/foundation/report/column.h"

#include <vector>

namespace specsim::cli {

// Empty in a program that was built without the lab.
std::vector<report::FileInfo> lab_file_infos();

}  // namespace specsim::cli
