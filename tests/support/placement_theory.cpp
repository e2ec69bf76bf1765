#include "tests/support/placement_theory.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace specsim::theory {

namespace {

// P(a round emits e tokens), e = 0 .. draft_length + 1.
std::vector<double> emitted_distribution(double alpha, int draft_length, bool bonus) {
  SPECSIM_CHECK(bonus || draft_length >= 1, "draft_length {} without a bonus token", draft_length);
  const std::vector<double> accepted = truncated_geometric(alpha, draft_length);
  std::vector<double> distribution(accepted.size() + 1, 0.0);
  for (std::size_t a = 0; a + 1 < accepted.size(); ++a) distribution[a + 1] += accepted[a];
  distribution[accepted.size() - (bonus ? 0 : 1)] += accepted.back();
  return distribution;
}

}  // namespace

std::vector<double> truncated_geometric(double alpha, int draft_length) {
  SPECSIM_CHECK(alpha >= 0.0 && alpha <= 1.0 && draft_length >= 0, "alpha {}, draft_length {}", alpha, draft_length);
  std::vector<double> distribution;
  double reached = 1.0;
  for (int a = 0; a < draft_length; ++a) {
    distribution.push_back(reached * (1.0 - alpha));
    reached *= alpha;
  }
  distribution.push_back(reached);
  return distribution;
}

double expected_minimum(std::span<const double> distribution, int count) {
  math::CompensatedSum sum;
  for (std::size_t a = 1; a < distribution.size(); ++a) {
    math::CompensatedSum tail;
    for (std::size_t b = a; b < distribution.size(); ++b) tail += distribution[b];
    sum += std::pow(tail.value(), count);
  }
  return sum.value();
}

double expected_maximum(std::span<const double> distribution, int count) {
  math::CompensatedSum sum;
  math::CompensatedSum below;
  for (std::size_t a = 1; a < distribution.size(); ++a) {
    below += distribution[a - 1];
    sum += 1.0 - std::pow(std::min(below.value(), 1.0), count);
  }
  return sum.value();
}

double tokens_per_round(double alpha, int draft_length, bool bonus) {
  return math::geometric_sum(alpha, draft_length + (bonus ? 1 : 0));
}

std::vector<double> rounds_survival(double alpha, int draft_length, bool bonus, int tokens) {
  SPECSIM_CHECK(tokens >= 0, "{} tokens", tokens);
  const std::vector<double> distribution = emitted_distribution(alpha, draft_length, bonus);
  const auto n = static_cast<std::size_t>(tokens);
  std::vector<double> at(n, 0.0);  // P(so many tokens after r rounds), below `tokens`
  if (n > 0) at[0] = 1.0;
  std::vector<double> survival;
  for (std::size_t r = 0; r <= n; ++r) {
    math::CompensatedSum left;
    for (const double p : at) left += p;
    survival.push_back(left.value());
    std::vector<double> next(n, 0.0);
    for (std::size_t have = 0; have < n; ++have)
      for (std::size_t e = 1; e < distribution.size() && have + e < n; ++e) next[have + e] += at[have] * distribution[e];
    at = std::move(next);
  }
  return survival;
}

double expected_rounds(double alpha, int draft_length, bool bonus, int tokens) {
  SPECSIM_CHECK(tokens >= 0, "{} tokens", tokens);
  const std::vector<double> distribution = emitted_distribution(alpha, draft_length, bonus);
  std::vector<double> rounds(static_cast<std::size_t>(tokens) + 1, 0.0);
  for (std::size_t n = 1; n < rounds.size(); ++n) {
    math::CompensatedSum sum(1.0);
    for (std::size_t e = 1; e < std::min(distribution.size(), n); ++e) sum += distribution[e] * rounds[n - e];
    rounds[n] = sum.value();
  }
  return rounds.back();
}

double expected_straggler_rounds(double alpha, int draft_length, bool bonus, int tokens, int sequences) {
  math::CompensatedSum sum;
  for (const double more : rounds_survival(alpha, draft_length, bonus, tokens))
    sum += -std::expm1(sequences * std::log1p(-std::min(more, 1.0)));
  return sum.value();
}

std::vector<RoundEnd> chain_ends(double alpha, int draft_length) {
  const std::vector<double> accepted = truncated_geometric(alpha, draft_length);
  std::vector<RoundEnd> ends;
  for (int a = 0; a < draft_length; ++a) ends.push_back({accepted[static_cast<std::size_t>(a)], a + 1, false});
  ends.push_back({accepted.back(), draft_length, true});
  return ends;
}

Overlap overlapped_round(std::span<const RoundEnd> ends, double draft, double verify, int sequences) {
  math::CompensatedSum guessed;
  math::CompensatedSum emitted;
  for (const RoundEnd& end : ends) {
    if (end.guessed) guessed += end.probability;
    emitted += end.probability * end.emitted;
  }
  const double one = guessed.value();
  const double all = std::pow(one, sequences);
  const double none = std::pow(1.0 - one, sequences);
  const double some = 1.0 - all - none;
  const double longer = std::max(draft, verify);
  Overlap result;
  result.round = all * longer + none * (verify + draft) + some * (longer + draft);
  // The first term is the case that all guessed wrong. In all other cases the block is finished, and the expected share of wrong
  // guesses is 1 - one - none.
  result.wasted_ahead = none * std::min(draft, verify) + (1.0 - one - none) * draft;
  result.tokens = sequences * emitted.value();
  return result;
}

double overlapped_time(std::span<const RoundEnd> ends, double draft, double verify, int tokens) {
  std::vector<double> time(static_cast<std::size_t>(tokens) + 1, 0.0);
  for (std::size_t n = 1; n < time.size(); ++n) {
    math::CompensatedSum sum;
    for (const RoundEnd& end : ends) {
      const auto emitted = static_cast<std::size_t>(end.emitted);
      const double next = end.guessed ? std::max(draft, verify) : verify + draft;
      sum += end.probability * (emitted >= n ? verify : next + time[n - emitted]);
    }
    time[n] = sum.value();
  }
  return time.back();
}

double shared_time(std::span<const RoundEnd> ends, int passes, double pass, double verify, int tokens) {
  const double block = passes * pass;
  // Both at half speed until the shorter one is done, then the rest alone.
  const double verified = block >= verify ? 2.0 * verify : verify + block;
  const double both = verify + block;
  // The rest of the pass that runs when the verification ends, once it runs alone.
  const double under_way = block > verify ? std::ceil(verify / pass) * pass - verify : 0.0;
  std::vector<double> time(static_cast<std::size_t>(tokens) + 1, 0.0);
  for (std::size_t n = 1; n < time.size(); ++n) {
    math::CompensatedSum sum;
    for (const RoundEnd& end : ends) {
      const auto emitted = static_cast<std::size_t>(end.emitted);
      const double next = end.guessed ? both : verified + under_way + block;
      sum += end.probability * (emitted >= n ? verified : next + time[n - emitted]);
    }
    time[n] = sum.value();
  }
  return time.back();
}

double network_bytes_up(const NetworkRound& round) {
  const double drafts = static_cast<double>(round.sequences) * round.draft_length;
  return drafts * round.id_bytes + std::ceil(drafts * round.vocab * round.probability_bits / 8.0);
}

double network_round_seconds(const NetworkRound& round) {
  const double down = 2.0 * round.sequences * round.id_bytes;  // a count and a token each
  return round.draft + round.verify + 2.0 * round.latency + (network_bytes_up(round) + down) / round.bytes_per_second;
}

}  // namespace specsim::theory
