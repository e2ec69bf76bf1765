#include "sim/rounds/theory/multi_draft.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/automaton.h"
#include "sim/rounds/theory/bounds.h"

#include <boost/math/tools/roots.hpp>

#include <algorithm>
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

void check_draws(std::size_t vocab, int drafts) {
  double draws = 1.0;
  for (int k = 0; k < drafts; ++k) draws *= std::max(1.0, static_cast<double>(vocab) - k);
  SPECSIM_CHECK(draws <= 0x1p22, "{} ordered draws are too many to enumerate", draws);
}

MultiDraftJudgement empty_judgement(std::size_t vocab, int drafts) {
  const auto count = static_cast<std::size_t>(drafts);
  return {Distribution(count, 0.0),
          std::vector<Distribution>(count, Distribution(vocab, 0.0)),
          {Distribution(vocab, 0.0), Distribution(vocab, 0.0)}};
}

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

// The rest of the target after the rejection of a draft from `draft`, divided by its sum; empty if nothing is left.
Distribution remainder(std::span<const double> target, std::span<const double> draft) {
  Distribution left(target.size());
  math::CompensatedSum mass;
  for (std::size_t x = 0; x < left.size(); ++x) mass += left[x] = std::max(0.0, target[x] - draft[x]);
  if (mass.value() == 0.0) return {};
  for (double& share : left) share /= mass.value();
  return left;
}

// Every ordered draw from here on, reached with probability `reach` (all earlier drafts rejected).
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

double kseq_beta(std::span<const double> target, std::span<const double> draft, double factor) {
  math::CompensatedSum beta;
  for (std::size_t x = 0; x < target.size(); ++x) beta += std::min(draft[x], target[x] / factor);
  return std::min(1.0, beta.value());
}

// 1 - (1 - beta)^drafts without cancellation.
double any_of(double beta, int drafts) { return beta < 1.0 ? -std::expm1(drafts * std::log1p(-beta)) : 1.0; }

}  // namespace

void each_draw(std::span<const double> draft, int drafts, TreeSampling sampling,
               const std::function<void(const std::vector<int>&, double)>& f) {
  std::vector<int> tokens;
  if (sampling != TreeSampling::top) return draw_on(draft, drafts, sampling, tokens, 1.0, f);
  tokens = likeliest(draft, index_of(drafts));
  while (!tokens.empty() && draft[index_of(tokens.back())] == 0.0) tokens.pop_back();  // not proposed
  f(tokens, 1.0);
}

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
  check_draws(target.size(), drafts);
  MultiDraftJudgement result = empty_judgement(target.size(), drafts);
  walk_draws({target.begin(), target.end()}, {draft.begin(), draft.end()}, 0, 1.0, result);
  return result;
}

double kseq_factor(std::span<const double> target, std::span<const double> draft, int drafts) {
  check_inputs(target, draft, drafts);
  // factor beta = sum of min(factor draft, target) rises and any_of(beta) falls with the factor: one root.
  const auto excess = [&](double factor) {
    const double beta = kseq_beta(target, draft, factor);
    return any_of(beta, drafts) - factor * beta;
  };
  const double most = drafts;
  if (!(excess(1.0) > 0.0)) return 1.0;
  if (!(excess(most) < 0.0)) return most;
  // The upper end of the bracket: acceptance there does not exceed the target.
  return boost::math::tools::bisect(excess, 1.0, most, boost::math::tools::eps_tolerance<double>()).second;
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
    double wanted = target[x];  // probability that the target wants it and it is not among the drafts so far
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
  check_draws(target.size(), drafts);
  MultiDraftJudgement result = empty_judgement(target.size(), drafts);
  each_draw(draft, drafts, TreeSampling::without_replacement, [&](const std::vector<int>& tokens, double probability) {
    for (std::size_t k = 0; k < tokens.size(); ++k) result.by_token[k][index_of(tokens[k])] += probability;
  });
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
  const std::vector<int> order = likeliest(draft, index_of(drafts));
  MultiDraftJudgement result = empty_judgement(target.size(), drafts);
  result.judgement.rejected.assign(target.begin(), target.end());
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::size_t x = index_of(order[k]);
    if (draft[x] == 0.0) break;  // only tokens that the draft proposes are candidates
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
    if (draft[x] > 0.0) tokens.push_back({target[x] / draft[x], target[x], draft[x]});  // the other tokens only add target mass
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

}  // namespace specsim::theory
