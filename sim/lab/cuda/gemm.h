// cuBLASLt for products of many rows, if the machine has it. It is loaded at run time, so that the program also starts without
// it.
#pragma once

#include "sim/lab/cuda/device.h"

#include <cuda_runtime_api.h>

#include <boost/core/noncopyable.hpp>

#include <memory>
#include <string>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

namespace specsim::cuda {

class GemmLibrary : boost::noncopyable {
 public:
  static constexpr std::size_t kWorkspace = std::size_t{32} << 20;
  virtual ~GemmLibrary() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  // Returns false if the library does not support this shape, or refuses all algorithms that it offers. Nothing has been computed
  // then, and stderr reports it once. Throws IoError if a shape fails that worked before.
  virtual bool multiply(const Gemm& product, void* workspace, cudaStream_t stream) = 0;
};

// nullptr if there is no library, or it does not start.
std::unique_ptr<GemmLibrary> open_gemm_library();

#if __has_include(<cublasLt.h>)
// The functions that are used: from a loaded library, or from a test.
struct CublasLt {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulDescCreate) operation_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) operation_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) operation_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
};
std::unique_ptr<GemmLibrary> open_gemm_library(const CublasLt& functions);
#endif

}  // namespace specsim::cuda
