// Estimated times of single kernels: formulas of a few figures with a physical meaning, and a correction fitted to measured
// kernels.
#pragma once

#include "sim/foundation/base/error.h"
#include "sim/foundation/config/arguments.h"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::cost {

struct Hardware;

enum class KernelKind { product, attention_decode, attention_latent, attention_prefill, attention_verify, experts, allreduce };

// The kind's name in configs/kernels.
const char* kernel_kind_name(KernelKind kind);

// Bytes of a weight (or of a cached key), of an activation, and the GPU's peak that the arithmetic uses.
enum class Arithmetic { bf16, fp8, int8, fp4 };
struct Dtype {
  std::string_view name;
  double weight_bytes;
  double activation_bytes;
  Arithmetic arithmetic;
  bool operator==(const Dtype&) const = default;
};
// nullptr for an unknown name.
const Dtype* find_dtype(const std::string& name);
std::vector<std::string> dtype_names();

// How attention over several tokens reads the cached keys. unused: no pass uses it. prompt: a prompt's kernel whose blocks take a
// multiprocessor each; no pass is estimated by it either. walked: each block reads all keys. shared: blocks share the keys.
// grown: a decode kernel timed by others, with launches or with another engine's plan, of which only the growth over a single
// token is used.
enum class KeyReading { unused, prompt, walked, shared, grown };
// Their names in configs/kernels, in this order.
const std::vector<std::string>& key_reading_names();

// The work of one kernel; each kind of kernel reads its own figures.
struct KernelShape {
  double rows = 1.0;     // product: new tokens
  double inner = 1.0;    // product: summed over
  double outer = 1.0;    // product: columns of the result
  double batch = 1.0;    // attention: sequences
  double tokens = 1.0;   // attention: query tokens of each sequence; experts: all tokens
  double context = 0.0;  // attention: keys cached before
  double heads = 1.0;
  double kv_heads = 1.0;
  double head_dim = 128.0;
  double latent = 512.0;  // attention over one cached vector for all heads: its width, and that of the rotated part next to it
  double rope_dim = 64.0;
  double hidden = 1.0;        // experts
  double expert_width = 1.0;  // experts: width of one expert on one GPU
  double matrices = 3.0;      // experts: of one expert; 2 without a gate
  double experts = 1.0;
  double experts_per_token = 1.0;
  double alike = 1.0;  // experts: each token after the first chooses like this many independent ones
  double skew = 0.0;   // experts: exponent of the power law of routing; 0: balanced
  double gpus = 2.0;   // all-reduce
  double bytes = 1.0;  // all-reduce
};

// One fit: the logarithm of a formula's time, corrected by weights that are piecewise linear in the logarithms of the shape.
struct KernelFit {
  static constexpr std::size_t kMostFigures = 7;

  KernelKind kind = KernelKind::product;
  std::string engine;
  Dtype dtype{};
  std::string kernel;
  KeyReading reads_keys = KeyReading::unused;  // attention_verify alone
  double rows = 0.0;                           // number of measured rows that it was fitted to
  double spread = 0.0;                         // standard deviation of the logarithm, on shapes that the fit had not seen
  double median_error = 0.0;                   // median of the absolute error on those shapes, percent
  double high_error = 0.0;                     // 90th percentile
  std::array<double, kMostFigures> figures{};  // in the order of KernelFormula::figures
  std::vector<double> over;                    // knots of the first coordinate, log2
  std::vector<std::vector<double>> by;         // knots of the other coordinates; empty: not used; one: the same in every row
  std::vector<double> correction;              // over.size() rows of 1 + all knots of `by`
  std::shared_ptr<const KernelFit> small;      // a product's fit for sizes below those of this one; may be none
  std::string borrowed_from;                   // the GPU whose fit serves in place of a missing measurement; may be empty

  [[nodiscard]] double microseconds(const Hardware& hardware, const KernelShape& shape) const;
  // The part of those microseconds that a product of the shape takes at least: launches, and kernels that quantise activations.
  [[nodiscard]] double floor_us(const Hardware& hardware, const KernelShape& shape) const;
  // Time of a prompt's chunk of few tokens over many cached keys, if the kernel gives a block of 256 queries a multiprocessor
  // alone (trtllm-gen's on data-centre Blackwell): as long as the waves of blocks need to read all keys. The time per key is the
  // extra time of a longer prompt of one head, whose last block reads all of it.
  [[nodiscard]] double walk_us(const Hardware& hardware, const KernelShape& shape) const;
  // Whether experts of a single layer were measured; estimates for other layers are then a guess.
  [[nodiscard]] bool of_one_layer() const;
  // Whether the shape lies within the measured range; beyond it the correction of the nearest measured shape is used.
  [[nodiscard]] bool covers(const Hardware& hardware, const KernelShape& shape) const;
  // The largest measured value of the first coordinate: a product's rows, bytes of a cache or an all-reduce, tokens.
  [[nodiscard]] double most() const;
  // The same for a coordinate of `by` that is a logarithm; infinity if the correction does not use it.
  [[nodiscard]] double most_of_others(std::size_t which) const;
};

// The formula of a kind. It exists only here: scripts/kernels/fit_kernels.py, which fits its figures, calls the program
// (sim/doors/cli/kernel_formulas.cpp).
struct KernelFormula {
  static constexpr std::size_t kMostCoordinates = 7;
  using Coordinates = std::array<double, kMostCoordinates>;

  KernelKind kind;
  const char* name;                        // in configs/kernels
  std::vector<config::Parameter> figures;  // in the order of KernelFit::figures
  // How many coordinates a correction has after the first: at least (fits made before the last ones were added are still read),
  // and at most.
  std::size_t least_others;
  std::size_t most_others;
  // Microseconds of the shape by the fit's figures, without its correction.
  double (*microseconds)(const KernelFit& fit, const Hardware& hardware, const KernelShape& shape);
  // The shape's place in the correction: the first coordinate is along KernelFit::over, the others along KernelFit::by. Most are
  // logarithms to base 2; coordinates that a kind does not have are 0.
  Coordinates (*coordinates)(const KernelFit& fit, const Hardware& hardware, const KernelShape& shape);
};

// In the order of KernelKind.
const std::vector<KernelFormula>& kernel_formulas();
const KernelFormula& kernel_formula(KernelKind kind);
const KernelFormula& kernel_formula(const std::string& name);  // one of kernel_kind_names()
std::vector<std::string> kernel_kind_names();

// The fits of one GPU.
struct KernelFits {
  std::vector<KernelFit> list;

  // The first of the engine, dtype and kernel ("": any); nullptr for none.
  [[nodiscard]] const KernelFit* find(KernelKind kind, const std::string& engine, const std::string& dtype,
                                      const std::string& kernel = "") const;
  // The same, or of another engine, vllm before others; nullptr if nothing of the dtype was measured.
  [[nodiscard]] const KernelFit* nearest(KernelKind kind, const std::string& engine, const std::string& dtype,
                                         const std::string& kernel = "") const;
};

// `name`: one of configs/kernels, read once, or the path of a .yaml file, relative to the folder of the file that `where` is in
// or else to the current one. Returns nullptr after reporting an error.
std::shared_ptr<const KernelFits> read_kernel_fits(const std::string& name, const Location& where, Diagnostics& diagnostics);
// The fits of a built-in file of configs/kernels, which must exist.
const KernelFits& built_in_kernel_fits(const std::string& name);

// Converts `fits` of the GPU `measured` to `board`, a GPU with another memory or another number of multiprocessors. The time per
// byte beyond the data sheet's bandwidth is due to the multiprocessors, not to the memory: each keeps a fixed number of bytes in
// flight. It stays the same per multiprocessor, so that a board with a slower memory reaches a larger share of it.
// `attention_share`: measured bandwidth of decode attention on the board, over that on `measured`; none: computed by the same
// rule.
std::shared_ptr<const KernelFits> on_board(const KernelFits& fits, const Hardware& measured, const Hardware& board,
                                           std::optional<double> attention_share);

// `fits`, plus the fits of `other` (another GPU) for kinds, engines and dtypes that `fits` lacks, marked as borrowed from `name`.
std::shared_ptr<const KernelFits> with_missing(const KernelFits& fits, const KernelFits& other, const std::string& name);

// `fits` with the all-reduces of `other`, the fits called `name`, in place of its own.
std::shared_ptr<const KernelFits> with_allreduces(const KernelFits& fits, const KernelFits& other, const std::string& name);

}  // namespace specsim::cost
