// Exact enumeration of the shipped verifiers. The audit runs the code that simulations run, one round at a time, with scripted
// random bits. Each branch gets the share of random numbers that the code really gives it. The audit reads no table and uses no
// formula: it finds each flip by bisection, so a wrong threshold or table shows as a wrong distribution.
//
// Verifiers that judge positions by prepared tables run in the hot loop itself. The audit assumes two things about it. A random
// number's effect changes at most once within each of `vocab` equal columns of the 64-bit numbers (an alias table; a threshold).
// Events at a position depend only on its context and depth. The audit probes both assumptions and throws InvariantBroken if one
// fails; AuditOptions::share lifts the second. Blocks, and chains with fresh distributions, are enumerated choice by choice. The
// simulation then gets random bits that produce each outcome and must play the same round. Every form runs twice, watched (each
// round is reported) and unwatched (as in production), and must count the same.
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

// Audits the cell as it is simulated: its distributions, its rule, decode::Simulator. Throws BadInput if the cell is too large.
// Throws NotAudited if the contexts are not a finite set in which tokens alone decide the next context. The processes fixed,
// by_depth and markov have such a set. For fresh distributions the first sequence is audited.
AuditReport audit_cell(const spec::Cell& cell, const AuditOptions& options = {});

// Audits another rule, or another loop in place of run_staged<ShippedBehaviour>, with the cell's distributions. Tests use it to
// prove that the audit finds faults.
AuditReport audit_cell(const spec::Cell& cell, const verify::PositionRule& rule, const AuditOptions& options = {});
AuditReport audit_cell(const spec::Cell& cell, const verify::BlockRule& rule, const AuditOptions& options = {});
AuditReport audit_cell(const spec::Cell& cell, const verify::PositionRule& rule, const RoundLoop& loop,
                       const AuditOptions& options = {});

// The report as text for a terminal: labels, figures with twelve decimals, and a verdict in the last line.
std::string to_text(const AuditReport& report);

}  // namespace specsim::audit
