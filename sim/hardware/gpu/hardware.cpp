#include "sim/hardware/gpu/hardware.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/config/fields.h"
#include "sim/hardware/gpu/kernel_names.h"
#include "sim/hardware/presets/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace specsim::cost {

namespace {

using config::Parameter;
using config::Type;

struct Tile {
  double m;
  double n;
};

constexpr std::array<Tile, 12> kTiles = {{{64, 64},
                                          {64, 128},
                                          {64, 256},
                                          {128, 64},
                                          {128, 128},
                                          {128, 256},
                                          {256, 64},
                                          {256, 128},
                                          {64, 16},
                                          {64, 32},
                                          {128, 16},
                                          {128, 32}}};
constexpr std::array<double, 6> kSplits = {1, 2, 3, 4, 6, 8};
constexpr double kInnerStep = 32.0;
constexpr double kSmallTile = 64.0;  // rows

struct PlausibleRange {
  const char* key;
  double low;
  double high;
  const char* hint;
};

// A figure outside these limits is more likely in the wrong unit than true.
constexpr std::array<PlausibleRange, 6> kPlausible = {
    {{"memory_gb", 1, 2000, "gigabytes"},
     {"bandwidth_gb_per_s", 40, 40000, "gigabytes per second, 3350 for an H100"},
     {"bf16_tflops", 1, 20000, "dense teraflops, 989 for an H100"},
     {"multiprocessors", 1, 1024, "a count, 132 for an H100"},
     {"link_gb_per_s", 0.1, 5000, "gigabytes per second and direction"},
     {"link_latency_us", 0.01, 1e6, "microseconds"}}};

Parameter figure(const char* name, std::optional<std::string> fallback, const char* summary) {
  return {name, Type::number, std::move(fallback), summary, config::between(0, 1e9), {}};
}

}  // namespace

double peak_flops(const Hardware& hardware, Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::bf16:
      return hardware.flops;
    case Arithmetic::fp8:
      return hardware.fp8_flops;
    case Arithmetic::int8:
      return hardware.int8_flops;
    case Arithmetic::fp4:
      return hardware.fp4_flops;
  }
  return hardware.flops;
}

bool small_shared_memory(const Hardware& hardware) {
  constexpr double kAmpere = 8.0;
  constexpr double kHopper = 9.0;
  constexpr double kConsumerBlackwell = 12.0;
  const double capability = hardware.compute_capability;
  return (capability > kAmpere && capability < kHopper) || capability >= kConsumerBlackwell;
}

bool tensor_memory(const Hardware& hardware) {
  constexpr double kBlackwell = 10.0;
  constexpr double kConsumerBlackwell = 12.0;
  return hardware.compute_capability >= kBlackwell && hardware.compute_capability < kConsumerBlackwell;
}

bool has_nvlink(const Hardware& hardware) {
  constexpr double kNvlink = 100e9;  // bytes per second, one direction: more than PCIe has
  return hardware.link_bandwidth >= kNvlink;
}

double link_bandwidth(const Hardware& hardware, double gpus) {
  if (!hardware.mesh_gpus || *hardware.mesh_gpus <= 1.0) return hardware.link_bandwidth;
  return hardware.link_bandwidth * std::clamp((gpus - 1.0) / (*hardware.mesh_gpus - 1.0), 0.0, 1.0);
}

double product_seconds(const Hardware& hardware, double rows, double inner, double outer, double weight_bytes, double groups,
                       double activation_bytes, double peak, bool few_rows) {
  SPECSIM_CHECK(rows > 0.0 && inner > 0.0 && outer > 0.0 && groups > 0.0, "{} x {} x {}, {} groups", rows, inner, outer, groups);
  const Calibration& c = hardware.calibration;
  const double n = std::ceil(rows);
  const double wide = n > 16.0 ? 1.0 + c.wide_penalty : 1.0;
  const double memory = wide * groups *
                        (inner * outer * weight_bytes + n * (activation_bytes * inner + kActivationBytes * outer)) /
                        (hardware.bandwidth * c.memory_efficiency);
  const double odd = n > 64.0 && n <= 0.75 * std::exp2(std::ceil(std::log2(n))) ? 1.0 + c.odd_rows_penalty : 1.0;
  const double flops = (peak > 0.0 ? peak : hardware.flops) / hardware.multiprocessors;
  const double all_feed = c.feed_tb_per_s * 1e12;
  const double feed = all_feed / hardware.multiprocessors;
  const double p = c.overlap_power;
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    if (n > kSmallTile && n <= c.most_small_rows && tile.n > kSmallTile) continue;
    if (!few_rows && tile.n < kSmallTile) continue;
    const double tiles = groups * std::ceil(outer / tile.m) * std::ceil(n / tile.n);
    for (const double split : kSplits) {
      const double waves = std::ceil(tiles * split / hardware.multiprocessors);
      const double block = waves * kInnerStep * std::ceil(inner / split / kInnerStep);
      const double arithmetic = block * 2.0 * tile.m * tile.n / flops;
      const double feeding = block * (tile.m * weight_bytes + std::min(tile.n, n) * activation_bytes) / feed;
      const double largest = std::max({memory, arithmetic, feeding});
      if (odd * largest >= best) continue;
      // The sum is taken in units of the largest part, since seconds to a power of 50 are 0.
      const auto share = [&](double part) { return part == largest ? 1.0 : std::pow(part / largest, p); };
      double time = odd * largest * std::pow(share(memory) + share(arithmetic) + share(feeding), 1.0 / p);
      if (split > 1.0) time += 8.0 * split * n * outer * groups / all_feed + 1e-6 * c.split_us;
      best = std::min(best, time);
    }
  }
  return best + 1e-6 * c.kernel_us;
}

const std::vector<Parameter>& hardware_parameters() {
  static const std::vector<Parameter> parameters = {
      {"preset", Type::text, "", "a GPU's name or file; the other keys override its values", {}, {}},
      {"name", Type::text, "", "name that its maker gave it", {}, {}},
      {"maker",
       Type::text,
       "",
       "its maker, by which servers decide whether they run on it; default: nvidia with compute_capability, otherwise unknown",
       {},
       {"nvidia", "amd", "intel", "apple", "google"}},
      {"aliases", Type::value_list, "", "further names", {}, {}},
      {"source", Type::text, "", "where the figures come from", {}, {}},
      {"unverified", Type::boolean, "false", "figures from memory, not verified", {}, {}},
      figure("memory_gb", {}, "memory, 1e9 bytes"),
      figure("bandwidth_gb_per_s", {}, "bandwidth of that memory, by the data sheet"),
      figure("bf16_tflops", {}, "dense bf16 arithmetic, by the data sheet"),
      {"bf16", Type::boolean, "true", "false: it has no bf16, and bf16_tflops is of fp16", {}, {}},
      figure("fp8_tflops", "", "dense fp8 arithmetic"),
      figure("int8_tops", "", "dense int8 arithmetic"),
      figure("dp4a_tops", "0",
             "int8 arithmetic of plain cores (dp4a), for GPUs whose tensor cores have no int8 and for backends other than CUDA; "
             "0: not "
             "known"),
      figure("fp4_tflops", "", "dense fp4 arithmetic"),
      figure("multiprocessors", {}, "streaming multiprocessors, compute units or cores"),
      figure("compute_capability", "0", "NVIDIA's number of the architecture, 9.0 for Hopper; 0: not known"),
      figure("l2_mb", "", "last-level cache"),
      figure("link_gb_per_s", "32", "rate of the link to a peer GPU, one direction"),
      figure("link_latency_us", "10", "time of an all-reduce of a few bytes, launched by the host"),
      figure("graph_link_latency_us", "", "time of such an all-reduce in a captured graph; default: link_latency_us"),
      {"mesh_gpus",
       Type::integer,
       "0",
       "GPUs in a mesh: each pair has a link of its own, and n of them reach (n - 1) / (mesh_gpus - 1) of link_gb_per_s; 0: a "
       "switch",
       config::between(0, 1024),
       {}},
      {"linked_gpus",
       Type::integer,
       "8",
       "GPUs that the links join; more GPUs need a network, which is not modelled",
       config::between(1, 1e6),
       {}},
      {"machine_gpus",
       Type::integer,
       "8",
       "GPUs of one machine; servers on more GPUs are started on each machine",
       config::between(1, 1024),
       {}},
      {"kernels", Type::text, "", "fits of single kernels by engine and dtype: a name of configs/kernels, or a file", {}, {}},
      {"fallback_kernels",
       Type::text,
       "",
       "fits of another GPU, for kinds, engines and dtypes that this GPU's own fits lack",
       {},
       {}},
      {"allreduce_kernels", Type::text, "", "fits of another GPU with links of the same kind, used for all-reduces only", {}, {}},
      {"attention_share",
       Type::number,
       "",
       "share of the bandwidth that attention reaches here with another GPU's fits; default: computed from the two data sheets",
       config::between(0.05, 2),
       {}},
      {"kernels_engine",
       Type::text,
       "",
       "engine whose fits estimate engines without kernels of their own, in place of the calibration",
       {},
       kernel_engines()},
      figure("kernels_spread", "0", "minimum standard deviation of the logarithm of a time estimated by another GPU's fits"),
      {"untuned_times",
       Type::number,
       "1",
       "time of a server's quantised products of few tiles over that of the fits, where only kernels tuned for their shape were "
       "measured",
       config::between(1, 10),
       {}},
      figure("untuned_spread", "0", "standard deviation of the logarithm of untuned_times"),
      {"calibration", Type::value, "{}", "measured efficiencies of its matrix products", {}, {}},
      {"power", Type::value, "", "power of the board: limit_w, idle_w, memory_w, compute_w, cap_w, spread, source", {}, {}},
      {"price", Type::value, "", "dollars_per_hour of one GPU, and the source, a list with its date", {}, {}}};
  return parameters;
}

namespace {

const config::Fields<Calibration>& calibration_fields() {
  using C = Calibration;
  const config::Interval us = config::between(0, 1e6);
  static const config::Fields<C> fields = {
      {"source", &C::source, "measurements that it was fitted to"},
      {"fitted_on", &C::fitted_on, "another GPU, the source of these measurements"},
      {"memory_efficiency", &C::memory_efficiency, "share of the bandwidth that a long stream of weights reaches",
       config::between(0.01, 1.2)},
      {"feed_tb_per_s", &C::feed_tb_per_s, "operands into all multiprocessors, through the second-level cache",
       config::between(0.01, 1000)},
      {"overlap_power", &C::overlap_power, "p-norm of memory, arithmetic and feed: 1: one after the other, large: all at once",
       config::between(1, 100)},
      {"kernel_us", &C::kernel_us, "a matrix product's fixed time", us},
      {"split_us", &C::split_us, "a second kernel that adds up partial sums", us},
      {"odd_rows_penalty", &C::odd_rows_penalty,
       "extra time, relative, of products over 65 rows and more, well below a power of two", config::between(0, 10)},
      {"wide_penalty", &C::wide_penalty, "extra time, relative, of memory traffic beyond 16 rows", config::between(0, 10)},
      {"attention_efficiency", &C::attention_efficiency, "share of the bandwidth that reading keys and values reaches",
       config::between(0.01, 1.2)},
      {"attention_us", &C::attention_us, "attention's fixed time in a layer", us},
      {"unequal_contexts", &C::unequal_contexts,
       "attention time over a live server's contexts, relative to as many equal contexts; default: the engine's",
       config::between(1, 10)},
      {"experts_us", &C::experts_us, "time of a layer of experts besides its products: choosing, sorting, activation, sum", us},
      {"elementwise_us", &C::elementwise_us, "norms, rotary embedding, activation and residuals of a layer", us},
      {"most_small_rows", &C::most_small_rows, "maximum number of rows of products that take tiles of at most 64 rows",
       config::between(64, 1e6)},
      {"spread", &C::spread,
       "standard deviation of the logarithm of a product's estimated time; use 0.15 with another GPU's measurements",
       config::between(0, 10)}};
  return fields;
}

const config::Fields<HourlyPrice>& price_fields() {
  static const config::Fields<HourlyPrice> fields = {
      {"dollars_per_hour", &HourlyPrice::dollars_per_hour, "of one GPU, US dollars", config::above(0, 1e6), config::required},
      {"source", &HourlyPrice::source, "the list and its date"}};
  return fields;
}

}  // namespace

namespace {

// The least standard deviation of the logarithm of a time estimated by another architecture's fits. When each measured GPU was
// left out in turn, its median error was 5 to 16 % (`docs/results/prices.md`).
constexpr double kTransferSpread = 0.25;

}  // namespace

const std::vector<Hardware>& measured_gpus() {
  static const std::vector<Hardware> measured = [] {
    std::vector<Hardware> list;
    for (const std::string& name : preset_names(PresetKind::hardware)) {
      Diagnostics none;
      Hardware one = read_hardware(PresetChoice{name, {}, {}}, none);
      const auto own_products = [](const KernelFit& fit) { return fit.kind == KernelKind::product && fit.borrowed_from.empty(); };
      if (one.compute_capability > 0.0 && one.kernels_name == name &&
          std::any_of(one.kernels->list.begin(), one.kernels->list.end(), own_products))
        list.push_back(std::move(one));
    }
    return list;
  }();
  return measured;
}

namespace {

// The GPU that the fits of that name were measured on; none for a user's file.
std::optional<Hardware> gpu_of_fits(const std::string& kernels) {
  const std::vector<std::string> names = preset_names(PresetKind::hardware);
  if (std::find(names.begin(), names.end(), kernels) == names.end()) return std::nullopt;
  Diagnostics none;
  return read_hardware(PresetChoice{kernels, {}, {}}, none);
}

// Whether the all-reduces of these fits were measured over NVLink; assumed if the fits have no preset's name.
bool went_over_nvlink(const std::string& kernels) {
  const std::optional<Hardware> measured = gpu_of_fits(kernels);
  return !measured || has_nvlink(*measured);
}

// Fits for a GPU of which only the data sheet is known: those of the nearest architecture with measured products. Every GPU of
// configs/hardware has fits or a calibration of its own and never reaches this function.
void lend_kernels(Hardware& hardware) {
  const Hardware* nearest = nullptr;
  const auto distance = [&](const Hardware& one) { return std::abs(one.compute_capability - hardware.compute_capability); };
  for (const Hardware& one : measured_gpus())
    if (nearest == nullptr || distance(one) < distance(*nearest)) nearest = &one;
  if (nearest == nullptr) return;
  hardware.kernels_name = nearest->kernels_name;
  hardware.kernels = nearest->kernels;
  hardware.kernels_engine = "vllm";
  hardware.kernels_spread = kTransferSpread;
  hardware.calibration = nearest->calibration;
  hardware.fitted_on = nearest->name;
  hardware.other_links = hardware.other_links || !has_nvlink(hardware);
}

Maker read_maker(const config::Arguments& a, double compute_capability) {
  constexpr std::array<std::pair<std::string_view, Maker>, 5> kMakers = {{{"nvidia", Maker::nvidia},
                                                                          {"amd", Maker::amd},
                                                                          {"intel", Maker::intel},
                                                                          {"apple", Maker::apple},
                                                                          {"google", Maker::google}}};
  if (a.has("maker"))
    for (const auto& [word, maker] : kMakers)
      if (a.text("maker") == word) return maker;
  return compute_capability > 0.0 ? Maker::nvidia : Maker::unknown;
}

}  // namespace

Hardware read_hardware(const config::Value& spec, Diagnostics& diagnostics) {
  Hardware hardware;
  const std::size_t before = diagnostics.list().size();
  const config::Value value = resolve_preset(PresetKind::hardware, spec, diagnostics);
  if (diagnostics.list().size() != before) return hardware;
  const config::Arguments a = config::read_arguments(value, hardware_parameters(), {}, "hardware", diagnostics);
  if (diagnostics.list().size() != before) return hardware;
  for (const PlausibleRange& plausible : kPlausible) {
    const double x = a.number(plausible.key);
    if (x < plausible.low || x > plausible.high)
      diagnostics.add(a.where(plausible.key), fmt::format("{} is {:g}, allowed: {:g} to {:g}; is it in {}?", plausible.key, x,
                                                          plausible.low, plausible.high, plausible.hint));
  }
  const config::Arguments c =
      config::read_arguments(a.value("calibration"), calibration_fields(), {}, "calibration", diagnostics);
  if (diagnostics.list().size() != before) return hardware;
  hardware.name = a.has("name") ? a.text("name") : spec.text;
  hardware.memory_bytes = 1e9 * a.number("memory_gb");
  hardware.bandwidth = 1e9 * a.number("bandwidth_gb_per_s");
  hardware.flops = 1e12 * a.number("bf16_tflops");
  const auto peak_or = [&](const char* key, double next) { return a.has(key) ? 1e12 * a.number(key) : next; };
  hardware.fp8_flops = peak_or("fp8_tflops", hardware.flops);
  hardware.int8_flops = peak_or("int8_tops", hardware.flops);
  hardware.fp4_flops = peak_or("fp4_tflops", hardware.fp8_flops);
  if (a.number("dp4a_tops") > 0.0) hardware.dp4a_flops = 1e12 * a.number("dp4a_tops");
  hardware.has_bf16 = a.boolean("bf16");
  hardware.has_fp8 = a.has("fp8_tflops");
  hardware.has_int8 = a.has("int8_tops");
  hardware.has_fp4 = a.has("fp4_tflops");
  hardware.multiprocessors = a.number("multiprocessors");
  hardware.compute_capability = a.number("compute_capability");
  hardware.maker = read_maker(a, hardware.compute_capability);
  hardware.kernels_spread = a.number("kernels_spread");
  hardware.untuned_times = a.number("untuned_times");
  hardware.untuned_spread = a.number("untuned_spread");
  if (a.has("kernels_engine")) hardware.kernels_engine = a.text("kernels_engine");
  // The preset's fits do not override a calibration that the user gave.
  const bool own_calibration = spec.is_map() && spec.find("calibration") != nullptr && spec.find("kernels") == nullptr;
  if (a.has("kernels") && !own_calibration) {
    hardware.kernels_name = a.text("kernels");
    hardware.kernels = read_kernel_fits(hardware.kernels_name, a.where("kernels"), diagnostics);
    std::optional<double> attention_share;
    if (a.has("attention_share")) attention_share = a.number("attention_share");
    if (hardware.kernels != nullptr && (hardware.kernels_spread > 0.0 || attention_share))  // another GPU's
      if (const std::optional<Hardware> measured = gpu_of_fits(hardware.kernels_name))
        hardware.kernels = on_board(*hardware.kernels, *measured, hardware, attention_share);
    if (a.has("fallback_kernels") && hardware.kernels != nullptr) {
      const auto other = read_kernel_fits(a.text("fallback_kernels"), a.where("fallback_kernels"), diagnostics);
      if (other != nullptr) hardware.kernels = with_missing(*hardware.kernels, *other, a.text("fallback_kernels"));
    }
    if (a.has("allreduce_kernels") && hardware.kernels != nullptr) {
      const auto other = read_kernel_fits(a.text("allreduce_kernels"), a.where("allreduce_kernels"), diagnostics);
      if (other != nullptr) hardware.kernels = with_allreduces(*hardware.kernels, *other, a.text("allreduce_kernels"));
    }
  }
  hardware.link_bandwidth = 1e9 * a.number("link_gb_per_s");
  if (a.integer("mesh_gpus") > 0) hardware.mesh_gpus = static_cast<double>(a.integer("mesh_gpus"));
  hardware.linked_gpus = static_cast<double>(a.integer("linked_gpus"));
  hardware.machine_gpus = static_cast<double>(a.integer("machine_gpus"));
  hardware.link_latency = 1e-6 * a.number("link_latency_us");
  hardware.graph_link_latency = a.has("graph_link_latency_us") ? 1e-6 * a.number("graph_link_latency_us") : hardware.link_latency;
  // All-reduces were measured over the measured GPU's own links, so their fits do not apply to a PCIe board with the same chip,
  // nor to links that the user gave.
  const auto given = [&](const char* key) { return spec.is_map() && spec.find(key) != nullptr; };
  const bool own_link = given("link_gb_per_s") || given("link_latency_us") || given("graph_link_latency_us");
  hardware.other_links = (own_link && !given("kernels")) ||
                         (hardware.kernels_spread > 0.0 && !has_nvlink(hardware) && went_over_nvlink(hardware.kernels_name));
  hardware.unverified = a.boolean("unverified");
  if (a.has("power")) hardware.power = read_power_draw(a.value("power"), diagnostics);
  if (a.has("price"))
    hardware.price = price_fields().read(config::read_arguments(a.value("price"), price_fields(), {}, "price", diagnostics));
  hardware.calibration = calibration_fields().read(c);
  hardware.fitted_on = hardware.calibration.fitted_on;
  if (!a.has("kernels") && a.value("calibration").fields.empty() && hardware.compute_capability > 0.0) lend_kernels(hardware);
  return hardware;
}

Hardware read_hardware(const PresetChoice& choice, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  const config::Value spec = to_config(choice, diagnostics);
  return diagnostics.list().size() == before ? read_hardware(spec, diagnostics) : Hardware();
}

}  // namespace specsim::cost
