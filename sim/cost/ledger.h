// What decoding keeps in GPU memory.
#pragma once

#include <string>
#include <vector>

namespace specsim::cost {

struct LedgerLine {
  std::string what;
  double bytes = 0.0;
};

struct Ledger {
  std::vector<LedgerLine> lines;
  double available_bytes = 0.0;  // of all GPUs that share the work, after what the runtime keeps for itself

  [[nodiscard]] double needed_bytes() const;
  [[nodiscard]] bool fits() const { return needed_bytes() <= available_bytes; }
  // "target weights 14.96 GiB, ...: 17.2 of 72.0 GiB"
  [[nodiscard]] std::string to_text() const;
};

}  // namespace specsim::cost
