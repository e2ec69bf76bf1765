#include "sim/rounds/decode/counts.h"

#include "sim/foundation/base/check.h"

namespace specsim::decode {

void PassCounts::add(std::span<const std::uint32_t> pass_rows) {
  SPECSIM_CHECK(pass_rows.size() <= most(), "{} passes of at most {}", pass_rows.size(), most());
  ++rounds[pass_rows.size()];
  for (std::size_t i = 0; i < pass_rows.size(); ++i) rows[pass_rows.size() * most() + i] += pass_rows[i];
}

void PassCounts::add(const PassCounts& other) {
  for (std::size_t i = 0; i < rounds.size(); ++i) rounds[i] += other.rounds[i];
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] += other.rows[i];
}

std::vector<double> PassCounts::mean_rows(std::size_t passes) const {
  std::vector<double> mean;
  for (std::size_t i = 0; i < passes; ++i)
    mean.push_back(static_cast<double>(rows[passes * most() + i]) / static_cast<double>(rounds[passes]));
  return mean;
}

Counts::Counts(int draft_length, int strata, int classes, int nodes, int passes_counted)
    : passes(passes_counted > 0 ? PassCounts(static_cast<std::size_t>(passes_counted)) : PassCounts()) {
  const auto length = static_cast<std::size_t>(draft_length);
  const auto stratum_count = static_cast<std::size_t>(strata);
  const auto cells = static_cast<std::size_t>(classes);
  reached.assign(length, 0);
  accepted.assign(length, 0);
  accepted_distribution.assign(stratum_count * (length + 1), 0);
  output.assign(stratum_count * cells, 0);
  if (strata == 1) pairs.assign(kPairBins * kPairBins, 0);
  if (nodes > 0) drafted.assign(static_cast<std::size_t>(nodes) + 1, 0);
  part_rounds.assign(kParts, 0);
  part_emitted.assign(kParts, 0);
  part_longest.assign(kParts, 0);
  part_drafted.assign(kParts * drafted.size(), 0);
  if (passes.any()) part_passes.assign(kParts, PassCounts(passes.most()));
}

void Counts::add_neighbours(std::span<const std::uint64_t> counted, std::span<const std::uint8_t> bin_of_class) {
  const std::size_t classes = bin_of_class.size();
  for (std::size_t previous = 0; previous <= kPairBins; ++previous) {
    for (std::size_t kind = 0; kind < classes; ++kind) {
      const std::uint64_t n = counted[previous * classes + kind];
      output[kind] += n;
      if (previous < kPairBins) pairs[previous * kPairBins + bin_of_class[kind]] += n;
    }
  }
}

void Counts::add_group(const GroupTotals& group, bool drafts) {
  ++groups;
  sequences += group.sequences;
  rounds += group.rounds;
  emitted += group.emitted;
  const std::size_t part = group.number % kParts;
  part_rounds[part] += group.rounds;
  part_emitted[part] += group.emitted;
  part_longest[part] += group.longest;
  sum_rounds_squared += group.rounds * group.rounds;
  sum_rounds_emitted += group.rounds * group.emitted;
  sum_emitted_squared += group.emitted * group.emitted;
  if (!drafts || group.emitted < group.rounds) return;
  const std::uint64_t own_accepted = group.emitted - group.rounds;  // each round emits one token more than it accepts
  const std::uint64_t own_tries = own_accepted + group.rounds - group.full;
  sum_tries += own_tries;
  sum_accepted += own_accepted;
  sum_tries_squared += own_tries * own_tries;
  sum_tries_accepted += own_tries * own_accepted;
  sum_accepted_squared += own_accepted * own_accepted;
}

void Counts::add_drafted(std::uint64_t group, std::size_t nodes, std::uint64_t rounds_of_it,
                         std::span<const std::uint32_t> pass_rows) {
  const std::size_t part = group % kParts;
  if (!drafted.empty()) {
    drafted[nodes] += rounds_of_it;
    part_drafted[part * drafted.size() + nodes] += rounds_of_it;
  }
  if (passes.any()) {
    passes.add(pass_rows);
    part_passes[part].add(pass_rows);
  }
}

PartTotals Counts::part(std::size_t index) const {
  const auto begin = part_drafted.begin() + static_cast<std::ptrdiff_t>(index * drafted.size());
  return {part_rounds[index],
          part_emitted[index],
          part_longest[index],
          {begin, begin + static_cast<std::ptrdiff_t>(drafted.size())},
          passes.any() ? part_passes[index] : PassCounts()};
}

void Counts::add(const Counts& other) {
  std::vector<std::uint64_t> values;
  other.each([&](const char*, std::size_t, std::uint64_t value) { values.push_back(value); });
  std::size_t next = 0;
  each([&](const char* name, std::size_t index, std::uint64_t& value) {
    SPECSIM_CHECK(next < values.size(), "{}[{}]", name, index);
    value += values[next++];
  });
  SPECSIM_CHECK(next == values.size(), "{} of {} counts", next, values.size());
}

}  // namespace specsim::decode
