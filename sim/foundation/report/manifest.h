// manifest.yaml: what made the files in its folder, and how to recognise these files.
#pragma once

#include "sim/foundation/base/checksum.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::report {

struct Manifest {
  std::string command;
  std::string version;
  std::string commit;
  std::vector<std::string> files;    // paths of the experiments
  std::vector<std::string> configs;  // their configs as flow text, with --set applied
  std::vector<FileSum> inputs;       // files that the configs name and that were read: traces, tables, models
  std::uint64_t shard = 1;           // 1 .. shards
  std::uint64_t shards = 1;
  unsigned threads = 1;
  double wall_seconds = 0.0;
  std::size_t cells = 0;
  std::string verdict;           // the verdict of check; "" for other commands
  std::string identity;          // the run's identity, equal for runs that can be resumed or merged; "" if that is impossible
  std::vector<FileSum> results;  // files in the manifest's folder that may be read back
};

// A manifest with this program's version and commit, and the command line.
Manifest new_manifest(const std::string& command);

// YAML; the last line is a checksum of those before it.
std::string manifest_text(const Manifest& manifest);
// Throws BadInput for a file that is not a manifest or was changed after it was written; IoError.
Manifest read_manifest(const std::string& path);

}  // namespace specsim::report
