// Starts kernels. This is the only file that the CUDA compiler compiles.
#include "sim/lab/cuda/gpu_launch.h"

namespace specsim::cuda {

namespace {

template <class K>
__global__ void __launch_bounds__(K::kThreads) run(const K kernel) {
  kernel(Thread());
}

}  // namespace

cudaError_t start(const Kernel& kernel, cudaStream_t stream, bool dependent_launch) {
  return std::visit(
      [&]<class K>(const K& k) {
        const Grid grid = k.grid();
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(grid.x, grid.y, grid.z);
        config.blockDim = dim3(grid.threads);
        config.dynamicSmemBytes = grid.shared_bytes;
        config.stream = stream;
        cudaLaunchAttribute early = {};
        early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        early.val.programmaticStreamSerializationAllowed = 1;
        config.attrs = &early;
        config.numAttrs = dependent_launch ? 1 : 0;
        return cudaLaunchKernelEx(&config, run<K>, k);
      },
      kernel);
}

namespace {

template <class... K>
cudaError_t find_each(const std::variant<K...>* /*kinds*/) {
  cudaFuncAttributes attributes = {};
  cudaError_t status = cudaSuccess;
  static_cast<void>((((status = cudaFuncGetAttributes(&attributes, run<K>)) == cudaSuccess) && ...));
  return status;
}

}  // namespace

cudaError_t find_code() { return find_each(static_cast<const Kernel*>(nullptr)); }

}  // namespace specsim::cuda
