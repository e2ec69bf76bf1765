// What sparse attention by an indexer takes beside its products and the tokens that it picks (DeepSeek Sparse Attention), and the
// hyper-connections of the models after it.
#pragma once

#include "sim/hardware/cost/engine.h"
#include "sim/hardware/cost/hardware.h"
#include "sim/hardware/cost/model_shape.h"

namespace specsim::cost {

// Seconds of the small kernels of indexers in a pass. 0 without them.
double sparse_kernels_seconds(const Hardware& hardware, const ModelShape& model);

// Seconds in which a layer's hyper-connections mix the residual streams of `rows` tokens, before and behind its two parts. 0 with
// one stream.
double hyper_connections_seconds(const Hardware& hardware, const ModelShape& model, double rows);

// Seconds in which the indexers of all layers score the cached tokens of `sequences` that bring `tokens` new ones each: their
// keys are read once a sequence, a score is written for each pair of a new token and one before it (`pairs` of each new one) and
// read again, and the best are picked row by row. 0 without an indexer.
double index_seconds(const Engine& engine, const Hardware& hardware, const ModelShape& model, double sequences, double cached,
                     double tokens, double pairs);

}  // namespace specsim::cost
