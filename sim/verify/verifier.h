// The registry of verifiers.
#pragma once

#include "sim/config/registry.h"
#include "sim/verify/position_rule.h"

#include <functional>
#include <memory>

namespace specsim::verify {

// What a config must have for a verifier to make sense.
struct Demands {
  bool one_hot_target = false;  // a target at temperature 0
  bool argmax_draft = false;    // a drafter that takes the argmax
};

struct VerifierEntry {
  config::PartInfo info;
  bool lossless = true;
  Demands demands;
  std::function<std::unique_ptr<PositionRule>(const config::Arguments&)> make;
};

const config::Registry<VerifierEntry>& verifiers();

}  // namespace specsim::verify
