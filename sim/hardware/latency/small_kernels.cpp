#include "sim/hardware/latency/small_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::cost {

namespace {

constexpr double kSwitchLink = 400e9;    // bytes per second: NVLink 4 and later, whose switches add up the data
constexpr double kSmallMessage = 65536;  // bytes that an all-reduce moves within its least time
// Standard deviation of the logarithm of an all-reduce over PCIe, which passes through the host's memory if GPUs cannot reach
// each other. Stated: vLLM's steps over two or four RTX 3090 and four RTX PRO 6000 take 15 to 30 us, those of Qwen3-32B over two
// RTX PRO 6000 of another host 75.
constexpr double kPcieSpread = 0.6;
// The same over a mesh of AMD's links: nobody timed it. Assumed.
constexpr double kMeshSpread = 0.6;

// NCCL's sums between GPUs without NVLink, as measured on such a GPU. Eight L40S sum large messages at a thirtieth of a link's
// rate, two at .6 of it, because the links meet in the host.
const KernelFit* nccl_over_pcie() {
  static const KernelFit* const found = [] {
    for (const Hardware& gpu : measured_gpus())
      if (!has_nvlink(gpu) && gpu.kernels)
        if (const KernelFit* fit = gpu.kernels->find(KernelKind::allreduce, "nccl-tests", "bfloat16")) return fit;
    return static_cast<const KernelFit*>(nullptr);
  }();
  return found;
}

bool over_pcie(const Hardware& hardware) {
  return !has_nvlink(hardware) && !hardware.mesh_gpus && hardware.maker != Maker::google;
}

}  // namespace

std::optional<double> IndexerKernel::seconds(const IndexWork& work) const {
  constexpr double kScoreBytes = 4.0;   // fp32
  constexpr double kScorePasses = 2.0;  // written by the product with the keys, read by the selection
  // Share of the arithmetic in 8 bits: fitted to prompts of 16,384 and 32,768 tokens, where each pair takes 21 ps (H200, vLLM
  // 0.24) and 12 ps (B200), of which the selection takes 3.
  constexpr double kScoreShare = 0.5;
  const double scores = work.rows * work.scored * kScoreBytes * kScorePasses;
  const double reading = (work.key_bytes + scores) / (hardware_.bandwidth * hardware_.calibration.memory_efficiency);
  const double narrow = peak_flops(hardware_, Arithmetic::fp8);
  const double operations = 2.0 * work.heads * work.head_dim * work.rows * work.scored;
  const double scoring = operations / (kScoreShare * (narrow > 0.0 ? narrow : hardware_.flops));
  // One multiprocessor selects the best entries of a row.
  const double turns = std::ceil(work.rows / std::max(1.0, hardware_.multiprocessors));
  return std::max(reading, scoring) + 1e-9 * selection_ns_per_key_ * turns * work.scored;
}

const KernelFit* MeasuredAllReduce::fit(double gpus, bool launched) const {
  const Hardware& hardware = library_.hardware();
  if (hardware.other_links) return nullptr;
  if (rule_.most_pcie_gpus && gpus > *rule_.most_pcie_gpus && !has_nvlink(hardware))
    if (const KernelFit* nccl = hardware.kernels->find(KernelKind::allreduce, "nccl-tests", "bfloat16")) return nccl;
  return library_.fit(KernelKind::allreduce, "bfloat16", launched ? rule_.launched_kernel : rule_.kernel);
}

std::optional<double> MeasuredAllReduce::seconds(const AllReduceWork& work) const {
  const bool launched = work.launched && waits_;
  const KernelFit* found = fit(work.gpus, launched);
  if (found == nullptr) return std::nullopt;
  const Hardware& hardware = library_.hardware();
  KernelShape x;
  x.gpus = work.gpus;
  x.bytes = work.bytes;
  double us = found->microseconds(hardware, x);
  if (switch_share_ && !launched && hardware.link_bandwidth >= kSwitchLink) {
    x.bytes = std::min(work.bytes, kSmallMessage);
    const double beyond = (work.bytes - x.bytes) / (hardware.link_bandwidth * *switch_share_) / kSecondsPerMicro;
    us = std::min(us, found->microseconds(hardware, x) + beyond);
  }
  return kSecondsPerMicro * us;
}

KernelError MeasuredAllReduce::error(const AllReduceWork& work) const {
  return {fit(work.gpus, false)->spread, library_.hardware().kernels_spread};
}

KernelLabel MeasuredAllReduce::label(const AllReduceWork& work) const {
  return library_.label(*fit(work.gpus, work.launched && waits_));
}

std::optional<double> LinkAllReduce::seconds(const AllReduceWork& work) const {
  const double latency = work.launched ? hardware_.link_latency : hardware_.graph_link_latency;
  const double moved = work.bytes * 2.0 * (work.gpus - 1.0) / work.gpus;
  if (const KernelFit* const nccl = over_pcie(hardware_) ? nccl_over_pcie() : nullptr) {
    KernelShape x;
    x.gpus = work.gpus;
    x.bytes = work.bytes;
    return std::max(latency, kSecondsPerMicro * nccl->microseconds(hardware_, x));
  }
  return latency + moved / link_bandwidth(hardware_, work.gpus);
}

KernelError LinkAllReduce::error(const AllReduceWork& /*work*/) const {
  return {0.0, hardware_.mesh_gpus ? kMeshSpread : has_nvlink(hardware_) ? kStatedError : kPcieSpread};
}

KernelLabel LinkAllReduce::label(const AllReduceWork& work) const {
  if (over_pcie(hardware_) && nccl_over_pcie() != nullptr)
    return {"NCCL over PCIe", fmt::format("an L40S's, at the {:g} GB/s of {}", 1e-9 * hardware_.link_bandwidth, hardware_.name)};
  return {"link", fmt::format("{} at {:g} GB/s and {:g} us", hardware_.name, 1e-9 * link_bandwidth(hardware_, work.gpus),
                              1e6 * (work.launched ? hardware_.link_latency : hardware_.graph_link_latency))};
}

}  // namespace specsim::cost
