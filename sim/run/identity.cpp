#include "sim/run/identity.h"

#include "sim/rng/address.h"

#include <fmt/format.h>

namespace specsim::run {

std::string identity(const std::vector<spec::Experiment>& experiments) {
  std::uint64_t hash = rng::hash_text("specsim 1");
  for (const spec::Experiment& experiment : experiments)
    hash = rng::hash_text(config::to_canonical_text(experiment.config), hash);
  return fmt::format("{:016x}", hash);
}

}  // namespace specsim::run
