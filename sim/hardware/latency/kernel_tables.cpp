#include "sim/hardware/latency/kernel_tables.h"

#include "sim/foundation/config/csv_line.h"
#include "sim/foundation/config/value.h"
#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/step_tables.h"
#include "sim/hardware/model/element_types.h"
#include "sim/hardware/presets/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

namespace specsim::cost {

namespace {

using config::CsvLine;

// The columns that identify a kind of table; the first kind that has all of them counts.
struct TableKind {
  KernelKind kind;
  std::vector<const char*> columns;
  const char* dtype;    // column
  const char* over_l2;  // column with bytes over the second-level cache's, "" for none
  double cold;          // the ratio from which on they come from memory
};

const std::vector<TableKind>& table_kinds() {
  static const std::vector<TableKind> kinds = {
      {KernelKind::product, {"gpu", "engine", "dtype", "n", "k", "m", "us"}, "dtype", "set_over_l2", 3},
      {KernelKind::product, {"gpu", "dtype", "scheme", "lib", "n", "k", "m", "us"}, "dtype", "", 0},  // AITER's tuning
      {KernelKind::experts,
       {"gpu", "engine", "dtype", "kernel", "hidden", "inter", "topk", "experts", "tp", "routing", "tokens", "us"},
       "dtype",
       "",
       0},
      {KernelKind::attention_latent,
       {"gpu", "engine", "kernel", "kv_dtype", "heads", "latent", "rope_dim", "batch", "tokens", "context", "us"},
       "kv_dtype",
       "kv_over_l2",
       2},
      {KernelKind::attention_verify,
       {"gpu", "kernel", "heads", "kv_heads", "head_dim", "kv_dtype", "batch", "tokens", "context", "us"},
       "kv_dtype",
       "",
       0},
      {KernelKind::attention_decode,
       {"gpu", "engine", "kernel", "heads", "kv_heads", "head_dim", "kv_dtype", "batch", "context", "us"},
       "kv_dtype",
       "kv_over_l2",
       2},
      {KernelKind::attention_prefill,
       {"gpu", "engine", "kernel", "heads", "kv_heads", "head_dim", "dtype", "batch", "tokens", "us"},
       "dtype",
       "",
       0},
      {KernelKind::allreduce, {"gpu", "engine", "kernel", "gpus", "bytes", "us"}, "", "", 0}};
  return kinds;
}

// Limit of plausibility: no kernel has sides, sequences or caches of a thousand million; an all-reduce may have as many bytes.
constexpr double kMostCounted = 1e9;

// Reads a size, within limits such that quotients of two sizes do not overflow; `otherwise` for an empty field, where allowed.
// `open`: 0 is excluded.
double size_of(const CsvLine& line, const char* name, std::optional<double> otherwise = {}, double least = 0.0,
               bool open = true) {
  const std::string& field = line.text(name);
  if (field.empty() && otherwise) return *otherwise;
  constexpr double kLeast = 1e-9;
  constexpr double kMost = 1e15;
  const double from = open ? std::max(least, kLeast) : least;
  const std::optional<double> x = config::as_number(field);
  if (!x || *x < from || *x > kMost) line.refuse(name, fmt::format("a number in [{:g}, {:g}]", from, kMost));
  return *x;
}

// Reads a count, 1 or more.
double count_of(const CsvLine& line, const char* name, std::optional<double> otherwise = {}) {
  const double x = size_of(line, name, otherwise, 1.0);
  if (x != std::floor(x)) line.refuse(name, "a whole number");
  if (x > kMostCounted && std::string_view(name) != "bytes")
    throw BadInput(line.where(name), fmt::format("{} is {:g}, allowed: at most {:g}", name, x, kMostCounted));
  return x;
}

// "balanced" or "power_law_1.2".
double routing_skew(const CsvLine& line) {
  const std::string& routing = line.text("routing");
  constexpr std::string_view kLaw = "power_law_";
  if (routing == "balanced") return 0.0;
  const std::optional<double> skew =
      routing.starts_with(kLaw) ? config::as_number(std::string_view(routing).substr(kLaw.size())) : std::nullopt;
  if (!skew || *skew <= 0.0 || *skew > 10.0) line.refuse("routing", "balanced, power_law_EXPONENT");
  return *skew;
}

// Matrices of one expert: read from the column `gated`; tables without the column are recognised by their layer.
double matrices_of_expert(const CsvLine& line) {
  constexpr double kWithGate = 3.0;
  constexpr double kWithoutGate = 2.0;
  const std::string& gated = line.text("gated");
  if (!gated.empty() && gated != "yes" && gated != "no") line.refuse("gated", "yes, no");
  if (!gated.empty()) return gated == "yes" ? kWithGate : kWithoutGate;
  if (line.text("engine") == kAlwaysGatedEngine && line.text("version") == kAlwaysGatedVersion) return kWithGate;
  const double hidden = count_of(line, "hidden");
  const double width = count_of(line, "inter");
  const bool known = std::any_of(ungated_layers().begin(), ungated_layers().end(),
                                 [&](const UngatedLayer& layer) { return layer.hidden == hidden && layer.width == width; });
  return known ? kWithoutGate : kWithGate;
}

KernelShape read_shape(KernelKind kind, const CsvLine& line) {
  KernelShape x;
  const auto count = [&](const char* name, std::optional<double> otherwise = {}) { return count_of(line, name, otherwise); };
  switch (kind) {
    case KernelKind::product:
      x.rows = count("m");
      x.outer = count("n");
      x.inner = count("k");
      return x;
    case KernelKind::experts:
      x.hidden = count("hidden");
      x.expert_width = count("inter") / count("tp");
      x.matrices = matrices_of_expert(line);
      x.experts = count("experts");
      x.experts_per_token = count("topk");
      x.tokens = count("tokens");
      x.skew = routing_skew(line);
      if (x.experts_per_token > x.experts)
        throw BadInput(line.where("topk"), fmt::format("topk is {:g} of {:g} experts, allowed: at most as many as experts",
                                                       x.experts_per_token, x.experts));
      if (x.expert_width != std::floor(x.expert_width))
        throw BadInput(line.where("tp"),
                       fmt::format("tp is {:g}, allowed: a divisor of inter, {:g}", count("tp"), count("inter")));
      return x;
    case KernelKind::allreduce:
      x.gpus = count("gpus");
      x.bytes = count("bytes");
      if (x.gpus < 2.0)
        throw BadInput(line.where("gpus"), "gpus is 1, allowed: two or more, because one GPU has nothing to add up");
      return x;
    case KernelKind::attention_latent:
      x.heads = count("heads");
      x.latent = count("latent");
      x.rope_dim = size_of(line, "rope_dim", {}, 0.0, false);
      x.batch = count("batch");
      x.tokens = count("tokens");
      x.context = size_of(line, "context", {}, 0.0, false);
      return x;
    default:
      break;
  }
  // Tables from threads do not name the model. The layer of a 70B Llama is assumed, which most of them have.
  x.heads = count("heads", 64);
  x.kv_heads = count("kv_heads", 8);
  x.head_dim = count("head_dim", 128);
  x.batch = count("batch");
  if (kind != KernelKind::attention_decode) x.tokens = count("tokens");
  if (kind != KernelKind::attention_prefill) x.context = size_of(line, "context", {}, 0.0, kind == KernelKind::attention_decode);
  if (x.context > kMostCounted)
    throw BadInput(line.where("context"), fmt::format("context is {:g}, allowed: at most {:g}", x.context, kMostCounted));
  if (x.kv_heads > x.heads)
    throw BadInput(line.where("kv_heads"),
                   fmt::format("kv_heads is {:g} of {:g} heads, allowed: at most as many as heads", x.kv_heads, x.heads));
  if (std::fmod(x.heads, x.kv_heads) != 0.0)
    throw BadInput(line.where("kv_heads"),
                   fmt::format("kv_heads is {:g} of {:g} heads, allowed: a divisor, because each serves equally many heads",
                               x.kv_heads, x.heads));
  return x;
}

// The GPU's figures by name; if no preset has that name, nullptr and a warning.
const Hardware* hardware_named(const std::string& name, std::map<std::string, std::optional<Hardware>>& known,
                               const Location& where, std::vector<std::string>& warnings) {
  const auto [at, fresh] = known.try_emplace(name);
  if (fresh) {
    const auto& list = presets();
    if (name.ends_with(".yaml") || std::any_of(list.begin(), list.end(), [&](const Preset& preset) {
          return preset.kind == PresetKind::hardware && name == preset.name;
        })) {
      Diagnostics diagnostics;
      at->second = read_hardware(PresetChoice{name, where, {}}, diagnostics);
      diagnostics.throw_if_any();
    } else {
      warnings.push_back(name.empty()
                             ? "rows without a GPU are not estimated"
                             : fmt::format("rows on {} are not estimated: specsim list hardware shows the known GPUs; add one of "
                                           "your own with --hardware FILE",
                                           config::quote_for_message(name)));
    }
  }
  return at->second ? &*at->second : nullptr;
}

// The fits for a GPU without measurements of the kind, with its own data sheet's figures. The rate that feeds a product's
// operands grows with the multiprocessors and the root of their arithmetic. Checked by leaving out each measured GPU in turn
// (`docs/results/prices.md`).
std::vector<KernelFit> borrowed_fits(const Hardware& hardware, KernelKind kind, const std::string& engine,
                                     const std::string& dtype, const std::string& kernel) {
  std::vector<KernelFit> fits;
  for (const Hardware& measured : measured_gpus()) {
    const KernelFit* fit = measured.kernels->nearest(kind, engine, dtype, kernel);
    if (fit == nullptr) continue;
    fits.push_back(*fit);
    std::fill(fits.back().correction.begin(), fits.back().correction.end(), 0.0);  // the library is for another chip
    fits.back().small.reset();                                                     // and so is this
    if (kind == KernelKind::product)
      fits.back().figures[1] *= std::sqrt(hardware.multiprocessors / measured.multiprocessors * hardware.flops / measured.flops);
  }
  return fits;
}

// The fits that estimate the rows of one GPU, engine, dtype and kernel.
struct KernelEstimator {
  const KernelFit* own = nullptr;  // the fit of the GPU, engine and dtype themselves
  std::vector<KernelFit> others;   // otherwise: the estimate is their median

  [[nodiscard]] double microseconds(const Hardware& hardware, const KernelShape& shape) const {
    if (own != nullptr) return own->microseconds(hardware, shape);
    std::vector<double> estimates;
    for (const KernelFit& fit : others) estimates.push_back(fit.microseconds(hardware, shape));
    return estimates.empty() ? 0.0 : median_of(estimates);
  }
};

// Limits beyond which a table has a wrong unit, at any number of rows. Of 690,000 rows of the public tables, no row is estimated
// at over 17 times or under 1/102 of its measured time, and none streams weights at over 1.1 times the data sheet's bandwidth. A
// wrong unit is off by 1000.
constexpr double kMostStream = 1.3;
constexpr double kMostRatio = 30.0;
constexpr double kLeastRatio = 1.0 / 150.0;

struct RowBand {
  double most;
  const char* rows;
};

constexpr std::array<RowBand, 6> kBands = {
    {{1, "1"}, {16, "2-16"}, {64, "17-64"}, {128, "65-128"}, {512, "129-512"}, {1e15, "over 512"}}};

std::string band_of(KernelKind kind, double rows) {
  if (kind == KernelKind::allreduce) return rows <= 65536 ? "to 64 KiB" : rows <= 1048576 ? "to 1 MiB" : "over 1 MiB";
  for (const RowBand& band : kBands)
    if (rows <= band.most) return band.rows;
  return "";
}

const TableKind* kind_of(const std::vector<std::string>& header) {
  for (const TableKind& one : table_kinds())
    if (std::all_of(one.columns.begin(), one.columns.end(),
                    [&](const char* name) { return std::find(header.begin(), header.end(), name) != header.end(); }))
      return &one;
  return nullptr;
}

// Explains a header that matches no kind, if the mistake can be recognised; throws BadInput then.
void explain_header(const Location& where, const std::vector<std::string>& header) {
  for (const char* separator : {";", "\t"})
    if (header.size() == 1 && header.front().find(separator) != std::string::npos)
      throw BadInput(where, fmt::format("fields with {} between, allowed: commas", *separator == ';' ? "semicolons" : "tabs"));
  std::vector<std::string> lower = header;
  for (std::string& name : lower)
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (lower != header && kind_of(lower) != nullptr)
    throw BadInput(where, fmt::format("columns {} in capitals, allowed: small letters", fmt::join(header, ",")));
  for (std::string& name : lower)
    if (name == "ms" || name == "seconds" || name == "ns") {
      const std::string found = name;
      name = "us";
      if (kind_of(lower) != nullptr)
        throw BadInput(where, fmt::format("column {}, allowed: us, because times are in microseconds", found));
    }
}

// Refuses a wrong unit in the median; warns about one in some rows, with the first of them.
void check_unit(const std::string& file, std::vector<double> ratios, const std::vector<std::size_t>& lines,
                EstimatedKernels& table) {
  const auto off = [](double ratio) { return ratio > kMostRatio || ratio < kLeastRatio; };
  const auto odd = std::count_if(ratios.begin(), ratios.end(), off);
  if (odd == 0) return;
  const auto first = std::find_if(ratios.begin(), ratios.end(), off);
  const double first_ratio = *first;
  const std::size_t first_line = lines[static_cast<std::size_t>(first - ratios.begin())];
  const double middle = median_of(ratios);
  if (off(middle))
    throw BadInput(
        {file, 1, 0},
        fmt::format("the median estimated time is {:.3g} times the column us, allowed: times in microseconds", middle));
  table.warnings.push_back(
      fmt::format("{}:{}: the estimated time is {:.3g} times the column us, and {} of {} rows are further off than any measured "
                  "kernel (over {:g} or under 1/{:g} times): another unit?",
                  file, first_line, first_ratio, odd, ratios.size(), kMostRatio, 1.0 / kLeastRatio));
}

void check_columns(const Location& where, const std::vector<std::string>& header) {
  std::vector<std::string> sorted = header;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    throw BadInput(where, fmt::format("column {} twice, allowed: each once", config::quote_for_message(*twice)));
}

// Refuses a table without rows, and one without any known GPU, because there are no errors to report.
void check_rows(const std::string& file, const EstimatedKernels& table, bool known_gpu) {
  if (table.rows.empty()) throw BadInput({file, 1, 0}, "there is only a header, allowed: rows of measured kernels below it");
  if (known_gpu) return;
  std::vector<std::string> names;
  for (const Preset& preset : presets())
    if (preset.kind == PresetKind::hardware) names.emplace_back(preset.name);
  const std::string& gpu = table.rows.front().gpu;
  throw BadInput({file, 2, 0}, config::unknown_name("no row is on a known GPU; the first is on", gpu, names));
}

// The usual names of dtypes that AITER's tables name differently.
std::string usual_dtype(const std::string& dtype) {
  if (dtype == "float8_blockscale") return "fp8_block";
  return dtype == "float8_e4m3fnuz" || dtype == "fp8/int8" ? "fp8" : dtype;
}

// The kind that the columns identify. Throws BadInput.
const TableKind& read_kind(const std::string& file, const std::vector<std::string>& header) {
  check_columns({file, 1, 0}, header);
  const TableKind* const kind = kind_of(header);
  if (kind == nullptr) {
    explain_header({file, 1, 0}, header);
    std::vector<std::string> allowed;
    for (const TableKind& one : table_kinds())
      allowed.push_back(fmt::format("{} ({})", kernel_kind_name(one.kind), fmt::join(one.columns, ",")));
    for (const std::string& columns : step_table_columns()) allowed.push_back(fmt::format("whole steps ({})", columns));
    throw BadInput({file, 1, 0},
                   fmt::format("the header is {}, allowed: the columns of {}",
                               config::quote_for_message(fmt::format("{}", fmt::join(header, ","))), fmt::join(allowed, "; ")));
  }
  return *kind;
}

// The fits for the kernels of a row's GPU, engine and dtype; `single`: one query token per sequence. Warns if they are not the
// kernel's own.
KernelEstimator estimator_of(const Hardware& hardware, const EstimatedKernel& row, const std::string& kernel, bool single,
                             EstimatedKernels& table) {
  KernelEstimator estimator;
  if (single && hardware.kernels)
    estimator.own = hardware.kernels->find(KernelKind::attention_decode, row.engine, row.dtype, kernel);
  if (estimator.own == nullptr && hardware.kernels)
    estimator.own = hardware.kernels->find(table.kind, row.engine, row.dtype, kernel);
  const KernelFit* near = estimator.own == nullptr && hardware.kernels
                              ? hardware.kernels->nearest(table.kind, row.engine, row.dtype, kernel)
                              : nullptr;
  const auto warn = [&](std::string text) {
    if (std::find(table.warnings.begin(), table.warnings.end(), text) == table.warnings.end())
      table.warnings.push_back(std::move(text));
  };
  const bool multiplies = table.kind == KernelKind::product || table.kind == KernelKind::experts;
  if (estimator.own != nullptr) return estimator;
  if (near != nullptr) {
    estimator.others = {*near};
    const std::string engine = row.engine.empty() ? "" : row.engine + ", ";
    warn(fmt::format("{}, {}{}{}{}: not measured; estimated as {}'s{}{}", row.gpu, engine, row.dtype, kernel.empty() ? "" : " ",
                     kernel, near->engine, near->kernel.empty() ? "" : " ", near->kernel));
  } else if (multiplies && !has_arithmetic(hardware, row.dtype)) {
    warn(
        fmt::format("{}, {}: {} does not have this arithmetic; these rows are not estimated", row.gpu, row.dtype, hardware.name));
  } else {
    estimator.others = borrowed_fits(hardware, table.kind, row.engine, row.dtype, kernel);
    warn(estimator.others.empty()
             ? fmt::format("{}, {}: no kernel of this type was measured on any GPU; these rows are not estimated", row.gpu,
                           row.dtype)
             : fmt::format("{}, {}: no kernel was measured; estimated from the data sheet with the fits of other GPUs, with a "
                           "median error of 5 to 16 % where it can be checked (products in bf16)",
                           row.gpu, row.dtype));
  }
  return estimator;
}

}  // namespace

// Layers without a gate: counted with three matrices, rows of these shapes would read their weights at up to 1.6 times the
// bandwidth.
const std::vector<UngatedLayer>& ungated_layers() {
  static const std::vector<UngatedLayer> layers = {{2688, 1856}, {1024, 2688}, {4096, 2688}, {2048, 5120}, {8192, 5120}};
  return layers;
}

EstimatedKernels estimate_kernel_table(const std::string& file, const std::vector<std::vector<std::string>>& fields,
                                       const std::map<std::string, Hardware>& own) {
  EstimatedKernels table;
  if (fields.empty()) throw BadInput({file, 0, 0}, "it is empty, allowed: a table of measured kernels with a header");
  table.header = fields.front();
  const TableKind* const kind = &read_kind(file, table.header);
  table.kind = kind->kind;
  std::map<std::string, std::optional<Hardware>> known(own.begin(), own.end());
  std::map<std::tuple<std::string, std::string, std::string, std::string, bool>, KernelEstimator> estimators;
  std::vector<double> ratios;
  std::vector<std::size_t> estimated_lines;  // the row of each ratio
  std::vector<double> streams;               // bandwidth over the data sheet's, by products that read weights from memory
  for (std::size_t i = 1; i < fields.size(); ++i) {
    const CsvLine line(file, table.header, fields[i], i + 1);
    table.lines.push_back(fields[i]);
    EstimatedKernel& row = table.rows.emplace_back();
    row.gpu = line.text("gpu");
    row.engine = line.has("lib") ? "aiter" : line.text("engine");
    row.dtype = *kind->dtype == '\0' ? "bfloat16" : usual_dtype(line.text(kind->dtype));
    if (row.dtype.empty()) row.dtype = "float16";
    if (find_dtype(row.dtype) == nullptr)
      throw BadInput(line.where(kind->dtype), config::unknown_name(std::string(kind->dtype) + " is", row.dtype, dtype_names()));
    row.us = size_of(line, "us");
    const std::string& kernel = line.text("kernel");
    const Hardware* hardware = hardware_named(row.gpu, known, line.where("gpu"), table.warnings);
    if (table.kind == KernelKind::attention_verify && (!config::as_number(line.text("tokens")) || line.text("context").empty()))
      continue;  // ragged: no one number of tokens
    KernelShape shape = read_shape(table.kind, line);
    row.rows = table.kind == KernelKind::product            ? shape.rows
               : table.kind == KernelKind::attention_decode ? shape.batch
               : table.kind == KernelKind::attention_latent ? shape.batch
               : table.kind == KernelKind::allreduce        ? shape.bytes
                                                            : shape.tokens;
    if (hardware == nullptr) continue;
    // Some kernels split the keys for one query token only; that case is decode attention and has a fit of its own.
    const bool single = table.kind == KernelKind::attention_verify && shape.tokens <= 1.0;
    const auto [at, fresh] = estimators.try_emplace({row.gpu, row.engine, row.dtype, kernel, single});
    KernelEstimator& estimator = at->second;
    if (fresh) estimator = estimator_of(*hardware, row, kernel, single, table);
    if (estimator.own != nullptr && estimator.own->kind == KernelKind::attention_decode && single)
      shape.context += shape.tokens;  // decode attention counts the token's own key
    row.priced_us = estimator.microseconds(*hardware, shape);
    if (row.priced_us <= 0.0) continue;
    row.warm = *kind->over_l2 != '\0' && line.has(kind->over_l2) && size_of(line, kind->over_l2, {}, 0.0, false) < kind->cold;
    row.covered = estimator.own != nullptr && estimator.own->covers(*hardware, shape);
    if (table.kind == KernelKind::product && line.has("set_over_l2") && !row.warm)
      streams.push_back(shape.outer * shape.inner * find_dtype(row.dtype)->weight_bytes / hardware->bandwidth / (1e-6 * row.us));
    ratios.push_back(row.priced_us / row.us);
    estimated_lines.push_back(i + 1);
  }
  check_rows(file, table, std::any_of(known.begin(), known.end(), [](const auto& entry) { return entry.second.has_value(); }));
  if (!streams.empty()) {
    const double middle = median_of(streams);
    if (middle > kMostStream)
      throw BadInput({file, 1, 0}, fmt::format("by the median of column us, weights from memory are read at {:.3g} times the "
                                               "GPU's bandwidth, allowed: times in microseconds",
                                               middle));
  }
  check_unit(file, std::move(ratios), estimated_lines, table);
  return table;
}

std::vector<KernelErrors> kernel_errors(const EstimatedKernels& table) {
  struct Group {
    std::vector<double> ratios;
    std::size_t covered = 0;
    double least = 1e300;  // rows, for the order of bands
  };
  std::map<std::tuple<std::string, std::string, std::string>, std::map<std::string, Group>> groups;
  for (const EstimatedKernel& row : table.rows) {
    if (row.priced_us <= 0.0 || row.warm) continue;
    for (const std::string& band : {std::string("all"), band_of(table.kind, row.rows)}) {
      Group& group = groups[{row.gpu, row.engine, row.dtype}][band];
      group.ratios.push_back(row.priced_us / row.us);
      group.covered += row.covered ? 1 : 0;
      group.least = band == "all" ? 0.0 : std::min(group.least, row.rows);
    }
  }
  std::vector<KernelErrors> list;
  for (auto& [key, bands] : groups) {
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [band, group] : bands) order.emplace_back(group.least, band);
    std::sort(order.begin(), order.end());
    for (const auto& [least, band] : order) {
      const Group& group = bands[band];
      list.push_back({estimate_errors(group.ratios), std::get<0>(key), std::get<1>(key), std::get<2>(key), band, group.covered});
    }
  }
  return list;
}

}  // namespace specsim::cost
