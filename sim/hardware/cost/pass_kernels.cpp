#include "sim/hardware/cost/pass_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>

namespace specsim::cost {

namespace {

constexpr double kFromMicro = 1e-6;
constexpr double kSwitchLink = 400e9;     // bytes per second: NVLink 4 and later, whose switches add up what passes them
constexpr double kSmallMessage = 65536;   // bytes that an all-reduce moves in its floor
constexpr double kSplitEfficiency = 0.4;  // share of the peak that attention reaches which splits the keys; stated, not fitted

// With a chunk of a prompt in the batch FlashAttention 2 neither splits the keys of single rows nor lets the query heads of a
// group read them together: beside chunks of 64 to 2,048 tokens 16 to 128 sequences of about 950 keys take 1.5 to 2.3 times as
// long with four heads in a group (RTX 4090) and 1.8 to 2.7 times with eight (RTX PRO 6000; LLMServingSim's profiles of vLLM
// 0.19).
constexpr double kAloneInGroup = 0.45;

// Of a fit to fewer rows, or of another GPU's, the spread says little: a walk over the keys goes at a multiprocessor's clock, and
// those of an RTX 3090 and an RTX 4090 are 1.48 apart. Fewer rows tell nothing of what a single query token takes at least: the
// RTX 3090's were timed with their launch, 59 us.
constexpr double kFewRows = 10.0;
constexpr double kFewRowsSpread = 0.3;
// Several tokens on a B200 are fifteen rows of one thread: 1,024 cached tokens, up to 8 new ones, heads that it does not name.
constexpr double kFewRowsOfSeveral = 20.0;

// Whose FlashAttention 2 serves a GPU on which that of several tokens was not measured, by the shared memory that its tiles are
// cut for.
constexpr const char* kSmallWalker = "rtx-4090";
constexpr const char* kLargeWalker = "h200-sxm";
// Whose Triton kernel of latent attention serves Ampere and Ada, where it was not measured.
constexpr const char* kTritonGpu = "l40s";

std::shared_ptr<const KernelFits> kernels_of(const char* gpu) {
  Diagnostics diagnostics;
  auto fits = read_kernel_fits(gpu, {}, diagnostics);
  diagnostics.throw_if_any();
  return fits;
}

// The first fit of attention over several tokens that reads the keys in one of these ways.
const KernelFit* verify_fit(const KernelFits& fits, std::initializer_list<KeyReading> readings) {
  for (const KernelFit& one : fits.list)
    if (one.kind == KernelKind::attention_verify && std::count(readings.begin(), readings.end(), one.reads_keys) > 0) return &one;
  return nullptr;
}

// Types of so many bits, the likeliest first.
std::vector<const char*> types_of(double bits) {
  if (bits >= 16.0) return {"bfloat16"};
  if (bits >= 8.0) return {"fp8", "sq", "int8_wo"};
  return {"int4_wo", "w4a16_mxfp4", "nvfp4"};
}

}  // namespace

std::string kernels_in_use(const std::string& choice, const std::string& library, const Hardware& hardware) {
  if (choice == "none" || hardware.kernels == nullptr) return "";
  if (choice != "automatic") return choice;
  if (!library.empty()) return library;
  return hardware.kernels_engine;
}

std::string attention_in_use(const std::string& attention, const std::string& choice, const std::string& library) {
  return attention == "automatic" && choice == "automatic" && library.empty() ? "split" : attention;
}

bool of_weights_alone(double bits, const Dtype* dtype) {
  return dtype == nullptr ? bits < 8.0 : dtype->activation_bytes >= kActivationBytes && dtype->weight_bytes < kActivationBytes;
}

double weight_only_growth(const std::array<double, 2>& growth, double weight_bytes, double rows) {
  constexpr double kDoublings = 6.0;
  return 1.0 + growth[weight_bytes < 1.0 ? 0 : 1] * std::min(kDoublings, std::log2(std::max(1.0, rows)));
}

void check_allreduce_kernels(const Engine& engine, const Hardware& hardware, const config::Value& where,
                             Diagnostics& diagnostics) {
  std::set<std::string> known;
  for (const std::string& name : kernel_engines())
    known.insert({engine_of_library(name).allreduce_kernel, engine_of_library(name).launched_allreduce_kernel});
  if (hardware.kernels)
    for (const KernelFit& fit : hardware.kernels->list)
      if (fit.kind == KernelKind::allreduce && !fit.kernel.empty()) known.insert(fit.kernel);
  const auto check = [&](const char* key, const std::string& kernel) {
    if (kernel.empty() || known.count(kernel) > 0) return;
    const config::Value* own = where.find(key);
    diagnostics.add(own != nullptr ? own->where : where.where,
                    config::unknown_name(std::string(key) + " is", kernel, {known.begin(), known.end()}));
  };
  check("allreduce_kernel", engine.allreduce_kernel);
  check("launched_allreduce_kernel", engine.launched_allreduce_kernel);
}

PassKernels::PassKernels(const Hardware& hardware, std::string engine, std::string attention, const Engine& served,
                         bool narrow_products)
    : hardware_(hardware),
      engine_(std::move(engine)),
      attention_(std::move(attention)),
      allreduce_(served.allreduce.empty() ? engine_ : served.allreduce),
      fused_quantisation_(served.fused_quantisation),
      narrow_products_(narrow_products),
      switch_share_(served.switch_share) {
  const Engine& attending = served.kernels == engine_ ? served : engine_of_library(engine_);
  const bool walks = walks_keys(attending, hardware_.compute_capability);
  wide_keys_ = attention_fits(false, walks, attending.attention_kernel);
  latent_ = latent_library(attending, hardware_.compute_capability);
  if (hardware_.kernels != nullptr && hardware_.compute_capability > 0.0)
    if (const KernelFit* found = kernels_of(kTritonGpu)->find(KernelKind::attention_latent, "sglang", "bfloat16"))
      triton_ = std::make_shared<KernelFit>(*found);
  narrow_keys_ = attention_fits(
      true, false, attending.attention_kernel);  // FlashAttention 2 takes no such cache: another kernel of the engine's does
  const bool own = allreduce_ == served.kernels && !served.allreduce_kernel.empty();
  const Engine& library = own ? served : engine_of_library(allreduce_);
  allreduce_kernel_ = library.allreduce_kernel;
  launched_allreduce_kernel_ = library.launched_allreduce_kernel;
  const bool said = allreduce_ == served.kernels && served.most_pcie_gpus > 0.0;
  most_pcie_gpus_ = said ? served.most_pcie_gpus : library.most_pcie_gpus;
}

PassKernels::AttentionFits PassKernels::attention_fits(bool narrow, bool walks, const std::string& kernel) {
  AttentionFits own;
  if (narrow) own.one = fit(KernelKind::attention_decode, "fp8", kernel);
  for (const char* type : {"bfloat16", "float16"})
    if (own.one == nullptr) own.one = fit(KernelKind::attention_decode, type, kernel);
  if (own.one == nullptr) return own;
  if (own.one->rows < kFewRows)
    own.one = borrow(*kernels_of(kSmallWalker)->find(KernelKind::attention_decode, "any", "bfloat16"));
  if (attention_ == "serial" || (attention_ == "automatic" && walks)) {
    own.serial = verify_fit(*hardware_.kernels, {KeyReading::walked});
    if (own.serial == nullptr)
      own.serial =
          borrow(*verify_fit(*kernels_of(small_shared_memory(hardware_) ? kSmallWalker : kLargeWalker), {KeyReading::walked}));
  }
  own.split = verify_fit(*hardware_.kernels, {KeyReading::shared, KeyReading::grown});
  return own;
}

const KernelFit* PassKernels::borrow(const KernelFit& fit) {
  return borrowed_.emplace_back(std::make_shared<KernelFit>(fit)).get();
}

const KernelFit* PassKernels::fit(KernelKind kind, const std::string& dtype, const std::string& kernel) const {
  return hardware_.kernels ? hardware_.kernels->nearest(kind, engine_, dtype, kernel) : nullptr;
}

const KernelFit* PassKernels::fit_of_type(KernelKind kind, double bits, const std::string& type) const {
  if (kind == KernelKind::product && bits < 16.0 && !narrow_products_) return nullptr;
  if (!type.empty()) return fit(kind, type == "float16" ? "bfloat16" : type);
  for (const char* likely : types_of(bits))
    if (const KernelFit* found = fit(kind, likely)) return found;
  return nullptr;
}

bool PassKernels::has_products(const std::string& type) const { return fit_of_type(KernelKind::product, 0.0, type) != nullptr; }

std::string PassKernels::products_borrowed_from(const std::string& type) const {
  const KernelFit* found = fit_of_type(KernelKind::product, 0.0, type);
  return found == nullptr ? "" : found->borrowed_from;
}

// Where few rows were measured to cost much more than some more of them, what those cost: a version's dispatch is at work (vLLM
// 0.24 on a B200 takes 1.9 times as long in fp8 over one row as over two), and a plain pass at its price would credit drafting
// with what the next version mends.
double PassKernels::priced_rows(const KernelFit& fit, KernelShape x) const {
  constexpr double kMuch = 1.25;
  const double own = fit.microseconds(hardware_, x);
  double least = own;
  for (const double more : {2.0, 4.0, 8.0, 16.0}) {
    if (more <= x.rows) continue;
    x.rows = more;
    least = std::min(least, fit.microseconds(hardware_, x));
  }
  return own > kMuch * least ? least : own;
}

std::string PassKernels::row_assumption(const ModelShape& model) const {
  const KernelFit* found = fit_of_type(KernelKind::product, model.weight_bits, model.product_type);
  if (found == nullptr) return "";
  KernelShape x;
  x.inner = model.hidden;
  x.outer = std::max(1.0, model.ffn / model.tensor_parallel);
  const double measured = found->microseconds(hardware_, x);
  const double priced = priced_rows(*found, x);
  if (measured == priced) return "";
  return fmt::format(
      "{}: products of {} over one row were measured at {:.1f} times those over some more ({}'s kernel); priced as those",
      model.name, found->dtype.name, measured / priced, found->engine);
}

std::optional<double> PassKernels::product(double rows, double inner, double outer, double bits, const std::string& type) const {
  const KernelFit* found = fit_of_type(KernelKind::product, bits, type);
  if (found == nullptr) return std::nullopt;
  KernelShape x;
  x.rows = std::ceil(rows);
  x.inner = inner;
  x.outer = outer;
  double us = priced_rows(*found, x);
  if (fused_quantisation_ && found->dtype.activation_bytes < 2.0) {
    // Beside a plain kernel's floor its own holds the kernel that quantises the activations, which the served model does not run.
    const KernelFit* plain = fit(KernelKind::product, "bfloat16");
    if (plain != nullptr && plain->engine == found->engine)
      us = std::max(0.5 * us, us - std::max(0.0, found->floor_us(hardware_, x) - plain->floor_us(hardware_, x)));
  }
  return kFromMicro * us;
}

std::optional<double> PassKernels::attention(const ModelShape& model, const AttentionKind& kind, double batch, double tokens,
                                             double context, bool prompt) const {
  if (model.latent > 0.0) return latent_attention(model, kind, batch, tokens, context, prompt);
  const AttentionFits& fits = model.kv_bits < 16.0 ? narrow_keys_ : wide_keys_;
  if (fits.one == nullptr || model.over_one_vector()) return std::nullopt;
  KernelShape x;
  x.batch = batch;
  x.context = context + tokens;
  const double shards = model.tensor_parallel;
  x.heads = model.heads / shards;
  x.kv_heads = std::max(1.0, kind.kv_heads / shards);
  x.head_dim = kind.head_dim;
  x.context *= share_of_keys(*fits.one, model);  // the bytes that are read
  const double one = kFromMicro * fits.one->microseconds(hardware_, x);
  x.tokens = tokens;
  x.context = context;
  if (tokens <= 1.0) {
    // The keys of heads that nobody shares are not split for a single token either.
    if (fits.serial == nullptr || x.heads > x.kv_heads) return one;
    x.context *= share_of_keys(*fits.serial, model);
    return std::max(one, kFromMicro * fits.serial->microseconds(hardware_, x));
  }
  const KernelFit* several = fits.serial != nullptr ? fits.serial : fits.split;
  KernelShape seen = x;  // by the kernel for several tokens
  if (several != nullptr) seen.context *= share_of_keys(*several, model);
  if (prompt && tokens > kMostAsVerified) {
    if (const auto fitted = prompt_attention(x)) {
      // FlashAttention 2 is the kernel for prompts too: it walks the keys whatever it is asked for.
      const double walk = fits.serial != nullptr ? kFromMicro * fits.serial->microseconds(hardware_, seen) : 0.0;
      return std::max({one, *fitted, walk});
    }
  }
  x = seen;
  if (several != nullptr && several->reads_keys == KeyReading::grown) {
    KernelShape single = x;
    single.tokens = 1.0;
    return one * std::max(1.0, several->microseconds(hardware_, x) / several->microseconds(hardware_, single));
  }
  if (several != nullptr) return std::max(one, kFromMicro * several->microseconds(hardware_, x));
  const double pairs = batch * tokens * (context + 0.5 * (tokens + 1.0));
  const double operations = 4.0 * x.heads * x.head_dim * pairs / (hardware_.flops * kSplitEfficiency);
  return std::max(one, operations);
}

double PassKernels::beside_chunk(const ModelShape& model, const AttentionKind& kind) const {
  const AttentionFits& fits = model.kv_bits < 16.0 ? narrow_keys_ : wide_keys_;
  if (fits.serial == nullptr || kind.kv_heads <= 0.0) return 1.0;
  return std::max(1.0, std::pow(model.heads / kind.kv_heads, kAloneInGroup));
}

// Keys that were there before are looked at as if they were new ones: a prompt of all, less one of those alone, for prefill was
// measured without. Where blocks take a whole multiprocessor, few tokens over many keys take as long as one block walks these
// alone: no engine's kernel for prompts splits the keys there. A prompt's own blocks walk half of theirs in the mean.
std::optional<double> PassKernels::prompt_attention(const KernelShape& x) const {
  const KernelFit* found = fit(KernelKind::attention_prefill, "bfloat16");
  if (found == nullptr) return std::nullopt;
  KernelShape whole = x;
  whole.context = 0.0;
  whole.tokens = x.context + x.tokens;
  // The engine takes the one for prompts of its kernels, which is the fastest over the whole.
  for (const KernelFit& one : hardware_.kernels->list)
    if (one.kind == KernelKind::attention_prefill && one.engine == found->engine && one.dtype.name == found->dtype.name &&
        one.microseconds(hardware_, whole) < found->microseconds(hardware_, whole))
      found = &one;
  double us = found->microseconds(hardware_, whole);
  if (x.context >= 1.0) {
    KernelShape before = whole;
    before.tokens = x.context;
    KernelShape alone = whole;
    alone.tokens = 1.0;
    us += found->microseconds(hardware_, alone) - found->microseconds(hardware_, before);
    if (tensor_memory(hardware_)) us = std::max(us, found->walk_us(hardware_, x));
  }
  return kFromMicro * us;
}

std::vector<std::string> PassKernels::dearer_than_plain(const ModelShape& model) const {
  constexpr double kDearer = 1.1;  // within the error of two fits nothing is said
  std::vector<std::string> list;
  const auto tell = [&](const char* what, const KernelFit* kernel, double ratio, double rows) {
    list.push_back(fmt::format(
        "{}: {} of {} are priced at {:.1f} times those of bf16 at {:g} rows, by {}'s kernel{} as it was measured", model.name,
        what, kernel->dtype.name, ratio, rows, kernel->engine, kernel->kernel.empty() ? "" : " " + kernel->kernel));
  };
  // The worst of a few rows.
  const auto look = [&](const char* what, const auto& narrow, const auto& plain) {
    const KernelFit* kernel = nullptr;
    double worst = kDearer;
    double at = 0.0;
    for (const double rows : {1.0, 8.0, 64.0}) {
      const auto [fit, price] = narrow(rows);
      const double against = plain(rows);
      if (fit == nullptr || against <= 0.0 || price / against <= worst) continue;
      kernel = fit;
      worst = price / against;
      at = rows;
    }
    if (kernel != nullptr) tell(what, kernel, worst, at);
  };
  if (model.experts > 0.0 && model.expert_bits < 16.0)
    look(
        "experts",
        [&](double rows) {
          const ExpertsPrice price = price_experts(model, rows, model.expert_type);
          return std::pair{price.kernel, price.us};
        },
        [&](double rows) { return price_experts(model, rows, "bfloat16").us; });
  if (model.weight_bits < 16.0) {
    const auto layers = [&](double rows, double bits, const std::string& type) {
      double sum = 0.0;
      for (const LayerKind& kind : model.layer_kinds(model.tensor_parallel))
        for (const Product& product : kind.products) {
          if (product.sharding == Sharding::groups || product.plain) continue;
          const double inner = product.sharding == Sharding::rows ? product.inner / model.tensor_parallel : product.inner;
          const double outer = product.sharding == Sharding::columns ? product.outer / model.tensor_parallel : product.outer;
          sum += kind.layers * this->product(rows, inner, outer, bits, type).value_or(0.0);
        }
      return sum;
    };
    look(
        "products",
        [&](double rows) {
          return std::pair{fit_of_type(KernelKind::product, model.weight_bits, model.product_type),
                           layers(rows, model.weight_bits, model.product_type)};
        },
        [&](double rows) { return layers(rows, 16.0, "bfloat16"); });
  }
  return list;
}

double PassKernels::share_of_keys(const KernelFit& fit, const ModelShape& model) {
  return std::min(1.0, model.kv_bits / 8.0 / fit.dtype.weight_bytes);
}

std::string PassKernels::cache_assumption(const ModelShape& model) const {
  const KernelFit* one = (model.kv_bits < 16.0 ? narrow_keys_ : wide_keys_).one;
  if (one == nullptr || model.over_one_vector() || share_of_keys(*one, model) >= 1.0) return "";
  return fmt::format(
      "{}: no attention over a cache of {:g} bits was measured on {}; it is priced as that in {} over as many bytes", model.name,
      model.kv_bits, hardware_.name, one->dtype.name);
}

const KernelFit* PassKernels::allreduce_fit(double gpus, bool launched) const {
  if (hardware_.kernels == nullptr || hardware_.other_links) return nullptr;
  if (most_pcie_gpus_ > 0.0 && gpus > most_pcie_gpus_ && !has_nvlink(hardware_))
    if (const KernelFit* nccl = hardware_.kernels->find(KernelKind::allreduce, "nccl-tests", "bfloat16")) return nccl;
  return hardware_.kernels->nearest(KernelKind::allreduce, allreduce_, "bfloat16",
                                    launched ? launched_allreduce_kernel_ : allreduce_kernel_);
}

std::optional<double> PassKernels::allreduce(double gpus, double bytes, bool launched) const {
  const KernelFit* found = allreduce_fit(gpus, launched);
  if (found == nullptr) return std::nullopt;
  KernelShape x;
  x.gpus = gpus;
  x.bytes = bytes;
  double us = found->microseconds(hardware_, x);
  if (switch_share_ > 0.0 && !launched && hardware_.link_bandwidth >= kSwitchLink) {
    x.bytes = std::min(bytes, kSmallMessage);
    us = std::min(
        us, found->microseconds(hardware_, x) + (bytes - x.bytes) / (hardware_.link_bandwidth * switch_share_) / kFromMicro);
  }
  return kFromMicro * us;
}

std::optional<double> PassKernels::product_error(double bits, const std::string& type) const {
  const KernelFit* found = fit_of_type(KernelKind::product, bits, type);
  return found == nullptr ? std::nullopt : std::optional(found->spread);
}

std::optional<double> PassKernels::attention_error(const ModelShape& model, double tokens) const {
  if (const auto [latent, borrowed] = latent_fit(model); latent != nullptr)
    return borrowed ? std::max(latent->spread, kFewRowsSpread) : latent->spread;
  const AttentionFits& fits = model.kv_bits < 16.0 ? narrow_keys_ : wide_keys_;
  if (fits.one == nullptr) return std::nullopt;
  const KernelFit* fit = fits.one;
  if (tokens > 1.0 && fits.serial != nullptr)
    fit = fits.serial;
  else if (tokens > 1.0 && fits.split != nullptr)
    fit = fits.split;
  const bool borrowed = std::any_of(borrowed_.begin(), borrowed_.end(), [&](const auto& one) { return one.get() == fit; });
  const double few = fit == fits.one ? kFewRows : kFewRowsOfSeveral;
  return borrowed || fit->rows < few ? std::max(fit->spread, kFewRowsSpread) : fit->spread;
}

std::optional<double> PassKernels::allreduce_error(double gpus, bool launched) const {
  const KernelFit* found = allreduce_fit(gpus, launched);
  return found == nullptr ? std::nullopt : std::optional(found->spread);
}

std::vector<std::string> PassKernels::beyond_measured(const ModelShape& model, const Pass& pass) const {
  constexpr double kSlack = 1.01;  // knots are rounded
  std::vector<std::string> list;
  const auto look = [&](const KernelFit* found, double own, double unit, const char* what) {
    if (found != nullptr && own > kSlack * found->most())
      list.push_back(fmt::format("{}: passes of more than {:.4g} {}, beyond what kernels were measured with", model.name,
                                 found->most() / unit, what));
  };
  constexpr double kMega = 1e6;
  constexpr double kGiga = 1e9;
  const double rows = pass.batch * pass.tokens;
  look(fit_of_type(KernelKind::product, model.weight_bits, model.product_type), rows, 1.0, "rows");
  if (model.experts > 0.0) look(price_experts(model, rows, model.expert_type).kernel, rows, 1.0, "tokens to experts");
  if (model.tensor_parallel > 1.0)
    look(allreduce_fit(model.tensor_parallel, false), rows * model.hidden * kActivationBytes, kMega, "MB to add up between GPUs");
  const AttentionFits& fits = model.kv_bits < 16.0 ? narrow_keys_ : wide_keys_;
  for (const AttentionKind& kind : model.attention_kinds()) {
    const double keys = kind.seen(pass.context) + pass.tokens;
    const double bytes = pass.batch * keys * kind.elements * model.kv_bits / 8.0 / model.kv_shards(kind);
    const KernelFit* latent = kind.picked == 0.0 && pass.logits >= pass.tokens ? latent_fit(model).fit : nullptr;
    look(latent, bytes, kGiga, "GB of a layer's cache");
    if (latent != nullptr && keys > kSlack * latent->most_of_others(0))
      list.push_back(fmt::format("{}: attention to more than {:.0f} cached tokens, beyond what was measured", model.name,
                                 latent->most_of_others(0)));
    if (model.over_one_vector()) continue;
    look(fits.one, bytes, kGiga, "GB of a layer's cache");
    if (pass.tokens <= 1.0 || pass.logits < pass.tokens) continue;
    // Kernels over several tokens were measured on other caches: along the context, their second coordinate.
    const KernelFit* several = fits.serial != nullptr ? fits.serial : fits.split;
    if (several != nullptr && several->rows < kFewRowsOfSeveral && several->reads_keys == KeyReading::grown)
      if (pass.tokens > kSlack * several->most())
        list.push_back(fmt::format("{}: attention of more than {:.0f} tokens to cached ones, beyond what was measured",
                                   model.name, several->most()));
    if (several != nullptr && !several->by.empty() && !several->by[0].empty()) {
      const double most = std::exp2(several->by[0].back());
      if (keys > kSlack * most)
        list.push_back(fmt::format("{}: attention of several tokens to more than {:.0f} cached ones, beyond what was measured",
                                   model.name, most));
    }
  }
  return list;
}

}  // namespace specsim::cost
