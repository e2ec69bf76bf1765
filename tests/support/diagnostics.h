// Every message of a reading, one per line with its place.
#pragma once

#include "sim/foundation/base/error.h"

#include <string>

namespace specsim::tests {

inline std::string all_messages(const Diagnostics& diagnostics) {
  std::string all;
  for (const Diagnostic& mistake : diagnostics.list())
    all += (all.empty() ? "" : "\n") + to_string(mistake.where) + ": " + mistake.message;
  return all;
}

}  // namespace specsim::tests
