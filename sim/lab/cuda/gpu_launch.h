// The parts of the GPU's device that the CUDA compiler compiles.
#pragma once

#include "sim/lab/cuda/device.h"

#include <cuda_runtime_api.h>

namespace specsim::cuda {

// `dependent_launch`: the kernel's blocks may be placed while the previous kernel ends (Thread::release_next); compute capability
// 9.0.
cudaError_t start(const Kernel& kernel, cudaStream_t stream, bool dependent_launch);
// Whether this program has code for the current device. Loads all of it, since nothing may be loaded while a graph is recorded.
cudaError_t find_code();

}  // namespace specsim::cuda
