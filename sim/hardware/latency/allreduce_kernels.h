// Implementations of all-reduces.
#pragma once

#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/engine.h"
#include "sim/hardware/latency/kernel.h"
#include "sim/hardware/latency/product_kernels.h"

#include <optional>
#include <string>

namespace specsim::cost {

// All-reduces by fits of measured ones.
class MeasuredAllReduce final : public Kernel<AllReduceWork> {
 public:
  // `rule`: which of the library's kernels the engine runs. `switch_share`: share of a link's rate that sums in the switch
  // between GPUs reach; 0: not used. `waits`: a launched all-reduce was timed with its launch, which the engine's passes wait
  // for.
  MeasuredAllReduce(const KernelLibrary& library, const KernelRule& rule, double switch_share, bool waits)
      : library_(library), rule_(rule), switch_share_(switch_share), waits_(waits) {}
  [[nodiscard]] std::optional<double> seconds(const AllReduceWork& work) const override;
  [[nodiscard]] KernelError error(const AllReduceWork& work) const override;
  [[nodiscard]] KernelLabel label(const AllReduceWork& work) const override;
  [[nodiscard]] const KernelFit* fit(double gpus, bool launched) const;

 private:
  const KernelLibrary& library_;
  KernelRule rule_;
  double switch_share_;
  bool waits_;
};

// A latency, and bytes over the rate of the links: rings, by the data sheet. Over PCIe, NCCL as measured on another GPU.
class LinkAllReduce final : public Kernel<AllReduceWork> {
 public:
  explicit LinkAllReduce(const Hardware& hardware) : hardware_(hardware) {}
  [[nodiscard]] std::optional<double> seconds(const AllReduceWork& work) const override;
  [[nodiscard]] KernelError error(const AllReduceWork& work) const override;
  [[nodiscard]] KernelLabel label(const AllReduceWork& work) const override;

 private:
  const Hardware& hardware_;
};

}  // namespace specsim::cost
