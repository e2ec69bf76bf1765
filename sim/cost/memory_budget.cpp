#include "sim/cost/memory_budget.h"

#include <fmt/format.h>

namespace specsim::cost {

namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

}  // namespace

double MemoryBudget::needed_bytes() const {
  double sum = 0.0;
  for (const MemoryItem& line : lines) sum += line.bytes;
  return sum;
}

std::string MemoryBudget::to_text() const {
  std::string text;
  for (const MemoryItem& line : lines)
    text += fmt::format("{}{} {:.2f} GiB", text.empty() ? "" : ", ", line.what, line.bytes / kGib);
  return fmt::format("{}: {:.2f} of {:.2f} GiB{}", text, needed_bytes() / kGib, available_bytes / kGib,
                     gpus > 1.0 ? fmt::format(" on the fullest of {:g} GPUs", gpus) : "");
}

}  // namespace specsim::cost
