// Works out what an enumeration of rounds says of the output.
#pragma once

#include "sim/experiments/audit/audit.h"
#include "sim/experiments/audit/round_tree.h"

#include <string>

namespace specsim::audit {

// The report on the enumerated `rounds`, which write `text`. Their first roots stand for the contexts of the text, in its order;
// where a round depends on more than its context there are further ones behind them.
AuditReport report_on(const std::string& verifier, int vocab, int draft_length, const RoundTree& rounds, const TargetText& text,
                      const AuditOptions& options);

}  // namespace specsim::audit
