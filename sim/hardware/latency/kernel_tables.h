// Tables of measured kernels, compared row by row with their estimated times: how far to trust an estimate.
#pragma once

#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/gpu/kernels.h"
#include "sim/hardware/latency/estimate_errors.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::cost {

struct EstimatedKernel {
  std::string gpu;
  std::string engine;
  std::string dtype;
  double rows = 0.0;       // rows of a product, tokens or sequences of attention, bytes of an all-reduce
  double us = 0.0;         // measured
  double priced_us = 0.0;  // 0: not estimated
  bool covered = false;    // by a fit of this GPU, engine and dtype, within the measured range
  // measured with weights or keys in the second-level cache, where a model's never are; excluded from errors
  bool warm = false;
};

struct EstimatedKernels {
  KernelKind kind = KernelKind::product;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> lines;  // the table's fields, unchanged
  std::vector<EstimatedKernel> rows;            // one for each line
  std::vector<std::string> warnings;
};

// `fields` are the lines of a table; its header identifies the kind: gemm_aic, attention_decode_aic, attention_prefill_aic,
// attention_latent_aic, attention_verify, moe_aic or allreduce_aic of aiconfigurator's collectors. Throws BadInput with the line
// of `file`. `own`: further GPUs by the names that rows use, looked up before those of configs/hardware.
EstimatedKernels estimate_kernel_table(const std::string& file, const std::vector<std::vector<std::string>>& fields,
                                       const std::map<std::string, Hardware>& own = {});

// A layer of experts that aiconfigurator's collectors measure without a gate, although their rows do not state it: Nemotron's.
struct UngatedLayer {
  double hidden = 0.0;
  double width = 0.0;  // for one expert of the whole model
};
const std::vector<UngatedLayer>& ungated_layers();
// An engine whose version supported no experts without a gate, so that it measured the same layers with a gate.
constexpr std::string_view kAlwaysGatedEngine = "sglang";
constexpr std::string_view kAlwaysGatedVersion = "0.5.10";

// Of a group of rows.
struct KernelErrors : EstimateErrors {
  std::string gpu;
  std::string engine;
  std::string dtype;
  std::string rows;  // "1", "2-16", ...; "all"
  std::size_t covered = 0;
};

// Errors by GPU, engine and dtype: over all rows and band by band, in the order of the names. Rows without an estimate and rows
// that were measured warm are excluded.
std::vector<KernelErrors> kernel_errors(const EstimatedKernels& table);

}  // namespace specsim::cost
