#include "sim/experiments/audit/audit.h"

#include "sim/experiments/audit/audit_forms.h"

#include <fmt/format.h>

namespace specsim::audit {

namespace {

using Kind = families::ContextShape::Kind;

// The reason why this cell cannot be enumerated at any size; "" if it can.
std::string obstacle(const spec::Cell& cell) {
  switch (cell.contexts->process->shape().kind) {
    case Kind::fixed:
    case Kind::by_depth:
    case Kind::markov:
    case Kind::iid_fresh:
      return "";
    case Kind::by_rank:
      return "an acceptance table has no distributions, so the output has nothing to be compared with";
    case Kind::other:
      return fmt::format("context process {} does not say how its contexts follow one another", cell.contexts->name);
    default:
      return "its contexts change at random, but the audit needs contexts that only the tokens change (fixed, by_depth, markov) "
             "or that are drawn for every position (fresh)";
  }
}

// The config's own key where the drafter has it, and its place. A tree states its depth in other ways (depth, budget, branching).
struct DraftLengthKey {
  const char* words;
  const Location& where;
};
DraftLengthKey draft_length_key(const spec::Cell& cell) {
  const bool own_words = cell.judges_blocks() && !cell.block()->drafter.entry->info.has_parameter("draft_length");
  return own_words ? DraftLengthKey{"the drafter's longest path", cell.places.drafter}
                   : DraftLengthKey{"draft_length", cell.places.draft_length};
}

void check_size(const spec::Cell& cell) {
  const families::ContextShape& shape = cell.contexts->process->shape();
  const DraftLengthKey length = draft_length_key(cell);
  if (cell.vocab > kAuditMaxVocab)
    throw BadInput(cell.places.vocab, fmt::format("vocab is {}, allowed in an audit: at most {}", cell.vocab, kAuditMaxVocab));
  if (cell.draft_length() > kAuditMaxDraftLength)
    throw BadInput(length.where, fmt::format("{} is {}, allowed in an audit: at most {}", length.words, cell.draft_length(),
                                             kAuditMaxDraftLength));
  if (shape.contexts > kAuditMaxContexts)
    throw BadInput(cell.places.context,
                   fmt::format("{} contexts, allowed in an audit: at most {}", shape.contexts, kAuditMaxContexts));
  // If every text position has its own distributions, the positions that the joint distribution covers count as contexts.
  auto branches = static_cast<std::uint64_t>(shape.contexts > 0 ? shape.contexts : cell.draft_length() + 1);
  for (int i = 0; i <= cell.draft_length(); ++i) branches *= static_cast<std::uint64_t>(cell.vocab);
  if (branches > kAuditMaxBranches)
    throw BadInput(length.where, fmt::format("contexts * vocab^({} + 1) is {}, allowed in an audit: at most {}", length.words,
                                             branches, kAuditMaxBranches));
}

void check_cell(const spec::Cell& cell) {
  if (const std::string reason = obstacle(cell); !reason.empty()) throw NotAudited(reason);
  check_size(cell);
}

AuditReport audit_chain(const spec::Cell& cell, const verify::PositionRule& rule, const RoundLoop& loop,
                        const AuditOptions& options) {
  check_cell(cell);
  return cell.contexts->process->shape().contexts == 0 ? audit_fresh(cell, rule, options)
                                                       : audit_positions(cell, rule, loop, options);
}

}  // namespace

AuditReport audit_cell(const spec::Cell& cell, const AuditOptions& options) {
  return cell.judges_blocks() ? audit_cell(cell, *cell.block()->verifier, options)
                              : audit_chain(cell, *cell.chain()->verifier, {}, options);
}

AuditReport audit_cell(const spec::Cell& cell, const verify::BlockRule& rule, const AuditOptions& options) {
  check_cell(cell);
  return audit_block(cell, rule, options);
}

AuditReport audit_cell(const spec::Cell& cell, const verify::PositionRule& rule, const AuditOptions& options) {
  return audit_chain(cell, rule, {}, options);
}

AuditReport audit_cell(const spec::Cell& cell, const verify::PositionRule& rule, const RoundLoop& loop,
                       const AuditOptions& options) {
  return audit_chain(cell, rule, loop, options);
}

}  // namespace specsim::audit
