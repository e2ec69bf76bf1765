// A file that an option names and that a command writes beside the files of --out: a trace, a report of tests. What would lose
// somebody's work, or cannot be written, is told before anything is simulated.
#pragma once

#include "sim/foundation/base/files_read.h"

#include <string>
#include <string_view>
#include <vector>

namespace specsim::cli {

// How a timeline of sim/hardware/engine begins, and a report of tests of sim/foundation/report.
inline constexpr std::string_view kTimelineStart = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
inline constexpr std::string_view kJunitStart = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"specsim check\" ";

struct SingleFile {
  std::string option;      // that names it, "--trace"
  std::string path;        // "": not given
  std::string_view start;  // how a file begins that this option wrote: one is replaced without --force
};

// Throws BadInput, at its option, where a file is one that was read, one of the files `names` of the directory `out` ("": none)
// or of what a command keeps there, the file of an earlier option, or a file that exists, holds something else and would be
// replaced without `force`; IoError where its directory is missing or may not be written. What is written through, such as a
// pipe, loses nothing.
void check_single_files(const std::vector<SingleFile>& files, const FilesRead& read, const std::string& out,
                        const std::vector<std::string>& names, bool force);

}  // namespace specsim::cli
