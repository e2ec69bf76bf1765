#include "sim/cli/command.h"

#include <fmt/format.h>

namespace specsim::cli {
int audit_command(const std::vector<std::string>&) { return 2; }
}  // namespace specsim::cli
