#ifdef SPECSIM_WITH_CUDA

#include "sim/lab/cuda/gemm.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <map>
#include <tuple>
#include <type_traits>
#include <vector>

#if __has_include(<cublasLt.h>)

namespace specsim::cuda {

namespace {

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw IoError(fmt::format("cuBLASLt: {}: status {}", what, static_cast<int>(status)));
}

bool load(void* library, CublasLt& f) {
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  return find(f.create, "cublasLtCreate") && find(f.destroy, "cublasLtDestroy") && find(f.version, "cublasLtGetVersion") &&
         find(f.matmul, "cublasLtMatmul") && find(f.operation_create, "cublasLtMatmulDescCreate") &&
         find(f.operation_destroy, "cublasLtMatmulDescDestroy") && find(f.operation_set, "cublasLtMatmulDescSetAttribute") &&
         find(f.layout_create, "cublasLtMatrixLayoutCreate") && find(f.layout_destroy, "cublasLtMatrixLayoutDestroy") &&
         find(f.preference_create, "cublasLtMatmulPreferenceCreate") &&
         find(f.preference_destroy, "cublasLtMatmulPreferenceDestroy") &&
         find(f.preference_set, "cublasLtMatmulPreferenceSetAttribute") && find(f.heuristic, "cublasLtMatmulAlgoGetHeuristic");
}

template <class T>
using Handle = std::unique_ptr<std::remove_pointer_t<T>, cublasStatus_t (*)(T)>;

template <class T, class... Arguments>
Handle<T> make(cublasStatus_t (*create)(T*, Arguments...), cublasStatus_t (*destroy)(T), const char* what,
               std::type_identity_t<Arguments>... arguments) {
  T handle = nullptr;
  check(create(&handle, arguments...), what);
  return {handle, destroy};
}

class Library final : public GemmLibrary {
 public:
  explicit Library(const CublasLt& functions)
      : f_(functions),
        handle_(make(f_.create, f_.destroy, "starting")),
        operation_(make(f_.operation_create, f_.operation_destroy, "describing a product", CUBLAS_COMPUTE_32F, CUDA_R_32F)),
        preference_(make(f_.preference_create, f_.preference_destroy, "preparing a choice")) {
    const cublasOperation_t transposed = CUBLAS_OP_T;
    check(f_.operation_set(operation_.get(), CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
          "describing a product");
    const std::size_t room = kWorkspace;
    check(f_.preference_set(preference_.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room),
          "preparing a choice");
  }
  [[nodiscard]] std::string name() const override { return fmt::format("cuBLASLt {}", f_.version()); }

  bool multiply(const Gemm& p, void* workspace, cudaStream_t stream) override {
    const auto [place, fresh] = plans_.try_emplace(std::tuple(p.outputs, p.columns, p.rows));
    Plan& plan = place->second;
    try {
      if (fresh) plan = plan_for(p);
      for (; !plan.ways.empty(); plan.ways.pop_back()) {
        const float one = 1.0F;
        const float beta = p.add ? 1.0F : 0.0F;
        const cublasStatus_t status =
            f_.matmul(handle_.get(), operation_.get(), &one, p.weights, plan.weights.get(), p.x, plan.x.get(), &beta, p.y,
                      plan.y.get(), p.y, plan.y.get(), &plan.ways.back(), workspace, kWorkspace, stream);
        plan.works = plan.works || status == CUBLAS_STATUS_SUCCESS;
        if (status == CUBLAS_STATUS_SUCCESS) return true;
        if (plan.works || plan.ways.size() == 1) check(status, "multiplying");
      }
    } catch (const IoError& refused) {
      if (plan.works) throw;
      plan.ways.clear();
      print_error("{}; the product {} x {} by {} rows is computed without it\n", refused.what(), p.outputs, p.columns, p.rows);
    }
    return false;
  }

 private:
  using Layout = Handle<cublasLtMatrixLayout_t>;
  struct Plan {
    Layout weights = {nullptr, nullptr};
    Layout x = {nullptr, nullptr};
    Layout y = {nullptr, nullptr};
    std::vector<cublasLtMatmulAlgo_t>
        ways;  // algorithms that support it, the best last; those that the library refuses are removed
    bool works = false;
  };

  // Column-major, as the library sees memory: y (outputs x rows) = weights^T (columns x outputs) x (columns x rows).
  [[nodiscard]] Plan plan_for(const Gemm& p) const {
    const auto layout = [&](cudaDataType type, std::uint64_t rows, std::uint64_t columns) {
      return make(f_.layout_create, f_.layout_destroy, "describing a matrix", type, rows, columns,
                  static_cast<std::int64_t>(rows));
    };
    Plan plan{.weights = layout(CUDA_R_16BF, p.columns, p.outputs),
              .x = layout(CUDA_R_16BF, p.columns, p.rows),
              .y = layout(CUDA_R_32F, p.outputs, p.rows),
              .ways = {}};
    std::array<cublasLtMatmulHeuristicResult_t, 8> results = {};
    int found = 0;
    check(f_.heuristic(handle_.get(), operation_.get(), plan.weights.get(), plan.x.get(), plan.y.get(), plan.y.get(),
                       preference_.get(), static_cast<int>(results.size()), results.data(), &found),
          "choosing an algorithm");
    for (int i = found; i-- > 0;)
      if (const auto& result = results.at(static_cast<std::size_t>(i)); result.state == CUBLAS_STATUS_SUCCESS)
        plan.ways.push_back(result.algo);
    if (plan.ways.empty()) check(CUBLAS_STATUS_NOT_SUPPORTED, "choosing an algorithm");
    return plan;
  }

  CublasLt f_;
  Handle<cublasLtHandle_t> handle_;
  Handle<cublasLtMatmulDesc_t> operation_;
  Handle<cublasLtMatmulPreference_t> preference_;
  std::map<std::tuple<unsigned, unsigned, unsigned>, Plan> plans_;
};

}  // namespace

std::unique_ptr<GemmLibrary> open_gemm_library(const CublasLt& functions) {
  try {
    return std::make_unique<Library>(functions);
  } catch (const IoError& refused) {
    print_error("{}; products are computed without it\n", refused.what());
    return nullptr;
  }
}

std::unique_ptr<GemmLibrary> open_gemm_library() {
  static const CublasLt* const functions = []() -> const CublasLt* {
    for (const char* const name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}) {
      void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);  // stays loaded until the program ends
      static CublasLt loaded;
      if (library != nullptr && load(library, loaded)) return &loaded;
    }
    return nullptr;
  }();
  return functions != nullptr ? open_gemm_library(*functions) : nullptr;
}

}  // namespace specsim::cuda

#else

namespace specsim::cuda {
std::unique_ptr<GemmLibrary> open_gemm_library() { return nullptr; }
}  // namespace specsim::cuda

#endif

#endif
