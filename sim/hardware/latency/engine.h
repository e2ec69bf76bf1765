// The time that an inference engine adds to the GPU's own work: host time, launches, padding. One file of configs/engines each.
#pragma once

#include "sim/foundation/config/arguments.h"
#include "sim/hardware/latency/host_time.h"
#include "sim/hardware/latency/server_factors.h"
#include "sim/hardware/presets/presets.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace specsim::cost {

// The number of rows at which K-quants (blocks of 256 weights with scales of scales) leave the kernel for few rows, by compute
// capability.
struct SuperBlockRule {
  double capability = 0.0;
  double most_bits = 0.0;            // for types of at most so many bits per weight
  double rows = 0.0;                 // maximum rows of the kernel for few rows
  std::optional<double> share = {};  // its share of int8 arithmetic there; nothing: super_block_share
};

// The engine's own kernels that multiply quantised weights with activations in int8: one for few rows, and one in tiles. Shares
// are of the data sheet's bandwidth and dense int8 arithmetic; those of attention are of its bf16 arithmetic. Layers of such
// products also run small kernels of the engine, whose times are given here too. See sim/hardware/latency/integer_kernels.h.
struct IntegerKernels {
  double vector_rows = 0.0;           // maximum rows of the kernel for few rows
  double expert_vector_tokens = 0.0;  // the same for a pass through experts, in tokens
  double expert_table_tokens = 7.0;   // the same for weights looked up in a table (MXFP4), on chips before Ada
  // bandwidth share at which weights are read; none: weight_only_shares of the GPU's calibration
  std::optional<double> reads = 0.89;
  double vector_share = 0.032;
  // the same for types whose blocks of 256 have scales of scales (K-quants); none: vector_share
  std::optional<double> super_block_share = {};
  std::vector<SuperBlockRule> super_blocks = {};  // the first that applies; none: vector_rows and super_block_share
  // the same for experts whose weights are looked up in a table (MXFP4); none: vector_share
  std::optional<double> table_share = 0.0095;
  double tile_rows = 128.0;  // rows of the widest tile
  double tile_share = 0.265;
  std::optional<double> product_us = 5.0;  // minimum time of a product; none: the GPU's calibration
  double tile_us = 4.0;                    // extra time in tiles: rows are quantised in blocks, tiles' edges put together
  // a layer's norms, rotary embedding, residuals, and attention's minimum time; none: the calibration's
  std::optional<double> layer_us = 19.0;
  std::optional<double> mixture_us = 24.0;  // a layer's router and its experts' sum; none: the calibration's, of three products
  std::optional<double> single_mixture_us = 12.0;  // the same for one token, whose kernels are fused further; none: mixture_us
  bool expert_tiles_of_all_rows = false;  // an expert's tiles are as wide as the pass has rows of all experts, not tokens
  double expert_wait_us = 0.0;            // time that a layer of experts in tiles waits for its rows to be sorted
  double attention_reads = 0.98;
  double attention_share = 0.65;
};

// Drafters and verifiers that its program supports, by their names in a config's `decode`.
struct EngineMethods {
  std::vector<std::string> drafters;        // drafters of chains; none: not stated (research code, and the GPU alone)
  std::vector<std::string> verifiers;       // verifiers of chains
  bool draws = false;                       // a chain's tokens can be drawn at random; else they are always the draft's likeliest
  std::vector<std::string> trees;           // drafters of trees; none: chains only
  std::vector<std::string> tree_verifiers;  // verifiers of trees
  std::map<std::string, Location> places;   // [name]: its place in the file
};

// The server whose rules reserve memory that weights and caches do not get (sim/hardware/latency/server_memory.h).
enum class MemoryRules { none, vllm, sglang, trtllm };

// Weight-only kernels (they quantise weights but not activations), for types without a fit.
struct WeightOnlyKernels {
  // Their share of a plain kernel's bandwidth with 4 bits and with 8.
  std::vector<double> shares = {0.75, 0.85};
  // Their relative extra time for each doubling of the rows up to 64, with 4 bits and with 8.
  std::vector<double> growth = {0.06, 0.03};
  // Their time over `rows` relative to one row, apart from bytes and arithmetic: they unpack weights for every tile of rows.
  // Beyond 64 rows arithmetic dominates. The default growth is the median of three: TensorRT-LLM's kernels on an H200 (1.7 times
  // one row at 4, 8 and 16 with 4 bits, 1.13 with 8) and on an A100 (1.0 to 1.06), and SGLang's on an H100 (1.12 with 8).
  [[nodiscard]] double slowdown(double weight_bytes, double rows) const;
  bool operator==(const WeightOnlyKernels&) const = default;
};

// Operations for which an engine may use another implementation than its library's first: all-reduces, attention over keys and
// values, latent attention, verification over a cache of fewer than 16 bits, and products of narrow weights with 16-bit
// activations.
enum class RuledOperation { allreduce, attention, latent_attention, narrow_verification, weight_only_product };
constexpr const char* kMarlin = "marlin";  // the only kernel that a rule for weight_only_product may name

// A row of an engine's table of implementations: which implementation an operation uses, and on which GPUs. The first row that
// fits holds.
struct KernelRule {
  RuledOperation operation = RuledOperation::allreduce;
  std::string library;                   // engine whose measured kernels run; empty: the engine's own
  std::string kernel;                    // its name in the library's table, in captured passes; empty: the first
  std::string launched_kernel;           // its name for passes that no graph was captured for
  std::vector<double> capabilities;      // lowest and highest compute capability, pair by pair; empty: every GPU
  bool mixtures = false;                 // only for models with experts
  std::optional<double> most_pcie_gpus;  // GPUs without NVLink up to which it serves; beyond them NCCL
  bool reads_all_keys = false;           // attention of several tokens reads all keys in one block per head and query block
  bool in_pieces = false;                // runs between graphs of the rest of the pass, not in one graph
  bool fuses_norms = false;              // it also computes the norms after an all-reduce
  Location kernel_where;                 // places of kernel and launched_kernel in the file
  Location launched_where;
  [[nodiscard]] bool holds(double compute_capability, bool mixture) const;
};

// A short description: "allreduce: kernel TRTLLM of trtllm on GPUs of compute capability 9 to 10.3".
std::string describe(const KernelRule& rule);

struct Engine {
  std::string name;  // its name in the config
  std::string source;
  std::string kernels;                      // the engine whose measured kernels it uses; empty: none
  std::vector<KernelRule> implementations;  // exceptions to that library's first kernels
  bool graphs = false;                      // passes are captured; rows are padded up to the next captured number
  double largest_graph = 512.0;             // rows of the largest captured pass
  // activations are quantised by the kernel before a product, not by a kernel of its own
  bool fused_quantisation = false;
  // rows of a captured pass up to which shared experts run at the same time as the others; 0: none
  double shared_rows = 0.0;
  // attention time over a live server's contexts, relative to as many equal contexts
  double unequal_contexts = 1.0;
  // time of prompts' products and attention in a live server, relative to their kernels' estimate
  double prompt_time = 1.0;
  // each token of a pass after the first chooses experts like this many independent ones: tokens of one text choose alike
  double independent_choices = 1.0;
  // share of a link's rate that all-reduces reach in a switch that adds up; none: such sums are not used
  std::optional<double> switch_share;
  double linear_kernels = 4.0;         // small kernels of a layer of linear attention
  double selection_ns_per_key = 0.45;  // an indexer's selection (sparse attention) for each score of a row
  // small kernels of a layer, between products and attention; none: as the GPU's calibration counted
  std::optional<double> small_kernels;
  double logit_passes = 3.0;  // over the logits: written by the LM head, read by softmax and by the sampler
  HostTime host;
  bool synchronous_ngrams = false;          // the host's time is not hidden in rounds whose drafts come from n-grams
  std::optional<FactorBelief> tuned;        // factors learned from runs of this server; none: not tuned
  std::map<std::string, double> proposals;  // [method]: a round's proposing and checking, in layers of a pass without a graph
  std::map<std::string, Location> proposal_places;  // [method]: its place in the file
  WeightOnlyKernels weight_only;
  std::optional<IntegerKernels> integer;  // none: the engine has no such kernels
  EngineMethods methods;
  MemoryRules memory = MemoryRules::none;
};

const std::vector<config::Parameter>& engine_parameters();
// Files of configs/engines.
std::vector<std::string> engine_names();
// Adds the time of a round of `proposal` besides its passes to the engine's round_us. Reports a method without a figure.
void add_proposal(Engine& engine, const std::string& proposal, const Location& where, Diagnostics& diagnostics);
// `spec` as resolve_preset takes it. Reports errors; the engine is then not to be used.
Engine read_engine(const config::Value& spec, Diagnostics& diagnostics);
Engine read_engine(const PresetChoice& choice, Diagnostics& diagnostics);
// Rows of the captured pass that this many rows are padded up to; empty if no captured pass has as many.
std::optional<double> captured_rows(const Engine& engine, double rows);
// The first row of the engine's table for the operation that holds on that GPU; nullptr: its library's first kernel runs.
const KernelRule* rule_for(const Engine& engine, RuledOperation operation, double compute_capability, bool mixture = false);
// Whether verification over a cache of this many bits runs between graphs of pieces on that GPU.
bool verifies_in_pieces(const Engine& engine, double compute_capability, double kv_bits);
// The engine whose all-reduces run, and the row of its table that chose them; `library`: the kernels in use, for an engine
// without any of its own.
struct AllReduceChoice {
  std::string library;
  KernelRule rule;
};
AllReduceChoice allreduce_choice(const Engine& engine, const std::string& library, double compute_capability, bool mixture);
// The engine of configs/engines that has the name of a library of kernels (a GPU's, or those that another engine uses).
// `library`: one of kernel_engines().
const Engine& engine_of_library(const std::string& library);

}  // namespace specsim::cost
