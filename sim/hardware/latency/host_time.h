// Time of the host (the processor that launches kernels, prepares steps and turns tokens into text) around the GPU's work. One
// engine on one host; all figures in microseconds.
#pragma once

#include <vector>

namespace specsim::cost {

struct HostTime {
  // Of a target pass, with the GPU idle.
  double host_us = 0.0;
  double host_us_per_sequence = 0.0;    // metadata in, tokens out
  double host_us_per_row = 0.0;         // logits to tokens, rejection
  double client_us_per_sequence = 0.0;  // more per sequence in a server with clients: tokens become text and are sent
  double verified_us_per_row = 0.0;     // more per row of a verification
  // Of a target pass, while the GPU works: the pass takes at least this.
  double overlapped_host_us = 0.0;
  double overlapped_host_us_per_sequence = 0.0;
  double step_us = 0.0;  // kernels around the layers of a target pass: inputs, embedding, last norm, sampler
  // Launches run ahead of the GPU, so that the host's time is a lower bound of the pass's time and not added to it.
  double host_us_per_layer = 0.0;              // of a pass that no graph was captured for, per layer
  double piecewise_us_per_layer = 0.0;         // of a pass in graphs of pieces
  double piecewise_us_per_linear_layer = 0.0;  // and of its layers of linear attention
  double piecewise_gap_us = 0.0;               // extra time of a layer of such a pass if the GPU is slower than the host
  // Of a draft pass or a verification over a cache of fewer than 16 bits, with the GPU idle: FlashInfer plans attention on the
  // host.
  double plan_us = 0.0;
  double draft_floor_us = 0.0;  // minimum time of a draft pass
  double draft_us = 0.0;        // of a draft pass, with the GPU idle while its inputs are prepared
  double round_us = 0.0;        // of a speculative round beyond its passes
  double request_us = 0.0;      // of a request before it is queued
};

// The figures by the names that a config gives them.
struct HostFigure {
  const char* key;
  double HostTime::*figure;
  const char* summary;
};
const std::vector<HostFigure>& host_figures();

// The host's work in one pass of the target.
struct HostWork {
  double sequences = 0.0;
  double rows = 0.0;           // whole
  double verified_rows = 0.0;  // of sequences that verify drafts
  bool clients = false;        // tokens are sent as text to clients
};

// Seconds of the host in one pass: `idle` while the GPU waits, `overlapped` hidden by the GPU's `gpu` seconds.
struct HostSeconds {
  double idle = 0.0;
  double overlapped = 0.0;
};
HostSeconds target_host_seconds(const HostTime& host, const HostWork& work, double gpu);

// Seconds that a pass takes longer than `whole` ones because its kernels are launched one by one, or because its draft is
// prepared again. `eager_layers`: layers without a captured graph; 0 if the whole pass is one graph.
double launch_wait_seconds(const HostTime& host, double eager_layers, bool draft, double whole);

// Seconds that a verification in graphs of pieces takes longer than the `whole` ones as one graph: gaps between the pieces, or
// the time to launch them if this is more. `linear_layers` of the `layers` are linear attention.
double pieces_wait_seconds(const HostTime& host, double layers, double linear_layers, double whole);

}  // namespace specsim::cost
