// Acceptance by depth from the mean lengths of rounds at one draft length or several, as servers and papers state them.
#pragma once

#include "sim/foundation/config/value.h"

#include <string>
#include <vector>

namespace specsim::spec {

struct LengthRates {
  std::vector<double> rates;  // [depth]: P(accepted, given that the one before is), down to the longest draft length
  std::string from;           // what they are from, for people
};

// `lengths`: mean tokens of a round with the target's own (vLLM's mean acceptance length, SGLang's accept length, tau), or
// without it where `drafted_only` (papers' accepted length). `draft_lengths`: the draft length of each, rising where there are
// several. From one draft length to the next the mean grows by the rates of the positions in between; several of them are taken
// to be alike, given that they are reached. Messages call `lengths` by `key`. Throws BadInput with the place of a mistake: a
// length that its draft length cannot have, or one that grows by more than the positions before let it.
LengthRates rates_of_lengths(const config::Value& lengths, const std::string& key, const config::Value& draft_lengths,
                             bool drafted_only);

}  // namespace specsim::spec
