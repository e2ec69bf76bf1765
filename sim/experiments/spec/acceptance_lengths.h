// Acceptance by depth from the mean lengths of rounds at one or several draft lengths, as servers and papers report them.
#pragma once

#include "sim/foundation/config/value.h"

#include <string>
#include <vector>

namespace specsim::spec {

struct LengthRates {
  std::vector<double> rates;  // [depth]: P(accepted, given that the one before is), down to the longest draft length
  std::string from;           // their source, for messages
};

// `lengths`: mean tokens per round including the target's own (vLLM's mean acceptance length, SGLang's accept length, tau), or
// without it if `drafted_only` (papers' accepted length). `draft_lengths`: the draft length of each, increasing. From one draft
// length to the next the mean grows by the rates of the positions in between. These positions are assumed to have equal rates,
// given that they are reached. Messages call `lengths` by `key`. Throws BadInput with the place of the error: a length that is
// impossible at its draft length, or one that grows by more than the earlier positions allow.
LengthRates rates_of_lengths(const config::Value& lengths, const std::string& key, const config::Value& draft_lengths,
                             bool drafted_only);

}  // namespace specsim::spec
