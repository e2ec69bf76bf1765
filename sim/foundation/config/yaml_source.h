// The text of a YAML file before the parser sees it.
#pragma once

#include "sim/foundation/base/error.h"

#include <string>
#include <string_view>

namespace specsim::config {

// UTF-8 without a byte order mark, with \n as the only line end, so a parser's position is an index into `text`.
struct YamlSource {
  std::string text;
  bool usable = false;
};

// Refuses text that the parser would silently misread: it takes byte 4 for the end of the file, guesses UTF-16 from NULs and
// replaces broken UTF-8. Reports only the first such place, since a million others would repeat it.
YamlSource prepare_yaml(std::string_view text, const std::string& name, Diagnostics& diagnostics);

}  // namespace specsim::config
