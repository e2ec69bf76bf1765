#include "sim/serving/arrivals/arrivals.h"
#include "sim/serving/arrivals/lengths.h"

namespace specsim::arrivals {

// To add a process of arrivals or a distribution of lengths, add one line here and a function in this folder.
#define SPECSIM_ARRIVALS(X) X(poisson) X(gamma) X(deterministic) X(markov_modulated) X(closed) X(batch) X(sessions) X(trace)
#define SPECSIM_LENGTHS(X) X(fixed) X(uniform) X(lognormal) X(geometric) X(list) X(file)

#define SPECSIM_DECLARE(name) ArrivalsEntry name##_arrivals();
SPECSIM_ARRIVALS(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE
#define SPECSIM_DECLARE(name) LengthsEntry name##_lengths();
SPECSIM_LENGTHS(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE

config::Registry<ArrivalsEntry>& arrival_processes() {
#define SPECSIM_ENTRY(name) name##_arrivals(),
  static config::Registry<ArrivalsEntry> registry("arrival process", {SPECSIM_ARRIVALS(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

config::Registry<LengthsEntry>& length_distributions() {
#define SPECSIM_ENTRY(name) name##_lengths(),
  static config::Registry<LengthsEntry> registry("length distribution", {SPECSIM_LENGTHS(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

}  // namespace specsim::arrivals
