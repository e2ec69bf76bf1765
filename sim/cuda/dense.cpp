#ifdef SPECSIM_WITH_CUDA

#include "sim/cuda/dense.h"

#include "sim/base/error.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <tuple>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

namespace specsim::cuda {

namespace {

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw IoError(fmt::format("cuBLASLt: {}: status {}", what, static_cast<int>(status)));
}

// The functions that are used, by name.
struct Functions {
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

  bool load(void* library) {
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return find(create, "cublasLtCreate") && find(destroy, "cublasLtDestroy") && find(version, "cublasLtGetVersion") &&
           find(matmul, "cublasLtMatmul") && find(operation_create, "cublasLtMatmulDescCreate") &&
           find(operation_destroy, "cublasLtMatmulDescDestroy") && find(operation_set, "cublasLtMatmulDescSetAttribute") &&
           find(layout_create, "cublasLtMatrixLayoutCreate") && find(layout_destroy, "cublasLtMatrixLayoutDestroy") &&
           find(preference_create, "cublasLtMatmulPreferenceCreate") &&
           find(preference_destroy, "cublasLtMatmulPreferenceDestroy") &&
           find(preference_set, "cublasLtMatmulPreferenceSetAttribute") && find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  }
};

class CublasLt final : public DenseLibrary {
 public:
  explicit CublasLt(const Functions& functions) : f_(functions) { check(f_.create(&handle_), "starting"); }
  ~CublasLt() override {
    for (auto& [key, plan] : plans_) {
      f_.layout_destroy(plan.weights);
      f_.layout_destroy(plan.x);
      f_.layout_destroy(plan.y);
    }
    if (operation_ != nullptr) f_.operation_destroy(operation_);
    f_.destroy(handle_);
  }
  [[nodiscard]] std::string name() const override { return fmt::format("cuBLASLt {}", f_.version()); }

  // Column by column, as the library sees memory: y (outputs x rows) = weights^T (columns x outputs) x (columns x rows).
  bool multiply(const DenseProduct& p, void* workspace, cudaStream_t stream) override {
    const Plan& plan = plan_for(p);
    if (!plan.usable) return false;
    const float one = 1.0F;
    const float beta = p.add ? 1.0F : 0.0F;
    check(f_.matmul(handle_, operation_, &one, p.weights, plan.weights, p.x, plan.x, &beta, p.y, plan.y, p.y, plan.y,
                    &plan.algorithm, workspace, kWorkspace, stream),
          "multiplying");
    return true;
  }

 private:
  struct Plan {
    cublasLtMatrixLayout_t weights = nullptr;
    cublasLtMatrixLayout_t x = nullptr;
    cublasLtMatrixLayout_t y = nullptr;
    cublasLtMatmulAlgo_t algorithm = {};
    bool usable = false;
  };

  const Plan& plan_for(const DenseProduct& p) {
    const auto [place, fresh] = plans_.try_emplace(std::tuple(p.outputs, p.columns, p.rows));
    Plan& plan = place->second;
    if (!fresh) return plan;
    if (operation_ == nullptr) {
      check(f_.operation_create(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a product");
      const cublasOperation_t transposed = CUBLAS_OP_T;
      check(f_.operation_set(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed), "describing a product");
    }
    check(f_.layout_create(&plan.weights, CUDA_R_16BF, p.columns, p.outputs, p.columns), "describing a matrix");
    check(f_.layout_create(&plan.x, CUDA_R_16BF, p.columns, p.rows, p.columns), "describing a matrix");
    check(f_.layout_create(&plan.y, CUDA_R_32F, p.outputs, p.rows, p.outputs), "describing a matrix");
    cublasLtMatmulPreference_t preference = nullptr;
    check(f_.preference_create(&preference), "preparing a choice");
    const std::size_t room = kWorkspace;
    check(f_.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room), "preparing a choice");
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    const cublasStatus_t status =
        f_.heuristic(handle_, operation_, plan.weights, plan.x, plan.y, plan.y, preference, 1, &result, &found);
    f_.preference_destroy(preference);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status, "choosing an algorithm");
    plan.usable = status == CUBLAS_STATUS_SUCCESS && found > 0;
    plan.algorithm = result.algo;
    return plan;
  }

  Functions f_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  std::map<std::tuple<unsigned, unsigned, unsigned>, Plan> plans_;
};

}  // namespace

std::unique_ptr<DenseLibrary> open_dense_library() {
  static const Functions* const functions = []() -> const Functions* {
    for (const char* const name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}) {
      void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);  // stays until the program ends
      static Functions loaded;
      if (library != nullptr && loaded.load(library)) return &loaded;
    }
    return nullptr;
  }();
  if (functions == nullptr) return nullptr;
  return std::make_unique<CublasLt>(*functions);
}

}  // namespace specsim::cuda

#else

namespace specsim::cuda {
std::unique_ptr<DenseLibrary> open_dense_library() { return nullptr; }
}  // namespace specsim::cuda

#endif

#endif
