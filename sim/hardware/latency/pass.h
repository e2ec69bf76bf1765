// One forward pass of one model, and where its time goes.
#pragma once

#include <optional>

namespace specsim::cost {

enum class Role { target, draft };

// A pass over a batch of sequences that each bring `tokens` new tokens onto `context` cached ones. Means over the batch where
// its sequences differ; rows of a pass are whole, rounded up where a model counts them.
struct Pass {
  double batch = 1.0;
  double tokens = 1.0;   // per sequence: 1 in plain decoding, draft_length + 1 in verification, the prompt in prefill
  double context = 0.0;  // per sequence, cached before the pass
  double logits = 1.0;   // rows per sequence that go through the LM head: all in verification, 1 in prefill
  // In a server with clients, as engines are described: contexts differ, so that attention waits for the longest, and tokens
  // leave as text. Only steps that somebody timed without one are priced without.
  bool live = true;
};

// The other engines of a group that computes attention apart and shares its experts: each step is of all of them at once.
struct OtherEngines {
  std::optional<double> rows;  // rows of the other engines in this step, together; none: each has as many as this engine
  double widest = 0.0;         // rows of the engine that has the most, to which captured passes are padded
};

// Sequences of one kind in a pass over two: chunks of prompts, and sequences that decode. A pass over both computes all rows'
// matrix products at once, but each row looks at the tokens of its own sequence, so that the price is not that of a mean row.
struct Segment {
  double sequences = 0.0;
  double rows = 0.0;    // new tokens of all of them
  double cached = 0.0;  // tokens of all of them before the pass
  // Pairs of a new token and one that it looks at, itself too: the sum over sequences of rows x (cached + (rows + 1) / 2).
  double pairs = 0.0;
};

// Seconds. The parts add up to the pass.
struct PassTime {
  double weights = 0.0;        // reading weights, and what the matrix products take beyond it while they hide behind it
  double compute = 0.0;        // what arithmetic adds to reading: 0 where the pass is memory-bound
  double kv = 0.0;             // attention over the cache
  double communication = 0.0;  // between the GPUs of one model
  double launch = 0.0;         // kernels, elementwise work
  double host = 0.0;           // the processor beside the GPU
  double sampling = 0.0;       // logits to tokens
  // Of the host's work, what runs while the GPU does: no part of the pass. A processor that waits for the GPU adds it.
  double behind = 0.0;
  double experts = 0.0;  // what experts take of weights and compute
  // Energy of one GPU beyond what it draws idle all the time; 0: its power is not known (energy.h).
  double work_joules = 0.0;

  [[nodiscard]] double total() const { return weights + compute + kv + communication + launch + host + sampling; }
  PassTime& operator+=(const PassTime& other) { return add(1.0, other); }
  PassTime& add(double times, const PassTime& other) {
    weights += times * other.weights;
    compute += times * other.compute;
    kv += times * other.kv;
    communication += times * other.communication;
    launch += times * other.launch;
    host += times * other.host;
    sampling += times * other.sampling;
    behind += times * other.behind;
    experts += times * other.experts;
    work_joules += times * other.work_joules;
    return *this;
  }
};

// The batch that is decoded, in the middle of its work.
struct Workload {
  double batch = 1.0;    // sequences in lockstep
  double context = 0.0;  // tokens cached by each
};

}  // namespace specsim::cost
