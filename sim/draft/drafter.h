// The registry of drafters.
#pragma once

#include "sim/config/registry.h"

#include <functional>

namespace specsim::draft {

// A drafted chain: `draft_length` tokens on one path.
struct Chain {
  int draft_length = 0;
  bool argmax = false;  // takes the draft model's argmax instead of sampling from its law
};

struct DrafterEntry {
  config::PartInfo info;
  std::function<Chain(const config::Arguments&)> make;
};

const config::Registry<DrafterEntry>& drafters();

}  // namespace specsim::draft
