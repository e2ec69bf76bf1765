// Chooses the kernel implementation of each operation of a model's passes in a deployment. No other file knows GPU, engine and
// types together.
#pragma once

#include "sim/hardware/latency/attention_kernels.h"
#include "sim/hardware/latency/deployment.h"
#include "sim/hardware/latency/experts_kernels.h"
#include "sim/hardware/latency/integer_kernels.h"
#include "sim/hardware/latency/kernel.h"
#include "sim/hardware/latency/product_kernels.h"
#include "sim/hardware/latency/small_kernels.h"

#include <optional>
#include <string>

namespace specsim::cost {

// The engine whose measured kernels run: `choice` itself, or with automatic those of the engine's `library`; an engine without a
// library uses the kernels that the GPU names. Empty: the data sheet's formula and the calibration.
std::string kernels_in_use(const std::string& choice, const std::string& library, const Hardware& hardware);
// Reports all-reduce kernels of an engine's table that are neither among the GPU's fits nor named by an engine of
// configs/engines.
void check_allreduce_kernels(const Engine& engine, const Hardware& hardware, Diagnostics& diagnostics);

constexpr double kNorms = 2.0;              // norms of a layer
constexpr double kCalibratedKernels = 4.0;  // kernels of a layer whose fixed times Calibration::elementwise_us adds up

// The kernels that the passes of one model run, the target's or the draft's.
class ModelKernels {
 public:
  // Both must outlive this.
  ModelKernels(const Deployment& deployment, const ModelShape& model);
  ModelKernels(const ModelKernels&) = delete;
  ModelKernels& operator=(const ModelKernels&) = delete;

  struct Estimate {
    double seconds = 0.0;  // of the operation once
    KernelError error;
    KernelLabel label;
  };
  [[nodiscard]] double seconds(const Operation& operation) const;
  [[nodiscard]] Estimate estimate(const Operation& operation) const;

  // Small kernels of a layer, besides its products and attention.
  struct LayerKernels {
    double fixed_us = 0.0;
    bool counted = false;  // the engine states how many there are, so that their bytes are counted kernel by kernel
  };
  [[nodiscard]] LayerKernels layer_kernels() const;
  // Whether measured layers of experts exclude the router's scores, which are then a product of their own.
  [[nodiscard]] bool routes_separately(const ExpertsWork& work) const;

  // nullptr: no kernel of the GPU was measured, or kernels are switched off.
  [[nodiscard]] const MeasuredProduct* measured_products() const { return measured_products_; }
  [[nodiscard]] const MeasuredExperts* measured_experts() const { return measured_experts_; }
  [[nodiscard]] const MeasuredAttention* measured_attention() const { return measured_attention_; }
  [[nodiscard]] const LatentAttention* latent_attention() const { return latent_attention_; }
  [[nodiscard]] const MeasuredAllReduce* measured_allreduce() const { return measured_allreduce_; }
  [[nodiscard]] bool integer() const { return integer_set_.has_value(); }

  KernelList<ProductWork> products;
  KernelList<ExpertsWork> experts;
  KernelList<AttentionWork> attention;
  KernelList<IndexWork> indexers;
  KernelList<AllReduceWork> allreduces;
  KernelList<ExchangeWork> exchanges;
  KernelList<StreamWork> streams;

 private:
  // Whether the engine has small kernels and a least attention time of its own for the model's layers: integer kernels run, and
  // some of the weights are narrow enough for them.
  [[nodiscard]] bool own_layers() const;

  const Deployment& deployment_;
  const ModelShape& model_;
  std::optional<KernelLibrary> library_;
  std::optional<KernelLibrary> allreduce_library_;
  bool fuses_norms_ = false;
  std::optional<IntegerKernelSet> integer_set_;
  const MeasuredProduct* measured_products_ = nullptr;
  const MeasuredExperts* measured_experts_ = nullptr;
  const MeasuredAttention* measured_attention_ = nullptr;
  const LatentAttention* latent_attention_ = nullptr;
  const MeasuredAllReduce* measured_allreduce_ = nullptr;
};

}  // namespace specsim::cost
