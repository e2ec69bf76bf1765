// Enumeration of the three forms of rounds: positions by prepared tables, blocks, and chains with fresh distributions.
#pragma once

#include "sim/experiments/audit/audit_report.h"

namespace specsim::audit {

// Positions by prepared tables. `loop` plays the rounds; if it is empty, decode::Simulator's own loop does.
AuditReport audit_positions(const spec::Cell& cell, const verify::PositionRule& rule, const RoundLoop& loop,
                            const AuditOptions& options);
AuditReport audit_block(const spec::Cell& cell, const verify::BlockRule& rule, const AuditOptions& options);
// Chains with fresh distributions: each text position of each sequence has its own. The first sequence is audited.
AuditReport audit_fresh(const spec::Cell& cell, const verify::PositionRule& rule, const AuditOptions& options);

}  // namespace specsim::audit
