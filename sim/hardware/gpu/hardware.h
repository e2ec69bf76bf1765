// One GPU: its data sheet, and the measured efficiencies of its matrix products.
#pragma once

#include "sim/foundation/config/arguments.h"
#include "sim/hardware/gpu/kernels.h"
#include "sim/hardware/gpu/power_draw.h"
#include "sim/hardware/presets/presets.h"

#include <memory>
#include <optional>
#include <string>

namespace specsim::cost {

constexpr double kActivationBytes = 2.0;  // bytes of an activation, which engines keep in 16 bits

// How a GPU's matrix products differ from the data sheet; fitted to measured products, see configs/hardware.
struct Calibration {
  std::string source;
  std::string fitted_on;              // another GPU, the source of these measurements; empty: this GPU
  double memory_efficiency = 0.9;     // share of the data sheet's bandwidth that a long stream of weights reaches
  double feed_tb_per_s = 5.0;         // operands into all multiprocessors, through the second-level cache
  double overlap_power = 2.0;         // p-norm of memory, arithmetic and feed: 1 adds them up, infinity: all overlap fully
  double kernel_us = 3.0;             // a matrix product's fixed time
  double split_us = 3.0;              // a second kernel that adds up partial sums
  double odd_rows_penalty = 0.0;      // extra time, relative, of products over 65 rows and more, well below a power of two
  double wide_penalty = 0.0;          // extra time, relative, of memory traffic beyond 16 rows
  double attention_efficiency = 0.8;  // share of the data sheet's bandwidth at which keys and values are read
  double attention_us = 10.0;         // attention's fixed time
  double experts_us = 0.0;            // time of a layer of experts besides its products: choosing, sorting, activation, sum
  double elementwise_us = 10.0;       // norms, rotary embedding, activation, residuals of a layer
  double most_small_rows = 64.0;      // products of up to this many rows take tiles of at most 64 rows
  double spread = 0.15;               // standard deviation of the logarithm of a product's estimated time
  // Time of attention over a live server's contexts, over that of equal contexts; none: the engine's value.
  std::optional<double> unequal_contexts;
};

// Cost of an hour of one GPU.
struct HourlyPrice {
  double dollars_per_hour = 0.0;
  std::string source;  // list and date
};

// Whose software a GPU runs, which decides the servers that it has.
enum class Maker { unknown, nvidia, amd, intel, apple, google };

struct Hardware {
  std::string name;
  Maker maker = Maker::unknown;
  double memory_bytes = 0.0;
  double bandwidth = 0.0;  // bytes per second
  double flops = 0.0;      // dense bf16 operations per second
  double fp8_flops = 0.0;  // operations per second in other types; if the data sheet has none, those of the next wider type
  double int8_flops = 0.0;
  double fp4_flops = 0.0;
  std::optional<double> dp4a_flops;  // int8 arithmetic of plain cores (dp4a), where kernels use it
  bool has_bf16 = true;              // whether it has bf16 arithmetic at all
  bool has_fp8 = false;
  bool has_int8 = false;
  bool has_fp4 = false;
  double multiprocessors = 1.0;
  double compute_capability = 0.0;  // NVIDIA's number of the architecture, 9.0 for Hopper; 0: not known
  double link_bandwidth = 32e9;     // bytes per second, one direction, of all links of the GPU
  std::optional<double> mesh_gpus;  // GPUs that share those links out, one link for each pair; none: a switch joins them
  double linked_gpus = 8.0;         // GPUs that the links join; more GPUs need a network
  double machine_gpus = 8.0;        // GPUs of one machine, which one server process reaches without others
  double link_latency = 10e-6;      // seconds, of an all-reduce that is launched
  double graph_link_latency = 0.0;  // the same in a captured graph
  Calibration calibration;
  std::shared_ptr<const KernelFits> kernels;  // fits of single kernels by engine and dtype; nullptr: none were measured
  std::string kernels_name;                   // name of the fits in configs/kernels, or their file
  // the engine whose fits estimate engines without kernels of their own; empty: the calibration is used
  std::string kernels_engine;
  double kernels_spread = 0.0;  // minimum standard deviation of the logarithm of a time estimated by another GPU's fits
  // A server's quantised products of few tiles take this many times as long as the fits say, whose kernels were tuned for each
  // shape, and the standard deviation of that factor's logarithm.
  double untuned_times = 1.0;
  double untuned_spread = 0.0;
  bool other_links = false;  // all-reduces of the fits were measured over a kind of link that this machine does not have
  std::string fitted_on;     // another GPU, the source of the calibration; empty: this GPU
  bool unverified = false;
  std::optional<PowerDraw> power;    // none: its power is not known
  std::optional<HourlyPrice> price;  // none: not known
};

// Seconds of `groups` equal matrix products in one kernel: each `rows` by `inner` times `inner` by `outer`, weights of
// `weight_bytes` bytes, activations of two. The fastest of the usual tile shapes and splits of the inner length, each the
// p-norm of
//   memory      groups (inner outer weight_bytes + 2 rows (inner + outer)) / (bandwidth efficiency)
//   arithmetic  waves 2 tile_m tile_n inner_of_block / (flops / multiprocessors)
//   feed        waves (tile_m weight_bytes + 2 min(tile_n, rows)) inner_of_block / (feed / multiprocessors)
// with waves = ceil(tiles / multiprocessors): a step in time where one more row starts another tile or wave.
// `activation_bytes` and `peak`, operations per second: of kernels that multiply other types than bf16. `few_rows`: of kernels
// that have tiles of 16 and 32 rows too, as those that quantise weights alone do.
double product_seconds(const Hardware& hardware, double rows, double inner, double outer, double weight_bytes,
                       double groups = 1.0, double activation_bytes = kActivationBytes, double peak = 0.0, bool few_rows = false);
// Whether a multiprocessor has the small shared memory of consumer chips, about 100 KB. Attention tiles are smaller there.
bool small_shared_memory(const Hardware& hardware);
// Whether a block of attention takes a whole multiprocessor: on data-centre Blackwell, whose kernels hold two tiles of 128
// queries in tensor memory.
bool tensor_memory(const Hardware& hardware);
// Whether all its peers are on links of the NVLink kind, judged by their rate.
bool has_nvlink(const Hardware& hardware);
// Bytes per second, one direction, between each of this many GPUs: in a mesh only the links between them carry data.
double link_bandwidth(const Hardware& hardware, double gpus);
// Operations per second of that arithmetic.
double peak_flops(const Hardware& hardware, Arithmetic arithmetic);

const std::vector<config::Parameter>& hardware_parameters();
// `spec` as resolve_preset takes it. Reports errors, implausible units too; the hardware is then not to be used.
Hardware read_hardware(const config::Value& spec, Diagnostics& diagnostics);
Hardware read_hardware(const PresetChoice& choice, Diagnostics& diagnostics);
// The presets whose matrix products were measured on that very GPU, in order of name. Their fits serve GPUs without measurements.
// Read once.
const std::vector<Hardware>& measured_gpus();

}  // namespace specsim::cost
