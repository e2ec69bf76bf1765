// Options of plan and serve that state the acceptance.
#pragma once

#include "sim/answers/plan/acceptance_curve.h"
#include "sim/doors/cli/options.h"
#include "sim/hardware/latency/deployment.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::cli {

struct AcceptanceOptions {
  std::optional<double> alpha;
  std::optional<std::vector<double>> position_rates;
  std::optional<std::vector<double>> conditional_rates;
  std::optional<double> mean_acceptance_length;
  std::optional<double> acceptance_rate;
  std::string table;             // --acceptance
  std::optional<int> at_length;  // --at-draft-length
  std::string log;
  std::string server;
  std::string trace;  // a trace of acceptance; some commands do not have it
};

// The names of the options that state the acceptance, of which one is given.
const std::vector<std::string>& acceptance_options();
// The first of them that was given; "" if none was. `trace`: whether --trace is one of them.
std::string stated_by(const CommandLine& line, bool trace = true);
// Adds the options: alpha, position-rates, conditional-rates, mean-acceptance-length, acceptance-rate, acceptance,
// at-draft-length, log, server.
void add_acceptance_options(CommandLine& line, AcceptanceOptions& options);

// The acceptance that options state, for draft lengths up to `longest`; nullopt if none does. `trace`: whether --trace is one of
// them.
std::optional<plan::AcceptanceCurve> stated_acceptance(const CommandLine& line, const AcceptanceOptions& options, int longest,
                                                       bool trace = true);

// Warns of a pair that engines refuse, and of a head or an acceptance table (`table`, an option's text; "": none) of other
// models.
void warn_of_pair(const cost::Deployment* deployment, const std::string& table);

}  // namespace specsim::cli
