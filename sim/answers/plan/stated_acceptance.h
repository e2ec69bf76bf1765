// Acceptance as servers' logs and published tables state it.
#pragma once

#include "sim/answers/plan/acceptance_curve.h"
#include "sim/experiments/spec/read_acceptance_table.h"
#include "sim/serving/logs/findings.h"

#include <string>

namespace specsim::plan {

// The acceptance in log lines of a kind, in the form with the most information. Throws BadInput at `where` if figures contradict
// each other, or need a draft length that is missing; `how` names the way to give it.
AcceptanceCurve logged_acceptance(logs::LogKind kind, const logs::Findings& findings, int longest, const Location& where,
                                  const std::string& how);

// How wrong it was to repeat the last recorded rate, measured on published drafts that go deeper. Each table of
// configs/acceptance with more rates than `measured` is cut to `measured` rates and compared with its own longest draft; the
// error of tokens per round is relative. Excludes tables of one pass, and those of n-grams, whose rates are of other rounds.
struct LastRateError {
  int tables = 0;
  double least = 0.0;
  double most = 0.0;
};
LastRateError last_rate_error(int measured);

// A chain's acceptance from the table of that name, or from that file; see spec::named_acceptance_table.
AcceptanceCurve table_acceptance(const std::string& name, const Location& where, int longest);

}  // namespace specsim::plan
