// What decoding keeps in the memory of the fullest GPU.
#pragma once

#include <string>
#include <vector>

namespace specsim::cost {

// Which models lie in the memory that is looked at.
enum class Kept { both, target, draft };

struct MemoryItem {
  std::string what;
  double bytes = 0.0;
};

struct MemoryBudget {
  std::vector<MemoryItem> lines;
  double available_bytes = 0.0;       // memory of one GPU, after what the runtime keeps for itself
  std::vector<MemoryItem> set_aside;  // what it keeps, where the engine's rules say so
  double gpus = 1.0;                  // how many GPUs share the work

  [[nodiscard]] double needed_bytes() const;
  [[nodiscard]] bool fits() const { return needed_bytes() <= available_bytes; }
  // "target weights 14.96 GiB, ...: 17.2 of 72.0 GiB", "... on the fullest of 4 GPUs", "...; set aside: 0.50 GiB for the driver"
  [[nodiscard]] std::string to_text() const;
};

}  // namespace specsim::cost
