// Replaces sim/lab/cuda/gpu.cpp.
#include "tests/cuda/twins.h"

namespace specsim::cuda {

std::unique_ptr<Device> open_gpu(int /*number*/, bool /*dependent_launch*/, bool /*poison*/) { return tests::host_twin(); }

}  // namespace specsim::cuda
