#include "sim/rounds/theory/multi_path.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/bounds.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace specsim::theory {
namespace {

using Masses = std::vector<double>;

// The draft's mass on the tokens before each token, in rising order of target / draft.
Masses mass_before(const Masses& target, const Masses& draft) {
  std::vector<int> order(target.size());
  std::iota(order.begin(), order.end(), 0);
  const auto ratio = [&](int x) {
    if (draft[index_of(x)] == 0.0) return target[index_of(x)] > 0.0 ? HUGE_VAL : 0.0;
    return target[index_of(x)] / draft[index_of(x)];
  };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return ratio(a) != ratio(b) ? ratio(a) < ratio(b) : a < b; });
  Masses before(target.size());
  double sum = 0.0;
  for (const int x : order) {
    before[index_of(x)] = sum;
    sum += draft[index_of(x)];
  }
  return before;
}

class PathWalk {
 public:
  PathWalk(const Automaton& distributions, int paths, int draft_length)
      : distributions_(distributions), paths_(paths), kernel_(distributions.states, draft_length) {}

  RoundKernel kernel() {
    for (int state = 0; state < distributions_.states; ++state) {
      start_ = state;
      descend(0, state, {0.0, 1.0}, 1.0);
    }
    return kernel_;
  }

 private:
  // For one path: the probability that it comes before a prefix, and that it begins with the prefix.
  struct Prefix {
    double before = 0.0;
    double own = 0.0;
  };
  // The probability that the last of all paths begins with the prefix.
  [[nodiscard]] double last(const Prefix& prefix) const {
    double sum = 0.0;
    for (int i = 0; i < paths_; ++i) sum += std::pow(prefix.before + prefix.own, i) * std::pow(prefix.before, paths_ - 1 - i);
    return prefix.own * sum;
  }

  void descend(int depth, int state, const Prefix& prefix, double carry) {
    const Masses& target = distributions_.target[index_of(state)];
    const double reached = last(prefix);
    const bool end = depth == kernel_.draft_length();
    const Masses& draft = distributions_.draft_at(depth, state);
    const Masses before = mass_before(target, draft);
    for (int x = 0; x < distributions_.vocab; ++x) {
      const auto token = index_of(x);
      const int next = distributions_.after(state, x);
      const double kept = carry * reached * target[token];
      const Prefix longer = {prefix.before + prefix.own * before[token], prefix.own * draft[token]};
      const double drafted = end ? 0.0 : last(longer);
      kernel_.at(depth, start_, next) += std::max(kept - drafted, 0.0);
      if (drafted > 0.0) descend(depth + 1, next, longer, std::min(1.0, kept / drafted));
    }
  }

  const Automaton& distributions_;
  int paths_;
  int start_ = 0;
  RoundKernel kernel_;
};

}  // namespace

RoundKernel multi_path_kernel(const Automaton& distributions, int paths, int draft_length) {
  SPECSIM_CHECK(paths >= 1 && draft_length >= 0, "{} paths of {}", paths, draft_length);
  return PathWalk(distributions, paths, draft_length).kernel();
}

std::vector<std::vector<double>> hub_accepted(std::span<const double> target, std::span<const double> draft, int drafts) {
  SPECSIM_CHECK(drafts == 1 || drafts == 2, "{} drafts around a hub", drafts);
  const std::size_t vocab = target.size();
  (void)overlap(target, draft);  // throws unless both are distributions of one size
  const auto hub = index_of(argmax(draft));
  std::vector<std::vector<double>> accepted(index_of(drafts), std::vector<double>(vocab, 0.0));
  math::CompensatedSum others;
  for (std::size_t x = 0; x < vocab; ++x)
    if (x != hub) others += draft[x];
  if (drafts == 1 || others.value() == 0.0) {
    for (std::size_t x = 0; x < vocab; ++x) accepted[0][x] = std::min(target[x], draft[x]);
    return accepted;
  }
  std::vector<double> left(target.begin(), target.end());
  const auto take = [&](std::size_t x, double drawn) {
    const double taken = std::min(left[x], drawn);
    left[x] -= taken;
    return taken;
  };
  double unused_second = 0.0;  // the mass of pairs (x, hub) whose x was not taken
  double unused_first = 0.0;   // the mass of pairs (hub, x) whose x was not taken
  for (std::size_t x = 0; x < vocab; ++x) {
    if (x == hub) continue;
    accepted[0][x] = take(x, draft[x]);
    unused_second += draft[x] - accepted[0][x];
    const double drawn = draft[hub] * draft[x] / others.value();
    accepted[1][x] = take(x, drawn);
    unused_first += drawn - accepted[1][x];
  }
  accepted[0][hub] = take(hub, unused_first);
  accepted[1][hub] = take(hub, unused_second);
  return accepted;
}

}  // namespace specsim::theory
