// What specsim check says below its table.
#pragma once

#include "sim/base/exit_code.h"
#include "sim/judge/rows.h"

#include <string>
#include <vector>

namespace specsim::cli {

struct CheckSummary {
  std::string text;
  std::string verdict;  // "agree", "disagree", or "untested" where nothing disagrees and yet not every cell was tested
  ExitCode status = ExitCode::fine;
};

// Counts the verdicts of judged rows, and names the cells that disagree, have no theory, or could not have failed.
CheckSummary summarise_check(const std::vector<judge::Row>& rows);

}  // namespace specsim::cli
