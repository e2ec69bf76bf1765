// Attention over keys and values by measured kernels (configs/kernels).
#include "sim/hardware/latency/attention_kernels.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace specsim::cost {

namespace {

constexpr double kSplitEfficiency = 0.4;  // share of the peak that attention with split keys reaches; stated, not fitted

// With a chunk of a prompt in the batch, FlashAttention 2 neither splits the keys of single rows nor lets the query heads of a
// group read them together. With chunks of 64 to 2,048 tokens, 16 to 128 sequences of about 950 keys take 1.5 to 2.3 times as
// long with four heads in a group (RTX 4090) and 1.8 to 2.7 times with eight (RTX PRO 6000). Source: LLMServingSim's profiles of
// vLLM 0.19.
constexpr double kAloneInGroup = 0.45;

// The spread of a fit to fewer rows, or of another GPU's fit, is not informative: a loop over the keys runs at a multiprocessor's
// clock, and those of an RTX 3090 and an RTX 4090 differ by 1.48 times. Fewer rows do not give the least time of a single query
// token either: the RTX 3090's rows were timed with their launch, 59 us.
constexpr double kFewRows = 10.0;
constexpr double kFewRowsSpread = 0.3;
// On a B200, attention over several tokens was measured in fifteen rows of one series: 1,024 cached tokens, up to 8 new ones,
// heads not stated.
constexpr double kFewRowsOfSeveral = 20.0;

// The GPU whose FlashAttention 2 fits serve a GPU without measurements of several tokens, chosen by the shared memory that limits
// its tiles.
constexpr const char* kSmallWalker = "rtx-4090";
constexpr const char* kLargeWalker = "h200-sxm";

// The first fit of attention over several tokens that reads the keys in one of these ways.
const KernelFit* verify_fit(const KernelFits& fits, std::initializer_list<KeyReading> readings) {
  for (const KernelFit& one : fits.list)
    if (one.kind == KernelKind::attention_verify && std::count(readings.begin(), readings.end(), one.reads_keys) > 0) return &one;
  return nullptr;
}

}  // namespace

const KernelFit* MeasuredAttention::Fits::for_tokens(double tokens) const {
  if (tokens > 1.0 && walked != nullptr) return walked;
  if (tokens > 1.0 && split != nullptr) return split;
  return one;
}

MeasuredAttention::MeasuredAttention(const KernelLibrary& library, KeySplitting splitting, const std::string& kernel, bool walks)
    : library_(library), splitting_(splitting) {
  wide_ = find(false, walks, kernel);
  narrow_ = find(true, false, kernel);  // FlashAttention 2 does not read such a cache: another kernel of the engine does
}

MeasuredAttention::Fits MeasuredAttention::find(bool narrow, bool walks, const std::string& kernel) {
  const Hardware& hardware = library_.hardware();
  Fits own;
  if (narrow) own.one = library_.fit(KernelKind::attention_decode, "fp8", kernel);
  for (const char* type : {"bfloat16", "float16"})
    if (own.one == nullptr) own.one = library_.fit(KernelKind::attention_decode, type, kernel);
  if (own.one == nullptr) return own;
  if (own.one->rows < kFewRows)
    own.one = borrow(*built_in_kernel_fits(kSmallWalker).find(KernelKind::attention_decode, "any", "bfloat16"));
  if (splitting_ == KeySplitting::walked || (splitting_ == KeySplitting::automatic && walks)) {
    own.walked = verify_fit(*hardware.kernels, {KeyReading::walked});
    if (own.walked == nullptr)
      own.walked = borrow(
          *verify_fit(built_in_kernel_fits(small_shared_memory(hardware) ? kSmallWalker : kLargeWalker), {KeyReading::walked}));
  }
  own.split = verify_fit(*hardware.kernels, {KeyReading::shared, KeyReading::grown});
  return own;
}

const KernelFit* MeasuredAttention::borrow(const KernelFit& fit) {
  return borrowed_.emplace_back(std::make_shared<KernelFit>(fit)).get();
}

double MeasuredAttention::share_of_keys(const KernelFit& fit, double cache_bits) {
  return std::min(1.0, cache_bits / 8.0 / fit.dtype.weight_bytes);
}

// Time of a sequence's single row in a batch with a chunk of a prompt, over its time in a batch of single rows.
double MeasuredAttention::beside_prompt(const AttentionWork& work, const Fits& fits) const {
  if (!work.with_prompt || work.prompt || work.tokens > 1.0 || fits.walked == nullptr || work.kind.kv_heads <= 0.0) return 1.0;
  return std::max(1.0, std::pow(work.heads / work.kind.kv_heads, kAloneInGroup));
}

std::optional<double> MeasuredAttention::seconds(const AttentionWork& work) const {
  const Fits& own = fits(work.cache_bits);
  if (own.one == nullptr || work.over_one_vector()) return std::nullopt;
  return work.unequal * beside_prompt(work, own) * equal_seconds(work, own);
}

// Seconds for sequences of equal contexts that decode without a prompt in the pass.
double MeasuredAttention::equal_seconds(const AttentionWork& work, const Fits& fits) const {
  const Hardware& hardware = library_.hardware();
  const double context = work.seen();
  KernelShape x;
  x.batch = work.sequences;
  x.context = context + work.tokens;
  x.heads = work.heads / work.shards;
  x.kv_heads = std::max(1.0, work.kind.kv_heads / work.shards);
  x.head_dim = work.kind.head_dim;
  x.context *= share_of_keys(*fits.one, work.cache_bits);  // the bytes that are read
  const double one = kSecondsPerMicro * fits.one->microseconds(hardware, x);
  x.tokens = work.tokens;
  x.context = context;
  if (work.tokens <= 1.0) {
    // If heads do not share keys, the keys are not split for a single token either.
    if (fits.walked == nullptr || x.heads > x.kv_heads) return one;
    x.context *= share_of_keys(*fits.walked, work.cache_bits);
    return std::max(one, kSecondsPerMicro * fits.walked->microseconds(hardware, x));
  }
  const KernelFit* several = fits.walked != nullptr ? fits.walked : fits.split;
  KernelShape seen = x;  // by the kernel for several tokens
  if (several != nullptr) seen.context *= share_of_keys(*several, work.cache_bits);
  if (work.prompt && work.tokens > kMostAsVerified) {
    if (const auto fitted = prompt_seconds(x)) {
      // FlashAttention 2 is the kernel for prompts too: it always reads all keys in one block.
      const double walk = fits.walked != nullptr ? kSecondsPerMicro * fits.walked->microseconds(hardware, seen) : 0.0;
      return std::max({one, *fitted, walk});
    }
  }
  if (several == nullptr) {
    const double pairs = work.sequences * work.tokens * (context + 0.5 * (work.tokens + 1.0));
    return std::max(one, 4.0 * x.heads * x.head_dim * pairs / (hardware.flops * kSplitEfficiency));
  }
  if (several->reads_keys == KeyReading::grown) {
    KernelShape single = seen;
    single.tokens = 1.0;
    return one * std::max(1.0, several->microseconds(hardware, seen) / several->microseconds(hardware, single));
  }
  return std::max(one, kSecondsPerMicro * several->microseconds(hardware, seen));
}

// Prefill was measured without cached tokens. Attention to cached keys is therefore the time of a prompt of all tokens, less that
// of a prompt of the cached ones alone. If blocks take a whole multiprocessor, few tokens over many keys take as long as one
// block needs to read these keys: no engine's prompt kernel splits the keys there. A prompt's own blocks read half of its keys on
// average.
std::optional<double> MeasuredAttention::prompt_seconds(const KernelShape& shape) const {
  const Hardware& hardware = library_.hardware();
  const KernelFit* found = library_.fit(KernelKind::attention_prefill, "bfloat16");
  if (found == nullptr) return std::nullopt;
  KernelShape whole = shape;
  whole.context = 0.0;
  whole.tokens = shape.context + shape.tokens;
  // The engine takes the prompt kernel that is fastest over the whole.
  for (const KernelFit& one : hardware.kernels->list)
    if (one.kind == KernelKind::attention_prefill && one.engine == found->engine && one.dtype.name == found->dtype.name &&
        one.microseconds(hardware, whole) < found->microseconds(hardware, whole))
      found = &one;
  double us = found->microseconds(hardware, whole);
  if (shape.context >= 1.0) {
    KernelShape before = whole;
    before.tokens = shape.context;
    KernelShape alone = whole;
    alone.tokens = 1.0;
    us += found->microseconds(hardware, alone) - found->microseconds(hardware, before);
    if (tensor_memory(hardware)) us = std::max(us, found->walk_us(hardware, shape));
  }
  return kSecondsPerMicro * us;
}

KernelError MeasuredAttention::error(const AttentionWork& work) const {
  const Fits& own = fits(work.cache_bits);
  const KernelFit* fit = own.for_tokens(work.tokens);
  const bool borrowed = std::any_of(borrowed_.begin(), borrowed_.end(), [&](const auto& one) { return one.get() == fit; });
  const double few = fit == own.one ? kFewRows : kFewRowsOfSeveral;
  const double spread = borrowed || fit->rows < few ? std::max(fit->spread, kFewRowsSpread) : fit->spread;
  return {spread, library_.hardware().kernels_spread};
}

KernelLabel MeasuredAttention::label(const AttentionWork& work) const {
  return library_.label(*fits(work.cache_bits).for_tokens(work.tokens));
}

}  // namespace specsim::cost
