// What import and plan share: server logs as files, or as what another program pipes in.
#pragma once

#include "sim/foundation/base/error.h"
#include "sim/serving/logs/findings.h"
#include "sim/serving/logs/server_log.h"

#include <string>

namespace specsim::cli {

// Reads a log, "-" for standard input. Throws BadInput, at the file, where it cannot be read or holds nothing of speculative
// decoding.
logs::LogContents read_server_log(const std::string& path, const logs::ReaderOptions& options);

// The one description of acceptance that the log gives, or the one that `server` and `draft_length` (""; 0: any) tell from the
// others; `option`: where the log was named. Throws BadInput where there are several, or none of that server.
logs::ReportedAcceptance one_acceptance(const logs::LogContents& contents, const std::string& server, int draft_length,
                                        const Location& option);

// The name of a server, as --server gives it.
std::string read_server(const std::string& text, const std::string& option);

}  // namespace specsim::cli
