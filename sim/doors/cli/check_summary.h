// What specsim check says below its table.
#pragma once

#include "sim/experiments/judge/rows.h"
#include "sim/foundation/base/exit_code.h"
#include "sim/foundation/report/junit.h"

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

// The verdicts as test results, one for each cell: failed where it disagrees, skipped where it has no theory or could not have
// failed.
std::vector<report::TestCase> check_cases(const std::vector<judge::Row>& rows);

}  // namespace specsim::cli
