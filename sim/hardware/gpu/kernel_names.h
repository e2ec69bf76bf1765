// What a config may call the kernels that a pass is priced with.
#pragma once

#include <string>
#include <vector>

namespace specsim::cost {

// Engines whose kernels were measured.
std::vector<std::string> kernel_engines();
// What `kernels` of a cost model may be: automatic, none, or one of kernel_engines().
std::vector<std::string> kernel_choices();
// How attention of several query tokens a sequence reads the cache: automatic what the GPU's kernel does; serial by blocks that
// walk all keys; split by blocks that share them.
std::vector<std::string> attention_kernels();

}  // namespace specsim::cost
