// Kernel implementations: which one computes an operation, how long it takes, and the error of the estimate. Each implementation
// is one file, listed in implementations.h.
#pragma once

#include "sim/foundation/base/check.h"
#include "sim/hardware/latency/operation.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace specsim::cost {

constexpr double kSecondsPerMicro = 1e-6;
// Standard deviation of the logarithm of an estimate without a measurement; stated, not fitted.
constexpr double kStatedError = 0.3;

// Standard deviations of the logarithm of an estimated time. `shape` is independent from one shape of the operation to another;
// `common` is shared by all shapes of the implementation: an error of a whole GPU or type. `rows` is shared by all shapes too,
// but not by passes over one row.
struct KernelError {
  double shape = 0.0;
  double common = 0.0;
  double rows = 0.0;
  [[nodiscard]] double largest() const { return std::hypot(std::max(shape, common), rows); }
};
// Relative change of hypot(part, other) by a relative change of `part`.
inline double hypot_weight(double part, double other) { return part * part / (part * part + other * other); }

// The text that `pass --explain` prints for an implementation.
struct KernelLabel {
  std::string name;    // "measured product fp8_block (vllm)"
  std::string source;  // where its figures are from
};

template <class Work>
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;
  // Seconds of the work once; empty if this implementation does not compute such work.
  [[nodiscard]] virtual std::optional<double> seconds(const Work& work) const = 0;
  // Called only for work that it computes.
  [[nodiscard]] virtual KernelError error(const Work& work) const = 0;
  [[nodiscard]] virtual KernelLabel label(const Work& work) const = 0;
};

// The implementations of one operation in a deployment, the preferred one first. The first that takes the work computes it.
template <class Work>
class KernelList {
 public:
  struct Estimate {
    double seconds = 0.0;
    const Kernel<Work>* kernel = nullptr;
  };
  template <class Implementation, class... Arguments>
  Implementation& add(Arguments&&... arguments) {
    auto kernel = std::make_unique<Implementation>(std::forward<Arguments>(arguments)...);
    Implementation& added = *kernel;
    list_.push_back(std::move(kernel));
    return added;
  }
  void add(std::unique_ptr<Kernel<Work>> kernel) {
    if (kernel != nullptr) list_.push_back(std::move(kernel));
  }
  [[nodiscard]] Estimate estimate(const Work& work) const {
    for (const auto& kernel : list_)
      if (const std::optional<double> seconds = kernel->seconds(work)) return {*seconds, kernel.get()};
    SPECSIM_CHECK(false, "no kernel of {} computes an operation", list_.size());
    return {};
  }

 private:
  std::vector<std::unique_ptr<Kernel<Work>>> list_;
};

}  // namespace specsim::cost
