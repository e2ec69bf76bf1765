// The same rounds of 256 sequences as run_staged, computed by the wide steps.
#pragma once

#include "sim/rounds/decode/chunk.h"
#include "sim/rounds/decode/counts.h"
#include "sim/rounds/decode/random_bits.h"
#include "sim/rounds/decode/staged_rounds.h"

namespace specsim::decode {

// Whether run_wide() gives the same counts as run_staged<ShippedBehaviour>. It does for chains whose positions a rule accepts or
// rejects, in one context or a pool of them, with sequences that end after a number of rounds.
bool runs_wide(const RoundSetup& setup, const ChunkPlan& plan);

void run_wide(const RoundSetup& setup, const ChunkPlan& plan, BitSource& random_bits, Counts& counts);

}  // namespace specsim::decode
