// The electrical power of one GPU, and how a power cap slows it down. The board alone: no processor, fan or power supply.
#pragma once

#include "sim/foundation/config/arguments.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::cost {

// Watts of the board by its work. A figure that a GPU's file does not give is a share of the limit (read_power_draw).
struct PowerDraw {
  double limit_w = 0.0;         // power limit by default, by the data sheet
  double idle_w = 0.0;          // clocks up, no kernel runs
  double memory_w = 0.0;        // reads weights or keys at the full bandwidth and clock
  double compute_w = 0.0;       // arithmetic at full rate and clock; may be above the limit, which then lowers the clock
  double spread = 0.0;          // standard deviation of the logarithm of an estimate
  std::optional<double> cap_w;  // a lower limit that the user sets; none: limit_w
  // The defaults are the RTX 5090's.
  double clock_exponent = 1.66;         // of the cores' power by their clock
  double memory_core_share = 0.73;      // share of memory_w - idle_w that the cores draw
  double memory_clock_exponent = 0.11;  // how reading slows down as the cores' clock falls
  std::string source;
  bool by_limit = false;  // idle_w, memory_w and compute_w are shares of the limit

  [[nodiscard]] double cap() const { return cap_w.value_or(limit_w); }
};

// Seconds of a pass by what the board does in them.
struct BoardTime {
  double memory = 0.0;   // reading, as long as it takes at the full bandwidth
  double compute = 0.0;  // arithmetic
  double small = 0.0;    // what other kernels take, and reading below the full bandwidth: no more than idle
  double idle = 0.0;     // the GPU waits for the host
  [[nodiscard]] double total() const { return memory + compute + small + idle; }
};

// The board under its power limit: seconds, joules, and the clock as a share of the full one.
struct BoardUse {
  BoardTime time;
  double joules = 0.0;
  double clock = 1.0;
};
// `uncapped`: seconds under the default limit, as latency estimates give them. If full clock would draw more than the limit, the
// clock is that at which the mean power is the limit. A lower cap lowers it further and makes the pass longer.
BoardUse board_use(const PowerDraw& power, const BoardTime& uncapped);

// The keys of `power` in a GPU's description.
const std::vector<config::Parameter>& power_parameters();
// `value`: what a GPU's description has under `power`. Reports what is wrong; the result is then not to be used.
PowerDraw read_power_draw(const config::Value& value, Diagnostics& diagnostics);

}  // namespace specsim::cost
