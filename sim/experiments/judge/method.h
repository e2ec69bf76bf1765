// The view that theory has of a cell's decoding method. No other file of this folder depends on how a cell stores it.
#pragma once

#include "sim/experiments/spec/spec.h"

#include <span>
#include <string>

namespace specsim::judge {

// True if the verifier judges a chain position by position; otherwise it judges what blocks() drafts.
[[nodiscard]] inline bool judges_positions(const spec::Cell& cell) { return !cell.judges_blocks(); }
[[nodiscard]] inline int draft_length(const spec::Cell& cell) { return cell.draft_length(); }  // tokens on the longest path
[[nodiscard]] inline const std::string& verifier_name(const spec::Cell& cell) { return cell.verifier().info.name; }
[[nodiscard]] inline const config::Arguments& verifier_arguments(const spec::Cell& cell) { return cell.verifier_arguments(); }
// The drafter and its arguments; only for cells whose verifier judges blocks.
[[nodiscard]] inline const draft::BlockDrafter& blocks(const spec::Cell& cell) { return *cell.block()->drafter.part; }
[[nodiscard]] inline const std::string& drafter_name(const spec::Cell& cell) { return cell.block()->drafter.name(); }
[[nodiscard]] inline const config::Arguments& drafter_arguments(const spec::Cell& cell) {
  return cell.block()->drafter.arguments;
}
// Whether a policy chooses the draft length; otherwise rounds draft all that they can. The next three functions need a policy.
[[nodiscard]] inline bool has_policy(const spec::Cell& cell) { return cell.policy() != nullptr; }
[[nodiscard]] inline const std::string& policy_name(const spec::Cell& cell) { return cell.policy()->name(); }
[[nodiscard]] inline const config::Arguments& policy_arguments(const spec::Cell& cell) { return cell.policy()->arguments; }
// [draft length]: the time of a round that drafts so many tokens, as passed to the policy.
[[nodiscard]] inline std::span<const double> policy_times(const spec::Cell& cell) { return cell.policy()->round_times; }
[[nodiscard]] inline double batch(const spec::Cell& cell) { return cell.workload.batch; }
[[nodiscard]] inline const families::ContextProcess& process(const spec::Cell& cell) { return *cell.contexts->process; }
[[nodiscard]] inline const families::ContextShape& context_shape(const spec::Cell& cell) { return process(cell).shape(); }

}  // namespace specsim::judge
