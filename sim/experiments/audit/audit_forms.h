// The three ways in which rounds are executed, enumerated: positions by prepared tables, blocks, chains with fresh distributions.
#pragma once

#include "sim/experiments/audit/audit_report.h"

namespace specsim::audit {

// Positions by prepared tables. `loop`: the loop that plays the rounds; empty: decode::Simulator's own.
AuditReport audit_positions(const spec::Cell& cell, const verify::PositionRule& rule, const RoundLoop& loop,
                            const AuditOptions& options);
AuditReport audit_block(const spec::Cell& cell, const verify::BlockRule& rule, const AuditOptions& options);
// Chains with fresh distributions, each text position of each sequence having its own: those of the first sequence are audited.
AuditReport audit_fresh(const spec::Cell& cell, const verify::PositionRule& rule, const AuditOptions& options);

}  // namespace specsim::audit
