// specsim audit: exact enumeration of the shipped verifier.
#include "sim/audit/audit.h"
#include "sim/base/output.h"
#include "sim/cli/command.h"
#include "sim/cli/options.h"

#include <fmt/format.h>

namespace specsim::cli {

namespace po = boost::program_options;

ExitCode audit_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  options.add_options()("set", po::value<std::vector<std::string>>()->composing(), "path=value: override the config")(
      "seed", po::value<std::string>()->default_value(""), "instead of the config's seed; it draws random distributions");
  po::variables_map values;
  if (!parse(arguments, options, "config", "specsim audit CONFIG [options]",
             "  specsim audit configs/audit/known_pair.yaml\n"
             "  specsim audit configs/audit/known_pair.yaml --set decode.verifier=sample_match --set "
             "decode.drafter.draft_length=3\n",
             values))
    return ExitCode::fine;
  if (values.count("config") == 0)
    throw BadInput({"", 0, 0}, "specsim audit needs a config; specsim audit --help shows examples");
  const std::vector<spec::Experiment> experiments =
      read_experiments(values["config"].as<std::vector<std::string>>(),
                       values.count("set") > 0 ? values["set"].as<std::vector<std::string>>() : std::vector<std::string>{},
                       values["seed"].as<std::string>());
  bool broken = false;
  for (const spec::Experiment& one : experiments) {
    for (const spec::Cell& cell : one.cells) {
      print_output("{} cell {}", cell.experiment, cell.index);
      for (const auto& [path, value] : cell.axes) print_output("  {} = {}", path, value);
      const audit::AuditReport report = audit::audit_cell(cell);
      print_output("\n{}\n", to_text(report));
      broken = broken || (cell.lossless() && !report.lossless());
    }
  }
  return broken ? ExitCode::disagree : ExitCode::fine;
}

}  // namespace specsim::cli
