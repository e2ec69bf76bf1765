// What an inference engine adds to the GPU's own work: host time, launches, padding. One file of configs/engines each.
#pragma once

#include "sim/foundation/config/arguments.h"
#include "sim/hardware/cost/presets.h"

#include <array>
#include <map>
#include <string>
#include <vector>

namespace specsim::cost {

// Kernels of its own that multiply quantised weights with activations in int8: one for few rows, and one in tiles. Shares are of
// the data sheet's bandwidth and dense int8 arithmetic, those of attention of its bf16 arithmetic. With layers of such products
// come small kernels of its own, whose times are the engine's too. sim/hardware/cost/integer_kernels.h.
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

// By whose rules memory is set aside that no weights and caches get (sim/hardware/cost/server_memory.h).
enum class MemoryRules { none, vllm, sglang, trtllm };

// Microseconds where a name ends in _us. What a figure of 0 stands for is said with it.
struct Engine {
  std::string name;  // its name in the config
  std::string source;
  std::string kernels;    // the name of the fits of measured kernels that are its own; empty: none
  std::string allreduce;  // the name of the fits of its all-reduces, where it is another than `kernels`
  // The measured kernel of its own all-reduces, as configs/kernels names it: of captured passes, and of others. Empty: any.
  std::string allreduce_kernel;
  std::string launched_allreduce_kernel;
  std::string attention_kernel;  // the measured kernel of its attention over one token, on GPUs that have it. Empty: the first
  std::vector<double> allreduce_capabilities;  // lowest and highest compute capability that runs `allreduce`; empty: all do
  // Lowest and highest compute capability, pair by pair, of GPUs on which attention of several tokens walks all keys in one block
  // for each head and block of queries; on others blocks share the keys.
  std::vector<double> serial_attention_capabilities;
  // The same of GPUs on which verification over a cache of fewer than 16 bits runs in graphs of pieces: attention, and linear
  // attention, are launched between them.
  std::vector<double> piecewise_capabilities;
  bool allreduce_of_mixtures = false;   // `allreduce` is of models with experts alone
  double shared_rows = 0.0;             // rows of a captured pass up to which shared experts run beside the others; 0: none
  double most_pcie_gpus = 0.0;          // GPUs without NVLink that its own all-reduce takes; NCCL's beyond; 0: any number
  bool graphs = false;                  // passes are captured; rows are padded up to the next captured number
  bool fused_quantisation = false;      // activations are quantised by the kernel before a product, not by one of its own
  bool fused_norms = false;             // norms after an all-reduce are computed in it
  double largest_graph = 0.0;           // rows of the largest captured pass
  double host_us = 0.0;                 // host time of a target pass, with the GPU idle
  double host_us_per_sequence = 0.0;    // what each sequence of the pass adds to it: metadata in, tokens out
  double client_us_per_sequence = 0.0;  // more of it in a server with clients: tokens become text and leave
  double beside_us = 0.0;               // host time of a target pass while the GPU works: the pass takes at least this
  double beside_us_per_sequence = 0.0;
  double step_us = 0.0;            // kernels around the layers of a target pass: inputs, embedding, last norm, sampler
  double host_us_per_layer = 0.0;  // a pass that no graph was captured for takes at least this times its layers: launches run
                                   // ahead of the GPU, so that the host's time is a floor, not a term
  double piecewise_us_per_layer = 0.0;         // the same floor of a pass in pieces
  double piecewise_us_per_linear_layer = 0.0;  // and of its layers of linear attention
  double piecewise_gap_us = 0.0;               // what a layer of such a pass takes longer where its GPU is the slower of the two
  double host_us_per_row = 0.0;   // host time that a row adds to a target pass, with the GPU idle: logits to tokens, rejection
  double draft_floor_us = 0.0;    // a draft pass takes at least this
  double draft_us = 0.0;          // host time of a draft pass, with the GPU idle: its inputs are prepared anew
  double round_us = 0.0;          // host time of a speculative round beyond its passes
  double unequal_contexts = 1.0;  // attention over a live server's contexts, over that of as many equal ones
  double switch_share = 0.0;      // share of a link's rate that all-reduces reach in a switch that adds up; 0: it does not
  std::string latent_attention;   // whose kernels of latent attention it runs, where those are not of `kernels`
  std::vector<double> latent_capabilities;  // lowest and highest of GPUs where it does; empty: all
  double linear_kernels = 4.0;              // those of a layer of linear attention beside its products
  double selection_ns_per_key = 0.45;       // an indexer's selection (sparse attention) for each score of a row
  double small_kernels = 0.0;  // a layer's, between products and attention; 0: the GPU's calibration says what they take
  std::map<std::string, Location> proposal_places;  // [method]: where a file says it
  std::map<std::string, double> proposals;  // [method]: a round's proposing and checking, in layers of a pass without a graph
  // The share of a plain kernel's bandwidth at which kernels for weights alone read 4 bits and 8, where no fit of them serves.
  std::array<double, 2> weight_only_shares = {0.75, 0.85};
  // What such kernels take longer for each doubling of the rows up to 64, relative.
  std::array<double, 2> weight_only_growth = {0.06, 0.03};
  IntegerKernels integer;
  EngineMethods methods;
  MemoryRules memory = MemoryRules::none;
  double logit_passes = 3.0;  // over the logits: written by the LM head, read by softmax and by the sampler
};

// The figures that a cost model may replace by their names in the config.
struct EngineFigure {
  const char* key;
  double Engine::*figure;
  const char* summary;
};
const std::vector<EngineFigure>& engine_figures();

const std::vector<config::Parameter>& engine_parameters();
// Files of configs/engines.
std::vector<std::string> engine_names();
// Adds what a round of `proposal` takes beside its passes to the engine's round_us. Reports a method that it has no figure of.
void add_proposal(Engine& engine, const std::string& proposal, const Location& where, Diagnostics& diagnostics);
// `spec` as resolve_preset takes it. Reports what is wrong; the engine is then not to be used.
Engine read_engine(const config::Value& spec, Diagnostics& diagnostics);
Engine read_engine(const PresetChoice& choice, Diagnostics& diagnostics);
// Rows of the captured pass that so many are padded up to; 0: none was captured for as many.
double captured_rows(const Engine& engine, double rows);
// Whether its attention of several tokens walks all keys there; not where the capability is not known (0).
bool walks_keys(const Engine& engine, double compute_capability);
// Whether verification over a cache of so many bits runs in pieces there; not where the capability is not known (0).
bool verifies_in_pieces(const Engine& engine, double compute_capability, double kv_bits);
// Whose kernels of latent attention it runs there.
std::string latent_library(const Engine& engine, double compute_capability);
// The engine as it runs on GPUs of that compute capability: with its own all-reduces, and norms behind them, where they do not
// run `allreduce`, or not for such a model. Of a capability that is not known (0) it stays as it is.
Engine engine_on(Engine engine, double compute_capability, bool mixture);
// The engine of configs/engines that has the name of a library of kernels: of a GPU's kernels, or of those that another engine
// takes. `library`: one of kernel_engines().
const Engine& engine_of_library(const std::string& library);

}  // namespace specsim::cost
