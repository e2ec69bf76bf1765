// The formulas of kernels.
#include "sim/foundation/base/check.h"
#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/gpu/kernels.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

namespace specsim::cost {

namespace {

struct ProductTile {
  double m;
  double n;
};

constexpr std::array<ProductTile, 10> kProductTiles = {
    {{64, 16}, {64, 32}, {64, 64}, {64, 128}, {128, 16}, {128, 32}, {128, 64}, {128, 128}, {128, 256}, {256, 128}}};
constexpr std::array<double, 7> kProductSplits = {1, 2, 3, 4, 6, 8, 16};
constexpr double kProductStep = 64.0;    // how much of the inner dimension a tile takes at a time
constexpr double kWaveTile = 128.0;      // rows and columns of a usual tile
constexpr double kSmallWaveTile = 64.0;  // the same of a small one
constexpr double kWideTileRows = 256.0;  // rows of the largest tile, used if one wave of such tiles suffices
constexpr double kWideTileOver = 192.0;  // rows up to which no library uses such tiles
constexpr double kLatentRowTile = 64.0;  // rows that queries of latent attention are padded to
constexpr double kExpertRowTile = 16.0;  // rows that an expert's product is padded to
constexpr double kWalkedWidth = 128.0;   // the head width for which key_us of attention over several tokens holds
constexpr double kKernelMicro = 1e6;
// Index among the figures of attention over several tokens.
constexpr std::size_t kQueryRows = 5;
constexpr std::size_t kPackedRows = 6;

// The p-norm, computed in units of the largest part so that no power underflows.
double power_norm(double p, std::initializer_list<double> parts) {
  const double largest = std::max(parts);
  if (largest <= 0.0) return 0.0;
  double sum = 0.0;
  for (const double part : parts) sum += part == largest ? 1.0 : std::pow(part / largest, p);
  return largest * std::pow(sum, 1.0 / p);
}

double product_us(const KernelFit& fit, const Hardware& hardware, const KernelShape& x) {
  const auto [efficiency, feed_tb, power, kernel, split_us, arithmetic, whole] = fit.figures;
  const Dtype& t = fit.dtype;
  const double memory = (x.outer * x.inner * t.weight_bytes + x.rows * x.inner * t.activation_bytes + 2.0 * x.rows * x.outer) /
                        (hardware.bandwidth * efficiency);
  const double feed = 1e12 * feed_tb;
  const double units = hardware.multiprocessors;
  const double flops = peak_flops(hardware, t.arithmetic) * arithmetic / units;
  std::array<double, kProductSplits.size()> inners{};
  for (std::size_t i = 0; i < inners.size(); ++i)
    inners[i] = kProductStep * std::ceil(x.inner / kProductSplits[i] / kProductStep);
  double core = std::numeric_limits<double>::infinity();
  for (const ProductTile& tile : kProductTiles) {
    const double tiles = std::ceil(x.outer / tile.m) * std::ceil(x.rows / tile.n);
    const double step = std::max(2.0 * tile.m * tile.n / flops,
                                 (tile.m * t.weight_bytes + std::min(tile.n, x.rows) * t.activation_bytes) / (feed / units));
    for (std::size_t i = 0; i < inners.size(); ++i) {
      const double split = kProductSplits[i];
      const double waves = tiles * split / units;
      double time = (whole * std::ceil(waves) + (1.0 - whole) * std::max(waves, 1.0)) * step * inners[i];
      if (split > 1.0) time += 8.0 * split * x.rows * x.outer / feed + 1e-6 * split_us;
      core = std::min(core, time);
    }
  }
  return kKernelMicro * power_norm(power, {memory, core}) + kernel;
}

double kept_bytes(const KernelFit& fit, const KernelShape& x, double keys) {
  return 2.0 * x.batch * keys * x.kv_heads * x.head_dim * fit.dtype.weight_bytes;
}

double decode_us(const KernelFit& fit, const Hardware& hardware, const KernelShape& x) {
  const auto [efficiency, power, kernel, sequence, head, unused, unused_too] = fit.figures;
  const double memory = kKernelMicro * kept_bytes(fit, x, x.context) / (hardware.bandwidth * efficiency);
  return kernel + power_norm(power, {memory, x.batch * (sequence + x.heads * head)});
}

// Latent attention is one product: its rows are the queries of all heads and new tokens, and it multiplies them with the cached
// vectors, which include the values. Also the mean number of keys that a new token reads.
double latent_rows(const KernelShape& x) { return x.heads * x.tokens; }
double latent_padded(const KernelShape& x) { return kLatentRowTile * std::ceil(latent_rows(x) / kLatentRowTile); }
double latent_keys(const KernelShape& x) { return x.context + 0.5 * (x.tokens + 1.0); }
double latent_bytes(const KernelFit& fit, const KernelShape& x) {
  return x.batch * latent_keys(x) * (x.latent + x.rope_dim) * fit.dtype.weight_bytes;
}

double latent_us(const KernelFit& fit, const Hardware& hardware, const KernelShape& x) {
  const auto [efficiency, arithmetic, power, kernel, sequence, row, unused] = fit.figures;
  const double rows = latent_rows(x);
  const double memory = kKernelMicro * latent_bytes(fit, x) / (hardware.bandwidth * efficiency);
  const double operations = kKernelMicro * 2.0 * (2.0 * x.latent + x.rope_dim) * x.batch * latent_keys(x) * latent_padded(x) /
                            (peak_flops(hardware, fit.dtype.arithmetic) * arithmetic);
  return kernel + power_norm(power, {memory, operations, x.batch * (sequence + rows * row)});
}

// Time per key relative to heads of 128, the width of key_us: a block loads keys and values as wide as a head.
// FlashAttention 2 on an H200 takes .0114 us per key with heads of 64, .0192 with 128 and .0364 with 256 (results/gpu/h200-sxm).
// The RTX 3090 takes .0894 with 256 and the RTX 4090 .0305 with 128, which is twice the cycles.
double walked_width(const Hardware& hardware, double head_dim) {
  constexpr double kBeside = 0.19;
  const double width = head_dim / kWalkedWidth;
  return small_shared_memory(hardware) ? width : kBeside + (1.0 - kBeside) * width;
}

// Time of all blocks in units of one block's time, with `blocks` for each multiprocessor. A multiprocessor holds one block at a
// time if its shared memory is small or if a prompt's kernel takes all of it, else two: on an H200 two blocks run at 1.3 times
// the pace of one.
double walked_waves(const KernelFit& fit, const Hardware& hardware, double blocks) {
  constexpr double kTogether = 0.77;
  return small_shared_memory(hardware) || fit.reads_keys == KeyReading::prompt ? std::ceil(blocks)
                                                                               : std::max(1.0, kTogether * blocks);
}

// Queries of heads that share keys, stacked as the rows of tiles: one tile of `packed_rows` if they fit, else several of
// `query_rows`. Each tile reads the keys.
struct PackedRows {
  double queries;
  double tiles;
  double padded;
};

PackedRows packed_rows(const KernelFit& fit, const KernelShape& x) {
  const double block = fit.figures[kQueryRows];
  const double small = fit.figures[kPackedRows];
  const double queries = x.tokens * x.heads / x.kv_heads;
  const double tiles = std::ceil(queries / block);
  return {queries, tiles, queries <= small ? small : block * tiles};
}

double packed_verify_us(const KernelFit& fit, const Hardware& hardware, const KernelShape& x) {
  const auto [efficiency, arithmetic, power, kernel, key, block, small] = fit.figures;
  const auto [queries, tiles, padded] = packed_rows(fit, x);
  const double keys = x.context + 0.5 * (x.tokens + 1.0);
  const double memory = kKernelMicro * kept_bytes(fit, x, x.context + x.tokens) / (hardware.bandwidth * efficiency);
  const double operations =
      kKernelMicro * 4.0 * x.batch * x.kv_heads * x.head_dim * padded * keys / (hardware.flops * arithmetic);
  const double blocks = x.batch * x.kv_heads * tiles / hardware.multiprocessors;
  return kernel + power_norm(power, {memory, operations, std::max(1.0, blocks) * keys * key});
}

double verify_us(const KernelFit& fit, const Hardware& hardware, const KernelShape& x) {
  if (fit.figures[kPackedRows] > 0.0) return packed_verify_us(fit, hardware, x);
  const auto [efficiency, arithmetic, power, kernel, key, block, unused] = fit.figures;
  const double keys = x.context + 0.5 * (x.tokens + 1.0);
  const double memory = kKernelMicro * kept_bytes(fit, x, x.context + x.tokens) / (hardware.bandwidth * efficiency);
  const double operations = kKernelMicro * 4.0 * x.batch * x.heads * x.head_dim * x.tokens * keys / (hardware.flops * arithmetic);
  const double blocks = x.batch * x.heads * std::ceil(x.tokens / block) / hardware.multiprocessors;
  // Prompts were measured with several head widths, so their correction already covers the width.
  const double walks = fit.kind == KernelKind::attention_verify
                           ? walked_waves(fit, hardware, blocks) * walked_width(hardware, x.head_dim)
                           : std::ceil(blocks);
  return kernel + power_norm(power, {memory, operations, walks * keys * key});
}

double experts_us(const KernelFit& fit, const Hardware& hardware, const KernelShape& x) {
  const auto [efficiency, arithmetic, power, kernel, expert, row, unused] = fit.figures;
  const double rows = x.tokens * x.experts_per_token;
  const double choices = 1.0 + x.alike * (x.tokens - 1.0);
  const double independent =
      x.experts * -std::expm1(choices * std::log1p(-std::min(x.experts_per_token / x.experts, 1.0 - 1e-12)));
  const double active = x.skew > 0.0 ? std::max(1.0, independent) : std::min(x.experts, rows);
  const double weights = x.matrices * x.hidden * x.expert_width;  // of one expert
  const double memory = kKernelMicro * active * weights * fit.dtype.weight_bytes / (hardware.bandwidth * efficiency);
  // With random routing the last tile of each expert is half full on average; with balanced routing tiles are exact.
  const double each = rows / active;
  const double padded = active * (x.skew > 0.0 ? std::max(kExpertRowTile, each + 0.5 * (kExpertRowTile - 1.0))
                                               : kExpertRowTile * std::ceil(each / kExpertRowTile));
  const double operations = kKernelMicro * 2.0 * weights * padded / (peak_flops(hardware, fit.dtype.arithmetic) * arithmetic);
  return kernel + power_norm(power, {memory, operations}) + expert * active + row * rows;
}

double allreduce_us(const KernelFit& fit, const Hardware& hardware, const KernelShape& x) {
  const auto [efficiency, kernel, power, a, b, c, d] = fit.figures;
  const double link = kKernelMicro * 2.0 * (x.gpus - 1.0) / x.gpus * x.bytes / (hardware.link_bandwidth * efficiency);
  return power_norm(power, {link, kernel});
}

// How full the waves are: only the last one is partly empty.
double last_wave(double waves) { return waves / std::ceil(waves); }

// The columns of a tile of 256 rows such that one wave suffices. Beyond the measured rows the width at the most rows is used, and
// if that tile is wide (over 80 columns) at least the width that needs two waves: no measurement shows that larger products are
// cut that way.
double wide_tile_columns(const KernelFit& fit, const Hardware& hardware, const KernelShape& x) {
  if (x.rows <= kWideTileOver) return 64.0;
  const double most = std::max(fit.most(), kWideTileOver + 1.0);
  const double columns = std::ceil(std::min(x.rows, most) / kWideTileRows) * x.outer / hardware.multiprocessors;
  return std::clamp(x.rows > most && columns > 80.0 ? std::max(columns, 256.0) : columns, 16.0, 512.0);
}

using Coordinates = KernelFormula::Coordinates;
using std::log2;

Coordinates product_coordinates(const KernelFit& fit, const Hardware& hardware, const KernelShape& x) {
  const auto full = [&](double tile) {
    return last_wave(std::ceil(x.outer / tile) * std::ceil(x.rows / tile) / hardware.multiprocessors);
  };
  return {log2(x.rows),
          log2(x.outer),
          log2(x.inner),
          log2(x.outer * x.inner),
          full(kWaveTile),
          full(kSmallWaveTile),
          log2(wide_tile_columns(fit, hardware, x))};
}

Coordinates decode_coordinates(const KernelFit& fit, const Hardware& hardware, const KernelShape& x) {
  return {log2(kept_bytes(fit, x, x.context)),
          log2(x.context),
          log2(x.batch * x.kv_heads),
          log2(x.heads / x.kv_heads),
          log2(x.batch),
          last_wave(x.batch * x.kv_heads / hardware.multiprocessors),
          log2(x.head_dim)};
}

Coordinates latent_coordinates(const KernelFit& fit, const Hardware& /*hardware*/, const KernelShape& x) {
  return {log2(latent_bytes(fit, x)), log2(latent_keys(x)), log2(x.batch),
          log2(latent_rows(x) <= kLatentRowTile ? latent_rows(x) : latent_padded(x))};
}

Coordinates prefill_coordinates(const KernelFit& /*fit*/, const Hardware& /*hardware*/, const KernelShape& x) {
  return {log2(x.tokens), log2(x.batch * x.heads), log2(x.heads / x.kv_heads), log2(x.head_dim)};
}

Coordinates verify_coordinates(const KernelFit& fit, const Hardware& /*hardware*/, const KernelShape& x) {
  const double context = log2(std::max(x.context, 1.0));
  if (fit.figures[kPackedRows] <= 0.0) return {log2(x.tokens), context, log2(x.batch * x.heads)};
  const PackedRows rows = packed_rows(fit, x);
  return {log2(rows.padded), context, log2(x.batch * x.kv_heads), log2(std::min(rows.queries, fit.figures[kPackedRows]))};
}

Coordinates experts_coordinates(const KernelFit& /*fit*/, const Hardware& /*hardware*/, const KernelShape& x) {
  return {log2(x.tokens), log2(x.experts), log2(x.expert_width), log2(x.experts_per_token), x.skew};
}

Coordinates allreduce_coordinates(const KernelFit& /*fit*/, const Hardware& /*hardware*/, const KernelShape& x) {
  return {log2(x.bytes), log2(x.gpus)};
}

Coordinates coordinates(const KernelFit& fit, const Hardware& hardware, const KernelShape& x) {
  return kernel_formula(fit.kind).coordinates(fit, hardware, x);
}

// The two knots around `x` and the share of the upper one.
struct Between {
  std::size_t low = 0;
  double upper = 0.0;
};

Between between_knots(const std::vector<double>& knots, double x) {
  const double inside = std::clamp(x, knots.front(), knots.back());
  const auto above = std::upper_bound(knots.begin(), knots.end(), inside);
  const std::size_t low =
      std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(above - knots.begin() - 1, 0)), knots.size() - 2);
  return {low, (inside - knots[low]) / (knots[low + 1] - knots[low])};
}

double corrected(const KernelFit& fit, const Coordinates& x) {
  const Between first = between_knots(fit.over, x[0]);
  const std::size_t width = fit.correction.size() / fit.over.size();
  const auto across = [&](std::size_t row) {
    const double* weights = fit.correction.data() + row * width;
    double sum = weights[0];
    std::size_t at = 1;
    for (std::size_t i = 0; i < fit.by.size(); ++i) {
      if (fit.by[i].size() < 2) continue;
      const Between b = between_knots(fit.by[i], x[i + 1]);
      sum += (1.0 - b.upper) * weights[at + b.low] + b.upper * weights[at + b.low + 1];
      at += fit.by[i].size();
    }
    return sum;
  };
  return (1.0 - first.upper) * across(first.low) + first.upper * across(first.low + 1);
}

// The weight of the fit for small products in the estimate: 1 up to the largest size of that fit; 0 from the smallest size of the
// other fit on, or from four times that largest; between them linear in the logarithm of the size.
double share_of_small(const KernelFit& fit, const Coordinates& x) {
  constexpr std::size_t kSize = 2;  // index among KernelFit::by; one more among the coordinates
  if (fit.small == nullptr || fit.by[kSize].empty() || fit.small->by[kSize].empty()) return 0.0;
  const double low = std::min(fit.small->by[kSize].back(), fit.by[kSize].front() - 1.0);
  const double high = std::min(fit.by[kSize].front(), low + 2.0);
  return std::clamp((high - x[kSize + 1]) / (high - low), 0.0, 1.0);
}

config::Parameter figure_of_fit(const char* name, std::optional<std::string> usual = {},
                                const config::Interval& allowed = config::between(0, 1e9)) {
  return {name, config::Type::number, std::move(usual), "", allowed, {}};
}

std::vector<config::Parameter> figures_of_fit(std::initializer_list<const char*> names) {
  std::vector<config::Parameter> figures;
  for (const char* name : names) figures.push_back(figure_of_fit(name));
  return figures;
}

// Figures of attention over several tokens. Most fits lack the last two.
std::vector<config::Parameter> figures_of_blocks() {
  std::vector<config::Parameter> figures =
      figures_of_fit({"memory_efficiency", "arithmetic_efficiency", "overlap_power", "kernel_us", "key_us"});
  figures.push_back(figure_of_fit("query_rows", "128", config::between(1, 1e6)));
  figures.push_back(figure_of_fit("packed_rows", "0"));
  return figures;
}

}  // namespace

// A kind's figures are in the order in which its formula reads them.
const std::vector<KernelFormula>& kernel_formulas() {
  using Kind = KernelKind;
  static const std::vector<KernelFormula> formulas = {
      {Kind::product, "product",
       figures_of_fit({"memory_efficiency", "feed_tb_per_s", "overlap_power", "kernel_us", "split_us", "arithmetic_efficiency",
                       "whole_waves"}),
       4, 6, product_us, product_coordinates},
      {Kind::attention_decode, "attention_decode",
       figures_of_fit({"memory_efficiency", "overlap_power", "kernel_us", "sequence_us", "head_us"}), 3, 6, decode_us,
       decode_coordinates},
      {Kind::attention_latent, "attention_latent",
       figures_of_fit({"memory_efficiency", "arithmetic_efficiency", "overlap_power", "kernel_us", "sequence_us", "row_us"}), 3,
       3, latent_us, latent_coordinates},
      {Kind::attention_prefill, "attention_prefill", figures_of_blocks(), 3, 3, verify_us, prefill_coordinates},
      {Kind::attention_verify, "attention_verify", figures_of_blocks(), 2, 3, verify_us, verify_coordinates},
      {Kind::experts, "experts",
       figures_of_fit({"memory_efficiency", "arithmetic_efficiency", "overlap_power", "kernel_us", "expert_us", "row_us"}), 4, 4,
       experts_us, experts_coordinates},
      {Kind::allreduce, "allreduce", figures_of_fit({"link_efficiency", "kernel_us", "overlap_power"}), 1, 1, allreduce_us,
       allreduce_coordinates}};
  return formulas;
}

const KernelFormula& kernel_formula(KernelKind kind) { return kernel_formulas()[static_cast<std::size_t>(kind)]; }

const KernelFormula& kernel_formula(const std::string& name) {
  const auto& all = kernel_formulas();
  const auto at = std::find_if(all.begin(), all.end(), [&](const KernelFormula& formula) { return name == formula.name; });
  SPECSIM_CHECK(at != all.end(), "no kind of kernel has the name {}", name);
  return *at;
}

std::vector<std::string> kernel_kind_names() {
  std::vector<std::string> names;
  for (const KernelFormula& formula : kernel_formulas()) names.emplace_back(formula.name);
  return names;
}

double KernelFit::microseconds(const Hardware& hardware, const KernelShape& shape) const {
  const Coordinates x = coordinates(*this, hardware, shape);
  const double share = share_of_small(*this, x);
  if (share >= 1.0) return small->microseconds(hardware, shape);
  double us = kernel_formula(kind).microseconds(*this, hardware, shape) * std::exp(corrected(*this, x));
  // Beyond the measured rows the correction of the last ones could exceed the GPU's peak arithmetic.
  if (kind == KernelKind::product && shape.rows > most())
    us = std::max(us, kKernelMicro * 2.0 * shape.rows * shape.inner * shape.outer / peak_flops(hardware, dtype.arithmetic));
  return share == 0.0 ? us : std::pow(small->microseconds(hardware, shape), share) * std::pow(us, 1.0 - share);
}

double KernelFit::floor_us(const Hardware& hardware, const KernelShape& shape) const {
  constexpr std::size_t kFloor = 3;  // kernel_us among a product's figures
  const double share = share_of_small(*this, coordinates(*this, hardware, shape));
  return (1.0 - share) * figures[kFloor] + (share > 0.0 ? share * small->figures[kFloor] : 0.0);
}

double KernelFit::walk_us(const Hardware& hardware, const KernelShape& shape) const {
  constexpr double kBlock = 256.0;  // queries of a head
  constexpr double kFew = 64.0;     // tokens of prompts that were measured: one block; and the longest of one head, and a quarter
  constexpr double kLong = 4096.0;
  KernelShape one = shape;
  one.batch = one.heads = one.kv_heads = 1.0;
  one.context = 0.0;
  const auto alone = [&](double tokens) {
    one.tokens = tokens;
    return microseconds(hardware, one);
  };
  const double key = (alone(kLong) - alone(0.25 * kLong)) / (0.75 * kLong);
  const double blocks = shape.batch * shape.heads * std::ceil(shape.tokens / kBlock);
  return alone(kFew) + std::ceil(blocks / hardware.multiprocessors) * key * (shape.context + shape.tokens);
}

bool KernelFit::of_one_layer() const {
  return kind == KernelKind::experts && by[0].size() == 1 && by[2].size() == 1;  // number of experts, and experts per token
}

double KernelFit::most() const { return std::exp2(over.back()); }

double KernelFit::most_of_others(std::size_t which) const {
  return by[which].empty() ? std::numeric_limits<double>::infinity() : std::exp2(by[which].back());
}

bool KernelFit::covers(const Hardware& hardware, const KernelShape& shape) const {
  constexpr double kSlack = 0.01;  // knots are rounded
  // Shares of waves, and the tile that one wave takes, follow from the other coordinates, so they need no range of their own.
  const auto follows = [this](std::size_t i) {
    return (kind == KernelKind::product && i >= 3) || (kind == KernelKind::attention_decode && i == 4);
  };
  const Coordinates x = coordinates(*this, hardware, shape);
  if (share_of_small(*this, x) >= 1.0) return small->covers(hardware, shape);
  const auto inside = [](const std::vector<double>& knots, double at) {
    return at >= knots.front() - kSlack && at <= knots.back() + kSlack;
  };
  if (!inside(over, x[0])) return false;
  for (std::size_t i = 0; i < by.size(); ++i)
    if (!by[i].empty() && !follows(i) && !inside(by[i], x[i + 1])) return false;
  return true;
}

}  // namespace specsim::cost
