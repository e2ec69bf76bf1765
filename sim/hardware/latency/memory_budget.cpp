#include "sim/hardware/latency/memory_budget.h"

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

const MemoryBudget& MemoryBudget::tightest() const {
  if (needed_bytes() > available_bytes) return *this;
  for (const MemoryBudget& other : elsewhere)
    if (!other.fits()) return other;
  return *this;
}

std::string MemoryBudget::to_text() const {
  std::string text;
  for (const MemoryItem& line : lines)
    text += fmt::format("{}{} {:.2f} GiB", text.empty() ? "" : ", ", line.what, line.bytes / kGib);
  text = fmt::format("{}: {:.2f} of {:.2f} GiB{}", text, needed_bytes() / kGib, available_bytes / kGib,
                     gpus > 1.0 ? fmt::format(" on the fullest of {:g} GPUs", gpus) : "");
  if (!device.empty()) text = fmt::format("{}: {}", device, text);
  for (std::size_t i = 0; i < set_aside.size(); ++i)
    text += fmt::format("{}{} {:.2f} GiB", i == 0 ? "; set aside: " : ", ", set_aside[i].what, set_aside[i].bytes / kGib);
  for (const MemoryBudget& other : elsewhere) text += "; " + other.to_text();
  return text;
}

}  // namespace specsim::cost
