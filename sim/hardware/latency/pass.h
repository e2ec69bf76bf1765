// One forward pass of one model, and where its time goes.
#pragma once

#include <optional>

namespace specsim::cost {

enum class Role { target, draft };

// A pass over a batch of sequences that each add `tokens` new tokens to `context` cached ones. Means over the batch if its
// sequences differ; a model that counts the rows of a pass rounds them up to whole numbers.
struct Pass {
  double batch = 1.0;
  double tokens = 1.0;   // per sequence: 1 without speculation, draft_length + 1 in verification, the prompt in prefill
  double context = 0.0;  // per sequence, cached before the pass
  double logits = 1.0;   // rows per sequence that go through the LM head: all in verification, 1 in prefill
  // True: the pass runs in a server with clients, as engines are described. Contexts differ, so that attention waits for the
  // longest, and tokens are sent as text. False only for steps that were timed without a server.
  bool live = true;
  bool continued = false;  // a later draft pass of a round, which reads the features of the pass before it
};

// The other engines of a group that computes attention separately and shares its experts: every step runs on all of them at once.
struct OtherEngines {
  std::optional<double> rows;  // rows of the other engines in this step, together; none: each has as many as this engine
  double widest = 0.0;         // rows of the engine that has the most, to which captured passes are padded
};

// Sequences of one kind in a pass over two kinds: chunks of prompts, and sequences that decode. Such a pass computes all rows'
// matrix products at once, but each row attends to its own sequence, so that its time differs from that of mean rows.
struct Segment {
  double sequences = 0.0;
  double rows = 0.0;    // new tokens of all of them
  double cached = 0.0;  // tokens of all of them before the pass
  // Pairs of a new token and one that it attends to, including itself: the sum over sequences of rows x (cached + (rows + 1) /
  // 2).
  double pairs = 0.0;
};

// Seconds. The parts add up to the pass.
struct PassTime {
  double weights = 0.0;        // reading weights, and the matrix products' other time while it is hidden by reading
  double compute = 0.0;        // time that arithmetic adds to reading: 0 if the pass is memory-bound
  double kv = 0.0;             // attention over the cache
  double communication = 0.0;  // between the GPUs of one model
  double launch = 0.0;         // kernels, elementwise work
  double host = 0.0;           // the processor, while the GPU waits
  double sampling = 0.0;       // logits to tokens
  // The host's work that runs at the same time as the GPU; not part of the pass's time. A processor that waits for the GPU adds
  // it.
  double overlapped = 0.0;
  double experts = 0.0;  // time that experts take for weights and arithmetic
  double routing = 0.0;  // its derivative by the logarithm of the independent choices of experts (Factor::routing)
  // Energy of one GPU beyond its idle power over the whole time; 0: its power is not known (energy.h).
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
    overlapped += times * other.overlapped;
    experts += times * other.experts;
    routing += times * other.routing;
    work_joules += times * other.work_joules;
    return *this;
  }
};

// The batch that is decoded, halfway through its work.
struct Workload {
  double batch = 1.0;    // sequences in lockstep
  double context = 0.0;  // tokens cached by each
};

}  // namespace specsim::cost
