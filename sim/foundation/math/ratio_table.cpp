#include "sim/foundation/math/ratio_table.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/huge_array.h"
#include "sim/foundation/math/series.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

namespace specsim::math {

namespace {

// Buckets of c by its high bits, from 2^-20 to 2^20. Smaller values share the first bucket, larger ones the last. There are 128
// buckets per octave; fewer if there are few tokens, whose guide would be larger than everything else.
constexpr std::uint64_t first_bucket(int shift) { return bit_cast<std::uint64_t>(0x1.0p-20) >> shift; }
constexpr std::uint64_t bucket_count(int shift) { return (bit_cast<std::uint64_t>(0x1.0p20) >> shift) - first_bucket(shift) + 1; }
constexpr int bucket_shift(std::size_t vocab) {
  int shift = 45;
  while (shift < 52 && bucket_count(shift + 1) >= 4 * vocab) ++shift;
  return shift;
}

// std::partition_point of the `count` values from `first` on, without a data-dependent branch: the direction of the search is
// random, and mispredictions took most of its time.
template <class Iterator, class Predicate>
Iterator partition_point(Iterator first, std::ptrdiff_t count, Predicate before) {
  while (count > 1) {
    const std::ptrdiff_t half = count / 2;
    first += before(first[half - 1]) ? half : 0;
    count -= half;
  }
  return first + (count == 1 && before(*first) ? 1 : 0);
}

// Positions of the values in decreasing order; equal values keep their order. Radix sort, lowest digit first, since non-negative
// numbers are ordered as their bits are. It takes a fifth of the time of a comparison sort, whose branches are unpredictable.
std::vector<Token> decreasing(const std::vector<double>& values) {
  constexpr int kDigitBits = 11;
  constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
  struct Item {
    std::uint64_t key;
    Token place;
  };
  std::vector<Item> items(values.size());
  std::vector<Item> sorted(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) items[i] = {~bit_cast<std::uint64_t>(values[i]), static_cast<Token>(i)};
  std::vector<std::uint32_t> begin(kDigits);
  for (int shift = 0; shift < 64; shift += kDigitBits) {
    std::fill(begin.begin(), begin.end(), 0U);
    const auto digit = [shift](const Item& item) { return item.key >> shift & (kDigits - 1); };
    for (const Item& item : items) ++begin[digit(item)];
    std::uint32_t sum = 0;
    for (std::uint32_t& own : begin) sum += std::exchange(own, sum);
    for (const Item& item : items) sorted[begin[digit(item)]++] = item;
    items.swap(sorted);
  }
  std::vector<Token> places(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) places[i] = items[i].place;
  return places;
}

// The number of parts into which the draws of a residual are divided: about one per 32 tokens.
std::size_t unit_parts(std::size_t vocab) { return std::bit_ceil(vocab / 32 + 1); }

}  // namespace

RatioTable::RatioTable(std::span<const double> target, std::span<const double> draft, AliasScratch& scratch) {
  SPECSIM_CHECK(target.size() == draft.size() && !target.empty(), "{} and {} tokens", target.size(), draft.size());
  const std::size_t vocab = target.size();
  distributions_.resize(vocab);
  ratio_of_.resize(vocab);
  for (std::size_t x = 0; x < vocab; ++x) {
    distributions_[x] = {target[x], draft[x]};
    ratio_of_[x] = !(target[x] > 0.0) ? 0.0 : draft[x] > 0.0 ? target[x] / draft[x] : std::numeric_limits<double>::infinity();
    draft_support_ += draft[x] > 0.0 ? 1 : 0;
  }
  constexpr std::size_t kFew = 400;  // fewer are sorted faster by comparisons
  if (vocab > kFew) {
    order_ = decreasing(ratio_of_);
  } else {
    order_.resize(vocab);
    std::iota(order_.begin(), order_.end(), Token{0});
    std::stable_sort(order_.begin(), order_.end(), [&](Token a, Token b) { return ratio_of_[a] > ratio_of_[b]; });
  }
  rank_.resize(vocab);
  ratio_.resize(vocab);
  sums_.resize(vocab + 1);
  CompensatedSum target_sum;
  CompensatedSum draft_sum;
  for (std::size_t i = 0; i < vocab; ++i) {
    const Token x = order_[i];
    rank_[x] = static_cast<std::uint32_t>(i);
    ratio_[i] = ratio_of_[x];
    target_sum.add(target[x]);
    draft_sum.add(draft[x]);
    sums_[i + 1] = {target_sum.value(), draft_sum.value()};
  }
  coarse_.reserve(vocab / kStride);
  for (std::size_t i = kStride; i <= vocab; i += kStride) coarse_.push_back(sums_[i]);
  shift_ = bucket_shift(vocab);
  const std::uint64_t buckets = bucket_count(shift_);
  first_bucket_ = first_bucket(shift_);
  last_bucket_ = first_bucket_ + buckets - 1;
  guide_.resize(buckets + 1);
  auto above = static_cast<std::uint32_t>(vocab);
  for (std::uint64_t b = 0; b <= buckets; ++b) {
    // The smallest c of bucket b; the first bucket goes down to 0, the last up to infinity.
    const double least = b == 0 ? 0.0 : bit_cast<double>((first_bucket(shift_) + b) << shift_);
    while (above > 0 && !(ratio_[above - 1] > least)) --above;
    guide_[b] = above;
  }
  guide_[buckets] = 0;
  set_bounds();
  set_unit_guide();
  target_alias_.resize(vocab);
  draft_alias_.resize(vocab);
  build_alias(target, target_alias_.data(), scratch);
  build_alias(draft, draft_alias_.data(), scratch);
}

// The mass falls as c grows, so its values at a bucket's two ends are bounds within the bucket.
void RatioTable::set_bounds() {
  constexpr double kRounding = 1e-12;  // many times the possible error of the sums
  const std::uint64_t buckets = guide_.size() - 1;
  bounds_.resize(buckets);
  double most = 1.0 + kRounding;  // the first bucket holds all smaller c too
  for (std::uint64_t b = 0; b < buckets; ++b) {
    const double end = b + 1 < buckets ? bit_cast<double>((first_bucket_ + b + 1) << shift_) : std::numeric_limits<double>::max();
    const Residual least = residual(end);
    // If the smallest c of a bucket leaves no token, the mass in it is exactly 0, whatever the rounding.
    bounds_[b] = {std::max(least.mass - kRounding, 0.0), guide_[b] == 0 ? 0.0 : most};
    most = least.mass + kRounding;
  }
}

void RatioTable::set_unit_guide() {
  const Residual unit = residual(1.0);
  const std::size_t parts = unit_parts(vocab());
  unit_guide_.resize(parts + 1);
  std::uint32_t rank = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    const double place = static_cast<double>(part) / static_cast<double>(parts) * unit.mass;
    while (rank < unit.count && sums_[rank + 1].target - sums_[rank + 1].draft <= place) ++rank;
    unit_guide_[part] = rank;
  }
  unit_guide_[parts] = unit.count;
}

std::size_t RatioTable::bytes_needed(std::size_t vocab) {
  return vocab * (2 * sizeof(Pair) + 2 * sizeof(double) + sizeof(Token) + sizeof(std::uint32_t) + 2 * sizeof(std::uint64_t)) +
         (vocab / kStride + 1) * sizeof(Pair) +
         (bucket_count(bucket_shift(vocab)) + 1) * (sizeof(std::uint32_t) + sizeof(MassBounds)) +
         (unit_parts(vocab) + 1) * sizeof(std::uint32_t) + 12 * kHeapBytes;
}

Residual RatioTable::residual(double c) const {
  const std::uint64_t b = bucket(c);
  // Ratios above c are between those above the bucket's end and those above its beginning.
  const auto begin = ratio_.begin() + guide_[b + 1];
  const auto end = ratio_.begin() + guide_[b];
  const auto count =
      static_cast<std::uint32_t>(partition_point(begin, end - begin, [c](double ratio) { return ratio > c; }) - ratio_.begin());
  return {c, count == 0 ? 0.0 : std::max(sums_[count].target - c * sums_[count].draft, 0.0), count};
}

Token RatioTable::pick(const Residual& residual, double u) const {
  const double place = u * residual.mass;
  const auto before = [&](const Pair& sum) { return sum.target - residual.c * sum.draft <= place; };
  if (residual.c == 1.0) {
    const std::uint32_t* const guide =
        unit_guide_.data() + static_cast<std::size_t>(u * static_cast<double>(unit_guide_.size() - 1));
    const auto first = sums_.begin() + 1 + guide[0];
    const auto rank = partition_point(first, guide[1] - guide[0], before) - (sums_.begin() + 1);
    return order_[std::min<std::size_t>(static_cast<std::size_t>(rank), residual.count - 1)];
  }
  // First the stride, then the token in it.
  const auto strides = static_cast<std::ptrdiff_t>(residual.count / kStride);
  const std::ptrdiff_t stride = partition_point(coarse_.begin(), strides, before) - coarse_.begin();
  const auto sums = sums_.begin() + 1;
  const auto first = sums + stride * static_cast<std::ptrdiff_t>(kStride);
  const auto last = std::min(first + static_cast<std::ptrdiff_t>(kStride), sums + static_cast<std::ptrdiff_t>(residual.count));
  const auto at = partition_point(first, last - first, before);
  return order_[std::min<std::size_t>(static_cast<std::size_t>(at - sums), residual.count - 1)];
}

double RatioTable::draft_without(std::span<const Token> drawn) const {
  double left = 1.0;
  for (const Token x : drawn) left -= distributions_[x].draft;
  constexpr double kSumDirectly = 1e-3;  // below it the difference loses digits that decisions need
  if (left >= kSumDirectly) return left;
  left = 0.0;
  for (std::size_t x = 0; x < distributions_.size(); ++x)
    if (std::find(drawn.begin(), drawn.end(), static_cast<Token>(x)) == drawn.end()) left += distributions_[x].draft;
  return left;
}

Token RatioTable::pick_draft_without(std::span<const Token> drawn, double u) const {
  if (const double rest = draft_without(drawn); rest < 1e-3) {  // running sums near 1 would not resolve the rest
    double place = u * rest;
    Token last = 0;
    for (std::size_t x = 0; x < distributions_.size(); ++x) {
      if (!(distributions_[x].draft > 0.0) || std::find(drawn.begin(), drawn.end(), static_cast<Token>(x)) != drawn.end())
        continue;
      last = static_cast<Token>(x);
      if (place < distributions_[x].draft) return last;
      place -= distributions_[x].draft;
    }
    return last;
  }
  std::vector<std::uint32_t> holes;
  holes.reserve(drawn.size());
  for (const Token x : drawn) holes.push_back(rank_[x]);
  std::sort(holes.begin(), holes.end());
  double left = sums_.back().draft;
  for (const std::uint32_t rank : holes) left -= sums_[rank + 1].draft - sums_[rank].draft;
  double place = u * std::max(left, 0.0);
  for (const std::uint32_t rank : holes)
    if (place >= sums_[rank].draft) place += sums_[rank + 1].draft - sums_[rank].draft;
  const auto begin = sums_.begin() + 1;
  auto at = static_cast<std::size_t>(
      std::partition_point(begin, sums_.end(), [&](const Pair& sum) { return sum.draft <= place; }) - begin);
  // Rounding may lead to a token of weight 0, or beyond the end: takes the nearest token that can be drawn.
  const auto can_be = [&](std::size_t rank) {
    return distributions_[order_[rank]].draft > 0.0 &&
           !std::binary_search(holes.begin(), holes.end(), static_cast<std::uint32_t>(rank));
  };
  const std::size_t start = std::min(at, order_.size() - 1);
  for (at = start; at < order_.size(); ++at)
    if (can_be(at)) return order_[at];
  for (at = start; at > 0; --at)
    if (can_be(at - 1)) return order_[at - 1];
  SPECSIM_CHECK(false, "{} of {} tokens drawn", drawn.size(), draft_support_);
  return 0;
}

}  // namespace specsim::math
