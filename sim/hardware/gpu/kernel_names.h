// The values of a config's keys that choose the kernels of a pass.
#pragma once

#include <string>
#include <vector>

namespace specsim::cost {

// Engines whose kernels were measured.
std::vector<std::string> kernel_engines();
// Allowed values of a cost model's `kernels`: automatic, none, or one of kernel_engines().
std::vector<std::string> kernel_choices();
// How attention over several query tokens per sequence reads the cache. automatic: as the GPU's kernel does; serial: by blocks
// that read all keys; split: by blocks that share the keys.
std::vector<std::string> attention_kernels();

}  // namespace specsim::cost
