// Handling of matrix products that a library rejects: the test supplies a fake cuBLASLt that rejects on demand. Nothing of it
// needs a GPU.
#ifdef SPECSIM_WITH_CUDA

#include "sim/lab/cuda/gemm.h"

#include "sim/foundation/base/error.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <vector>

#if __has_include(<cublasLt.h>)

namespace specsim::gemm_test {

namespace {

struct Fake {
  std::string refuses = {};           // a function's name
  int ways = 8;                       // number of algorithms that it offers
  int last_unusable = 0;              // number of the last algorithms that report themselves as unusable
  std::set<std::uint64_t> fail = {};  // when multiplying
  std::vector<std::uint64_t> tried = {};
  std::vector<float> betas = {};
  int open = 0;  // handles that were not destroyed

  [[nodiscard]] cublasStatus_t answer(const char* name) const {
    return refuses == name ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS;
  }
};
Fake fake;

template <class T>
cublasStatus_t made(const char* name, T* handle) {
  static int anything = 0;
  const cublasStatus_t status = fake.answer(name);
  if (status == CUBLAS_STATUS_SUCCESS) {
    *handle = reinterpret_cast<T>(&anything);
    ++fake.open;
  }
  return status;
}
template <class T>
cublasStatus_t destroyed(T /*handle*/) {
  --fake.open;
  return CUBLAS_STATUS_SUCCESS;
}

cuda::CublasLt functions() {
  return {
      .create = [](cublasLtHandle_t* handle) { return made("create", handle); },
      .destroy = destroyed,
      .version = [] { return std::size_t{130100}; },
      .matmul = [](cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t, const void*,
                   cublasLtMatrixLayout_t, const void* beta, const void*, cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t,
                   const cublasLtMatmulAlgo_t* algorithm, void*, std::size_t, cudaStream_t) -> cublasStatus_t {
        fake.tried.push_back(algorithm->data[0]);
        fake.betas.push_back(*static_cast<const float*>(beta));
        return fake.fail.count(algorithm->data[0]) > 0 ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
      },
      .operation_create = [](cublasLtMatmulDesc_t* handle, cublasComputeType_t,
                             cudaDataType_t) { return made("operation_create", handle); },
      .operation_destroy = destroyed,
      .operation_set = [](cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*,
                          std::size_t) { return fake.answer("operation_set"); },
      .layout_create = [](cublasLtMatrixLayout_t* handle, cudaDataType, std::uint64_t, std::uint64_t,
                          std::int64_t) { return made("layout_create", handle); },
      .layout_destroy = destroyed,
      .preference_create = [](cublasLtMatmulPreference_t* handle) { return made("preference_create", handle); },
      .preference_destroy = destroyed,
      .preference_set = [](cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*,
                           std::size_t) { return fake.answer("preference_set"); },
      .heuristic = [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                      cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int most,
                      cublasLtMatmulHeuristicResult_t* results, int* found) -> cublasStatus_t {
        *found = std::min(most, fake.ways);
        for (int i = 0; i < *found; ++i) {
          results[i].algo.data[0] = static_cast<std::uint64_t>(i);
          results[i].state = i >= fake.ways - fake.last_unusable ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
        }
        return fake.answer("heuristic");
      }};
}

const cuda::Gemm kProduct{.outputs = 64, .columns = 32, .rows = 40};
using Tried = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("cuda: a library that refuses to start is none, and nothing of it stays open") {
  for (const char* const name : {"create", "operation_create", "operation_set", "preference_create", "preference_set"}) {
    CAPTURE(name);
    fake = {.refuses = name};
    CHECK(cuda::open_gemm_library(functions()) == nullptr);
    CHECK(fake.open == 0);
  }
  fake = {};
  CHECK(cuda::open_gemm_library(functions())->name() == "cuBLASLt 130100");
  CHECK(fake.open == 0);
}

TEST_CASE("cuda: a product that the library has no way for is left to kernels, once and for all, others are not") {
  const auto left = [](const Fake& how, std::size_t tries) {
    fake = how;
    const auto library = cuda::open_gemm_library(functions());
    CHECK_FALSE(library->multiply(kProduct, nullptr, nullptr));
    CHECK(fake.tried.size() == tries);
    fake.refuses.clear();
    fake.fail.clear();
    CHECK_FALSE(library->multiply(kProduct, nullptr, nullptr));
    CHECK(fake.tried.size() == tries);
    fake.ways = 1;
    fake.last_unusable = 0;
    cuda::Gemm other = kProduct;
    ++other.rows;
    CHECK(library->multiply(other, nullptr, nullptr));
  };
  left({.refuses = "layout_create"}, 0);
  left({.refuses = "heuristic"}, 0);
  left({.ways = 0}, 0);
  left({.ways = 2, .last_unusable = 2}, 0);
  left({.ways = 2, .fail = {0, 1}}, 2);
  CHECK(fake.open == 0);
}

TEST_CASE("cuda: a product uses the best algorithm that the library accepts, and remembers it") {
  fake = {.ways = 5, .last_unusable = 1, .fail = {0, 2}};
  const auto library = cuda::open_gemm_library(functions());
  CHECK(library->multiply(kProduct, nullptr, nullptr));
  cuda::Gemm added = kProduct;
  added.add = true;
  CHECK(library->multiply(added, nullptr, nullptr));
  CHECK(fake.tried == Tried{0, 1, 1});
  CHECK(fake.betas == std::vector<float>{0.0F, 0.0F, 1.0F});
  // An algorithm that worked before and then fails has left an undefined result.
  fake.fail = {1};
  CHECK_THROWS_AS(library->multiply(kProduct, nullptr, nullptr), IoError);
  CHECK(fake.tried == Tried{0, 1, 1, 1});
}

}  // namespace specsim::gemm_test

#endif

#endif
