// The summary that specsim check prints below its table.
#pragma once

#include "sim/experiments/judge/rows.h"
#include "sim/foundation/base/exit_code.h"
#include "sim/foundation/report/junit.h"

#include <string>
#include <vector>

namespace specsim::cli {

struct CheckSummary {
  std::string text;
  std::string verdict;  // "agree", "disagree", or "untested" if nothing disagrees but some cell was not tested
  ExitCode status = ExitCode::fine;
};

// Counts the verdicts of judged rows, and names the cells that disagree, have no theory, or are underpowered.
CheckSummary summarise_check(const std::vector<judge::Row>& rows);

// The verdicts as test results, one per cell: failed if it disagrees, skipped if it has no theory or is underpowered.
std::vector<report::TestCase> check_cases(const std::vector<judge::Row>& rows);

}  // namespace specsim::cli
