// How servers divide a target over GPUs and machines: what they refuse, and what they need besides the number of GPUs.
#pragma once

#include "sim/hardware/latency/deployment.h"

#include <string>

namespace specsim::plan {

// Why vLLM, SGLang and TensorRT-LLM cannot divide key and value heads over the target's GPUs, with the numbers that they accept;
// empty: they can.
std::string uneven_heads(const cost::Deployment& deployment);

// Whether the tokenizer or the configuration of the target is code in its repository, which servers run only on request.
bool has_own_code(const cost::ModelShape& target);

// How many machines hold the target's GPUs, and how many of those GPUs each has.
struct Machines {
  double count = 1.0;
  double gpus = 1.0;
};
Machines machines_of(const cost::Deployment& deployment);

}  // namespace specsim::plan
