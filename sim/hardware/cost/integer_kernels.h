// Kernels that multiply quantised weights with activations quantised to int8, as llama.cpp's do on consumers' GPUs, and its
// attention: one kernel for few rows, another in tiles beyond them. An engine's file says which rows take which.
#pragma once

#include "sim/hardware/cost/deployment.h"
#include "sim/hardware/cost/engine.h"
#include "sim/hardware/cost/hardware.h"
#include "sim/hardware/cost/model_shape.h"

namespace specsim::cost {

// Standard deviations of the logarithm of their prices, stated. Of llama.cpp's passes over Llama-2-7B at 32,768 cached tokens on
// an RTX 3090, to which no figure was fitted, the worst of eight is 10 % off; experts' kernels changed with llama.cpp's versions.
constexpr double kIntegerSpread = 0.15;
constexpr double kIntegerExpertsSpread = 0.25;

// Whether the engine has such kernels and is priced with them: their shares were measured on the chips of consumers' cards alone,
// chips before Ampere are taken to reach the same of their int8; kernels that were asked for by another's name, or none, stay
// those.
bool runs_integer_kernels(const Deployment& deployment);
// Whether a product over so many rows takes one of them. Without int8 in tensor cores weights become fp16 from 64 rows on.
bool runs_integer_product(const Hardware& hardware, double rows);

// Whether small kernels of the model's layers are priced by the engine's own figures where its deployment runs such kernels: some
// of the layers' weights have fewer than 16 bits.
bool has_own_layers(const Engine& engine, const ModelShape& model);

// Seconds of a product whose weights are read as if they had `weight_bytes` bytes: what a kernel loses of the data sheet's
// bandwidth is in them. `super_blocks`: of K-quants, which take more arithmetic for few rows. Few rows: arithmetic of plain
// cores, which grows with every row, partly hides behind reading. In tiles: a block reads a tile of weights, then multiplies, so
// that the two add up.
double integer_product_seconds(const Engine& engine, const Hardware& hardware, double rows, double inner, double outer,
                               double weight_bytes, bool super_blocks);

// Seconds of a layer's experts over `tokens` tokens of the whole pass, which meet `met` experts. Few tokens: each reads the
// experts that it chose by itself, others' too. In tiles: those of an expert are as wide as the pass has tokens (a kernel is
// chosen before anyone knows which expert gets how many), so that the arithmetic is of rows that are mostly empty.
double integer_experts_seconds(const Engine& engine, const Hardware& hardware, const ModelShape& model, double tokens, double met,
                               double weight_bytes);

// Seconds of a layer's attention of `sequences` that each bring `tokens` tokens, which look at `keys` keys in the mean, over
// `bytes` of cache. Blocks share the keys; queries of heads that share them lie side by side in tiles of 8, 16, 32 or 64.
double tiled_attention_seconds(const Engine& engine, const Hardware& hardware, const ModelShape& model, const AttentionKind& kind,
                               double sequences, double tokens, double keys, double bytes);

}  // namespace specsim::cost
