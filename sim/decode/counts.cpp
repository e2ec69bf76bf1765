#include "sim/decode/counts.h"

#include "sim/base/check.h"

namespace specsim::decode {

Counts::Counts(int draft_length, int strata, int classes) {
  const auto length = static_cast<std::size_t>(draft_length);
  const auto groups = static_cast<std::size_t>(strata);
  const auto cells = static_cast<std::size_t>(classes);
  reached.assign(length, 0);
  accepted.assign(length, 0);
  accepted_law.assign(groups * (length + 1), 0);
  output.assign(groups * cells, 0);
  if (strata == 1) pairs.assign(kPairBins * kPairBins, 0);
}

void Counts::add(const Counts& other) {
  std::vector<std::uint64_t> values;
  const_cast<Counts&>(other).each([&](const char*, std::size_t, std::uint64_t& value) { values.push_back(value); });
  std::size_t next = 0;
  each([&](const char* name, std::size_t index, std::uint64_t& value) {
    SPECSIM_CHECK(next < values.size(), "{}[{}]", name, index);
    value += values[next++];
  });
  SPECSIM_CHECK(next == values.size(), "{} of {} counts", next, values.size());
}

}  // namespace specsim::decode
