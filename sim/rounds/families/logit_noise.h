// Normal noise on logits: the transform logit_noise, and the drift of a draft along a block.
#pragma once

#include "sim/rounds/families/distribution.h"

#include <cstdint>
#include <memory>

namespace specsim::families {

// softmax(log source + value exp(spread N) N_x). N is one normal number per context, or the context's deviate if the process sets
// it; N_x is one normal number per token.
std::unique_ptr<Distribution> logit_noise(std::unique_ptr<Distribution> source, double value, double spread, bool of_draft,
                                          std::uint32_t stream);

}  // namespace specsim::families
