#include "sim/rounds/theory/sibling_draws.h"

#include "sim/foundation/base/index.h"

#include <algorithm>
#include <numeric>

namespace specsim::theory {

namespace {

void draw_on(std::span<const double> draft, int drafts, TreeSampling sampling, std::vector<int>& tokens, double probability,
             const std::function<void(const std::vector<int>&, double)>& f) {
  std::vector<double> distribution(draft.begin(), draft.end());
  if (sampling == TreeSampling::without_replacement)
    for (const int token : tokens) distribution[index_of(token)] = 0.0;
  const double left = std::accumulate(distribution.begin(), distribution.end(), 0.0);
  if (tokens.size() == index_of(drafts) || left == 0.0) {
    f(tokens, probability);
    return;
  }
  for (std::size_t x = 0; x < distribution.size(); ++x) {
    if (distribution[x] == 0.0) continue;
    tokens.push_back(static_cast<int>(x));
    draw_on(draft, drafts, sampling, tokens, probability * distribution[x] / left, f);
    tokens.pop_back();
  }
}

}  // namespace

void each_draw(std::span<const double> draft, int drafts, TreeSampling sampling,
               const std::function<void(const std::vector<int>&, double)>& f) {
  std::vector<int> tokens;
  if (sampling != TreeSampling::top) return draw_on(draft, drafts, sampling, tokens, 1.0, f);
  tokens.resize(draft.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::stable_sort(tokens.begin(), tokens.end(), [&](int a, int b) { return draft[index_of(a)] > draft[index_of(b)]; });
  tokens.resize(std::min(tokens.size(), index_of(drafts)));
  while (!tokens.empty() && draft[index_of(tokens.back())] == 0.0) tokens.pop_back();  // not proposed
  f(tokens, 1.0);
}

}  // namespace specsim::theory
