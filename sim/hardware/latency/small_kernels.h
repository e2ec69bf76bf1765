// Elementwise kernels, indexers of sparse attention, and all-reduces and exchanges between GPUs.
#pragma once

#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/engine.h"
#include "sim/hardware/latency/kernel.h"
#include "sim/hardware/latency/product_kernels.h"

#include <optional>
#include <string>

namespace specsim::cost {

// Bytes at the bandwidth that a long stream reaches, plus a fixed time.
class StreamKernel final : public Kernel<StreamWork> {
 public:
  explicit StreamKernel(const Hardware& hardware) : hardware_(hardware) {}
  [[nodiscard]] std::optional<double> seconds(const StreamWork& work) const override {
    return 1e-6 * work.fixed_us + work.bytes / (hardware_.bandwidth * hardware_.calibration.memory_efficiency);
  }
  [[nodiscard]] KernelError error(const StreamWork& /*work*/) const override { return {0.0, kStatedError}; }
  [[nodiscard]] KernelLabel label(const StreamWork& /*work*/) const override {
    return {"elementwise", "calibration of " + (hardware_.fitted_on.empty() ? hardware_.name : hardware_.fitted_on)};
  }

 private:
  const Hardware& hardware_;
};

// Keys are read once per sequence. A score for each pair of a new token and an earlier entry is written and read again. The best
// entries are selected row by row.
class IndexerKernel final : public Kernel<IndexWork> {
 public:
  // `selection_ns_per_key`: nanoseconds for each score of a row that the best are selected from.
  IndexerKernel(const Hardware& hardware, double selection_ns_per_key)
      : hardware_(hardware), selection_ns_per_key_(selection_ns_per_key) {}
  [[nodiscard]] std::optional<double> seconds(const IndexWork& work) const override;
  [[nodiscard]] KernelError error(const IndexWork& /*work*/) const override { return {0.0, kStatedError}; }
  [[nodiscard]] KernelLabel label(const IndexWork& /*work*/) const override {
    return {"indexer", "aiconfigurator 095f58a5: whole attention layers of H100, H200, B200"};
  }

 private:
  const Hardware& hardware_;
  double selection_ns_per_key_;
};

// Rows sent to the experts of other GPUs: a latency, and bytes over the links.
class ExchangeKernel final : public Kernel<ExchangeWork> {
 public:
  explicit ExchangeKernel(const Hardware& hardware) : hardware_(hardware) {}
  [[nodiscard]] std::optional<double> seconds(const ExchangeWork& work) const override {
    const double latency = work.launched ? hardware_.link_latency : hardware_.graph_link_latency;
    return latency + work.bytes / link_bandwidth(hardware_, work.gpus);
  }
  [[nodiscard]] KernelError error(const ExchangeWork& /*work*/) const override { return {0.0, kStatedError}; }
  [[nodiscard]] KernelLabel label(const ExchangeWork& /*work*/) const override {
    return {"exchange", "link of " + hardware_.name};
  }

 private:
  const Hardware& hardware_;
};

// All-reduces by fits of measured ones.
class MeasuredAllReduce final : public Kernel<AllReduceWork> {
 public:
  // `rule`: which of the library's kernels the engine runs. `switch_share`: share of a link's rate that sums in the switch
  // between GPUs reach; none: not used. `waits`: a launched all-reduce was timed with its launch, which the engine's passes wait
  // for.
  MeasuredAllReduce(const KernelLibrary& library, KernelRule rule, std::optional<double> switch_share, bool waits)
      : library_(library), rule_(std::move(rule)), switch_share_(switch_share), waits_(waits) {}
  [[nodiscard]] std::optional<double> seconds(const AllReduceWork& work) const override;
  [[nodiscard]] KernelError error(const AllReduceWork& work) const override;
  [[nodiscard]] KernelLabel label(const AllReduceWork& work) const override;
  [[nodiscard]] const KernelFit* fit(double gpus, bool launched) const;

 private:
  const KernelLibrary& library_;
  KernelRule rule_;
  std::optional<double> switch_share_;
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
