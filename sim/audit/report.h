// Works out what an enumeration of rounds says of the output.
#pragma once

#include "sim/audit/audit.h"
#include "sim/audit/round_tree.h"

#include <string>

namespace specsim::audit {

// The first roots of `rounds` are those of the contexts of `text`; where rounds depend on more, further ones follow.
AuditReport report_on(const std::string& verifier, int vocab, int draft_length, const RoundTree& rounds, const TargetText& text,
                      const AuditOptions& options);

}  // namespace specsim::audit
