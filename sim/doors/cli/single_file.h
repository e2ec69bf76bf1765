// A file that an option names and that a command writes in addition to the files of --out: a trace, a test report. Files that
// would be lost, or cannot be written, are reported before the simulation starts.
#pragma once

#include "sim/foundation/base/files_read.h"

#include <string>
#include <string_view>
#include <vector>

namespace specsim::cli {

// The first bytes of a timeline of sim/hardware/engine, and of a test report of sim/foundation/report.
inline constexpr std::string_view kTimelineStart = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
inline constexpr std::string_view kJunitStart = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"specsim check\" ";

struct SingleFile {
  std::string option;      // the option that names it, "--trace"
  std::string path;        // "": not given
  std::string_view start;  // first bytes of a file that this option wrote; such a file is replaced without --force
};

// Throws BadInput, at its option, for a file that was read; for one of the files `names` of the directory `out` ("": none) or
// other files that a command keeps there; for the file of an earlier option; for a symbolic link; and for an existing file with
// other contents unless `force`. Throws IoError if its directory is missing or not writable. Pipes and similar are always
// allowed, since nothing is lost.
void check_single_files(const std::vector<SingleFile>& files, const FilesRead& read, const std::string& out,
                        const std::vector<std::string>& names, bool force);

}  // namespace specsim::cli
