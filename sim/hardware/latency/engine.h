// What an inference engine adds to the GPU's own work: host time, launches, padding. One file of configs/engines each.
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

// Kernels of its own that multiply quantised weights with activations in int8: one for few rows, and one in tiles. Shares are of
// the data sheet's bandwidth and dense int8 arithmetic, those of attention of its bf16 arithmetic. With layers of such products
// come small kernels of its own, whose times are the engine's too. sim/hardware/latency/integer_kernels.h.
struct IntegerKernels {
  double vector_rows = 0.0;           // the most rows of the kernel for few; 0: the engine has no such kernels
  double expert_vector_tokens = 0.0;  // the same of a pass through experts, in tokens
  double expert_table_tokens = 7.0;   // the same of weights looked up in a table (MXFP4), on chips before Ada
  double reads = 0.89;                // at which weights are read; 0: weight_only_shares of the GPU's calibration
  double vector_share = 0.032;
  double super_block_share = 0.0;  // the same of types whose blocks of 256 have scales of scales (K-quants); 0: vector_share
  double table_share = 0.0095;     // the same of experts whose weights are looked up in a table (MXFP4); 0: vector_share
  double tile_rows = 128.0;        // rows of the widest tile
  double tile_share = 0.265;
  double product_us = 5.0;          // a product takes at least; 0: what the GPU's calibration says
  double tile_us = 4.0;             // and in tiles so much more: rows are quantised in blocks, tiles' edges put together
  double layer_us = 19.0;           // a layer's norms, rotary embedding, residuals, and attention's least; 0: the calibration's
  double mixture_us = 24.0;         // a layer's router and its experts' sum; 0: the calibration's, of three products
  double single_mixture_us = 12.0;  // the same of one token, whose kernels are fused further; 0: mixture_us
  bool expert_tiles_of_all_rows = false;  // an expert's tiles are as wide as the pass has rows of all experts, not tokens
  double expert_wait_us = 0.0;            // a layer of experts in tiles waits so long for its rows to be sorted
  double attention_reads = 0.98;
  double attention_share = 0.65;
};

// What its program drafts and verifies, by the names of drafters and verifiers in a config's `decode`.
struct EngineMethods {
  std::vector<std::string> drafters;        // those of chains; none: nothing is said, of research code and of the GPU alone
  std::vector<std::string> verifiers;       // those of chains
  bool draws = false;                       // a chain's tokens can be drawn; else they are the draft's likeliest alone
  std::vector<std::string> trees;           // drafters of trees; none: it has chains alone
  std::vector<std::string> tree_verifiers;  // verifiers of trees
  std::map<std::string, Location> places;   // [name]: where a file says it
};

// By whose rules memory is set aside that no weights and caches get (sim/hardware/latency/server_memory.h).
enum class MemoryRules { none, vllm, sglang, trtllm };

// Kernels that quantise weights alone, where no fit of them serves.
struct WeightOnlyKernels {
  // The share of a plain kernel's bandwidth at which they read 4 bits and 8.
  std::vector<double> shares = {0.75, 0.85};
  // What they take longer for each doubling of the rows up to 64, relative, with 4 bits and with 8.
  std::vector<double> growth = {0.06, 0.03};
  // How much longer they take over `rows` than over one, besides what their bytes and arithmetic take, for they unpack weights
  // for every tile of rows; beyond 64 rows arithmetic takes over. The default growth is the median of TensorRT-LLM's kernels on
  // an H200 (1.7 times one row at 4, 8 and 16 with 4 bits, 1.13 with 8) and on an A100 (1.0 to 1.06), and of SGLang's on an H100
  // (1.12 with 8).
  [[nodiscard]] double slowdown(double weight_bytes, double rows) const;
  bool operator==(const WeightOnlyKernels&) const = default;
};

// Operations for which an engine may run another implementation than its library's first: all-reduces, attention over keys and
// values, latent attention, verification over a cache of fewer than 16 bits, and products of narrow weights with 16-bit activations.
enum class RuledOperation { allreduce, attention, latent_attention, narrow_verification, weight_only_product };
constexpr const char* kMarlin = "marlin";  // the only kernel that a rule for weight_only_product may name

// A row of an engine's table of implementations: what it runs for an operation, where. The first row that fits holds.
struct KernelRule {
  RuledOperation operation = RuledOperation::allreduce;
  std::string library;                   // engine whose measured kernels run; empty: the engine's own
  std::string kernel;                    // its name in the library's table, in captured passes; empty: the first
  std::string launched_kernel;           // the same in passes that no graph was captured for
  std::vector<double> capabilities;      // lowest and highest compute capability, pair by pair; empty: every GPU
  bool mixtures = false;                 // for models with experts alone
  std::optional<double> most_pcie_gpus;  // GPUs without NVLink up to which it serves; NCCL beyond
  bool walks_keys = false;               // attention of several tokens reads all keys in one block per head and query block
  bool in_pieces = false;                // runs between graphs of the rest of the pass, not in one graph
  bool fuses_norms = false;              // norms after an all-reduce are computed in it
  Location kernel_where;                 // where a file names kernel and launched_kernel
  Location launched_where;
  [[nodiscard]] bool holds(double compute_capability, bool mixture) const;
};

// In a few words: "allreduce: kernel TRTLLM of trtllm on GPUs of compute capability 9 to 10.3".
std::string describe(const KernelRule& rule);

struct Engine {
  std::string name;  // its name in the config
  std::string source;
  std::string kernels;                      // the engine whose measured kernels are its own; empty: none
  std::vector<KernelRule> implementations;  // exceptions to that library's first kernels
  bool graphs = false;                      // passes are captured; rows are padded up to the next captured number
  double largest_graph = 512.0;             // rows of the largest captured pass
  bool fused_quantisation = false;          // activations are quantised by the kernel before a product, not by one of its own
  double shared_rows = 0.0;                 // rows of a captured pass up to which shared experts run beside the others; 0: none
  double unequal_contexts = 1.0;            // attention over a live server's contexts, over that of as many equal ones
  double switch_share = 0.0;            // share of a link's rate that all-reduces reach in a switch that adds up; 0: it does not
  double linear_kernels = 4.0;          // small kernels of a layer of linear attention
  double selection_ns_per_key = 0.45;   // an indexer's selection (sparse attention) for each score of a row
  std::optional<double> small_kernels;  // a layer's, between products and attention; none: as the GPU's calibration counted
  double logit_passes = 3.0;            // over the logits: written by the LM head, read by softmax and by the sampler
  HostTime host;
  std::optional<FactorBelief> tuned;        // what runs of this server taught; none: not tuned
  std::map<std::string, double> proposals;  // [method]: a round's proposing and checking, in layers of a pass without a graph
  std::map<std::string, Location> proposal_places;  // [method]: where a file says it
  WeightOnlyKernels weight_only;
  IntegerKernels integer;
  EngineMethods methods;
  MemoryRules memory = MemoryRules::none;
};

const std::vector<config::Parameter>& engine_parameters();
// Files of configs/engines.
std::vector<std::string> engine_names();
// Adds what a round of `proposal` takes beside its passes to the engine's round_us. Reports a method that it has no figure of.
void add_proposal(Engine& engine, const std::string& proposal, const Location& where, Diagnostics& diagnostics);
// `spec` as resolve_preset takes it. Reports what is wrong; the engine is then not to be used.
Engine read_engine(const config::Value& spec, Diagnostics& diagnostics);
Engine read_engine(const PresetChoice& choice, Diagnostics& diagnostics);
// Rows of the captured pass that so many are padded up to; empty where none was captured for as many.
std::optional<double> captured_rows(const Engine& engine, double rows);
// The first row of the engine's table for the operation that holds there; nullptr: its library's first kernel runs.
const KernelRule* rule_for(const Engine& engine, RuledOperation operation, double compute_capability, bool mixture = false);
// Whether verification over a cache of so many bits runs between graphs of pieces there.
bool verifies_in_pieces(const Engine& engine, double compute_capability, double kv_bits);
// Whose all-reduces the engine runs there and by which row of its table; `library`: the kernels in use, for an engine without any
// of its own.
struct AllReduceChoice {
  std::string library;
  KernelRule rule;
};
AllReduceChoice allreduce_choice(const Engine& engine, const std::string& library, double compute_capability, bool mixture);
// The engine of configs/engines that has the name of a library of kernels: of a GPU's kernels, or of those that another engine
// takes. `library`: one of kernel_engines().
const Engine& engine_of_library(const std::string& library);

}  // namespace specsim::cost
