// The registry of verifiers.
#pragma once

#include "sim/foundation/config/registry.h"
#include "sim/rounds/verify/block_rule.h"
#include "sim/rounds/verify/position_rule.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace specsim::verify {

// The config settings that a verifier requires.
struct Demands {
  bool one_hot_target = false;  // a target at temperature 0
  bool argmax_draft = false;    // a chain of the draft's argmax
  // Trees that it can judge; a verifier without any accepts only chains. A chain counts as independent, chosen tokens as point
  // masses.
  std::vector<tokens::Siblings> trees = {};
  bool joint = false;      // judges tokens jointly, so a position has no alpha
  int vocab = kMaxVocab;   // the largest vocabulary
  int children = 1 << 20;  // the most children of one node
  bool paths = false;      // judges only paths that part at the root
};

struct VerifierEntry {
  config::PartInfo info;
  bool lossless = true;
  Demands demands;
  // One of the two is set; both if a rule for positions is also implemented as a rule for blocks.
  std::function<std::unique_ptr<PositionRule>(const config::Arguments&)> make;
  std::function<std::unique_ptr<BlockRule>(const config::Arguments&)> make_block;
  bool usual = false;   // the default for the drafts that it demands: chains, or trees of such siblings
  bool on_gpu = false;  // GPU rounds implement the same rule
};

config::Registry<VerifierEntry>& verifiers();
// The default verifier for siblings; without siblings, for chains.
const VerifierEntry& usual_verifier(std::optional<tokens::Siblings> siblings = std::nullopt);

}  // namespace specsim::verify
