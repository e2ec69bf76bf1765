// The memory that decoding needs on the fullest GPU.
#pragma once

#include <string>
#include <vector>

namespace specsim::cost {

// The models whose memory is counted.
enum class Kept { both, target, draft };

struct MemoryItem {
  std::string what;
  double bytes = 0.0;
};

struct MemoryBudget {
  std::vector<MemoryItem> lines;
  double available_bytes = 0.0;         // memory of one GPU, without what the runtime reserves
  std::vector<MemoryItem> set_aside;    // what the runtime reserves, if the engine's rules state it
  double gpus = 1.0;                    // how many GPUs share the work
  std::string device;                   // the GPU's name if it is the draft's own; else ""
  std::vector<MemoryBudget> elsewhere;  // of the draft's own GPU, if both models are counted

  [[nodiscard]] double needed_bytes() const;
  [[nodiscard]] bool fits() const { return &tightest() == this && needed_bytes() <= available_bytes; }
  // The first GPU whose memory is too small; this one if all suffice.
  [[nodiscard]] const MemoryBudget& tightest() const;
  // "target weights 14.96 GiB, ...: 17.2 of 72.0 GiB", "... on the fullest of 4 GPUs", "...; set aside: 0.50 GiB for the driver"
  [[nodiscard]] std::string to_text() const;
};

}  // namespace specsim::cost
