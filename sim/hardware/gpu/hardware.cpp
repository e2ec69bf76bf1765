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

namespace {

const config::Fields<Hardware>& hardware_fields() {
  using H = Hardware;
  const config::Interval figure = config::between(0, 1e9);
  static const config::Fields<H> fields = {
      {"preset", config::elsewhere<std::string>, "a GPU's name or file; the other keys override its values"},
      {"name", &H::name, "name that its maker gave it"},
      {"maker", &H::maker,
       "its maker, by which servers decide whether they run on it; default: nvidia with compute_capability, otherwise unknown",
       config::one_of<Maker>({{"nvidia", Maker::nvidia},
                              {"amd", Maker::amd},
                              {"intel", Maker::intel},
                              {"apple", Maker::apple},
                              {"google", Maker::google}})},
      {"aliases", config::elsewhere<std::vector<std::string>>, "further names"},
      {"source", config::elsewhere<std::string>, "where the figures come from"},
      {"unverified", &H::unverified, "figures from memory, not verified"},
      {"memory_gb", &H::memory_bytes, "memory, 1e9 bytes", figure, config::times(1e9), config::required},
      {"bandwidth_gb_per_s", &H::bandwidth, "bandwidth of that memory, by the data sheet", figure, config::times(1e9),
       config::required},
      {"bf16_tflops", &H::flops, "dense bf16 arithmetic, by the data sheet", figure, config::times(1e12), config::required},
      {"bf16", &H::has_bf16, "false: it has no bf16, and bf16_tflops is of fp16"},
      {"fp8_tflops", &H::fp8_flops, "dense fp8 arithmetic", figure, config::times(1e12), config::optional},
      {"int8_tops", &H::int8_flops, "dense int8 arithmetic", figure, config::times(1e12), config::optional},
      {"dp4a_tops", &H::dp4a_flops,
       "int8 arithmetic of plain cores (dp4a), for GPUs whose tensor cores have no int8 and for backends other than CUDA; "
       "0: not known",
       figure, config::times(1e12), config::zero_is_none, config::Default{"0"}},
      {"fp4_tflops", &H::fp4_flops, "dense fp4 arithmetic", figure, config::times(1e12), config::optional},
      {"multiprocessors", &H::multiprocessors, "streaming multiprocessors, compute units or cores", figure, config::required},
      {"compute_capability", &H::compute_capability, "NVIDIA's number of the architecture, 9.0 for Hopper; 0: not known", figure},
      {"l2_mb", config::elsewhere<double>, "last-level cache", figure},
      {"link_gb_per_s", &H::link_bandwidth, "rate of the link to a peer GPU, one direction", figure, config::times(1e9)},
      {"link_latency_us", &H::link_latency, "time of an all-reduce of a few bytes, launched by the host", figure,
       config::times(1e-6)},
      {"graph_link_latency_us", &H::graph_link_latency,
       "time of such an all-reduce in a captured graph; default: link_latency_us", figure, config::times(1e-6), config::optional},
      {"mesh_gpus", &H::mesh_gpus,
       "GPUs in a mesh: each pair has a link of its own, and n of them reach (n - 1) / (mesh_gpus - 1) of link_gb_per_s; 0: a "
       "switch",
       config::between(0, 1024), config::whole, config::zero_is_none, config::Default{"0"}},
      {"linked_gpus", &H::linked_gpus, "GPUs that the links join; more GPUs need a network, which is not modelled",
       config::between(1, 1e6), config::whole},
      {"machine_gpus", &H::machine_gpus, "GPUs of one machine; servers on more GPUs are started on each machine",
       config::between(1, 1024), config::whole},
      {"kernels", config::elsewhere<std::string>,
       "fits of single kernels by engine and dtype: a name of configs/kernels, or a file"},
      {"fallback_kernels", config::elsewhere<std::string>,
       "fits of another GPU, for kinds, engines and dtypes that this GPU's own fits lack"},
      {"allreduce_kernels", config::elsewhere<std::string>,
       "fits of another GPU with links of the same kind, used for all-reduces only"},
      {"attention_share", config::elsewhere<double>,
       "share of the bandwidth that attention reaches here with another GPU's fits; default: computed from the two data sheets",
       config::between(0.05, 2)},
      {"kernels_engine", &H::kernels_engine,
       "engine whose fits estimate engines without kernels of their own, in place of the calibration",
       config::one_of(kernel_engines())},
      {"kernels_spread", &H::kernels_spread,
       "minimum standard deviation of the logarithm of a time estimated by another GPU's fits", figure},
      {"untuned_times", &H::untuned_times,
       "time of a server's quantised products of few tiles over that of the fits, where only kernels tuned for their shape were "
       "measured",
       config::between(1, 10)},
      {"untuned_spread", &H::untuned_spread, "standard deviation of the logarithm of untuned_times", figure},
      {"calibration", config::elsewhere<config::Value>, "measured efficiencies of its matrix products", config::Default{"{}"}},
      {"power", config::elsewhere<config::Value>,
       "power of the board: limit_w, idle_w, memory_w, compute_w, cap_w, spread, source"},
      {"price", config::elsewhere<config::Value>, "dollars_per_hour of one GPU, and the source, a list with its date"}};
  return fields;
}

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

// The least standard deviation of the logarithm of a time estimated by another architecture's fits. When each measured GPU was
// left out in turn, its median error was 5 to 16 % (`docs/results/prices.md`).
constexpr double kTransferSpread = 0.25;

}  // namespace

const std::vector<config::Parameter>& hardware_parameters() { return hardware_fields().parameters(); }

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

}  // namespace

Hardware read_hardware(const config::Value& spec, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  const config::Value value = resolve_preset(PresetKind::hardware, spec, diagnostics);
  if (diagnostics.list().size() != before) return {};
  const config::Arguments a = config::read_arguments(value, hardware_fields(), {}, "hardware", diagnostics);
  if (diagnostics.list().size() != before) return {};
  for (const PlausibleRange& plausible : kPlausible) {
    const double x = a.number(plausible.key);
    if (x < plausible.low || x > plausible.high)
      diagnostics.add(a.where(plausible.key), fmt::format("{} is {:g}, allowed: {:g} to {:g}; is it in {}?", plausible.key, x,
                                                          plausible.low, plausible.high, plausible.hint));
  }
  const config::Arguments c =
      config::read_arguments(a.value("calibration"), calibration_fields(), {}, "calibration", diagnostics);
  if (diagnostics.list().size() != before) return {};
  Hardware hardware = hardware_fields().read(a);
  if (!a.has("name")) hardware.name = spec.text;
  if (!a.has("maker") && hardware.compute_capability > 0.0) hardware.maker = Maker::nvidia;
  hardware.has_fp8 = a.has("fp8_tflops");
  hardware.has_int8 = a.has("int8_tops");
  hardware.has_fp4 = a.has("fp4_tflops");
  if (!hardware.has_fp8) hardware.fp8_flops = hardware.flops;
  if (!hardware.has_int8) hardware.int8_flops = hardware.flops;
  if (!hardware.has_fp4) hardware.fp4_flops = hardware.fp8_flops;
  if (!a.has("graph_link_latency_us")) hardware.graph_link_latency = hardware.link_latency;
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
  // All-reduces were measured over the measured GPU's own links, so their fits do not apply to a PCIe board with the same chip,
  // nor to links that the user gave.
  const auto given = [&](const char* key) { return spec.is_map() && spec.find(key) != nullptr; };
  const bool own_link = given("link_gb_per_s") || given("link_latency_us") || given("graph_link_latency_us");
  hardware.other_links = (own_link && !given("kernels")) ||
                         (hardware.kernels_spread > 0.0 && !has_nvlink(hardware) && went_over_nvlink(hardware.kernels_name));
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
