#include "sim/rounds/decode/simulator.h"
#include "sim/rounds/decode/staged_rounds.h"

namespace specsim::decode {

namespace {

// The next block is drafted before this one is verified, so full acceptance adds no target token.
struct NoBonusBehaviour : ShippedBehaviour {
  static bool emits_bonus() { return false; }
};

}  // namespace

void Simulator::run_prepared_without_bonus(const RoundSetup& setup, const ChunkPlan& chunk, BitSource& random_bits,
                                           Counts& counts, RoundSink* sink) const {
  const bool several = plan_.contexts->process->shape().contexts > 1;
  if (sink != nullptr)
    several ? run_staged<NoBonusBehaviour, true, true>(setup, chunk, random_bits, counts, sink)
            : run_staged<NoBonusBehaviour, false, true>(setup, chunk, random_bits, counts, sink);
  else
    several ? run_staged<NoBonusBehaviour, true, false>(setup, chunk, random_bits, counts, nullptr)
            : run_staged<NoBonusBehaviour, false, false>(setup, chunk, random_bits, counts, nullptr);
}

}  // namespace specsim::decode
