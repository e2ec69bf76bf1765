// Common parts of the commands on real models: their options, and their progress display.
#pragma once

#include "sim/doors/cli/options.h"
#include "sim/lab/calibrate/settings.h"

#include <memory>
#include <string>

namespace specsim::cli {

struct ModelOptions {
  calibrate::CalibrationSettings settings;
  std::string verifier;  // "": the default for the drafter
  std::string device = "cpu";
  std::string out;
  bool force = false;
};
void add_model_options(CommandLine& line, ModelOptions& options);
// Completes the settings from the given options. Throws BadInput.
void complete_settings(const CommandLine& line, ModelOptions& options);
// Throws BadInput if --device is not the CPU.
void require_cpu(const ModelOptions& options);

// A progress bar per counted unit, one after the other. A calibrate::OnProgress.
class PhaseProgress {
 public:
  void operator()(const std::string& unit, double done, double all);

 private:
  std::string unit_;
  std::shared_ptr<Progress> bar_;
};

// A standard error as a table shows it; "-" for a single sample, which gives none.
std::string error_text(double error, int decimals);

}  // namespace specsim::cli
