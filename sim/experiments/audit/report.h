// Works out the output's distributions from enumerated rounds.
#pragma once

#include "sim/experiments/audit/audit.h"
#include "sim/experiments/audit/round_tree.h"

#include <string>

namespace specsim::audit {

// The report on the enumerated `rounds` of `text`. The first roots are the contexts of the text, in its order. If a round
// depends on more than its context, further roots follow.
AuditReport report_on(const std::string& verifier, int vocab, int draft_length, const RoundTree& rounds, const TargetText& text,
                      const AuditOptions& options);

}  // namespace specsim::audit
