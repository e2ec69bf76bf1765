#include "sim/hardware/latency/engine.h"

#include "sim/foundation/config/fields.h"
#include "sim/hardware/gpu/kernel_names.h"
#include "sim/hardware/presets/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

namespace specsim::cost {

namespace {

constexpr double kMostLayers = 1000.0;
// limit of plausibility: no engine takes a second for a step, so larger figures are in other units
constexpr double kMostMicroseconds = 1e6;

const config::Fields<SuperBlockRule>& super_block_fields() {
  using R = SuperBlockRule;
  static const config::Fields<R> fields = {
      {"capability", &R::capability, "compute capability of the GPUs", config::between(5, 20), config::required},
      {"most_bits", &R::most_bits, "for types of at most so many bits per weight", config::between(1, 16), config::required},
      {"rows", &R::rows, "maximum number of rows of the kernel for few rows", config::between(1, 1024), config::whole,
       config::required},
      {"share", &R::share, "its share of int8 arithmetic; if left out, super_block_share", config::between(1e-3, 1)},
  };
  return fields;
}

const config::Fields<IntegerKernels>& integer_fields() {
  using K = IntegerKernels;
  const config::Interval rows = config::between(1, 1024);
  const config::Interval share = config::between(1e-3, 1);
  const config::Interval us = config::between(0, kMostMicroseconds);
  static const config::Fields<K> fields = {
      {"vector_rows", &K::vector_rows, "maximum number of rows of the kernel for few rows", rows, config::whole,
       config::required},
      {"expert_vector_tokens", &K::expert_vector_tokens, "maximum number of tokens of that kernel for experts", rows,
       config::whole, config::required},
      {"expert_table_tokens", &K::expert_table_tokens,
       "maximum number of tokens of that kernel for weights looked up in a table, before Ada", rows, config::whole},
      {"reads", &K::reads, "share of the bandwidth at which weights are read; 0: the GPU's calibration", config::between(0, 1),
       config::zero_is_none},
      {"vector_share", &K::vector_share, "that kernel's share of int8 arithmetic", share},
      {"super_block_share", &K::super_block_share, "vector_share for K-quants; 0: the same", config::between(0, 1),
       config::zero_is_none, config::Default{"0"}},
      {"super_blocks", &K::super_blocks, "vector_rows and share of K-quants by compute capability: the first that applies",
       super_block_fields()},
      {"table_share", &K::table_share, "vector_share for experts in MXFP4; 0: the same", config::between(0, 1),
       config::zero_is_none},
      {"tile_rows", &K::tile_rows, "rows of the widest tile", config::between(8, 1024), config::whole},
      {"tile_share", &K::tile_share, "share of int8 arithmetic in tiles", share},
      {"product_us", &K::product_us, "minimum time of a product; 0: the GPU's calibration", us, config::zero_is_none},
      {"tile_us", &K::tile_us, "extra time of a product in tiles", us},
      {"layer_us", &K::layer_us, "a layer's small kernels and attention's least time; 0: the GPU's calibration", us,
       config::zero_is_none},
      {"mixture_us", &K::mixture_us, "a layer's router and its experts' sum; 0: the GPU's calibration", us, config::zero_is_none},
      {"single_mixture_us", &K::single_mixture_us, "mixture_us of one token; 0: the same", us, config::zero_is_none},
      {"expert_tiles_of_all_rows", &K::expert_tiles_of_all_rows,
       "tiles are as wide as the pass has rows of all experts, not tokens"},
      {"expert_wait_us", &K::expert_wait_us, "time that a layer of experts in tiles waits for its rows to be sorted", us},
      {"attention_reads", &K::attention_reads, "share of the bandwidth at which it reads keys", config::between(0.05, 1)},
      {"attention_share", &K::attention_share, "attention's share of bf16 arithmetic", share}};
  return fields;
}

const std::vector<std::pair<std::string, RuledOperation>>& ruled_operations() {
  static const std::vector<std::pair<std::string, RuledOperation>> operations = {
      {"allreduce", RuledOperation::allreduce},
      {"attention", RuledOperation::attention},
      {"latent_attention", RuledOperation::latent_attention},
      {"narrow_verification", RuledOperation::narrow_verification},
      {"weight_only_product", RuledOperation::weight_only_product}};
  return operations;
}

const config::Fields<KernelRule>& rule_fields() {
  using R = KernelRule;
  static const config::Fields<R> fields = {
      {"operation", &R::operation,
       "what it runs; narrow_verification: over a cache of fewer than 16 bits; weight_only_product: narrow weights, 16-bit "
       "activations",
       config::Choices<RuledOperation>{ruled_operations()}, config::required},
      {"library", &R::library, "engine whose measured kernels run", config::one_of(kernel_engines())},
      {"kernel", &R::kernel, "its name in the library's table; in captured passes, of all-reduces"},
      {"launched_kernel", &R::launched_kernel, "its name for passes that no graph was captured for"},
      {"capabilities", &R::capabilities, "lowest and highest compute capability, pair by pair", config::between(0, 100)},
      {"mixtures", &R::mixtures, "only for models with experts"},
      {"most_pcie_gpus", &R::most_pcie_gpus, "GPUs without NVLink up to which it serves; beyond them NCCL",
       config::between(1, 1024), config::whole},
      {"keys", &R::reads_all_keys, "how blocks of attention over several tokens read the keys",
       config::one_of<bool>({{"shared", false}, {"walked", true}})},
      {"graph", &R::in_pieces, "pieces: it runs between graphs of the rest of the pass",
       config::one_of<bool>({{"whole", false}, {"pieces", true}})},
      {"fuses_norms", &R::fuses_norms, "it also computes the norms after an all-reduce"}};
  return fields;
}

config::Fields<HostTime> host_fields() {
  std::vector<config::Declaration<HostTime>> list;
  for (const HostFigure& one : host_figures())
    list.emplace_back(one.key, one.figure, one.summary, config::between(0, kMostMicroseconds));
  return config::Fields<HostTime>(list);
}

const config::Fields<Engine>& engine_fields() {
  using E = Engine;
  using config::elsewhere, config::Value;
  const config::Interval few = config::between(0, 100);
  static const config::Fields<E> fields = {
      {"preset", elsewhere<std::string>, "an engine's name or file; the other keys override its values"},
      {"aliases", elsewhere<std::vector<std::string>>, "further names"},
      {"methods", elsewhere<Value>,
       "drafters and verifiers that its program supports, which compare marks: {drafters: [chain, ...], verifiers: [token, ...], "
       "draws: true, trees: [tree_dynamic], tree_verifiers: [tree_point_mass]}; {}: not stated",
       config::Default{"{}"}},
      {"tuned", elsewhere<Value>,
       "factors learned from runs of one server, as specsim tune writes them: {factors: ..., covariance: ...}"},
      {"proposals", elsewhere<Value>,
       "by method: a round's proposing and checking, in layers of a pass without a graph (host_us_per_layer)",
       config::Default{"{}"}},
      {"name", &E::name, "the engine's name in words"},
      {"source", &E::source, "where the figures come from", config::required},
      {"graphs", &E::graphs, "passes are captured, and padded to 1, 2, 4, 8, 16, 24, ... rows", config::required},
      {"kernels", &E::kernels, "engine whose measured kernels this engine uses", config::one_of(kernel_engines())},
      {"implementations", &E::implementations,
       "exceptions to its library's first kernels: what it runs and where; the first row that holds for an operation counts",
       rule_fields()},
      {"shared_rows", &E::shared_rows,
       "rows of a captured pass up to which shared experts run at the same time as the others, on a stream of their own; 0: "
       "after them",
       config::between(0, 1e6)},
      {&E::weight_only, config::Fields<WeightOnlyKernels>{{"weight_only_shares", &WeightOnlyKernels::shares,
                                                           "share of a plain kernel's bandwidth at which weight-only kernels "
                                                           "read 4 bits, and 8, if none were measured; default: the median of "
                                                           "four libraries",
                                                           config::between(0.05, 1)},
                                                          {"weight_only_growth", &WeightOnlyKernels::growth,
                                                           "extra time of these kernels per doubling of the rows up to 64, "
                                                           "relative, with 4 bits and with 8; default: the median of three "
                                                           "libraries",
                                                           config::between(0, 1)}}},
      {"integer_kernels", &E::integer, "its own kernels for quantised weights on consumers' GPUs, and its attention there",
       integer_fields()},
      {"memory", &E::memory,
       "the server whose rules and defaults set memory aside from weights and caches; none: a tenth is kept free",
       config::one_of<MemoryRules>({{"none", MemoryRules::none},
                                    {"vllm", MemoryRules::vllm},
                                    {"sglang", MemoryRules::sglang},
                                    {"trtllm", MemoryRules::trtllm}})},
      {"fused_quantisation", &E::fused_quantisation, "activations are quantised by the kernel before a product"},
      {"small_kernels", &E::small_kernels,
       "small kernels of a layer, between products and attention; default: the number that the GPU's calibration counted", few},
      {"linear_kernels", &E::linear_kernels,
       "small kernels of a layer of linear attention besides its products: convolution, gates, state, norm", few},
      {"selection_ns_per_key", &E::selection_ns_per_key,
       "sparse attention: nanoseconds for each score of a row that the best are selected from", few},
      {"logit_passes", &E::logit_passes, "passes over the logits from the LM head to the token", few},
      {"synchronous_ngrams", &E::synchronous_ngrams,
       "the host's time of a pass is not hidden by the GPU's in rounds without passes of a draft"},
      {"unequal_contexts", &E::unequal_contexts,
       "attention time over a live server's contexts, relative to as many equal contexts", config::between(1, 10)},
      {"prompt_time", &E::prompt_time, "time of prompts in a live server, relative to their kernels' estimate",
       config::between(0.1, 10)},
      {"independent_choices", &E::independent_choices,
       "each token of a pass after the first chooses experts like this many independent ones", config::between(0.01, 1)},
      {"switch_share", &E::switch_share,
       "share of a link's rate that all-reduces in the switch between GPUs reach (NVLink 4 and later); 0: not used",
       config::between(0, 2), config::zero_is_none, config::Default{"0"}},
      {"largest_graph", &E::largest_graph, "rows of the largest captured graph", config::between(1, 1e6), config::whole},
      {&E::host, host_fields()}};
  return fields;
}

EngineMethods read_methods(const config::Value& value, Diagnostics& diagnostics) {
  using M = EngineMethods;
  using config::elsewhere, config::required;
  using Names = std::vector<std::string>;
  static const config::Fields<M> fields = {
      {"drafters", elsewhere<Names>, "drafters of chains", required},
      {"verifiers", elsewhere<Names>, "verifiers of chains", required},
      {"draws", &M::draws, "chains can be drawn from the draft's distribution, not only chosen as its likeliest tokens"},
      {"trees", elsewhere<Names>, "drafters of trees"},
      {"tree_verifiers", elsewhere<Names>, "verifiers of trees"}};
  if (value.is_map() && value.fields.empty()) return {};
  const std::size_t before = diagnostics.list().size();
  const config::Arguments a = config::read_arguments(value, fields, {}, "methods", diagnostics);
  if (diagnostics.list().size() != before) return {};
  M methods = fields.read(a);
  for (const auto& [key, names] : {std::pair{"drafters", &M::drafters},
                                   {"verifiers", &M::verifiers},
                                   {"trees", &M::trees},
                                   {"tree_verifiers", &M::tree_verifiers}})
    for (const config::Value& item : a.value(key).items)
      if (config::read_text(item, key, diagnostics)) {
        (methods.*names).push_back(item.text);
        methods.places.emplace(item.text, item.where);
      }
  return methods;
}

}  // namespace

const std::vector<config::Parameter>& engine_parameters() { return engine_fields().parameters(); }

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets())
    if (preset.kind == PresetKind::engine) names.emplace_back(preset.name);
  return names;
}

namespace {

void read_proposals(const config::Value& proposals, Engine& engine, Diagnostics& diagnostics) {
  if (!proposals.is_map()) {
    diagnostics.add(proposals.where, fmt::format("proposals is {}, allowed: a map of methods to numbers",
                                                 config::description_of_found(proposals)));
    return;
  }
  for (const config::Field& field : proposals.fields) {
    const std::optional<double> layers = field.value.is_scalar() ? config::as_number(field.value.text) : std::nullopt;
    if (layers && *layers >= 0.0 && *layers <= kMostLayers) {
      engine.proposals[field.key] = *layers;
      engine.proposal_places.emplace(field.key, field.where);
    } else
      diagnostics.add(field.value.where, fmt::format("{} is {}, allowed: layers, a number in [0, {:g}]", field.key,
                                                     config::description_of_found(field.value), kMostLayers));
  }
}

// Lists that must come in pairs: one number for 4 bits and one for 8, or lowest and highest.
void check_pairs(const config::Arguments& a, const Engine& engine, Diagnostics& diagnostics) {
  const auto for_bits = [&](const char* key, const std::vector<double>& list) {
    if (list.size() != 2)
      diagnostics.add(a.where(key),
                      fmt::format("{} is [{:g}], allowed: a number for 4 bits and one for 8", key, fmt::join(list, ", ")));
  };
  for_bits("weight_only_shares", engine.weight_only.shares);
  for_bits("weight_only_growth", engine.weight_only.growth);
  for (std::size_t row = 0; row < engine.implementations.size(); ++row) {
    const std::vector<double>& list = engine.implementations[row].capabilities;
    bool paired = list.size() % 2 == 0;
    for (std::size_t i = 0; paired && i < list.size(); i += 2) paired = list[i] <= list[i + 1];
    const KernelRule& rule = engine.implementations[row];
    if (rule.operation == RuledOperation::weight_only_product && rule.kernel != kMarlin)
      diagnostics.add(a.maps("implementations")[row].where("kernel"),
                      fmt::format("kernel is \"{}\", allowed for weight_only_product: {}", rule.kernel, kMarlin));
    if (!paired)
      diagnostics.add(a.maps("implementations")[row].where("capabilities"),
                      fmt::format("capabilities is [{:g}], allowed: [lowest, highest, lowest, highest, ...], or none",
                                  fmt::join(list, ", ")));
  }
}

}  // namespace

Engine read_engine(const config::Value& spec, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  const config::Value value = resolve_preset(PresetKind::engine, spec, diagnostics);
  if (diagnostics.list().size() != before) return {};
  const config::Arguments a = config::read_arguments(value, engine_parameters(), {}, "engine", diagnostics);
  if (diagnostics.list().size() != before) return {};
  Engine engine = engine_fields().read(a);
  if (spec.is_scalar()) engine.name = spec.text;
  for (std::size_t row = 0; row < engine.implementations.size(); ++row) {
    engine.implementations[row].kernel_where = a.maps("implementations")[row].where("kernel");
    engine.implementations[row].launched_where = a.maps("implementations")[row].where("launched_kernel");
  }
  check_pairs(a, engine, diagnostics);
  engine.methods = read_methods(a.value("methods"), diagnostics);
  if (a.has("tuned")) engine.tuned = read_belief(a.value("tuned"), diagnostics);
  read_proposals(a.value("proposals"), engine, diagnostics);
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
  if (rule.reads_all_keys) text += " blocks that read all keys";
  if (rule.in_pieces) text += " graphs of pieces";
  if (rule.fuses_norms) text += " with the norms";
  if (rule.mixtures) text += " only for models with experts";
  for (std::size_t i = 0; i + 1 < rule.capabilities.size(); i += 2)
    text += fmt::format("{} {:g} to {:g}", i == 0 ? " on GPUs of compute capability" : " and", rule.capabilities[i],
                        rule.capabilities[i + 1]);
  if (rule.most_pcie_gpus) text += fmt::format(", without NVLink up to {:g} GPUs", *rule.most_pcie_gpus);
  return text;
}

// A GPU without a compute capability (0) is not NVIDIA's, and rules for some NVIDIA GPUs do not hold there.
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
  // Uses the names that the library's own engine gives to the kernels.
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
