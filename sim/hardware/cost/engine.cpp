#include "sim/hardware/cost/engine.h"

#include "sim/hardware/cost/kernel_names.h"
#include "sim/hardware/cost/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

namespace specsim::cost {

namespace {

using config::Parameter;
using config::Type;

constexpr double kMostLayers = 1000.0;
constexpr double kMostMicroseconds = 1e6;  // no engine takes a second for a step: such figures are in other units

const std::vector<Parameter>& integer_parameters() {
  constexpr double kMostRows = 1024.0;
  static const std::vector<Parameter> parameters = {
      {"vector_rows", Type::integer, {}, "the most rows of the kernel for few rows", config::between(1, kMostRows), {}},
      {"expert_vector_tokens", Type::integer, {}, "the most tokens of that for experts", config::between(1, kMostRows), {}},
      {"expert_table_tokens",
       Type::integer,
       "7",
       "most tokens of that for weights looked up in a table, before Ada",
       config::between(1, kMostRows),
       {}},
      {"reads",
       Type::number,
       "0.89",
       "share of the bandwidth at which weights are read; 0: the GPU's calibration",
       config::between(0, 1),
       {}},
      {"vector_share", Type::number, "0.032", "its share of int8 arithmetic", config::between(1e-3, 1), {}},
      {"super_block_share", Type::number, "0", "that share of K-quants; 0: as the others", config::between(0, 1), {}},
      {"table_share", Type::number, "0.0095", "that share of experts in MXFP4; 0: as the others", config::between(0, 1), {}},
      {"tile_rows", Type::integer, "128", "rows of the widest tile", config::between(8, kMostRows), {}},
      {"tile_share", Type::number, "0.265", "share of int8 arithmetic in tiles", config::between(1e-3, 1), {}},
      {"product_us",
       Type::number,
       "5",
       "a product takes at least; 0: the GPU's calibration",
       config::between(0, kMostMicroseconds),
       {}},
      {"tile_us", Type::number, "4", "and in tiles so much more", config::between(0, kMostMicroseconds), {}},
      {"layer_us",
       Type::number,
       "19",
       "a layer's small kernels and attention's least; 0: the GPU's calibration",
       config::between(0, kMostMicroseconds),
       {}},
      {"mixture_us",
       Type::number,
       "24",
       "a layer's router and its experts' sum; 0: the GPU's calibration",
       config::between(0, kMostMicroseconds),
       {}},
      {"single_mixture_us",
       Type::number,
       "12",
       "mixture_us of one token; 0: as of more",
       config::between(0, kMostMicroseconds),
       {}},
      {"expert_tiles_of_all_rows",
       Type::boolean,
       "false",
       "tiles are as wide as the pass has rows of all experts, not tokens",
       {},
       {}},
      {"expert_wait_us",
       Type::number,
       "0",
       "a layer of experts in tiles waits so long for its rows to be sorted",
       config::between(0, kMostMicroseconds),
       {}},
      {"attention_reads", Type::number, "0.98", "share of the bandwidth at which it reads keys", config::between(0.05, 1), {}},
      {"attention_share", Type::number, "0.65", "attention's share of bf16 arithmetic", config::between(1e-3, 1), {}}};
  return parameters;
}

IntegerKernels read_integer_kernels(const config::Value& value, Diagnostics& diagnostics) {
  IntegerKernels kernels;
  if (value.is_map() && value.fields.empty()) return kernels;
  const std::size_t before = diagnostics.list().size();
  const config::Arguments a = config::read_arguments(value, integer_parameters(), {}, "integer_kernels", diagnostics);
  if (diagnostics.list().size() != before) return kernels;
  kernels.vector_rows = static_cast<double>(a.integer("vector_rows"));
  kernels.expert_vector_tokens = static_cast<double>(a.integer("expert_vector_tokens"));
  kernels.expert_table_tokens = static_cast<double>(a.integer("expert_table_tokens"));
  kernels.reads = a.number("reads");
  kernels.vector_share = a.number("vector_share");
  kernels.super_block_share = a.number("super_block_share");
  kernels.table_share = a.number("table_share");
  kernels.tile_rows = static_cast<double>(a.integer("tile_rows"));
  kernels.tile_share = a.number("tile_share");
  kernels.product_us = a.number("product_us");
  kernels.tile_us = a.number("tile_us");
  kernels.layer_us = a.number("layer_us");
  kernels.mixture_us = a.number("mixture_us");
  kernels.single_mixture_us = a.number("single_mixture_us");
  kernels.expert_tiles_of_all_rows = a.boolean("expert_tiles_of_all_rows");
  kernels.expert_wait_us = a.number("expert_wait_us");
  kernels.attention_reads = a.number("attention_reads");
  kernels.attention_share = a.number("attention_share");
  return kernels;
}

bool is_within(const std::vector<double>& pairs, double x) {
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
    if (x >= pairs[i] && x <= pairs[i + 1]) return true;
  return false;
}

std::vector<std::string> read_names(const config::Arguments& a, const std::string& key, std::map<std::string, Location>& places,
                                    Diagnostics& diagnostics) {
  std::vector<std::string> names;
  if (!a.has(key)) return names;
  for (const config::Value& item : a.value(key).items)
    if (const std::optional<std::string> name = config::read_text(item, key, diagnostics)) {
      names.push_back(*name);
      places.emplace(*name, item.where);
    }
  return names;
}

EngineMethods read_methods(const config::Value& value, Diagnostics& diagnostics) {
  static const std::vector<Parameter> parameters = {
      {"drafters", Type::value_list, {}, "drafters of chains", {}, {}},
      {"verifiers", Type::value_list, {}, "verifiers of chains", {}, {}},
      {"draws", Type::boolean, "false", "chains can be drawn from the draft's distribution, not chosen alone", {}, {}},
      {"trees", Type::value_list, "", "drafters of trees", {}, {}},
      {"tree_verifiers", Type::value_list, "", "verifiers of trees", {}, {}}};
  EngineMethods methods;
  if (value.is_map() && value.fields.empty()) return methods;
  const std::size_t before = diagnostics.list().size();
  const config::Arguments a = config::read_arguments(value, parameters, {}, "methods", diagnostics);
  if (diagnostics.list().size() != before) return methods;
  methods.drafters = read_names(a, "drafters", methods.places, diagnostics);
  methods.verifiers = read_names(a, "verifiers", methods.places, diagnostics);
  methods.draws = a.boolean("draws");
  methods.trees = read_names(a, "trees", methods.places, diagnostics);
  methods.tree_verifiers = read_names(a, "tree_verifiers", methods.places, diagnostics);
  return methods;
}

}  // namespace

const std::vector<EngineFigure>& engine_figures() {
  static const std::vector<EngineFigure> figures = {
      {"host_us", &Engine::host_us, "host time of a target pass, with the GPU idle"},
      {"host_us_per_sequence", &Engine::host_us_per_sequence, "host time of a target pass for each of its sequences"},
      {"host_us_per_row", &Engine::host_us_per_row, "host time of a target pass for each of its rows"},
      {"client_us_per_sequence", &Engine::client_us_per_sequence,
       "more host time for each sequence in a server with clients, where text leaves"},
      {"beside_us", &Engine::beside_us, "host time of a target pass while the GPU works: the pass's least time"},
      {"beside_us_per_sequence", &Engine::beside_us_per_sequence,
       "host time of a target pass for each of its sequences while the GPU works"},
      {"step_us", &Engine::step_us, "kernels around the layers of a target pass"},
      {"host_us_per_layer", &Engine::host_us_per_layer, "least time of a pass without a graph, per layer"},
      {"piecewise_us_per_layer", &Engine::piecewise_us_per_layer, "least time of a pass in graphs of pieces, per layer"},
      {"piecewise_us_per_linear_layer", &Engine::piecewise_us_per_linear_layer,
       "least time of a layer of linear attention in such a pass"},
      {"piecewise_gap_us", &Engine::piecewise_gap_us, "what a layer of such a pass takes longer, where launches keep ahead"},
      {"draft_floor_us", &Engine::draft_floor_us, "least time of a draft pass"},
      {"draft_us", &Engine::draft_us, "host time of a draft pass, with the GPU idle"},
      {"round_us", &Engine::round_us, "host time of a speculative round beyond its passes"}};
  return figures;
}

const std::vector<Parameter>& engine_parameters() {
  static const std::vector<Parameter> parameters = [] {
    std::vector<Parameter> list = {
        {"preset", Type::text, "", "an engine's name or file; the other keys replace its own", {}, {}},
        {"name", Type::text, "", "the engine's name in words", {}, {}},
        {"aliases", Type::value_list, "", "further names", {}, {}},
        {"source", Type::text, {}, "where the figures come from", {}, {}},
        {"graphs", Type::boolean, {}, "passes are captured, and padded to 1, 2, 4, 8, 16, 24, ... rows", {}, {}},
        {"kernels", Type::text, "", "engine whose measured kernels are this one's own", {}, kernel_engines()},
        {"allreduce",
         Type::text,
         "",
         "engine whose all-reduces it uses, where they are not those of kernels",
         {},
         kernel_engines()},
        {"allreduce_kernel", Type::text, "", "its own all-reduce in captured passes, as kernels name it", {}, {}},
        {"launched_allreduce_kernel", Type::text, "", "its own all-reduce in passes without a graph, as kernels name it", {}, {}},
        {"latent_attention",
         Type::text,
         "",
         "engine whose kernels of latent attention (MLA) it runs, where they are not those of kernels",
         {},
         kernel_engines()},
        {"latent_capabilities",
         Type::number_list,
         "[]",
         "lowest and highest compute capability of GPUs that run latent_attention; on others it uses its own; []: all",
         config::between(0, 100),
         {}},
        {"attention_kernel",
         Type::text,
         "",
         "its attention over one token where the GPU's kernels have several, as they name it; empty: the first",
         {},
         {}},
        {"allreduce_capabilities",
         Type::number_list,
         "[]",
         "lowest and highest compute capability of GPUs that run allreduce, and norms in it; on others it uses its own; []: all",
         config::between(0, 100),
         {}},
        {"allreduce_of_mixtures",
         Type::boolean,
         "false",
         "allreduce, and norms in it, are of models with experts alone; others take its own",
         {},
         {}},
        {"shared_rows",
         Type::number,
         "0",
         "rows of a captured pass up to which shared experts run beside the others, on a stream of their own; 0: after them",
         config::between(0, 1e6),
         {}},
        {"serial_attention_capabilities",
         Type::number_list,
         "[]",
         "lowest and highest compute capability, pair by pair, of GPUs on which attention of several tokens walks all keys block "
         "by block; "
         "on others, and with [], blocks share them",
         config::between(0, 100),
         {}},
        {"piecewise_capabilities",
         Type::number_list,
         "[]",
         "lowest and highest compute capability, pair by pair, of GPUs on which verification over a cache of fewer than 16 bits "
         "runs in graphs of pieces; []: none",
         config::between(0, 100),
         {}},
        {"most_pcie_gpus",
         Type::integer,
         "0",
         "GPUs without NVLink that its own all-reduce takes; beyond, NCCL's; 0: any number",
         config::between(0, 1024),
         {}},
        {"weight_only_shares",
         Type::number_list,
         "[0.75, 0.85]",
         "share of a plain kernel's bandwidth at which kernels for weights alone read 4 bits, and 8, where none were measured; "
         "the default is the middle of four libraries",
         config::between(0.05, 1),
         {}},
        {"weight_only_growth",
         Type::number_list,
         "[0.06, 0.03]",
         "what these take longer for each doubling of the rows up to 64, relative, with 4 bits and with 8; the default is the "
         "middle "
         "of three libraries",
         config::between(0, 1),
         {}},
        {"integer_kernels",
         Type::value,
         "{}",
         "its own kernels for quantised weights on consumers' GPUs, and its attention there",
         {},
         {}},
        {"methods",
         Type::value,
         "{}",
         "what its program drafts and verifies, which compare marks: {drafters: [chain, ...], verifiers: [token, ...], draws: "
         "true, "
         "trees: [tree_dynamic], tree_verifiers: [tree_point_mass]}; {}: nothing is said",
         {},
         {}},
        {"memory",
         Type::text,
         "none",
         "the server whose rules and defaults set memory aside from weights and caches; none: a tenth is kept free",
         {},
         {"none", "vllm", "sglang", "trtllm"}},
        {"fused_quantisation", Type::boolean, "false", "activations are quantised by the kernel before a product", {}, {}},
        {"fused_norms", Type::boolean, "false", "norms after an all-reduce are computed in it", {}, {}},
        {"small_kernels",
         Type::number,
         "0",
         "small kernels of a layer, between products and attention; 0: the GPU's calibration says what they take",
         config::between(0, 100),
         {}},
        {"linear_kernels",
         Type::number,
         "4",
         "small kernels of a layer of linear attention beside its products: convolution, gates, state, norm",
         config::between(0, 100),
         {}},
        {"selection_ns_per_key",
         Type::number,
         "0.45",
         "sparse attention: nanoseconds for each score of a row that the best are selected from",
         config::between(0, 100),
         {}},
        {"logit_passes", Type::number, "3", "passes over the logits from the LM head to the token", config::between(0, 100), {}},
        {"unequal_contexts",
         Type::number,
         "1",
         "attention over a live server's contexts, over that of as many equal ones",
         config::between(1, 10),
         {}},
        {"proposals",
         Type::value,
         "{}",
         "by method: a round's proposing and checking, in layers of a pass without a graph (host_us_per_layer)",
         {},
         {}},
        {"switch_share",
         Type::number,
         "0",
         "share of a link's rate that all-reduces in the switch between GPUs reach (NVLink 4 and later); 0: not used",
         config::between(0, 2),
         {}},
        {"largest_graph", Type::integer, "512", "rows of the largest captured graph", config::between(1, 1e6), {}}};
    for (const EngineFigure& figure : engine_figures())
      list.push_back({figure.key, Type::number, "0", figure.summary, config::between(0, kMostMicroseconds), {}});
    return list;
  }();
  return parameters;
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets())
    if (preset.kind == PresetKind::engine) names.emplace_back(preset.name);
  return names;
}

Engine read_engine(const config::Value& spec, Diagnostics& diagnostics) {
  Engine engine;
  const std::size_t before = diagnostics.list().size();
  const config::Value value = resolve_preset(PresetKind::engine, spec, diagnostics);
  if (diagnostics.list().size() != before) return engine;
  const config::Arguments a = config::read_arguments(value, engine_parameters(), {}, "engine", diagnostics);
  if (diagnostics.list().size() != before) return engine;
  engine.name = spec.is_scalar() ? spec.text : a.has("name") ? a.text("name") : "";
  engine.source = a.text("source");
  if (a.has("kernels")) engine.kernels = a.text("kernels");
  engine.allreduce = a.has("allreduce") ? a.text("allreduce") : engine.kernels;
  if (a.has("latent_attention")) engine.latent_attention = a.text("latent_attention");
  if (a.has("allreduce_kernel")) engine.allreduce_kernel = a.text("allreduce_kernel");
  if (a.has("launched_allreduce_kernel")) engine.launched_allreduce_kernel = a.text("launched_allreduce_kernel");
  if (a.has("attention_kernel")) engine.attention_kernel = a.text("attention_kernel");
  const auto range = [&](const char* key) {
    std::vector<double> ends = a.numbers(key);
    if (!ends.empty() && (ends.size() != 2 || ends[0] > ends[1]))
      diagnostics.add(a.where(key), fmt::format("{} is [{:g}], allowed: [lowest, highest], or none", key, fmt::join(ends, ", ")));
    return ends;
  };
  engine.latent_capabilities = range("latent_capabilities");
  engine.allreduce_capabilities = range("allreduce_capabilities");
  engine.allreduce_of_mixtures = a.boolean("allreduce_of_mixtures");
  engine.shared_rows = a.number("shared_rows");
  const auto pairs = [&](const char* key) {
    const std::vector<double> list = a.numbers(key);
    bool paired = list.size() % 2 == 0;
    for (std::size_t i = 0; paired && i < list.size(); i += 2) paired = list[i] <= list[i + 1];
    if (!paired)
      diagnostics.add(a.where(key), fmt::format("{} is [{:g}], allowed: [lowest, highest, lowest, highest, ...], or none", key,
                                                fmt::join(list, ", ")));
    return list;
  };
  engine.serial_attention_capabilities = pairs("serial_attention_capabilities");
  engine.piecewise_capabilities = pairs("piecewise_capabilities");
  if (const std::vector<double> shares = a.numbers("weight_only_shares"); shares.size() == engine.weight_only_shares.size())
    std::copy(shares.begin(), shares.end(), engine.weight_only_shares.begin());
  else
    diagnostics.add(
        a.where("weight_only_shares"),
        fmt::format("weight_only_shares is [{:g}], allowed: a number for 4 bits and one for 8", fmt::join(shares, ", ")));
  if (const std::vector<double> growth = a.numbers("weight_only_growth"); growth.size() == engine.weight_only_growth.size())
    std::copy(growth.begin(), growth.end(), engine.weight_only_growth.begin());
  else
    diagnostics.add(
        a.where("weight_only_growth"),
        fmt::format("weight_only_growth is [{:g}], allowed: a number for 4 bits and one for 8", fmt::join(growth, ", ")));
  static const std::map<std::string, MemoryRules> rules = {
      {"none", MemoryRules::none}, {"vllm", MemoryRules::vllm}, {"sglang", MemoryRules::sglang}, {"trtllm", MemoryRules::trtllm}};
  engine.memory = rules.at(a.text("memory"));
  engine.methods = read_methods(a.value("methods"), diagnostics);
  engine.integer = read_integer_kernels(a.value("integer_kernels"), diagnostics);
  engine.most_pcie_gpus = static_cast<double>(a.integer("most_pcie_gpus"));
  engine.graphs = a.boolean("graphs");
  engine.fused_quantisation = a.boolean("fused_quantisation");
  engine.fused_norms = a.boolean("fused_norms");
  engine.small_kernels = a.number("small_kernels");
  engine.linear_kernels = a.number("linear_kernels");
  engine.selection_ns_per_key = a.number("selection_ns_per_key");
  const config::Value& proposals = a.value("proposals");
  if (!proposals.is_map())
    diagnostics.add(a.where("proposals"),
                    fmt::format("proposals is {}, allowed: a map of methods to numbers", config::found_text(proposals)));
  else
    for (const config::Field& field : proposals.fields) {
      const std::optional<double> layers = field.value.is_scalar() ? config::as_number(field.value.text) : std::nullopt;
      if (layers && *layers >= 0.0 && *layers <= kMostLayers) {
        engine.proposals[field.key] = *layers;
        engine.proposal_places.emplace(field.key, field.where);
      } else
        diagnostics.add(field.value.where, fmt::format("{} is {}, allowed: layers, a number in [0, {:g}]", field.key,
                                                       config::found_text(field.value), kMostLayers));
    }
  engine.unequal_contexts = a.number("unequal_contexts");
  engine.switch_share = a.number("switch_share");
  engine.logit_passes = a.number("logit_passes");
  engine.largest_graph = static_cast<double>(a.integer("largest_graph"));
  for (const EngineFigure& figure : engine_figures()) engine.*figure.figure = a.number(figure.key);
  return engine;
}

Engine read_engine(const PresetChoice& choice, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  const config::Value spec = to_config(choice, diagnostics);
  return diagnostics.list().size() == before ? read_engine(spec, diagnostics) : Engine();
}

double captured_rows(const Engine& engine, double rows) {
  if (!engine.graphs || rows > engine.largest_graph) return 0.0;
  const double usual = rows <= 1.0 ? 1.0 : rows <= 2.0 ? 2.0 : rows <= 4.0 ? 4.0 : 8.0 * std::ceil(rows / 8.0);
  return std::min(engine.largest_graph, usual);
}

bool walks_keys(const Engine& engine, double compute_capability) {
  return is_within(engine.serial_attention_capabilities, compute_capability);
}

bool verifies_in_pieces(const Engine& engine, double compute_capability, double kv_bits) {
  constexpr double kWide = 16.0;
  return engine.graphs && kv_bits < kWide && is_within(engine.piecewise_capabilities, compute_capability);
}

std::string latent_library(const Engine& engine, double compute_capability) {
  const std::vector<double>& range = engine.latent_capabilities;
  const bool outside = !range.empty() && (compute_capability < range.front() || compute_capability > range.back());
  return engine.latent_attention.empty() || outside ? engine.kernels : engine.latent_attention;
}

Engine engine_on(Engine engine, double compute_capability, bool mixture) {
  const std::vector<double>& range = engine.allreduce_capabilities;
  if (range.empty()) return engine;
  // Without a compute capability a GPU is no NVIDIA's, and runs none of these.
  if (compute_capability < range.front() || compute_capability > range.back() || (engine.allreduce_of_mixtures && !mixture)) {
    engine.allreduce = engine.kernels;
    engine.fused_norms = false;
  }
  return engine;
}

const Engine& engine_of_library(const std::string& library) {
  static const std::map<std::string, Engine> engines = [] {
    std::map<std::string, Engine> list;
    for (const std::string& name : kernel_engines()) {
      Diagnostics diagnostics;
      list[name] = read_engine(PresetChoice{name, {}, {}}, diagnostics);
      diagnostics.throw_if_any();
    }
    return list;
  }();
  static const Engine unknown;
  const auto at = engines.find(library);
  return at != engines.end() ? at->second : unknown;
}

void add_proposal(Engine& engine, const std::string& proposal, const Location& where, Diagnostics& diagnostics) {
  const auto at = engine.proposals.find(proposal);
  if (at != engine.proposals.end()) {
    engine.round_us += at->second * engine.host_us_per_layer;
    return;
  }
  std::vector<std::string> names;
  for (const auto& [name, layers] : engine.proposals) names.push_back(name);
  diagnostics.add(where, config::unknown_name("proposal is", proposal, names) + " of engine " + engine.name);
}

}  // namespace specsim::cost
