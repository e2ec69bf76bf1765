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

const std::map<std::string, RuledOperation>& ruled_operations() {
  static const std::map<std::string, RuledOperation> operations = {{"allreduce", RuledOperation::allreduce},
                                                                   {"attention", RuledOperation::attention},
                                                                   {"latent_attention", RuledOperation::latent_attention},
                                                                   {"narrow_verification", RuledOperation::narrow_verification}};
  return operations;
}

KernelRule read_rule(const config::Value& value, Diagnostics& diagnostics) {
  static const std::vector<Parameter> parameters = [] {
    std::vector<std::string> names;
    for (const auto& [name, operation] : ruled_operations()) names.push_back(name);
    return std::vector<Parameter>{
        {"operation", Type::text, {}, "what it runs; narrow_verification: over a cache of fewer than 16 bits", {}, names},
        {"library", Type::text, "", "engine whose measured kernels run", {}, kernel_engines()},
        {"kernel", Type::text, "", "its name in the library's table; in captured passes, of all-reduces", {}, {}},
        {"launched_kernel", Type::text, "", "the same in passes that no graph was captured for", {}, {}},
        {"capabilities",
         Type::number_list,
         "[]",
         "lowest and highest compute capability, pair by pair",
         config::between(0, 100),
         {}},
        {"mixtures", Type::boolean, "false", "for models with experts alone", {}, {}},
        {"most_pcie_gpus",
         Type::integer,
         "",
         "GPUs without NVLink up to which it serves; NCCL beyond",
         config::between(1, 1024),
         {}},
        {"keys", Type::text, "shared", "how blocks of attention over several tokens read the keys", {}, {"shared", "walked"}},
        {"graph", Type::text, "whole", "pieces: it runs between graphs of the rest of the pass", {}, {"whole", "pieces"}},
        {"fuses_norms", Type::boolean, "false", "norms after an all-reduce are computed in it", {}, {}}};
  }();
  KernelRule rule;
  const std::size_t before = diagnostics.list().size();
  const config::Arguments a = config::read_arguments(value, parameters, {}, "implementation", diagnostics);
  if (diagnostics.list().size() != before) return rule;
  rule.operation = ruled_operations().at(a.text("operation"));
  if (a.has("library")) rule.library = a.text("library");
  if (a.has("kernel")) rule.kernel = a.text("kernel");
  if (a.has("launched_kernel")) rule.launched_kernel = a.text("launched_kernel");
  rule.kernel_where = a.where("kernel");
  rule.launched_where = a.where("launched_kernel");
  rule.capabilities = a.numbers("capabilities");
  bool paired = rule.capabilities.size() % 2 == 0;
  for (std::size_t i = 0; paired && i < rule.capabilities.size(); i += 2)
    paired = rule.capabilities[i] <= rule.capabilities[i + 1];
  if (!paired)
    diagnostics.add(a.where("capabilities"),
                    fmt::format("capabilities is [{:g}], allowed: [lowest, highest, lowest, highest, ...], or none",
                                fmt::join(rule.capabilities, ", ")));
  rule.mixtures = a.boolean("mixtures");
  if (a.has("most_pcie_gpus")) rule.most_pcie_gpus = static_cast<double>(a.integer("most_pcie_gpus"));
  rule.walks_keys = a.text("keys") == "walked";
  rule.in_pieces = a.text("graph") == "pieces";
  rule.fuses_norms = a.boolean("fuses_norms");
  return rule;
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

const std::vector<Parameter>& engine_parameters() {
  static const std::vector<Parameter> parameters = [] {
    std::vector<Parameter> list = {
        {"preset", Type::text, "", "an engine's name or file; the other keys replace its own", {}, {}},
        {"name", Type::text, "", "the engine's name in words", {}, {}},
        {"aliases", Type::value_list, "", "further names", {}, {}},
        {"source", Type::text, {}, "where the figures come from", {}, {}},
        {"graphs", Type::boolean, {}, "passes are captured, and padded to 1, 2, 4, 8, 16, 24, ... rows", {}, {}},
        {"kernels", Type::text, "", "engine whose measured kernels are this one's own", {}, kernel_engines()},
        {"implementations",
         Type::value_list,
         "",
         "what it runs instead of its library's first kernels, and where: {operation, library, kernel, launched_kernel, "
         "capabilities, mixtures, most_pcie_gpus, keys, graph, fuses_norms}; the first that holds for an operation counts",
         {},
         {}},
        {"shared_rows",
         Type::number,
         "0",
         "rows of a captured pass up to which shared experts run beside the others, on a stream of their own; 0: after them",
         config::between(0, 1e6),
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
        {"small_kernels",
         Type::number,
         "",
         "small kernels of a layer, between products and attention; where it is not given, as many as the GPU's calibration "
         "counted",
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
    for (const HostFigure& figure : host_figures())
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
  for (const config::Value& row : a.value("implementations").items) engine.implementations.push_back(read_rule(row, diagnostics));
  engine.shared_rows = a.number("shared_rows");
  if (const std::vector<double> shares = a.numbers("weight_only_shares"); shares.size() == engine.weight_only.shares.size())
    std::copy(shares.begin(), shares.end(), engine.weight_only.shares.begin());
  else
    diagnostics.add(
        a.where("weight_only_shares"),
        fmt::format("weight_only_shares is [{:g}], allowed: a number for 4 bits and one for 8", fmt::join(shares, ", ")));
  if (const std::vector<double> growth = a.numbers("weight_only_growth"); growth.size() == engine.weight_only.growth.size())
    std::copy(growth.begin(), growth.end(), engine.weight_only.growth.begin());
  else
    diagnostics.add(
        a.where("weight_only_growth"),
        fmt::format("weight_only_growth is [{:g}], allowed: a number for 4 bits and one for 8", fmt::join(growth, ", ")));
  static const std::map<std::string, MemoryRules> rules = {
      {"none", MemoryRules::none}, {"vllm", MemoryRules::vllm}, {"sglang", MemoryRules::sglang}, {"trtllm", MemoryRules::trtllm}};
  engine.memory = rules.at(a.text("memory"));
  engine.methods = read_methods(a.value("methods"), diagnostics);
  engine.integer = read_integer_kernels(a.value("integer_kernels"), diagnostics);
  engine.graphs = a.boolean("graphs");
  engine.fused_quantisation = a.boolean("fused_quantisation");
  if (a.has("small_kernels")) engine.small_kernels = a.number("small_kernels");
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
  for (const HostFigure& figure : host_figures()) engine.host.*figure.figure = a.number(figure.key);
  return engine;
}

Engine read_engine(const PresetChoice& choice, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  const config::Value spec = to_config(choice, diagnostics);
  return diagnostics.list().size() == before ? read_engine(spec, diagnostics) : Engine();
}

std::optional<double> captured_rows(const Engine& engine, double rows) {
  if (!engine.graphs || rows > engine.largest_graph) return std::nullopt;
  const double usual = rows <= 1.0 ? 1.0 : rows <= 2.0 ? 2.0 : rows <= 4.0 ? 4.0 : 8.0 * std::ceil(rows / 8.0);
  return std::min(engine.largest_graph, usual);
}

std::string describe(const KernelRule& rule) {
  std::string text;
  for (const auto& [name, operation] : ruled_operations())
    if (operation == rule.operation) text = name + ":";
  if (!rule.kernel.empty()) text += " kernel " + rule.kernel;
  if (!rule.library.empty()) text += (rule.kernel.empty() ? " kernels of " : " of ") + rule.library;
  if (rule.walks_keys) text += " blocks that walk all keys";
  if (rule.in_pieces) text += " graphs of pieces";
  if (rule.fuses_norms) text += " with the norms";
  if (rule.mixtures) text += " for models with experts";
  for (std::size_t i = 0; i + 1 < rule.capabilities.size(); i += 2)
    text += fmt::format("{} {:g} to {:g}", i == 0 ? " on GPUs of compute capability" : " and", rule.capabilities[i],
                        rule.capabilities[i + 1]);
  if (rule.most_pcie_gpus) text += fmt::format(", without NVLink up to {:g} GPUs", *rule.most_pcie_gpus);
  return text;
}

// Without a compute capability (0) a GPU is no NVIDIA's, and runs nothing that is for some of them.
bool KernelRule::holds(double compute_capability, bool mixture) const {
  if (mixtures && !mixture) return false;
  if (capabilities.empty()) return true;
  for (std::size_t i = 0; i + 1 < capabilities.size(); i += 2)
    if (compute_capability >= capabilities[i] && compute_capability <= capabilities[i + 1]) return true;
  return false;
}

const KernelRule* rule_for(const Engine& engine, RuledOperation operation, double compute_capability, bool mixture) {
  for (const KernelRule& rule : engine.implementations)
    if (rule.operation == operation && rule.holds(compute_capability, mixture)) return &rule;
  return nullptr;
}

bool verifies_in_pieces(const Engine& engine, double compute_capability, double kv_bits) {
  constexpr double kWide = 16.0;
  const KernelRule* const rule = rule_for(engine, RuledOperation::narrow_verification, compute_capability);
  return engine.graphs && kv_bits < kWide && rule != nullptr && rule->in_pieces;
}

AllReduceChoice allreduce_choice(const Engine& engine, const std::string& library, double compute_capability, bool mixture) {
  const std::string& own = engine.kernels.empty() ? library : engine.kernels;
  const KernelRule* const rule = rule_for(engine, RuledOperation::allreduce, compute_capability, mixture);
  AllReduceChoice choice{rule == nullptr || rule->library.empty() ? own : rule->library, {}};
  if (rule != nullptr) choice.rule = *rule;
  if (!choice.rule.kernel.empty()) return choice;
  // The library's own kernels go by the names that its engine gives them.
  for (const KernelRule& named : engine_of_library(choice.library).implementations)
    if (named.operation == RuledOperation::allreduce && named.library.empty()) {
      choice.rule.kernel = named.kernel;
      choice.rule.launched_kernel = named.launched_kernel;
      choice.rule.most_pcie_gpus = named.most_pcie_gpus;
      break;
    }
  return choice;
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
    engine.host.round_us += at->second * engine.host.host_us_per_layer;
    return;
  }
  std::vector<std::string> names;
  for (const auto& [name, layers] : engine.proposals) names.push_back(name);
  diagnostics.add(where, config::unknown_name("proposal is", proposal, names) + " of engine " + engine.name);
}

}  // namespace specsim::cost
