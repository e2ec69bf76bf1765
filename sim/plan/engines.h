// What serving engines demand of a target and its draft, and the commands that start them with a plan's draft length.
#pragma once

#include "sim/cost/deployment.h"

#include <string>
#include <vector>

namespace specsim::plan {

struct EngineCommand {
  std::string engine;              // as it calls itself, with the version whose rules are meant
  std::string command;             // "": it would refuse to start, and `notes` say why
  std::vector<std::string> notes;  // why it refuses, or what of the plan does not hold for it
};

// A command for each engine, with placeholders in <> for paths. `batch`: sequences that it must hold at once.
std::vector<EngineCommand> engine_commands(const cost::Deployment& deployment, int draft_length, double batch);

// Why a pair can be served by no engine, or by some only, for people who look at the table alone: vocabularies and widths that
// differ. A line each.
std::vector<std::string> pair_warnings(const cost::Deployment& deployment);

}  // namespace specsim::plan
