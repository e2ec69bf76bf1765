#include "sim/rounds/theory/multi_draft.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/bounds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace specsim::theory {
namespace {

using Distribution = std::vector<double>;

void check_inputs(std::span<const double> target, std::span<const double> draft, int drafts) {
  (void)overlap(target, draft);  // throws unless both are distributions of one size
  SPECSIM_CHECK(drafts >= 1, "drafts = {}", drafts);
}

MultiDraftJudgement empty_judgement(std::size_t vocab, int drafts) {
  const auto count = static_cast<std::size_t>(drafts);
  return {Distribution(count, 0.0),
          std::vector<Distribution>(count, Distribution(vocab, 0.0)),
          {Distribution(vocab, 0.0), Distribution(vocab, 0.0)}};
}

// What the rejection of a draft from `draft` leaves of the target, divided by its sum; empty if nothing is left.
Distribution remainder(std::span<const double> target, std::span<const double> draft) {
  Distribution left(target.size());
  math::CompensatedSum mass;
  for (std::size_t x = 0; x < left.size(); ++x) mass += left[x] = std::max(0.0, target[x] - draft[x]);
  if (mass.value() == 0.0) return {};
  for (double& share : left) share /= mass.value();
  return left;
}

// Every ordered draw from here on, reached with `reach` (all drafts before rejected).
void walk_draws(const Distribution& target, const Distribution& draft, std::size_t rank, double reach,
                MultiDraftJudgement& result) {
  const double left = std::accumulate(draft.begin(), draft.end(), 0.0);
  if (rank == result.by_rank.size() || left == 0.0) {
    for (std::size_t x = 0; x < target.size(); ++x) result.judgement.rejected[x] += reach * target[x];
    return;
  }
  Distribution drawn(draft.size());
  for (std::size_t x = 0; x < draft.size(); ++x) drawn[x] = draft[x] / left;
  const Distribution after = remainder(target, drawn);
  for (std::size_t x = 0; x < drawn.size(); ++x) {
    if (drawn[x] == 0.0) continue;
    const double accepted = std::min(target[x], drawn[x]);
    result.by_rank[rank] += reach * accepted;
    result.by_token[rank][x] += reach * accepted;
    result.judgement.accepted[x] += reach * accepted;
    if (drawn[x] <= target[x] || after.empty()) continue;
    Distribution shorter = draft;
    shorter[x] = 0.0;
    walk_draws(after, shorter, rank + 1, reach * (drawn[x] - target[x]), result);
  }
}

// The probability of each token at each draw from `rank` on, of what the draws before have left of the draft.
void add_draws(const Distribution& draft, std::size_t rank, double reach, std::vector<Distribution>& drawn) {
  const double left = std::accumulate(draft.begin(), draft.end(), 0.0);
  if (rank == drawn.size() || left == 0.0) return;
  for (std::size_t x = 0; x < draft.size(); ++x) {
    if (draft[x] == 0.0) continue;
    const double chance = reach * draft[x] / left;
    drawn[rank][x] += chance;
    Distribution shorter = draft;
    shorter[x] = 0.0;
    add_draws(shorter, rank + 1, chance, drawn);
  }
}

double kseq_beta(std::span<const double> target, std::span<const double> draft, double factor) {
  math::CompensatedSum beta;
  for (std::size_t x = 0; x < target.size(); ++x) beta += std::min(draft[x], target[x] / factor);
  return std::min(1.0, beta.value());
}

// 1 - (1 - beta)^drafts without cancellation.
double any_of(double beta, int drafts) { return beta < 1.0 ? -std::expm1(drafts * std::log1p(-beta)) : 1.0; }

}  // namespace

MultiDraftJudgement judge_recursive(std::span<const double> target, std::span<const double> draft, int drafts) {
  check_inputs(target, draft, drafts);
  MultiDraftJudgement result = empty_judgement(target.size(), drafts);
  Distribution wanted(target.begin(), target.end());
  double reach = 1.0;
  for (std::size_t k = 0; k < result.by_rank.size(); ++k) {
    math::CompensatedSum accepted;
    math::CompensatedSum rejected;
    for (std::size_t x = 0; x < wanted.size(); ++x) {
      const double share = std::min(wanted[x], draft[x]);
      accepted += share;
      rejected += draft[x] - share;
      result.by_token[k][x] = reach * share;
      result.judgement.accepted[x] += reach * share;
    }
    result.by_rank[k] = reach * accepted.value();
    reach *= rejected.value();
    Distribution after = remainder(wanted, draft);
    if (after.empty()) return result;
    wanted = std::move(after);
  }
  for (std::size_t x = 0; x < wanted.size(); ++x) result.judgement.rejected[x] = reach * wanted[x];
  return result;
}

MultiDraftJudgement judge_without_replacement(std::span<const double> target, std::span<const double> draft, int drafts) {
  check_inputs(target, draft, drafts);
  double draws = 1.0;
  for (int k = 0; k < drafts; ++k) draws *= std::max(1.0, static_cast<double>(target.size()) - k);
  SPECSIM_CHECK(draws <= 0x1p22, "{} ordered draws are too many to enumerate", draws);
  MultiDraftJudgement result = empty_judgement(target.size(), drafts);
  walk_draws({target.begin(), target.end()}, {draft.begin(), draft.end()}, 0, 1.0, result);
  return result;
}

double kseq_factor(std::span<const double> target, std::span<const double> draft, int drafts) {
  check_inputs(target, draft, drafts);
  // factor beta = sum of min(factor draft, target) rises and any_of(beta) falls with the factor: one root.
  double low = 1.0;
  double high = drafts;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = 0.5 * (low + high);
    if (middle == low || middle == high) break;
    const double beta = kseq_beta(target, draft, middle);
    (any_of(beta, drafts) > middle * beta ? low : high) = middle;
  }
  return high;  // the side on which nothing is accepted beyond the target
}

MultiDraftJudgement judge_kseq(std::span<const double> target, std::span<const double> draft, int drafts) {
  const double factor = kseq_factor(target, draft, drafts);
  const double beta = kseq_beta(target, draft, factor);
  MultiDraftJudgement result = empty_judgement(target.size(), drafts);
  double reach = 1.0;
  for (std::size_t k = 0; k < result.by_rank.size(); ++k) {
    result.by_rank[k] = reach * beta;
    for (std::size_t x = 0; x < target.size(); ++x) result.by_token[k][x] = reach * std::min(draft[x], target[x] / factor);
    reach *= 1.0 - beta;
  }
  const double tries = beta > 0.0 ? any_of(beta, drafts) / beta : 0.0;  // expected number of drafts judged
  for (std::size_t x = 0; x < target.size(); ++x) {
    result.judgement.accepted[x] = tries * std::min(draft[x], target[x] / factor);
    result.judgement.rejected[x] = std::max(0.0, target[x] - result.judgement.accepted[x]);
  }
  return result;
}

MultiDraftJudgement judge_matching(std::span<const double> target, std::span<const double> draft, int drafts) {
  check_inputs(target, draft, drafts);
  MultiDraftJudgement result = empty_judgement(target.size(), drafts);
  result.judgement.rejected.assign(target.begin(), target.end());
  for (std::size_t x = 0; x < target.size(); ++x) {
    double wanted = target[x];  // chance that it is wanted and is not among the drafts so far
    for (std::size_t k = 0; k < result.by_rank.size(); ++k) {
      const double accepted = wanted * draft[x];
      wanted -= accepted;
      result.by_rank[k] += accepted;
      result.by_token[k][x] = accepted;
    }
    result.judgement.accepted[x] = target[x] - wanted;
    result.judgement.rejected[x] = wanted;
  }
  return result;
}

MultiDraftJudgement judge_matching_without_replacement(std::span<const double> target, std::span<const double> draft,
                                                       int drafts) {
  check_inputs(target, draft, drafts);
  double draws = 1.0;
  for (int k = 0; k < drafts; ++k) draws *= std::max(1.0, static_cast<double>(target.size()) - k);
  SPECSIM_CHECK(draws <= 0x1p22, "{} ordered draws are too many to enumerate", draws);
  MultiDraftJudgement result = empty_judgement(target.size(), drafts);
  add_draws({draft.begin(), draft.end()}, 0, 1.0, result.by_token);
  result.judgement.rejected.assign(target.begin(), target.end());
  for (std::size_t k = 0; k < result.by_rank.size(); ++k)
    for (std::size_t x = 0; x < target.size(); ++x) {
      double& own = result.by_token[k][x];
      own *= target[x];
      result.by_rank[k] += own;
      result.judgement.accepted[x] += own;
      result.judgement.rejected[x] -= own;
    }
  return result;
}

MultiDraftJudgement judge_top_ranked(std::span<const double> target, std::span<const double> draft, int drafts) {
  check_inputs(target, draft, drafts);
  std::vector<std::size_t> order(target.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return draft[a] > draft[b]; });
  MultiDraftJudgement result = empty_judgement(target.size(), drafts);
  result.judgement.rejected.assign(target.begin(), target.end());
  for (std::size_t k = 0; k < std::min(order.size(), result.by_rank.size()); ++k) {
    const std::size_t x = order[k];
    if (draft[x] == 0.0) break;  // a candidate is what the draft proposes
    result.by_rank[k] = result.by_token[k][x] = result.judgement.accepted[x] = target[x];
    result.judgement.rejected[x] = 0.0;
  }
  return result;
}

double optimal_acceptance(std::span<const double> target, std::span<const double> draft, int drafts) {
  check_inputs(target, draft, drafts);
  struct Token {
    double ratio;
    double target;
    double draft;
  };
  std::vector<Token> tokens;
  tokens.reserve(target.size());
  for (std::size_t x = 0; x < target.size(); ++x) {
    if (draft[x] > 0.0) tokens.push_back({target[x] / draft[x], target[x], draft[x]});  // the others only add target
  }
  std::sort(tokens.begin(), tokens.end(), [](const Token& a, const Token& b) { return a.ratio < b.ratio; });
  math::CompensatedSum target_sum;
  math::CompensatedSum draft_sum;
  double least = 0.0;
  for (const Token& token : tokens) {
    target_sum += token.target;
    draft_sum += token.draft;
    least = std::min(least, target_sum.value() - std::pow(draft_sum.value(), drafts));
  }
  return 1.0 + least;
}

double optimal_acceptance_without_replacement(std::span<const double> target, std::span<const double> draft, int drafts) {
  check_inputs(target, draft, drafts);
  const std::size_t vocab = target.size();
  SPECSIM_CHECK(vocab <= 16, "vocabulary {} is too large for every subset", vocab);
  const auto support = std::count_if(draft.begin(), draft.end(), [](double share) { return share > 0.0; });
  const int size = static_cast<int>(std::min<std::ptrdiff_t>(drafts, support));
  const std::size_t sets = std::size_t{1} << vocab;
  std::vector<double> drawn(sets, 0.0);  // P(the first |S| drafts are the set S)
  drawn[0] = 1.0;
  double least = 0.0;
  for (std::size_t set = 0; set < sets; ++set) {
    double left = 0.0;
    double target_mass = 0.0;
    const auto members = std::popcount(set);
    for (std::size_t x = 0; x < vocab; ++x) {
      if (((set >> x) & 1U) == 0) {
        left += draft[x];
      } else {
        target_mass += target[x];
      }
    }
    if (members < size) {
      for (std::size_t x = 0; x < vocab; ++x) {
        if (((set >> x) & 1U) == 0 && draft[x] > 0.0) drawn[set | (std::size_t{1} << x)] += drawn[set] * draft[x] / left;
      }
    }
    if (members < size) continue;
    math::CompensatedSum inside;  // P(all drafts in the set)
    for (std::size_t subset = set; subset > 0; subset = (subset - 1) & set) {
      if (std::popcount(subset) == size) inside += drawn[subset];
    }
    least = std::min(least, target_mass - inside.value());
  }
  return 1.0 + least;
}

}  // namespace specsim::theory
