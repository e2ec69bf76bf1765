#include "sim/hardware/latency/host_time.h"

#include <algorithm>

namespace specsim::cost {

namespace {
constexpr double kMicro = 1e-6;  // seconds
}  // namespace

const std::vector<HostFigure>& host_figures() {
  static const std::vector<HostFigure> figures = {
      {"host_us", &HostTime::host_us, "host time of a target pass, with the GPU idle"},
      {"host_us_per_sequence", &HostTime::host_us_per_sequence, "host time of a target pass for each of its sequences"},
      {"host_us_per_row", &HostTime::host_us_per_row, "host time of a target pass for each of its rows"},
      {"client_us_per_sequence", &HostTime::client_us_per_sequence,
       "more host time for each sequence in a server with clients, where text is sent out"},
      {"verified_us_per_row", &HostTime::verified_us_per_row, "more host time of a target pass for each row of a verification"},
      {"overlapped_host_us", &HostTime::overlapped_host_us,
       "host time of a target pass while the GPU works: the pass's least time"},
      {"overlapped_host_us_per_sequence", &HostTime::overlapped_host_us_per_sequence,
       "host time of a target pass for each of its sequences while the GPU works"},
      {"step_us", &HostTime::step_us, "kernels around the layers of a target pass"},
      {"host_us_per_layer", &HostTime::host_us_per_layer, "minimum time of a pass without a graph, per layer"},
      {"piecewise_us_per_layer", &HostTime::piecewise_us_per_layer, "minimum time of a pass in graphs of pieces, per layer"},
      {"piecewise_us_per_linear_layer", &HostTime::piecewise_us_per_linear_layer,
       "minimum time of a layer of linear attention in such a pass"},
      {"piecewise_gap_us", &HostTime::piecewise_gap_us,
       "extra time of a layer of such a pass, if launches keep ahead of the GPU"},
      {"plan_us", &HostTime::plan_us,
       "host time of a draft pass or verification over a cache of fewer than 16 bits, planned on the host"},
      {"draft_floor_us", &HostTime::draft_floor_us, "minimum time of a draft pass"},
      {"draft_us", &HostTime::draft_us, "host time of a draft pass, with the GPU idle"},
      {"round_us", &HostTime::round_us, "host time of a speculative round beyond its passes"},
      {"request_us", &HostTime::request_us, "host time of a request before it is queued"}};
  return figures;
}

HostSeconds target_host_seconds(const HostTime& host, const HostWork& work, double gpu) {
  const double each = host.host_us_per_sequence + (work.clients ? host.client_us_per_sequence : 0.0);
  HostSeconds time;
  time.idle = kMicro * (host.host_us + each * work.sequences + host.host_us_per_row * work.rows +
                        host.verified_us_per_row * work.verified_rows);
  const double overlapped = kMicro * (host.overlapped_host_us + host.overlapped_host_us_per_sequence * work.sequences);
  time.overlapped = std::min(overlapped, gpu + time.idle);
  time.idle += overlapped - time.overlapped;
  return time;
}

double launch_wait_seconds(const HostTime& host, double eager_layers, bool draft, double whole) {
  const double eager_us = host.host_us_per_layer * eager_layers;
  return std::max(0.0, kMicro * std::max(draft ? host.draft_floor_us : 0.0, eager_us) - whole);
}

double pieces_wait_seconds(const HostTime& host, double layers, double linear_layers, double whole) {
  const double launches =
      kMicro * (host.piecewise_us_per_layer * (layers - linear_layers) + host.piecewise_us_per_linear_layer * linear_layers);
  return std::max(kMicro * host.piecewise_gap_us * layers, launches - whole);
}

}  // namespace specsim::cost
