// Checks whether counts are consistent with each other. Files that counts are read from may be damaged, or belong to another
// run.
#include "sim/experiments/run/runner.h"

#include <fmt/format.h>

#include <numeric>

namespace specsim::run {

namespace {

std::uint64_t sum_of(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

// accepted_distribution over all strata: [accepted].
std::vector<std::uint64_t> by_accepted(const decode::Counts& counts) {
  const std::size_t lengths = counts.accepted.size() + 1;
  std::vector<std::uint64_t> sums(lengths);
  for (std::size_t i = 0; i < counts.accepted_distribution.size(); ++i) sums[i % lengths] += counts.accepted_distribution[i];
  return sums;
}

}  // namespace

std::string inconsistency(const decode::Counts& counts) {
  const std::uint64_t rounds = counts.rounds + counts.cut_rounds;
  const std::uint64_t emitted = counts.emitted + counts.cut_emitted;
  const auto differ = [](const char* a, std::uint64_t x, const char* b, std::uint64_t y) {
    return fmt::format("{} is {}, but {} is {}: they must be equal", a, x, b, y);
  };
  const std::vector<std::uint64_t> accepted = by_accepted(counts);
  if (sum_of(accepted) != rounds) return differ("the sum of accepted_law", sum_of(accepted), "rounds", rounds);
  std::uint64_t deeper = 0;  // rounds that accepted more than this
  for (std::size_t i = counts.accepted.size(); i-- > 0;) {
    deeper += accepted[i + 1];
    if (counts.accepted[i] != deeper)
      return fmt::format("accepted[{}] is {}, but {} by accepted_law: they must be equal", i, counts.accepted[i], deeper);
    if (counts.reached[i] > rounds) return fmt::format("reached[{}] is {} of {} rounds", i, counts.reached[i], rounds);
  }
  if (counts.cut_rounds == 0 && counts.cut_emitted != 0)
    return fmt::format("cut_emitted is {} without cut_rounds", counts.cut_emitted);
  // A round that accepts every draft emits one token more, unless its bonus token is disabled.
  const std::uint64_t most = rounds + sum_of(counts.accepted);
  const std::uint64_t without_bonus = most - (counts.accepted.empty() ? 0 : counts.accepted.back());
  if (counts.cut_rounds == 0 && counts.emitted != most && counts.emitted != without_bonus)
    return differ("emitted", counts.emitted, "rounds and accepted together", most);
  if (counts.groups > counts.sequences) return fmt::format("groups is {} of {} sequences", counts.groups, counts.sequences);
  if (sum_of(counts.part_rounds) != counts.rounds)
    return differ("the sum of part_rounds", sum_of(counts.part_rounds), "rounds", counts.rounds);
  if (sum_of(counts.part_emitted) != counts.emitted)
    return differ("the sum of part_emitted", sum_of(counts.part_emitted), "emitted", counts.emitted);
  // With fresh distributions only some rounds' tokens are judged and counted. Tokens of a round that was cut may lie after the
  // request's end.
  if (counts.cut_rounds == 0 && sum_of(counts.output) > emitted)
    return fmt::format("output adds up to {} of {} emitted tokens", sum_of(counts.output), emitted);
  if (counts.cut_rounds == 0 && sum_of(counts.pairs) > emitted)
    return fmt::format("pairs add up to {} of {} emitted tokens", sum_of(counts.pairs), emitted);
  if (!counts.drafted.empty() && sum_of(counts.drafted) != rounds)
    return differ("the sum of drafted", sum_of(counts.drafted), "rounds", rounds);
  return "";
}

std::string incompleteness(const spec::Cell& cell, const decode::Counts& counts) {
  const bool requests = cell.contexts->process->shape().ends();
  const std::uint64_t done = requests ? counts.sequences : counts.rounds;
  if (done != cell.work()) return fmt::format("{} of {} {}", done, cell.work(), requests ? "requests" : "rounds");
  return inconsistency(counts);
}

}  // namespace specsim::run
