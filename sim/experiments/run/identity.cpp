#include "sim/experiments/run/identity.h"

#include "sim/foundation/rng/address.h"
#include "specsim_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace specsim::run {

std::string identity(const std::vector<spec::Experiment>& experiments) {
  std::uint64_t hash = rng::hash_text("specsim 1");
  for (const spec::Experiment& experiment : experiments) hash = rng::hash_text(experiment.config.canonical, hash);
  return fmt::format("{:016x}", hash);
}

Origin new_origin(std::string run, std::vector<FileSum> inputs) {
  return {std::move(run), fmt::format("{} ({})", build_info::version, build_info::commit), std::move(inputs)};
}

std::vector<FileSum> inputs_of(const std::vector<spec::Experiment>& experiments, const std::vector<FileSum>& read) {
  std::vector<FileSum> inputs;
  for (const FileSum& one : read)
    if (std::none_of(experiments.begin(), experiments.end(),
                     [&](const spec::Experiment& experiment) { return experiment.file == one.name; }))
      inputs.push_back(one);
  return inputs;
}

std::string changed_inputs(const std::vector<FileSum>& before, const std::vector<FileSum>& now) {
  if (before == now) return "";
  const auto without = [](const std::vector<FileSum>& list, const FileSum& one) {
    return std::find(list.begin(), list.end(), one) == list.end();
  };
  for (const FileSum& one : before)
    if (without(now, one)) return fmt::format("{} has changed: its checksum was {}", one.name, one.sum);
  for (const FileSum& one : now)
    if (without(before, one)) return fmt::format("{} has changed: its checksum is {} now", one.name, one.sum);
  return "its input files are in another order";
}

}  // namespace specsim::run
