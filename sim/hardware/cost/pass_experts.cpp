// Layers of experts: which of the measured kernels prices one, and how far that is to be trusted.
#include "sim/hardware/cost/pass_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace specsim::cost {

namespace {

constexpr double kFromMicro = 1e-6;
constexpr double kUsualSkew = 1.01;  // exponent of the routing's power law: the mildest that was measured
constexpr const char* kPlain = "bfloat16";
// Experts quantised by tensor have no more bytes or arithmetic than those with scales by block: where their kernel was measured
// at so much more, a version's choice of it is at work, which the next one mends, and the others' serves.
constexpr const char* kByTensor = "fp8";
constexpr const char* kByBlock = "fp8_block";
constexpr double kMuchDearer = 1.5;
// Marlin unpacks integers and MXFP4 of four bits to bf16 before the same tensor cores, on Blackwell as on Ampere: where one of
// them was measured on a GPU, it prices the other. By one such layer of an A100 those of other mixtures come out within 6 % in
// the middle and 24 % at the 90th percentile (128 to 512 experts, 1 to 256 tokens) with its correction, and those of eight
// experts within 7 and 33 % without.
constexpr std::array<std::string_view, 2> kUnpackedByMarlin = {"int4_wo", "w4a16_mxfp4"};
constexpr double kFewerExperts = 3.0;  // binary logarithm, of those that the correction was made from over a layer's
constexpr const char* kMarlin = "marlin";
constexpr const char* kWithoutMarlin = "trtllm";  // has kernels of its own for weights alone
constexpr double kFewTokens = 16.0;               // tokens of a pass, to say which kernel computes a model's experts

// Standard deviation of the logarithm of the price of a layer unlike those that its kernel was measured on, or on another
// engine's kernel. Stated: served mixtures were off by 1.2 to 1.5 times where their layers were in no table.
constexpr double kUnlikeSpread = 0.3;

KernelShape layer_of(const ModelShape& model, double tokens) {
  KernelShape x;
  x.hidden = model.hidden;
  x.expert_width = model.expert_ffn / model.tensor_parallel;
  x.experts = model.experts / model.expert_parallel;
  x.experts_per_token = model.experts_per_token / model.expert_parallel;
  x.tokens = tokens;
  x.skew = kUsualSkew;
  return x;
}

}  // namespace

// An engine runs the fastest of its kernels that take such a layer, over however many tokens; where none of them was measured on
// one like it, the kernel of most layers is the usual one, and of a kernel that was measured on a single other layer nothing is
// known. More tokens than were measured leave the choice as it is, and are no longer like what was measured.
PassKernels::ExpertsPrice PassKernels::fastest_experts(const KernelShape& x, const std::string& type, bool own) const {
  ExpertsPrice like;
  double least = 0.0;
  const KernelFit* usual = nullptr;
  for (const KernelFit& one : hardware_.kernels->list) {
    if (one.kind != KernelKind::experts || one.dtype.name != type) continue;
    if (own && one.engine != engine_ && one.engine != "any") continue;
    KernelShape within = x;
    within.tokens = std::clamp(x.tokens, std::exp2(one.over.front()), one.most());
    const bool covers = one.covers(hardware_, within);
    if (!covers && one.of_one_layer()) continue;
    if (usual == nullptr || one.rows > usual->rows) usual = &one;
    if (!covers) continue;
    const double us = one.microseconds(hardware_, within);
    if (like.kernel != nullptr && us >= least) continue;
    least = us;
    const bool measured = own && one.covers(hardware_, x);
    like = {&one, one.microseconds(hardware_, x), measured ? Measured::like : Measured::others};
  }
  if (like.kernel != nullptr || usual == nullptr) return like;
  return {usual, usual->microseconds(hardware_, x), Measured::others};
}

// Of the engine's own fits and others', the one whose layers are the most.
PassKernels::ExpertsPrice PassKernels::marlin_experts(const KernelShape& x, double bits, const std::string& type) const {
  const auto unpacked = [](std::string_view name) {
    return std::ranges::find(kUnpackedByMarlin, name) != kUnpackedByMarlin.end();
  };
  if (!unpacked(type) || engine_ == kWithoutMarlin) return {};
  const KernelFit* most = nullptr;
  for (const KernelFit& one : hardware_.kernels->list) {
    if (one.kind != KernelKind::experts || one.dtype.name == type || !unpacked(one.dtype.name)) continue;
    if (one.kernel.find(kMarlin) == std::string::npos) continue;
    const auto rank = [&](const KernelFit& fit) { return std::pair(fit.engine == engine_, fit.rows); };
    if (most == nullptr || rank(one) > rank(*most)) most = &one;
  }
  if (most == nullptr) return {};
  KernelFit stored = *most;
  stored.dtype.weight_bytes = bits / 8.0;
  if (most->by[0].empty() || std::log2(x.experts) < most->by[0].front() - kFewerExperts)
    std::fill(stored.correction.begin(), stored.correction.end(), 0.0);
  return {most, stored.microseconds(hardware_, x), Measured::others};
}

// An engine without any kernel of the type is priced with the fastest of all engines'. A type that nobody measured takes fewer
// bytes than bf16 by the formula of the kernels for that, whose floors and tiles it has too; what kernels for weights alone lose
// from a few rows on comes on top.
PassKernels::ExpertsPrice PassKernels::price_experts(const ModelShape& model, double tokens, const std::string& type) const {
  if (hardware_.kernels == nullptr) return {};
  const KernelShape x = layer_of(model, tokens);
  const KernelFit* found = fit_of_type(KernelKind::experts, model.expert_bits, type);
  if (found != nullptr)
    for (const bool own : {true, false})
      if (const ExpertsPrice price = fastest_experts(x, std::string(found->dtype.name), own); price.kernel != nullptr) {
        if (found->dtype.name != kByTensor) return price;
        const ExpertsPrice blocks = fastest_experts(x, kByBlock, own);
        return blocks.kernel != nullptr && price.us > kMuchDearer * blocks.us ? blocks : price;
      }
  if (const ExpertsPrice price = marlin_experts(x, model.expert_bits, type); price.kernel != nullptr) return price;
  ExpertsPrice plain = fastest_experts(x, kPlain, true);
  if (plain.kernel == nullptr) plain = fastest_experts(x, kPlain, false);
  if (plain.kernel == nullptr) return {};
  const Dtype* narrow = find_dtype(type);
  KernelFit one = *plain.kernel;
  one.dtype.weight_bytes = model.expert_bits / 8.0;
  if (narrow != nullptr) one.dtype = *narrow;
  std::fill(one.correction.begin(), one.correction.end(), 0.0);  // it is of another kernel
  const double rows = std::max(1.0, tokens * x.experts_per_token / std::max(1.0, met_experts(model, tokens)));
  // Of any engine the middle: what of experts grows under Marlin nobody measured.
  const double growth = of_weights_alone(model.expert_bits, narrow)
                            ? weight_only_growth(Engine{}.weight_only_growth, one.dtype.weight_bytes, rows)
                            : 1.0;
  return {plain.kernel, growth * one.microseconds(hardware_, x), Measured::bytes};
}

std::optional<double> PassKernels::experts(const ModelShape& model, double tokens) const {
  if (model.experts <= 0.0) return std::nullopt;
  const ExpertsPrice price = price_experts(model, tokens, model.expert_type);
  return price.kernel == nullptr ? std::nullopt : std::optional(kFromMicro * price.us);
}

std::optional<double> PassKernels::experts_error(const ModelShape& model, double tokens) const {
  const ExpertsPrice price = price_experts(model, tokens, model.expert_type);
  if (price.kernel == nullptr) return std::nullopt;
  return price.measured == Measured::like ? price.kernel->spread : std::max(price.kernel->spread, kUnlikeSpread);
}

std::string PassKernels::experts_assumption(const ModelShape& model) const {
  if (model.experts <= 0.0) return "";
  const KernelShape x = layer_of(model, kFewTokens);
  const std::string layer =
      fmt::format("{}: {:g} experts, {:g} a token, {:g} wide", model.name, x.experts, x.experts_per_token, x.expert_width);
  const ExpertsPrice price = price_experts(model, kFewTokens, model.expert_type);
  if (price.kernel == nullptr)
    return fmt::format("{}: priced from the data sheet of {}, where no layer like it was measured", layer, hardware_.name);
  const bool as_blocks = price.kernel->dtype.name == kByBlock && model.expert_type != kByBlock;
  if (price.measured == Measured::like && !as_blocks) return "";
  const std::string kernel =
      price.kernel->engine + "'s kernel" + (price.kernel->kernel.empty() ? "" : " ") + price.kernel->kernel;
  if (as_blocks)
    return fmt::format(
        "{}: in fp8 by tensor they were measured at {:.1f} times those in blocks or more at {:g} tokens; priced as "
        "these, by {}",
        layer, kMuchDearer, kFewTokens, kernel);
  if (price.measured == Measured::bytes)
    return fmt::format("{}: no layer of {} bits like it was measured on {}; priced by its bytes with {} for bf16", layer,
                       model.expert_bits, hardware_.name, kernel);
  const std::string type = model.expert_type.empty() ? std::string(price.kernel->dtype.name) : model.expert_type;
  return fmt::format("{}: no layer like it was measured with {} on {}; priced by {} as measured on others{}", layer, type,
                     hardware_.name, kernel,
                     type == price.kernel->dtype.name ? "" : fmt::format(" with {}", price.kernel->dtype.name));
}

}  // namespace specsim::cost
