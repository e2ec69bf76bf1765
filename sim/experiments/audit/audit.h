// Exact enumeration of the shipped verifiers: the code that simulations run is run, one round at a time, with scripted random
// bits, and every branch gets the share of random numbers that the code really gives it. No table is read and no formula is used:
// a flip is found by bisection, so a wrong threshold or table shows as a wrong distribution.
//
// Positions by prepared tables are run in the hot loop itself. What is assumed of it: a random number's effect changes at most
// once within each of `vocab` equal columns of the 64-bit numbers (an alias table; a threshold), and what happens at a position
// depends on the context there and the depth alone. Both are probed on the way (InvariantBroken otherwise); AuditOptions::share
// lifts the second. Blocks, and chains with fresh distributions, are enumerated choice by choice; the simulation is then given
// random bits that bring each outcome about and must play the same round. All forms are run watched, with every round reported,
// and unwatched, as production runs them, and must count alike.
#pragma once

#include "sim/experiments/audit/audit_report.h"
#include "sim/experiments/spec/spec.h"

#include <cstdint>
#include <string>

namespace specsim::audit {

constexpr int kAuditMaxVocab = 10;
constexpr int kAuditMaxDraftLength = 6;
constexpr int kAuditMaxContexts = 1024;
constexpr std::uint64_t kAuditMaxBranches = 5'000'000;      // contexts vocab^(draft_length + 1)
constexpr std::uint64_t kAuditMaxBlockRounds = 20'000'000;  // outcomes of blocks, over all starts

// The cell as it is simulated: its distributions, its rule, decode::Simulator. Throws BadInput for what is too large, and
// NotAudited where contexts are no finite set that tokens alone move through: fixed, by_depth and markov have one, and of fresh
// distributions the first sequence is audited.
AuditReport audit_cell(const spec::Cell& cell, const AuditOptions& options = {});

// Another rule, or another loop in place of run_staged<ShippedBehaviour>, for the cell's distributions: what proves that the
// audit sees mistakes.
AuditReport audit_cell(const spec::Cell& cell, const verify::PositionRule& rule, const AuditOptions& options = {});
AuditReport audit_cell(const spec::Cell& cell, const verify::BlockRule& rule, const AuditOptions& options = {});
AuditReport audit_cell(const spec::Cell& cell, const verify::PositionRule& rule, const RoundLoop& loop,
                       const AuditOptions& options = {});

// The report as text for a terminal: labels, twelve decimals, and a verdict in the last line.
std::string to_text(const AuditReport& report);

}  // namespace specsim::audit
