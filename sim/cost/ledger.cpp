#include "sim/cost/ledger.h"

#include <fmt/format.h>

namespace specsim::cost {

namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

}  // namespace

double Ledger::needed_bytes() const {
  double sum = 0.0;
  for (const LedgerLine& line : lines) sum += line.bytes;
  return sum;
}

std::string Ledger::to_text() const {
  std::string text;
  for (const LedgerLine& line : lines)
    text += fmt::format("{}{} {:.2f} GiB", text.empty() ? "" : ", ", line.what, line.bytes / kGib);
  return fmt::format("{}: {:.2f} of {:.2f} GiB{}", text, needed_bytes() / kGib, available_bytes / kGib,
                     gpus > 1.0 ? fmt::format(" on the fullest of {:g} GPUs", gpus) : "");
}

}  // namespace specsim::cost
