// The kernels of a pass, priced with the fits of one engine's kernels: matrix products by dtype, attention by kernel, experts,
// all-reduces.
#pragma once

#include "sim/hardware/cost/engine.h"
#include "sim/hardware/cost/hardware.h"
#include "sim/hardware/cost/kernel_names.h"
#include "sim/hardware/cost/model_shape.h"
#include "sim/hardware/cost/pass.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace specsim::cost {

// Tokens of a sequence up to which a prompt's last ones attend as tokens that are verified; 16 were measured as a prompt.
constexpr double kMostAsVerified = 15.0;
// Whose kernels a pass on the GPU is priced with: `choice` itself, or with automatic those of the engine's `library`; "" is an
// engine without kernels of its own, which the GPU says by whose it is priced. Empty: the data sheet's formula and calibration.
std::string kernels_in_use(const std::string& choice, const std::string& library, const Hardware& hardware);
// How several tokens of a sequence read the cache: `attention` itself, or with automatic as the engine's kernels do. An engine
// without kernels of its own runs nobody's attention that walks all keys, by whosever fits it is priced.
std::string attention_in_use(const std::string& attention, const std::string& choice, const std::string& library);
// Whether kernels of the type quantise weights alone. Of a type without a name (nullptr) fewer than 8 bits do; 8 may be of
// kernels that quantise activations too.
bool of_weights_alone(double bits, const Dtype* dtype);
// How much longer kernels that quantise weights alone take over `rows` than over one beside what their bytes and arithmetic take,
// for they unpack weights for every tile of rows, by `growth`, an engine's weight_only_growth; beyond 64 rows arithmetic takes
// over. Its default is the middle of TensorRT-LLM's kernels on an H200 (1.7 times one row at 4, 8 and 16 with 4 bits, 1.13 with
// 8) and on an A100 (1.0 to 1.06), and of SGLang's on an H100 (1.12 with 8).
double weight_only_growth(const std::array<double, 2>& growth, double weight_bytes, double rows);
// The standard deviation of the logarithm of a price by it and the engine's weight_only_shares where no fit serves: of six
// measured sets (1 to 64 rows) five are missed by .12 to .26, SGLang's int8 on an H100 by .58, for its kernel is slow.
constexpr double kWeightOnlySpread = 0.3;
// The share of the variance of such a price, and of every price of a GPU that was not measured, that passes over any rows have in
// common; assumed. Over those six sets the errors at 1 and 8 rows correlate at .78, at 1 and 64 rows at .84, but by SGLang's set
// alone: among the five others, which are missed by little, they do not (-.5, -.4). What speaks for it besides is that libraries
// read at .52 to .97 of a plain kernel's bandwidth, which every pass that is bound by memory pays.
constexpr double kSharedByOthers = 0.8;
// Reports, at `where`, all-reduce kernels of an engine that neither the GPU's fits have nor an engine of configs/engines names.
void check_allreduce_kernels(const Engine& engine, const Hardware& hardware, const config::Value& where,
                             Diagnostics& diagnostics);

// All times are seconds; none where no fit of the GPU serves, so that the data sheet's formula has to.
class PassKernels {
 public:
  // `engine`: one of kernel_engines(); `attention`: one of attention_kernels(). `hardware` must outlive this.
  // `served`: the engine that runs them, for what it does otherwise than the kernels were measured.
  // `narrow_products`: false leaves products of fewer than 16 bits to the data sheet.
  PassKernels(const Hardware& hardware, std::string engine, std::string attention, const Engine& served = {},
              bool narrow_products = true);

  // Seconds of a product by the fit of `type`, that of weights and activations, or, where it is empty, of `bits` a weight: fp8
  // before int8 before weights alone.
  [[nodiscard]] std::optional<double> product(double rows, double inner, double outer, double bits,
                                              const std::string& type = "") const;
  [[nodiscard]] bool has_products(const std::string& type) const;
  // The GPU whose fit prices them where this one's were not measured, or "".
  [[nodiscard]] std::string products_borrowed_from(const std::string& type) const;
  // Seconds of a layer's attention of whole tokens on `context` keys that are looked at; `prompt`: tokens of a prompt, which
  // has kernels of its own. Nothing for one vector that is not latent, and for prompts whose tokens pick what they look
  // at.
  [[nodiscard]] std::optional<double> attention(const ModelShape& model, const AttentionKind& kind, double batch, double tokens,
                                                double context, bool prompt = false) const;
  // How much longer a sequence's single row takes beside a chunk of a prompt than beside other single rows.
  [[nodiscard]] double beside_chunk(const ModelShape& model, const AttentionKind& kind) const;
  // Whether one row is priced as some more, for less than was measured; empty where it is not.
  [[nodiscard]] std::string row_assumption(const ModelShape& model) const;
  // What types of fewer than 16 bits cost more than bf16 would, by the kernels as they were measured: a line each.
  [[nodiscard]] std::vector<std::string> dearer_than_plain(const ModelShape& model) const;
  // How a cache of so many bits is priced, where no attention over one was measured; empty where one was.
  [[nodiscard]] std::string cache_assumption(const ModelShape& model) const;
  // The experts of a layer over `tokens` tokens of the whole pass.
  [[nodiscard]] std::optional<double> experts(const ModelShape& model, double tokens) const;
  // What is assumed of a model's experts where its engine's kernels were not measured on a layer like them; empty where they
  // were.
  [[nodiscard]] std::string experts_assumption(const ModelShape& model) const;
  [[nodiscard]] std::optional<double> allreduce(double gpus, double bytes, bool launched) const;
  // Standard deviation of the logarithm of a price, on shapes that its fit had not seen; none as above.
  [[nodiscard]] std::optional<double> product_error(double bits, const std::string& type) const;
  [[nodiscard]] std::optional<double> experts_error(const ModelShape& model, double tokens) const;
  [[nodiscard]] std::optional<double> attention_error(const ModelShape& model, double tokens) const;
  [[nodiscard]] std::optional<double> allreduce_error(double gpus, bool launched) const;

  // Whether the model's products were measured on this very GPU.
  [[nodiscard]] bool measured_products(const ModelShape& model) const {
    return hardware_.kernels_spread == 0.0 && product_error(model.weight_bits, model.product_type).has_value();
  }
  // In which way the pass is larger than the kernels that its fits were made from, a line each. What a workload moves is looked
  // at: rows, caches, messages, tokens of experts; not the model's widths, which every pass of it has.
  [[nodiscard]] std::vector<std::string> beyond_measured(const ModelShape& model, const Pass& pass) const;

 private:
  // Bytes of the cache that attention reads, over those that the fit's own keys and values have; at most 1.
  [[nodiscard]] static double share_of_keys(const KernelFit& fit, const ModelShape& model);
  [[nodiscard]] const KernelFit* fit(KernelKind kind, const std::string& dtype, const std::string& kernel = "") const;
  [[nodiscard]] double priced_rows(const KernelFit& fit, KernelShape x) const;
  [[nodiscard]] std::optional<double> prompt_attention(const KernelShape& x) const;
  // Latent attention's, and its price: of queries over the cached vectors, or of a prompt over keys and values made of them.
  struct LatentFit {
    const KernelFit* fit = nullptr;
    bool borrowed = false;
  };
  [[nodiscard]] LatentFit latent_fit(const ModelShape& model) const;
  [[nodiscard]] double latent_us(const KernelFit& fit, KernelShape x) const;
  [[nodiscard]] double latent_prompt(const ModelShape& model, const AttentionKind& kind, double batch, double tokens,
                                     double context) const;
  [[nodiscard]] std::optional<double> latent_attention(const ModelShape& model, const AttentionKind& kind, double batch,
                                                       double tokens, double context, bool prompt) const;
  // The kernel that computes such experts, and its price in microseconds; nullptr where none was measured. Measured was the
  // engine's own on a layer like this one; another engine's, or on other layers; or one for bf16, which serves by the bytes.
  enum class Measured { like, others, bytes };
  struct ExpertsPrice {
    const KernelFit* kernel = nullptr;
    double us = 0.0;
    Measured measured = Measured::others;
  };
  [[nodiscard]] ExpertsPrice fastest_experts(const KernelShape& x, const std::string& type, bool own) const;
  // Experts of four bits beside bf16 activations by Marlin, as it was measured with another such type; nullptr without.
  [[nodiscard]] ExpertsPrice marlin_experts(const KernelShape& x, double bits, const std::string& type) const;
  [[nodiscard]] ExpertsPrice price_experts(const ModelShape& model, double tokens, const std::string& type) const;
  [[nodiscard]] const KernelFit* allreduce_fit(double gpus, bool launched) const;
  [[nodiscard]] const KernelFit* fit_of_type(KernelKind kind, double bits, const std::string& type) const;

  // Attention by the width of cached keys: one query token, several in blocks that walk all keys, several in blocks that share
  // them. The first serves for the last where nothing else was measured, with the arithmetic beside it.
  struct AttentionFits {
    const KernelFit* one = nullptr;
    const KernelFit* serial = nullptr;
    const KernelFit* split = nullptr;
  };
  // `walks`: whether the engine walks all keys there, unless it is said how. `kernel`: its kernel over one token; "" is the
  // first.
  [[nodiscard]] AttentionFits attention_fits(bool narrow, bool walks, const std::string& kernel);
  const KernelFit* borrow(const KernelFit& fit);

  const Hardware& hardware_;
  std::string engine_;
  std::string attention_;
  std::string latent_;
  std::shared_ptr<const KernelFit> triton_;  // latent attention's, where the GPU has none of its own; may be none
  std::string allreduce_;
  std::string allreduce_kernel_;
  std::string launched_allreduce_kernel_;
  double most_pcie_gpus_ = 0.0;
  bool fused_quantisation_;
  bool narrow_products_;
  double switch_share_;
  std::vector<std::shared_ptr<const KernelFit>> borrowed_;  // fits of other GPUs, where this one has none
  AttentionFits wide_keys_;
  AttentionFits narrow_keys_;
};

}  // namespace specsim::cost
