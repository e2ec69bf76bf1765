#include "sim/hardware/gpu/kernel_names.h"

namespace specsim::cost {

std::vector<std::string> kernel_engines() { return {"vllm", "sglang", "trtllm"}; }

std::vector<std::string> kernel_choices() {
  std::vector<std::string> names = {"automatic", "none"};
  for (const std::string& engine : kernel_engines()) names.push_back(engine);
  return names;
}

std::vector<std::string> attention_kernels() { return {"automatic", "split", "serial"}; }

}  // namespace specsim::cost
