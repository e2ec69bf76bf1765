// Common part of import and plan: server logs as files, or piped from another program.
#pragma once

#include "sim/foundation/base/error.h"
#include "sim/serving/logs/findings.h"
#include "sim/serving/logs/server_log.h"

#include <string>

namespace specsim::cli {

// Reads a log, "-" for standard input. Throws BadInput, at the file, if it cannot be read or contains nothing on speculative
// decoding.
logs::LogContents read_server_log(const std::string& path, const logs::ReaderOptions& options);

// The single description of acceptance in the log, or the one that `server` and `draft_length` (""; 0: any) select. `option`:
// the place where the log was named. Throws BadInput if several match, or none.
logs::ReportedAcceptance one_acceptance(const logs::LogContents& contents, const std::string& server, int draft_length,
                                        const Location& option);

// The name of a server, as --server gives it.
std::string read_server(const std::string& text, const std::string& option);

}  // namespace specsim::cli
