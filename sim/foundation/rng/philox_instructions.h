// Batches of Philox with chosen instructions, for tests; simulations use the widest that the processor has (philox_batch).
#pragma once

#include "sim/foundation/rng/philox.h"

namespace specsim::rng {

enum class Instructions { plain, avx2, avx512 };

// Does what philox_batch does. Returns false, and does nothing, if the processor lacks the instructions.
bool philox_batch_by(Instructions instructions, const CounterBatch& counters, Key key, std::size_t count, std::uint64_t* first,
                     std::uint64_t* second);

}  // namespace specsim::rng
