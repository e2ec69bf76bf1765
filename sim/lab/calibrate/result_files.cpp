#include "sim/lab/calibrate/result_files.h"

#include "sim/lab/calibrate/gpu_runs.h"
#include "sim/lab/calibrate/passes.h"
#include "sim/lab/calibrate/speed.h"
#include "sim/lab/calibrate/validate.h"

namespace specsim::calibrate {

std::vector<report::FileInfo> described_files() {
  return {{"cost_table.csv of calibrate and validate", report::column_infos(cost_table_columns())},
          {"passes.csv of calibrate", report::column_infos(pass_columns())},
          {"acceptance.csv of calibrate", report::column_infos(acceptance_columns())},
          {"speed.csv of calibrate", report::column_infos(speed_columns())},
          {"validation.csv of validate", report::column_infos(validation_line_columns())},
          {"validation.csv of calibrate --device cuda", report::column_infos(gpu_run_columns())}};
}

report::Manifest manifest_of(const std::string& command, const std::string& description, unsigned threads, std::size_t cells,
                             double seconds) {
  report::Manifest manifest = report::new_manifest(command);
  manifest.threads = threads;
  manifest.cells = cells;
  manifest.wall_seconds = seconds;
  manifest.files = {"models"};
  manifest.configs = {description};
  return manifest;
}

}  // namespace specsim::calibrate
