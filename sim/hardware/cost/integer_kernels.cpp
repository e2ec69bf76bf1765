#include "sim/hardware/cost/integer_kernels.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace specsim::cost {

namespace {

constexpr double kTileStep = 8.0;         // rows by which tiles of products grow, and the narrowest tile of attention
constexpr double kWidestQueries = 64.0;   // queries of attention's widest tile
constexpr double kMostHeadsInTile = 8.0;  // heads that share keys and lie in a tile of queries
constexpr double kExpertProducts = 3.0;   // gate, up and down
constexpr double kTablesAsOthers = 8.9;   // compute capability from which the kernel for few takes as many tokens of any type
constexpr double kSecondsPerMicro = 1e-6;
constexpr double kDp4aCapability = 6.1;  // compute capability from which plain cores multiply int8
constexpr double kAmpere = 8.0;
// Tensor cores' int8 over that of plain cores, of the chips that shares were fitted on: 284 and 71 TOP/s of an RTX 3090.
constexpr double kTensorOverPlain = 4.0;
// Rows from which weights become fp16 for a library's product where tensor cores have no int8 (MMQ_DP4A_MAX_BATCH_SIZE).
constexpr double kMostDp4aRows = 64.0;

// The width of the tiles that `rows` are cut into: as few tiles as go, and no wider than that takes.
double tile_width(double rows, double most) {
  const double tiles = std::ceil(rows / most);
  return std::min(most, kTileStep * std::ceil(rows / tiles / kTileStep));
}

double vector_share(const IntegerKernels& own, bool super_blocks) {
  return super_blocks && own.super_block_share > 0.0 ? own.super_block_share : own.vector_share;
}

// Arithmetic that shares of the kernel for few are of, and those of tiles: the latter reach about as much of plain cores' int8,
// .28 of a P40's 47 TOP/s (llama.cpp pull request 7716: 8B Q5_0, 818 tokens/s over 512 rows).
double vector_peak(const Hardware& hardware) {
  return hardware.has_int8 ? hardware.int8_flops : kTensorOverPlain * hardware.dp4a_flops;
}
double tile_peak(const Hardware& hardware) { return hardware.has_int8 ? hardware.int8_flops : hardware.dp4a_flops; }

bool in_table(const ModelShape& model) { return model.expert_type.find("mxfp4") != std::string::npos; }

}  // namespace

bool runs_integer_kernels(const Deployment& deployment) {
  const Hardware& hardware = deployment.hardware;
  const bool early = hardware.compute_capability >= kDp4aCapability && hardware.compute_capability < kAmpere;
  return deployment.kernels == "automatic" && deployment.engine.integer.vector_rows > 0.0 &&
         (hardware.has_int8 ? small_shared_memory(hardware) || early : early && hardware.dp4a_flops > 0.0);
}

bool runs_integer_product(const Hardware& hardware, double rows) { return hardware.has_int8 || rows < kMostDp4aRows; }

bool has_own_layers(const Engine& engine, const ModelShape& model) {
  return engine.integer.layer_us > 0.0 && (model.weight_bits < 16.0 || (model.experts > 0.0 && model.expert_bits < 16.0));
}

double integer_product_seconds(const Engine& engine, const Hardware& hardware, double rows, double inner, double outer,
                               double weight_bytes, bool super_blocks) {
  const IntegerKernels& own = engine.integer;
  const double n = std::ceil(rows);
  const double reading = inner * outer * weight_bytes / hardware.bandwidth;
  const double operations = 2.0 * inner * outer;
  const double fixed = kSecondsPerMicro * (own.product_us > 0.0 ? own.product_us : hardware.calibration.kernel_us);
  if (n <= own.vector_rows)
    return fixed + std::hypot(reading, operations * n / (vector_peak(hardware) * vector_share(own, super_blocks)));
  const double width = tile_width(n, own.tile_rows);
  return fixed + kSecondsPerMicro * own.tile_us + reading +
         operations * width * std::ceil(n / width) / (tile_peak(hardware) * own.tile_share);
}

double integer_experts_seconds(const Engine& engine, const Hardware& hardware, const ModelShape& model, double tokens, double met,
                               double weight_bytes) {
  const IntegerKernels& own = engine.integer;
  const double elements = kExpertProducts * model.hidden * model.expert_ffn / model.tensor_parallel;
  const double rows = tokens * model.experts_per_token / model.expert_parallel;
  const double operations = 2.0 * elements;
  const Calibration& c = hardware.calibration;
  const double around = tokens <= 1.0 && own.single_mixture_us > 0.0 ? own.single_mixture_us : own.mixture_us;
  const double fixed = kSecondsPerMicro * (own.mixture_us > 0.0 ? around : kExpertProducts * c.kernel_us + c.experts_us);
  const bool table = in_table(model);
  const bool narrow = table && hardware.compute_capability < kTablesAsOthers;
  if (tokens <= (narrow ? std::min(own.expert_vector_tokens, own.expert_table_tokens) : own.expert_vector_tokens)) {
    const double share = table && own.table_share > 0.0 ? own.table_share : vector_share(own, model.super_blocks);
    return fixed +
           std::hypot(rows * elements * weight_bytes / hardware.bandwidth, operations * rows / (vector_peak(hardware) * share));
  }
  const double width = tile_width(own.expert_tiles_of_all_rows ? rows : tokens, own.tile_rows);
  const double padded = met * std::max(width, rows / met);
  return fixed + kSecondsPerMicro * own.expert_wait_us +
         std::hypot(met * elements * weight_bytes / hardware.bandwidth,
                    operations * padded / (tile_peak(hardware) * own.tile_share));
}

double tiled_attention_seconds(const Engine& engine, const Hardware& hardware, const ModelShape& model, const AttentionKind& kind,
                               double sequences, double tokens, double keys, double bytes) {
  const double sharing = model.heads / kind.kv_heads;
  const double together = std::min(kMostHeadsInTile, std::exp2(std::ceil(std::log2(sharing))));
  const double queries = std::max(kTileStep, tokens * together);
  const double padded =
      queries <= kWidestQueries ? std::exp2(std::ceil(std::log2(queries))) : kWidestQueries * std::ceil(queries / kWidestQueries);
  const double operations =
      4.0 * kind.head_dim * sequences * kind.kv_heads * std::ceil(sharing / together) * padded * keys / model.tensor_parallel;
  return std::hypot(bytes / (hardware.bandwidth * engine.integer.attention_reads),
                    operations / (hardware.flops * engine.integer.attention_share));
}

}  // namespace specsim::cost
