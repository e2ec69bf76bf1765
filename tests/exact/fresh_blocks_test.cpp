// Blocks over distributions that every text position draws for itself: the joint distribution of the emitted tokens.
#include "tests/exact/exact_cells.h"
#include "tests/support/block_mutants.h"

#include <map>

namespace specsim::fresh_blocks_test {

using namespace specsim::tests;

namespace {

constexpr double kExact = 1e-12;

std::string fresh_pair(const verify::VerifierEntry& entry) {
  return fmt::format(
      "{{vocab: 3, target: {{family: dirichlet, concentration: 0.7}}, draft: {{family: dirichlet, concentration: 1}}{}}}",
      entry.demands.one_hot_target ? ", target_sampling: {temperature: 0}" : "");
}

std::string drafter_of(tokens::Siblings siblings) {
  switch (siblings) {
    case tokens::Siblings::independent:
      return "{kind: tree_static, branching: [2, 1]}";
    case tokens::Siblings::without_replacement:
      return "{kind: tree_static, branching: [2, 1], siblings: without_replacement}";
    case tokens::Siblings::hub:
      return "{kind: tree_static, branching: [2, 1], siblings: hub}";
    case tokens::Siblings::point_mass:
      break;
  }
  return "{kind: tree_static, branching: [2, 1], siblings: top_k}";
}

}  // namespace

TEST_CASE("fresh distributions: every lossless verifier of blocks keeps the target's distribution, a credulous one loses it") {
  int audits = 0;
  for (const verify::VerifierEntry& entry : verify::verifiers().entries()) {
    if (!entry.lossless || !entry.make_block) continue;
    std::vector<std::string> drafters;
    for (const tokens::Siblings siblings : entry.demands.trees) drafters.push_back(drafter_of(siblings));
    if (drafters.empty()) drafters.push_back(chain(2));
    for (const std::string& drafter : drafters) {
      const spec::Cell cell = cell_of(fresh_pair(entry), "{process: iid, fresh: true}", drafter, entry.info.name);
      if (!cell.judges_blocks()) continue;  // judged position by position
      INFO(entry.info.name << ", " << drafter);
      CHECK(audit::audit_cell(cell).largest_difference <= kExact);
      CHECK(audit::audit_cell(cell).impossible == 0.0);
      CHECK(audit::audit_cell(cell, Credulous(*cell.block()->verifier)).largest_difference > 1e-3);
      ++audits;
    }
  }
  CHECK(audits > 8);
}

TEST_CASE("fresh distributions: each place in a block has the draft's distribution for its depth, and text drafters read on") {
  const verify::VerifierEntry& any = *verify::verifiers().find("token");
  for (const char* decode : {"{kind: eagle, branching: [1, 1, 1]}", "{kind: early_exit, draft_length: 2, exit_share: 0.25}"})
    CHECK(audit::audit_cell(cell_of(fresh_pair(any), "{process: iid, fresh: true}", decode, "token")).lossless());
  CHECK(audit::audit_cell(
            cell_of(fresh_pair(any), "{process: iid, fresh: true}", "{kind: medusa, branching: [2, 2]}", "tree_point_mass"))
            .lossless());
  CHECK(audit::audit_cell(cell_of(fresh_pair(any), "{process: iid, fresh: true}", "{kind: suffix_decoding, draft_length: 3}",
                                  "tree_point_mass"))
            .lossless());
}

}  // namespace specsim::fresh_blocks_test
