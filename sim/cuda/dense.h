// cuBLASLt for products of many rows, where the machine has it: it is looked for when the program runs, so that the program
// starts without it.
#pragma once

#include "sim/cuda/device.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

namespace specsim::cuda {

class DenseLibrary {
 public:
  static constexpr std::size_t kWorkspace = std::size_t{32} << 20;
  DenseLibrary() = default;
  DenseLibrary(const DenseLibrary&) = delete;
  DenseLibrary& operator=(const DenseLibrary&) = delete;
  virtual ~DenseLibrary() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  // False where the library has no way for this shape; nothing has happened then.
  virtual bool multiply(const DenseProduct& product, void* workspace, cudaStream_t stream) = 0;
};

// nullptr where there is none.
std::unique_ptr<DenseLibrary> open_dense_library();

}  // namespace specsim::cuda
