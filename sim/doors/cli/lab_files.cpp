#include "sim/doors/cli/lab_files.h"

#include "sim/lab/calibrate/result_files.h"

namespace specsim::cli {

std::vector<report::FileInfo> lab_file_infos() { return calibrate::described_files(); }

}  // namespace specsim::cli
