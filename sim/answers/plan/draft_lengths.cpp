#include "sim/answers/plan/draft_lengths.h"

#include "sim/foundation/base/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace specsim::plan {

namespace {

constexpr double kWorthARise = 0.05;  // a smaller gain is within the latency model's errors
constexpr double kNotOffered = 1e6;   // logarithm of the speed lost with a length that is not offered

// The smallest sum up to a place with this draft length, and the length of the place before.
struct Least {
  double sum = std::numeric_limits<double>::infinity();
  std::size_t before = 0;
  bool rose = false;  // between that place and this one
};

// [place][rises so far][draft length]
using Sums = std::vector<std::array<std::vector<Least>, 2>>;

Sums least_sums(const std::vector<std::vector<double>>& lost) {
  const std::size_t lengths = lost[0].size();
  Sums sums(lost.size(), {std::vector<Least>(lengths), std::vector<Least>(lengths)});
  for (std::size_t place = 0; place < lost.size(); ++place) {
    SPECSIM_CHECK(lost[place].size() == lengths, "{} draft lengths, then {}", lengths, lost[place].size());
    for (std::size_t length = 0; length < lengths; ++length) {
      const double here = lost[place][length] < 1.0 ? -std::log1p(-lost[place][length]) : kNotOffered;
      if (place == 0) {
        sums[0][0][length].sum = here;
        continue;
      }
      const auto take = [&](Least& own, const std::vector<Least>& earlier, std::size_t from, bool rose) {
        if (const double sum = earlier[from].sum + here; sum < own.sum) own = {sum, from, rose};
      };
      for (std::size_t from = length; from < lengths; ++from)
        for (std::size_t rises = 0; rises < 2; ++rises) take(sums[place][rises][length], sums[place - 1][rises], from, false);
      for (std::size_t from = 0; from < length; ++from) take(sums[place][1][length], sums[place - 1][0], from, true);
    }
  }
  return sums;
}

std::vector<int> lengths_of(const Sums& sums, std::size_t rises) {
  const std::vector<Least>& last = sums.back()[rises];
  auto length = static_cast<std::size_t>(
      std::min_element(last.begin(), last.end(), [](const Least& a, const Least& b) { return a.sum < b.sum; }) - last.begin());
  std::vector<int> chosen(sums.size());
  for (std::size_t place = sums.size(); place-- > 0;) {
    chosen[place] = static_cast<int>(length);
    const Least& own = sums[place][rises][length];
    if (own.rose) rises = 0;
    length = own.before;
  }
  return chosen;
}

double worst_loss(const std::vector<std::vector<double>>& lost, const std::vector<int>& lengths) {
  double worst = 0.0;
  for (std::size_t place = 0; place < lost.size(); ++place)
    worst = std::max(worst, lost[place][static_cast<std::size_t>(lengths[place])]);
  return worst;
}

}  // namespace

std::vector<int> choose_lengths(const std::vector<std::vector<double>>& lost, Rise rise) {
  if (lost.empty()) return {};
  const Sums sums = least_sums(lost);
  std::vector<int> falling = lengths_of(sums, 0);
  if (rise == Rise::never || lost.size() < 2 || lost[0].size() < 2) return falling;
  std::vector<int> rising = lengths_of(sums, 1);
  return worst_loss(lost, rising) + kWorthARise < worst_loss(lost, falling) ? rising : falling;
}

void add_to_ranges(std::vector<LengthRange>& ranges, int sequences, int draft_length) {
  if (ranges.empty() || ranges.back().draft_length != draft_length) ranges.push_back({sequences, sequences, draft_length});
  ranges.back().to = sequences;
}

std::vector<LengthRange> ranges_of(const std::vector<int>& lengths) {
  std::vector<LengthRange> ranges;
  for (std::size_t i = 0; i < lengths.size(); ++i) add_to_ranges(ranges, static_cast<int>(i) + 1, lengths[i]);
  return ranges;
}

std::string ranges_text(const std::vector<LengthRange>& ranges) {
  std::string text;
  for (const LengthRange& range : ranges)
    text += fmt::format("{}[{}, {}, {}]", text.empty() ? "" : ", ", range.from, range.to, range.draft_length);
  return "[" + text + "]";
}

}  // namespace specsim::plan
