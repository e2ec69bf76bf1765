// The lab's commands in a program built without the lab (SPECSIM_LAB=OFF): each prints how to get it.
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/lab_files.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/output_form.h"
#include "sim/foundation/base/error.h"

#include <string>

namespace specsim::cli {

namespace {

ExitCode refuse(const std::string& command) {
  if (!CommandLine(command, "").read({})) return ExitCode::fine;
  throw BadInput({command, 0, 0},
                 "this program was built without real models, allowed: one built by scripts/setup && scripts/build "
                 "build -DSPECSIM_LAB=ON");
}

}  // namespace

ExitCode calibrate_command(const std::vector<std::string>&) { return refuse("specsim calibrate"); }
ExitCode validate_command(const std::vector<std::string>&) { return refuse("specsim validate"); }

std::vector<report::FileInfo> lab_file_infos() { return {}; }

}  // namespace specsim::cli
