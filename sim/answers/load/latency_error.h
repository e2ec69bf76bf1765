// How wrong the latency model may be about a run.
#pragma once

#include "sim/answers/load/experiment.h"

namespace specsim::load {

// Standard deviation of the logarithm of a decoding step's or round's time at the run's mean batch and context; 0 where the cost
// model states none or the run completed nothing.
double latency_error(const ServeExperiment& experiment, const serve::Summary& summary);
// The same of how the speeds of the experiment's server and of the plain one compare, without what the two have in common.
double comparison_error(const ServeExperiment& experiment, const serve::Summary& speculative, const serve::Summary& plain);

}  // namespace specsim::load
