#include "sim/hardware/latency/integer_kernels.h"

#include <algorithm>
#include <cmath>

namespace specsim::cost {

namespace {

constexpr double kTileStep = 8.0;         // step in which the rows of products' tiles grow, and the narrowest tile of attention
constexpr double kWidestQueries = 64.0;   // queries of attention's widest tile
constexpr double kMostHeadsInTile = 8.0;  // heads that share keys and lie in a tile of queries
constexpr double kExpertProducts = 3.0;   // gate, up and down
constexpr double kUngatedProducts = 2.0;  // up and down
constexpr double kTablesAsOthers = 8.9;   // compute capability from which the kernel for few tokens takes as many of any type
constexpr double kDp4aCapability = 6.1;   // compute capability from which plain cores multiply int8
constexpr double kAmpere = 8.0;
// Int8 rate of tensor cores over that of plain cores, on the chips that the shares were fitted on: 284 and 71 TOP/s of an RTX
// 3090.
constexpr double kTensorOverPlain = 4.0;
// Rows from which weights are converted to fp16 for a library's product if tensor cores have no int8 (MMQ_DP4A_MAX_BATCH_SIZE).
constexpr double kMostDp4aRows = 64.0;
constexpr double kFewestInTiles = 16.0;  // rows of K-quants in tiles that were measured

// The width of the tiles that `rows` are cut into: as few tiles as possible, and no wider than that requires.
double tile_width(double rows, double most) {
  const double tiles = std::ceil(rows / most);
  return std::min(most, kTileStep * std::ceil(rows / tiles / kTileStep));
}

// The rule for K-quants of so many bits on this GPU; nullptr: none.
const SuperBlockRule* rule_of(const IntegerKernels& own, const WeightType& type, const Hardware& hardware) {
  if (!type.super_blocks) return nullptr;
  for (const SuperBlockRule& rule : own.super_blocks)
    if (rule.capability == hardware.compute_capability && type.bits <= rule.most_bits) return &rule;
  return nullptr;
}

double vector_share(const IntegerKernels& own, const WeightType& type, const Hardware& hardware) {
  const SuperBlockRule* const rule = rule_of(own, type, hardware);
  if (rule != nullptr && rule->share) return *rule->share;
  return type.super_blocks ? own.super_block_share.value_or(own.vector_share) : own.vector_share;
}

// The peak that the shares refer to, for the kernel for few rows and for tiles. Tiles reach about the same share of plain cores'
// int8: .28 of a P40's 47 TOP/s (llama.cpp pull request 7716: 8B Q5_0, 818 tokens/s over 512 rows).
double vector_peak(const Hardware& hardware) {
  return hardware.has_int8 ? hardware.int8_flops : kTensorOverPlain * hardware.dp4a_flops.value_or(0.0);
}
double tile_peak(const Hardware& hardware) { return hardware.has_int8 ? hardware.int8_flops : hardware.dp4a_flops.value_or(0.0); }

}  // namespace

// Mixtures on chips before Ampere were not measured.
KernelError IntegerExperts::error(const ExpertsWork& /*work*/) const {
  return {0.0, set_.hardware.compute_capability < kAmpere ? kUncheckedExpertsSpread : kIntegerExpertsSpread};
}

bool runs_integer_kernels(const Engine& engine, const Hardware& hardware) {
  const bool early = hardware.compute_capability >= kDp4aCapability && hardware.compute_capability < kAmpere;
  return engine.integer &&
         (hardware.has_int8 ? small_shared_memory(hardware) || early : early && hardware.dp4a_flops.has_value());
}

double IntegerKernelSet::bytes_as_read(double bits) const {
  if (figures().reads && !efficiency) return bits / 8.0 / *figures().reads;
  return calibrated.bytes_as_read(bits, true) / hardware.calibration.memory_efficiency;
}

KernelLabel IntegerKernelSet::label(const char* what) const { return {what, engine.name + ", integer_kernels of its file"}; }

KernelError IntegerProduct::error(const ProductWork& work) const {
  const double rows = std::ceil(work.rows);
  if (!work.type.super_blocks || rows <= 1.0) return {0.0, kIntegerSpread};
  if (rows > vector_rows(work.type)) return {0.0, kIntegerSpread, rows < kFewestInTiles ? kFewRowsInTilesSpread : 0.0};
  const auto weight = [&](double n) { return hypot_weight(arithmetic(work, n), reading(work)); };
  return {0.0, kIntegerSpread, kSuperBlockSpread * (weight(rows) - weight(1.0))};
}

double IntegerProduct::vector_rows(const WeightType& type) const {
  const SuperBlockRule* const rule = rule_of(set_.figures(), type, set_.hardware);
  return rule != nullptr ? rule->rows : set_.figures().vector_rows;
}

double IntegerProduct::reading(const ProductWork& work) const {
  return work.inner * work.outer * set_.bytes_as_read(work.type.bits) / set_.hardware.bandwidth;
}

double IntegerProduct::arithmetic(const ProductWork& work, double rows) const {
  return 2.0 * work.inner * work.outer * rows /
         (vector_peak(set_.hardware) * vector_share(set_.figures(), work.type, set_.hardware));
}

std::optional<double> IntegerProduct::seconds(const ProductWork& work) const {
  if (work.type.bits >= 16.0 || work.groups != 1.0) return std::nullopt;
  const Hardware& hardware = set_.hardware;
  if (!hardware.has_int8 && work.rows >= kMostDp4aRows) return std::nullopt;
  const IntegerKernels& own = set_.figures();
  const double n = std::ceil(work.rows);
  const double fixed = kSecondsPerMicro * own.product_us.value_or(hardware.calibration.kernel_us);
  if (n <= vector_rows(work.type)) return fixed + std::hypot(reading(work), arithmetic(work, n));
  const double width = tile_width(n, own.tile_rows);
  return fixed + kSecondsPerMicro * own.tile_us + reading(work) +
         2.0 * work.inner * work.outer * width * std::ceil(n / width) / (tile_peak(hardware) * own.tile_share);
}

std::optional<double> IntegerExperts::seconds(const ExpertsWork& work) const {
  if (work.type.bits >= 16.0) return std::nullopt;
  const Hardware& hardware = set_.hardware;
  const IntegerKernels& own = set_.figures();
  const double weight_bytes = set_.bytes_as_read(work.type.bits);
  const double elements = (work.gated ? kExpertProducts : kUngatedProducts) * work.hidden * work.width;
  const double rows = work.tokens * work.per_token;
  const double operations = 2.0 * elements;
  const Calibration& c = hardware.calibration;
  const std::optional<double> around =
      work.tokens <= 1.0 && own.mixture_us && own.single_mixture_us ? own.single_mixture_us : own.mixture_us;
  const double fixed = kSecondsPerMicro * around.value_or(kExpertProducts * c.kernel_us + c.experts_us);
  const bool table = work.type.name.find("mxfp4") != std::string_view::npos;  // weights are looked up in a table
  const bool narrow = table && hardware.compute_capability < kTablesAsOthers;
  if (work.tokens <= (narrow ? std::min(own.expert_vector_tokens, own.expert_table_tokens) : own.expert_vector_tokens)) {
    const double share = table && own.table_share ? *own.table_share : vector_share(own, work.type, hardware);
    return fixed +
           std::hypot(rows * elements * weight_bytes / hardware.bandwidth, operations * rows / (vector_peak(hardware) * share));
  }
  const double width = tile_width(own.expert_tiles_of_all_rows ? rows : work.tokens, own.tile_rows);
  return fixed + kSecondsPerMicro * own.expert_wait_us + over_whole_experts(work.met, [&](double met) {
           const double padded = met * std::max(width, rows / met);
           return std::hypot(met * elements * weight_bytes / hardware.bandwidth,
                             operations * padded / (tile_peak(hardware) * own.tile_share));
         });
}

std::optional<double> TiledAttention::seconds(const AttentionWork& work) const {
  if (work.over_one_vector() || work.cache_bits < 16.0) return std::nullopt;
  const double sharing = work.heads / work.kind.kv_heads;
  const double together = std::min(kMostHeadsInTile, std::exp2(std::ceil(std::log2(sharing))));
  const double queries = std::max(kTileStep, work.tokens * together);
  const double padded =
      queries <= kWidestQueries ? std::exp2(std::ceil(std::log2(queries))) : kWidestQueries * std::ceil(queries / kWidestQueries);
  const double keys = work.pairs - (work.cached - work.seen());
  const double operations = 4.0 * work.kind.head_dim * work.sequences * work.kind.kv_heads * std::ceil(sharing / together) *
                            padded * keys / work.shards;
  return (work.same_launch ? 0.0 : kSecondsPerMicro * fixed_us_) +
         work.unequal * std::hypot(work.bytes() / (set_.hardware.bandwidth * set_.figures().attention_reads),
                                   operations / (set_.hardware.flops * set_.figures().attention_share));
}

}  // namespace specsim::cost
