// Layers of experts: chooses the measured kernel (configs/kernels) that estimates one, and states the error.
#include "sim/hardware/latency/experts_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace specsim::cost {

namespace {

constexpr double kUsualSkew = 1.01;  // exponent of the routing's power law: the mildest that was measured
constexpr const char* kPlain = "bfloat16";
// Experts quantised by tensor have no more bytes or arithmetic than those with scales by block. If their kernel was measured at
// this much more, the version chose a bad kernel, which the next version fixes; the fit of the others is then used.
constexpr const char* kByTensor = "fp8";
constexpr const char* kByBlock = "fp8_block";
// Marlin unpacks integers and MXFP4 of four bits to bf16 before the same tensor cores, on Blackwell as on Ampere. If only one of
// the two was measured on a GPU, its fit is used for the other. With one such layer of an A100 and its correction, the median
// error of other mixtures is 6 % and the 90th percentile 24 % (128 to 512 experts, 1 to 256 tokens); mixtures of eight experts
// have 7 and 33 % without the correction.
constexpr std::array<std::string_view, 2> kUnpackedByMarlin = {"int4_wo", "w4a16_mxfp4"};
constexpr double kFewerExperts = 3.0;  // binary logarithm, of those that the correction was made from over a layer's
// TensorRT-LLM's kernel for experts without a gate, which computes no others.
constexpr const char* kNongatedKernel = "nongated";
constexpr const char* kTensorRt = "trtllm";  // engine with weight-only kernels of its own
constexpr const char* kGenerated = "flashinfer_trtllm";

// Standard deviation of the logarithm of an estimate for a layer that differs from those measured with its kernel, or by another
// engine's kernel. Stated: served mixtures were off by 1.2 to 1.5 times if their layers were in no table.
constexpr double kUnlikeSpread = 0.3;

bool unpacked_by_marlin(std::string_view name) {
  return std::find(kUnpackedByMarlin.begin(), kUnpackedByMarlin.end(), name) != kUnpackedByMarlin.end();
}

KernelShape shape_of(const ExpertsWork& work) {
  KernelShape x;
  x.hidden = work.hidden;
  x.expert_width = work.width;
  x.experts = work.experts;
  x.experts_per_token = work.per_token;
  x.tokens = work.tokens;
  x.alike = work.alike;
  x.skew = kUsualSkew;
  x.matrices = work.gated ? 3.0 : 2.0;
  return x;
}

// Whether the kernel belongs to the library. TensorRT-LLM's generated kernels for Blackwell were timed as vLLM and SGLang call
// them, through FlashInfer; for TensorRT-LLM itself the public table has only CUTLASS and the kernels for few tokens.
bool belongs_to(const KernelFit& fit, const std::string& library) {
  return fit.engine == library || fit.engine == "any" ||
         (library == kTensorRt && fit.kernel.find(kGenerated) != std::string::npos);
}

// Whether the kernel computes experts with this many matrices.
bool computes(const KernelFit& fit, const KernelShape& x) {
  return x.matrices < 3.0 || fit.kernel.find(kNongatedKernel) == std::string::npos;
}

}  // namespace

// If none of the engine's kernels was measured on a layer like this one, the kernel with the most measured layers is used; a
// kernel measured on a single other layer gives no information about this one. With more tokens than were measured the choice
// stays the same, but no longer counts as measured.
MeasuredExperts::Choice MeasuredExperts::fastest(const KernelShape& shape, const std::string& dtype, bool own) const {
  const Hardware& hardware = library_.hardware();
  Choice like;
  double least = 0.0;
  const KernelFit* usual = nullptr;
  for (const KernelFit& one : hardware.kernels->list) {
    if (one.kind != KernelKind::experts || one.dtype.name != dtype || !computes(one, shape)) continue;
    if (own && !belongs_to(one, library_.name())) continue;
    KernelShape within = shape;
    within.tokens = std::clamp(shape.tokens, std::exp2(one.over.front()), one.most());
    const bool covers = one.covers(hardware, within);
    if (!covers && one.of_one_layer()) continue;
    if (usual == nullptr || one.rows > usual->rows) usual = &one;
    if (!covers) continue;
    const double us = one.microseconds(hardware, within);
    if (like.kernel != nullptr && us >= least) continue;
    least = us;
    const bool measured = own && one.covers(hardware, shape);
    like = {&one, one.microseconds(hardware, shape), measured ? Basis::like : Basis::others};
  }
  if (like.kernel != nullptr || usual == nullptr) return like;
  return {usual, usual->microseconds(hardware, shape), Basis::others};
}

// Experts of four bits with bf16 activations by Marlin, as measured with another such type. Among the engine's own fits and
// others', uses the one with the most measured layers.
MeasuredExperts::Choice MeasuredExperts::marlin(const KernelShape& shape, const WeightType& type) const {
  if (!unpacked_by_marlin(type.name) || library_.name() == kTensorRt) return {};
  const KernelFit* most = nullptr;
  for (const KernelFit& one : library_.hardware().kernels->list) {
    if (one.kind != KernelKind::experts || one.dtype.name == type.name || !unpacked_by_marlin(one.dtype.name)) continue;
    if (one.kernel.find(kMarlin) == std::string::npos) continue;
    const auto rank = [&](const KernelFit& fit) { return std::pair(fit.engine == library_.name(), fit.rows); };
    if (most == nullptr || rank(one) > rank(*most)) most = &one;
  }
  if (most == nullptr) return {};
  KernelFit stored = *most;
  stored.dtype.weight_bytes = type.bits / 8.0;
  if (most->by[0].empty() || std::log2(shape.experts) < most->by[0].front() - kFewerExperts)
    std::fill(stored.correction.begin(), stored.correction.end(), 0.0);
  return {most, stored.microseconds(library_.hardware(), shape), Basis::others};
}

// An engine without any kernel of the type uses the fastest of all engines' kernels. A type without measurements is estimated by
// the formula of the bf16 kernels with fewer bytes, including their floors and tiles; the loss of weight-only kernels from a few
// rows on is added.
MeasuredExperts::Choice MeasuredExperts::choose(const ExpertsWork& work) const {
  const KernelShape x = shape_of(work);
  if (const KernelFit* found = library_.fit_of(KernelKind::experts, work.type))
    for (const bool own : {true, false})
      if (const Choice choice = fastest(x, std::string(found->dtype.name), own); choice.kernel != nullptr) {
        if (found->dtype.name != kByTensor) return choice;
        const Choice blocks = fastest(x, kByBlock, own);
        return blocks.kernel != nullptr && choice.us > kMuchSlower * blocks.us ? blocks : choice;
      }
  if (const Choice choice = marlin(x, work.type); choice.kernel != nullptr) return choice;
  Choice plain = fastest(x, kPlain, true);
  if (plain.kernel == nullptr) plain = fastest(x, kPlain, false);
  if (plain.kernel == nullptr) return {};
  KernelFit one = *plain.kernel;
  one.dtype.weight_bytes = work.type.bits / 8.0;
  if (const Dtype* narrow = find_dtype(std::string(work.type.name))) one.dtype = *narrow;
  std::fill(one.correction.begin(), one.correction.end(), 0.0);  // the fit is of another kernel
  const double rows = std::max(1.0, work.tokens * work.per_token / std::max(1.0, work.met));
  // Any engine's median: the growth of experts under Marlin was not measured.
  const double slowdown = of_weights_alone(work.type) ? WeightOnlyKernels{}.slowdown(one.dtype.weight_bytes, rows) : 1.0;
  return {plain.kernel, slowdown * one.microseconds(library_.hardware(), x), Basis::bytes};
}

bool MeasuredExperts::as_blocks(const Choice& choice, const ExpertsWork& work) {
  return choice.kernel->dtype.name == kByBlock && work.type.name != kByBlock;
}

std::optional<double> MeasuredExperts::seconds(const ExpertsWork& work) const {
  const Choice choice = choose(work);
  return choice.kernel == nullptr ? std::nullopt : std::optional(kSecondsPerMicro * choice.us);
}

KernelError MeasuredExperts::error(const ExpertsWork& work) const {
  const Choice choice = choose(work);
  const double spread = choice.basis == Basis::like ? choice.kernel->spread : std::max(choice.kernel->spread, kUnlikeSpread);
  return {spread, library_.hardware().kernels_spread};
}

KernelLabel MeasuredExperts::label(const ExpertsWork& work) const {
  const Choice choice = choose(work);
  KernelLabel label = library_.label(*choice.kernel);
  if (choice.basis == Basis::others) label.source += ", other layers or another engine";
  if (choice.basis == Basis::bytes) label.source += ", by the bytes";
  return label;
}

}  // namespace specsim::cost
