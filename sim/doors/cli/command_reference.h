// The commands with their options as a document for programs: specsim reference --format json.
#pragma once

#include "sim/doors/cli/command_line.h"
#include "sim/doors/cli/named_parts.h"
#include "sim/foundation/report/column.h"

#include <string>
#include <vector>

namespace specsim::cli {

// The words that may follow an option: names of the registries, or its own words; empty: a file, or any text.
std::vector<std::string> words_of(const OptionInfo& option, const std::vector<NamedPart>& parts);

// The files that commands write, with their columns.
std::vector<report::FileInfo> written_files();

// JSON: commands, options, types, defaults, exit statuses, the JSON Schema of what --format json prints, columns of written
// files.
std::string command_reference();

}  // namespace specsim::cli
