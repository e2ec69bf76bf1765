// What plan and serve share: options that state the acceptance.
#pragma once

#include "sim/answers/plan/acceptance_curve.h"
#include "sim/doors/cli/options.h"

#include <boost/program_options.hpp>

#include <optional>
#include <string>
#include <vector>

namespace specsim::cli {

// Options of which one states the acceptance, and those that go with them.
const std::vector<std::string>& acceptance_options();
// Adds them: alpha, position-rates, conditional-rates, mean-acceptance-length, acceptance-rate, acceptance, at-draft-length, log,
// server.
void add_acceptance_options(boost::program_options::options_description& description);

// What a command's --trace is.
enum class Trace { of_acceptance, of_requests };

// The acceptance that options state, for draft lengths up to `longest`; nothing where none of them does.
std::optional<plan::AcceptanceCurve> stated_acceptance(const Options& options, int longest, Trace trace = Trace::of_acceptance);

}  // namespace specsim::cli
