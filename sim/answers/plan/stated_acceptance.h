// Acceptance as servers' logs and published tables state it.
#pragma once

#include "sim/answers/plan/acceptance_curve.h"
#include "sim/experiments/spec/read_acceptance_table.h"
#include "sim/serving/logs/findings.h"

#include <string>

namespace specsim::plan {

// What lines of a kind say, in the form that keeps most of it. Throws BadInput, at `where`, where figures contradict themselves,
// or say nothing without the draft length, which can be given `how`.
AcceptanceCurve logged_acceptance(logs::Kind kind, const logs::Findings& findings, int longest, const Location& where,
                                  const std::string& how);

// How far the last recorded rate, taken to hold on, has missed the tokens per round of recorded drafts that go further: of each
// table of configs/acceptance with more rates than `measured`, cut to these and held against its own longest draft, relative.
// Tables of one pass are left out, and those of n-grams, whose rates are of other rounds.
struct LastRateHeldOn {
  int tables = 0;
  double least = 0.0;
  double most = 0.0;
};
LastRateHeldOn last_rate_held_on(int measured);

// What a chain meets on the table of that name, or in that file; see spec::named_acceptance_table.
AcceptanceCurve table_acceptance(const std::string& name, const Location& where, int longest);

}  // namespace specsim::plan
