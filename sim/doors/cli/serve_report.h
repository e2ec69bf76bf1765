// The output of specsim serve.
#pragma once

#include "sim/answers/load/curve.h"
#include "sim/answers/load/experiment.h"

#include <string>
#include <utility>
#include <vector>

namespace specsim::cli {

using load::Summaries;
void print_summaries(const Summaries& summaries);
// One line for each class of requests and server; prints nothing without classes.
void print_classes(const load::ClassTable& classes);
void print_curve(const std::vector<load::CurvePoint>& curve, load::Load load, const serve::Slo& slo);
// Prints the best draft length by requests in a step, at the experiment's acceptance and this workload, and the flags that start
// a server with these lengths. An engine with one length for all steps gets the length for steps of so many `requests`; so does
// one with a table if its lengths are the same in all steps of up to `most` requests.
void print_best_lengths(const load::ServeExperiment& experiment, const arrivals::RequestTrace& workload, double requests,
                        double most);

// The loads at which TPOT or output throughput with and without speculation differ by less than the standard error of the
// comparison (load::comparison_error). "" if there are none, or if the cost model states no error.
std::string latency_ties(const load::ServeExperiment& experiment, const std::vector<load::CurvePoint>& curve, load::Load load);

}  // namespace specsim::cli
