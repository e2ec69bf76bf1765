// Kernels that multiply quantised weights with activations quantised to int8, as llama.cpp's do on consumer GPUs, and its
// attention. One kernel serves few rows, another works in tiles for more rows. An engine's file states the limit between the two.
#pragma once

#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/engine.h"
#include "sim/hardware/latency/experts_kernels.h"
#include "sim/hardware/latency/kernel.h"
#include "sim/hardware/latency/product_kernels.h"

namespace specsim::cost {

// Standard deviations of the logarithm of their estimates, stated. Eight of llama.cpp's passes over Llama-2-7B at 32,768 cached
// tokens on an RTX 3090, to which no figure was fitted, are at most 10 % off; experts' kernels changed with llama.cpp's versions.
constexpr double kIntegerSpread = 0.15;
constexpr double kIntegerExpertsSpread = 0.25;
// Of the share of int8 arithmetic that the kernel for few rows reaches with K-quants: it differs from card to card even within an
// architecture (llama_cpp.yaml has the sweeps).
constexpr double kSuperBlockSpread = 0.3;
// Of a few rows of K-quants in tiles. The fewest measured in tiles are 16, but 8 on an RTX 4090 (llama.cpp pull request 26079).
constexpr double kFewRowsInTilesSpread = 0.3;

// Whether the engine has such kernels and the GPU runs them. Their shares were measured on consumer cards only; chips before
// Ampere are assumed to reach the same shares of their int8.
bool runs_integer_kernels(const Engine& engine, const Hardware& hardware);

// Common data of the three kernels. `efficiency`: share of a plain kernel's bandwidth that narrow weights reach, if a config
// gives it. The references must outlive this.
struct IntegerKernelSet {
  const Engine& engine;
  const Hardware& hardware;
  const CalibratedProduct& calibrated;
  std::optional<double> efficiency;

  [[nodiscard]] const IntegerKernels& figures() const { return *engine.integer; }
  // Bytes of a weight, scaled up so that reading them at the data sheet's bandwidth takes the kernel's actual time.
  [[nodiscard]] double bytes_as_read(double bits) const;
  [[nodiscard]] KernelLabel label(const char* what) const;
};

// Few rows: arithmetic of plain cores grows with every row and is partly hidden by reading. In tiles: a block reads a tile of
// weights, then multiplies, so that the two times add up.
class IntegerProduct final : public Kernel<ProductWork> {
 public:
  explicit IntegerProduct(const IntegerKernelSet& set) : set_(set) {}
  [[nodiscard]] std::optional<double> seconds(const ProductWork& work) const override;
  [[nodiscard]] KernelError error(const ProductWork& work) const override;
  [[nodiscard]] KernelLabel label(const ProductWork& /*work*/) const override { return set_.label("integer product"); }

 private:
  // Maximum rows of the kernel for few rows, and its times of reading and of arithmetic over `rows`.
  [[nodiscard]] double vector_rows(const WeightType& type) const;
  [[nodiscard]] double reading(const ProductWork& work) const;
  [[nodiscard]] double arithmetic(const ProductWork& work, double rows) const;

  const IntegerKernelSet& set_;
};

// Few tokens: each token reads its own chosen experts, even if another token reads the same ones. In tiles: an expert's tiles are
// as wide as the pass has tokens, because a kernel is chosen before the number of rows per expert is known. Most rows of the
// arithmetic are therefore empty.
class IntegerExperts final : public Kernel<ExpertsWork> {
 public:
  explicit IntegerExperts(const IntegerKernelSet& set) : set_(set) {}
  [[nodiscard]] std::optional<double> seconds(const ExpertsWork& work) const override;
  [[nodiscard]] KernelError error(const ExpertsWork& work) const override;
  [[nodiscard]] KernelLabel label(const ExpertsWork& /*work*/) const override { return set_.label("integer experts"); }

 private:
  const IntegerKernelSet& set_;
};

// Blocks share the keys; queries of heads that share them lie side by side in tiles of 8, 16, 32 or 64. The kernels for caches of
// fewer bits and for latent caches were not measured.
class TiledAttention final : public Kernel<AttentionWork> {
 public:
  // `fixed_us`: of a launch.
  TiledAttention(const IntegerKernelSet& set, double fixed_us) : set_(set), fixed_us_(fixed_us) {}
  [[nodiscard]] std::optional<double> seconds(const AttentionWork& work) const override;
  [[nodiscard]] KernelError error(const AttentionWork& /*work*/) const override { return {0.0, kIntegerSpread}; }
  [[nodiscard]] KernelLabel label(const AttentionWork& /*work*/) const override { return set_.label("tiled attention"); }

 private:
  const IntegerKernelSet& set_;
  double fixed_us_;
};

}  // namespace specsim::cost
