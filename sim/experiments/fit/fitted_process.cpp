#include "sim/experiments/fit/fitted_process.h"

#include "sim/foundation/base/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace specsim::fit {

namespace {

double covariate(std::size_t depth) { return std::log1p(static_cast<double>(depth)); }

// The recorded outcome at a text position.
enum Shown : std::uint8_t { kRejected, kAccepted, kUnjudged, kOutcomes };

struct Position {
  std::uint16_t depth = 0;
  Shown outcome = kUnjudged;
};

// Omits outcomes at `judged_depth` and deeper.
std::vector<Position> positions_of(const RecordedRequest& request, int judged_depth = kMaxDraftLength) {
  std::vector<Position> text;
  const auto add = [&](int depth, Shown outcome) {
    text.push_back({static_cast<std::uint16_t>(depth), depth < judged_depth ? outcome : kUnjudged});
  };
  for (const RecordedRound& round : request.rounds) {
    for (int depth = 0; depth < round.accepted; ++depth) add(depth, kAccepted);
    add(round.accepted, round.accepted < round.drafted ? kRejected : kUnjudged);
  }
  return text;
}

bool falls_with_depth(Process process) {
  return process == Process::regimes_by_depth || process == Process::requests_and_regimes;
}
bool moves(Process process) { return process == Process::regimes || falls_with_depth(process); }

// Falling acceptance is written out to this depth; the last entry holds for deeper positions.
constexpr std::size_t kWrittenDepths = 16;

void write_out(FittedProcess& model) {
  for (std::size_t s = 0; s < model.alpha.size(); ++s)
    for (std::size_t d = 0; d < model.alpha[s].size(); ++d) model.alpha[s][d] = model.rates.alpha(s, d);
}

// Expected counts of one expectation-maximisation step, [state][depth].
struct OutcomeCounts {
  std::vector<std::vector<double>> judged;
  std::vector<std::vector<double>> accepted;
};

double likelihood_of(const FallingRates& rates, const OutcomeCounts& counts) {
  double sum = 0.0;
  for (std::size_t s = 0; s < counts.judged.size(); ++s)
    for (std::size_t d = 0; d < counts.judged[s].size(); ++d) {
      const double x = rates.level[s] + rates.slope * covariate(d);
      // accepted log alpha + rejected log(1 - alpha), by log(1 - alpha) = -log(1 + e^x) without overflow
      sum += counts.accepted[s][d] * x - counts.judged[s][d] * (std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))));
    }
  return sum;
}

// Newton's step. The Hessian is an arrow matrix: a diagonal for the levels and one row for the slope.
FallingRates newton_step(const FallingRates& rates, const OutcomeCounts& counts) {
  const std::size_t states = counts.judged.size();
  std::vector<double> gradient(states, 0.0);
  std::vector<double> diagonal(states, 1e-9);
  std::vector<double> row(states, 0.0);
  double slope_gradient = 0.0;
  double corner = 1e-9;
  for (std::size_t s = 0; s < states; ++s)
    for (std::size_t d = 0; d < counts.judged[s].size(); ++d) {
      const double alpha = rates.alpha(s, d);
      const double residual = counts.accepted[s][d] - counts.judged[s][d] * alpha;
      const double weight = counts.judged[s][d] * alpha * (1.0 - alpha);
      const double g = covariate(d);
      gradient[s] += residual;
      diagonal[s] += weight;
      row[s] += weight * g;
      slope_gradient += residual * g;
      corner += weight * g * g;
    }
  for (std::size_t s = 0; s < states; ++s) {
    slope_gradient -= row[s] * gradient[s] / diagonal[s];
    corner -= row[s] * row[s] / diagonal[s];
  }
  FallingRates step;
  step.slope = corner > 1e-8 ? slope_gradient / corner : 0.0;  // one depth alone determines no slope
  for (std::size_t s = 0; s < states; ++s) step.level.push_back((gradient[s] - row[s] * step.slope) / diagonal[s]);
  return step;
}

// Moves `rates` towards the maximum of the counts' likelihood by a few Newton steps. Each step is halved until it gains.
void improve_rates(FallingRates& rates, const OutcomeCounts& counts) {
  constexpr int kSteps = 4;
  constexpr int kHalvings = 20;
  double now = likelihood_of(rates, counts);
  for (int i = 0; i < kSteps; ++i) {
    const FallingRates step = newton_step(rates, counts);
    double share = 1.0;
    for (int halving = 0; halving < kHalvings; ++halving, share *= 0.5) {
      FallingRates moved = rates;
      moved.slope += share * step.slope;
      for (std::size_t s = 0; s < moved.level.size(); ++s) moved.level[s] += share * step.level[s];
      if (const double gained = likelihood_of(moved, counts); gained > now) {
        rates = moved;
        now = gained;
        break;
      }
    }
  }
}

// A model's probabilities in one place, for fast access.
template <std::size_t N>
struct Probabilities {
  using States = std::array<double, N>;

  explicit Probabilities(const FittedProcess& model) : depths(model.alpha[0].size()), shows(depths * kOutcomes) {
    for (std::size_t s = 0; s < N; ++s) {
      start[s] = model.start[s];
      for (std::size_t r = 0; r < N; ++r) moves[s][r] = model.transition[s][r];
      for (std::size_t d = 0; d < depths; ++d) {
        shows[d * kOutcomes + kAccepted][s] = model.alpha[s][d];
        shows[d * kOutcomes + kRejected][s] = 1.0 - model.alpha[s][d];
        shows[d * kOutcomes + kUnjudged][s] = 1.0;
      }
    }
  }
  [[nodiscard]] std::size_t place(const Position& at) const {
    return std::min<std::size_t>(at.depth, depths - 1) * kOutcomes + at.outcome;
  }

  std::size_t depths;
  States start{};
  std::array<States, N> moves{};
  std::vector<States> shows;  // [place]
};

template <std::size_t N>
struct Forward {
  std::vector<std::array<double, N>> sums;  // each position's probabilities scaled to sum 1
  std::vector<double> scales;
};

// Returns the log likelihood of the text.
template <std::size_t N>
double run_forward(const Probabilities<N>& probabilities, const std::vector<Position>& text, Forward<N>& out) {
  out.sums.resize(text.size());
  out.scales.resize(text.size());
  double log_likelihood = 0.0;
  double product = 1.0;
  std::array<double, N> in = probabilities.start;
  for (std::size_t t = 0; t < text.size(); ++t) {
    const std::array<double, N>& shows = probabilities.shows[probabilities.place(text[t])];
    std::array<double, N>& here = out.sums[t];
    double sum = 0.0;
    for (std::size_t s = 0; s < N; ++s) sum += here[s] = in[s] * shows[s];
    const double scale = 1.0 / sum;
    for (double& x : here) x *= scale;
    out.scales[t] = scale;
    product *= sum;
    if (product < 1e-200) {
      log_likelihood += std::log(product);
      product = 1.0;
    }
    for (std::size_t s = 0; s < N; ++s) {
      in[s] = 0.0;
      for (std::size_t r = 0; r < N; ++r) in[s] += here[r] * probabilities.moves[r][s];
    }
  }
  return log_likelihood + std::log(product);
}

// Expected counts of one expectation-maximisation step. Half an acceptance and half a rejection are added to every probability's
// counts, so that none becomes 0 or 1 for lack of data.
template <std::size_t N>
struct Counts {
  explicit Counts(std::size_t depths) : judged(depths), accepted(depths) {
    for (auto& at : judged) at.fill(1.0);
    for (auto& at : accepted) at.fill(0.5);
  }
  std::array<double, N> start{};
  std::array<std::array<double, N>, N> moves{};
  std::vector<std::array<double, N>> judged;  // [depth]
  std::vector<std::array<double, N>> accepted;
};

// Returns the log likelihood.
template <std::size_t N>
double count_text(const Probabilities<N>& probabilities, const std::vector<Position>& text, Forward<N>& forward,
                  Counts<N>& counts) {
  const double log_likelihood = run_forward(probabilities, text, forward);
  std::array<double, N> back;
  back.fill(1.0);
  for (std::size_t t = text.size(); t-- > 0;) {
    const std::size_t place = probabilities.place(text[t]);
    std::array<double, N> here;  // probabilities of the states given the text
    for (std::size_t s = 0; s < N; ++s) here[s] = forward.sums[t][s] * back[s];
    if (text[t].outcome != kUnjudged)
      for (std::size_t s = 0; s < N; ++s) {
        counts.judged[place / kOutcomes][s] += here[s];
        counts.accepted[place / kOutcomes][s] += text[t].outcome == kAccepted ? here[s] : 0.0;
      }
    if (t == 0) {
      for (std::size_t s = 0; s < N; ++s) counts.start[s] += here[s];
      break;
    }
    std::array<double, N> ahead;
    for (std::size_t s = 0; s < N; ++s) ahead[s] = probabilities.shows[place][s] * back[s] * forward.scales[t];
    for (std::size_t r = 0; r < N; ++r) {
      back[r] = 0.0;
      for (std::size_t s = 0; s < N; ++s) {
        const double move = probabilities.moves[r][s] * ahead[s];
        counts.moves[r][s] += forward.sums[t - 1][r] * move;
        back[r] += move;
      }
    }
  }
  return log_likelihood;
}

struct JudgedCounts {
  double accepted = 0.0;
  double rejected = 0.0;
};

// The same for a request that keeps its state. Only the numbers of acceptances and rejections matter.
template <std::size_t N>
double count_request(const Probabilities<N>& probabilities, const JudgedCounts& request, Counts<N>& counts) {
  std::array<double, N> here;
  for (std::size_t s = 0; s < N; ++s)
    here[s] = std::log(probabilities.start[s]) + request.accepted * std::log(probabilities.shows[kAccepted][s]) +
              request.rejected * std::log(probabilities.shows[kRejected][s]);
  const double largest = *std::max_element(here.begin(), here.end());
  double sum = 0.0;
  for (double& x : here) sum += x = std::exp(x - largest);
  for (std::size_t s = 0; s < N; ++s) {
    here[s] /= sum;
    counts.start[s] += here[s];
    counts.judged[0][s] += here[s] * (request.accepted + request.rejected);
    counts.accepted[0][s] += here[s] * request.accepted;
  }
  return largest + std::log(sum);
}

struct Texts {
  std::vector<std::vector<Position>> positions;
  std::vector<JudgedCounts> judged;  // [request]
  std::size_t depths = 1;            // depths that have outcomes
};

// One expectation-maximisation step; returns the likelihood before it.
template <std::size_t N>
double improve(FittedProcess& model, const Texts& texts) {
  const Probabilities<N> probabilities(model);
  Counts<N> counts(probabilities.depths);
  Forward<N> forward;
  double log_likelihood = 0.0;
  if (model.process == Process::kept_state)
    for (const JudgedCounts& request : texts.judged) log_likelihood += count_request(probabilities, request, counts);
  else
    for (const std::vector<Position>& text : texts.positions) log_likelihood += count_text(probabilities, text, forward, counts);
  for (std::size_t s = 0; s < N; ++s) {
    model.start[s] = counts.start[s] / static_cast<double>(texts.positions.size());
    if (!falls_with_depth(model.process))
      for (std::size_t d = 0; d < probabilities.depths; ++d) model.alpha[s][d] = counts.accepted[d][s] / counts.judged[d][s];
    if (!moves(model.process)) continue;
    double sum = 0.0;
    double reachable = 0.0;  // states that the process can enter
    for (std::size_t r = 0; r < N; ++r) {
      sum += counts.moves[s][r];
      reachable += model.transition[s][r] > 0.0 ? 1.0 : 0.0;
    }
    for (std::size_t r = 0; r < N; ++r)
      if (model.transition[s][r] > 0.0) model.transition[s][r] = (counts.moves[s][r] + 0.5) / (sum + 0.5 * reachable);
  }
  if (falls_with_depth(model.process)) {
    OutcomeCounts outcomes;
    for (std::size_t s = 0; s < N; ++s) {
      outcomes.judged.emplace_back();
      outcomes.accepted.emplace_back();
      for (std::size_t d = 0; d < std::min(texts.depths, probabilities.depths); ++d) {
        outcomes.judged[s].push_back(counts.judged[d][s]);
        outcomes.accepted[s].push_back(counts.accepted[d][s]);
      }
    }
    improve_rates(model.rates, outcomes);
    write_out(model);
  }
  return log_likelihood;
}

// work.template operator()<number of states>().
template <class Work>
double with_states(std::size_t states, const Work& work) {
  SPECSIM_CHECK(states >= 1 && states <= 4, "{} states", states);
  if (states == 1) return work.template operator()<1>();
  if (states == 2) return work.template operator()<2>();
  return states == 3 ? work.template operator()<3>() : work.template operator()<4>();
}

// Mean rounds of a request with one alpha, by the renewal equation m(t) = 1 + sum over e of P(emitted = e) m(t - e).
double rounds_to_emit(double alpha, int draft_length, std::uint64_t tokens) {
  std::vector<double> mean(tokens + 1, 0.0);
  for (std::uint64_t t = 1; t <= tokens; ++t) {
    mean[t] = 1.0;
    double reaches = 1.0;
    for (std::uint64_t e = 1; e <= std::min(t, static_cast<std::uint64_t>(draft_length) + 1); ++e, reaches *= alpha)
      mean[t] += reaches * (e > static_cast<std::uint64_t>(draft_length) ? 1.0 : 1.0 - alpha) * mean[t - e];
  }
  return mean[tokens];
}

// Shares of rounds that begin a request in each state, if all kinds of requests emit equally many tokens. A kind that needs more
// rounds for them has the larger share.
std::vector<double> by_rounds(const FittedProcess& model, int draft_length, std::uint64_t tokens) {
  const std::size_t states = model.start.size();
  std::vector<double> shares(states, 0.0);
  for (std::size_t kind = 0; kind < states; kind += 2) {
    std::vector<double> at(states, 0.0);
    const double mass = std::max(model.start[kind] + model.start[kind + 1], 1e-12);
    for (std::size_t s = kind; s < kind + 2; ++s) at[s] = model.start[s] / mass;
    const auto moved = [&](const std::vector<double>& from) {
      std::vector<double> to(states, 0.0);
      for (std::size_t s = 0; s < states; ++s)
        for (std::size_t r = 0; r < states; ++r) to[r] += from[s] * model.transition[s][r];
      return to;
    };
    double rounds = 0.0;
    for (double emitted = 0.0; emitted < static_cast<double>(tokens); rounds += 1.0) {
      std::vector<double> next(states, 0.0);
      for (int depth = 0; depth <= draft_length; ++depth) {  // `at`: reached this depth in this state
        emitted += std::accumulate(at.begin(), at.end(), 0.0);
        std::vector<double> goes_on(states, 0.0);
        for (std::size_t s = 0; s < states; ++s) {
          goes_on[s] = depth < draft_length ? at[s] * model.acceptance(s, depth) : 0.0;
          at[s] -= goes_on[s];
        }
        const std::vector<double> ended = moved(at);
        for (std::size_t s = 0; s < states; ++s) next[s] += ended[s];
        at = moved(goes_on);
      }
      at = next;
    }
    for (std::size_t s = kind; s < kind + 2; ++s) shares[s] = model.start[s] * rounds;
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& x : shares) x /= sum;
  return shares;
}

// The starting point of expectation-maximisation.
FittedProcess first_guess(Process process, std::size_t states, std::size_t depths) {
  FittedProcess model;
  model.process = process;
  model.start.assign(states, 1.0 / static_cast<double>(states));
  const bool kinds = process == Process::requests_and_regimes;
  constexpr std::array kOfKinds = {0.3, 0.7, 0.5, 0.9};  // hard and easy requests, each with hard and easy stretches
  constexpr double kStays = 0.8;
  for (std::size_t s = 0; s < states; ++s) {
    const double first =
        kinds ? kOfKinds[s] : (static_cast<double>(s) + 1.0) / (static_cast<double>(states) + 1.0);  // over (0, 1)
    const std::size_t written = process == Process::by_depth ? depths
                                : falls_with_depth(process)  ? std::max(kWrittenDepths, depths)
                                                             : 1;
    model.alpha.emplace_back(written, first);
    model.rates.level.push_back(std::log(first / (1.0 - first)));
    model.transition.emplace_back(states, 0.0);
    for (std::size_t r = 0; r < states; ++r) {
      const double others = kinds ? (r / 2 == s / 2 ? 1.0 - kStays : 0.0) : (1.0 - kStays) / (static_cast<double>(states) - 1.0);
      model.transition[s][r] = states == 1 ? 1.0 : r == s ? kStays : others;
    }
    if (process == Process::kept_state)
      for (std::size_t r = 0; r < states; ++r) model.transition[s][r] = r == s ? 1.0 : 0.0;
  }
  return model;
}

// The texts of all requests, or of about `most` of them.
Texts texts_of(const std::vector<RecordedRequest>& requests, int judged_depth, std::size_t most) {
  Texts texts;
  for (const std::size_t i : spread_choice(requests.size(), most)) {
    texts.positions.push_back(positions_of(requests[i], judged_depth));
    const auto count = [&](Shown outcome) {
      return static_cast<double>(std::count_if(texts.positions.back().begin(), texts.positions.back().end(),
                                               [&](const Position& at) { return at.outcome == outcome; }));
    };
    texts.judged.push_back({count(kAccepted), count(kRejected)});
    for (const RecordedRound& round : requests[i].rounds)
      texts.depths = std::max(texts.depths, static_cast<std::size_t>(std::min(round.drafted, judged_depth)));
  }
  return texts;
}

}  // namespace

double FallingRates::alpha(std::size_t state, std::size_t depth) const {
  return 1.0 / (1.0 + std::exp(-(level[state] + slope * covariate(depth))));
}

const char* to_text(Process process) {
  constexpr std::array kNames = {"constant", "by_depth", "kept_state", "regimes", "regimes_by_depth", "requests_and_regimes"};
  static_assert(kNames.size() == kAllProcesses.size());
  return kNames.at(static_cast<std::size_t>(process));
}

int FittedProcess::parameters() const {
  const auto states = static_cast<int>(start.size());
  if (falls_with_depth(process)) {
    int free = 2 * states;  // a level for each state, the start, the slope
    for (const std::vector<double>& row : transition)
      free += static_cast<int>(std::count_if(row.begin(), row.end(), [](double x) { return x > 0.0; })) - 1;
    return free;
  }
  return states * static_cast<int>(alpha[0].size()) + states - 1 + (process == Process::regimes ? states * (states - 1) : 0);
}

double FittedProcess::acceptance(std::size_t state, int depth) const {
  return alpha[state][std::min(static_cast<std::size_t>(depth), alpha[state].size() - 1)];
}

double FittedProcess::log_likelihood(const RecordedRequest& request) const {
  return with_states(start.size(), [&]<std::size_t N>() {
    Forward<N> forward;
    return run_forward(Probabilities<N>(*this), positions_of(request), forward);
  });
}

RecordedRequest FittedProcess::simulate(int draft_length, RequestEnd end, rng::Stream& random) const {
  const auto pick = [&](const std::vector<double>& distribution) {
    double u = rng::to_unit(random());
    std::size_t at = 0;
    while (at + 1 < distribution.size() && u >= distribution[at]) u -= distribution[at++];
    return at;
  };
  RecordedRequest request;
  std::size_t state = pick(start);
  const auto move = [&] {
    if (moves(process)) state = pick(transition[state]);
  };
  for (std::uint64_t text = 0; end.rounds > 0 ? request.rounds.size() < end.rounds : text < end.tokens;) {
    RecordedRound round{0, draft_length};
    while (round.accepted < draft_length && rng::to_unit(random()) < acceptance(state, round.accepted)) {
      ++round.accepted;
      move();
    }
    move();
    text += static_cast<std::uint64_t>(round.accepted) + 1;
    request.rounds.push_back(round);
  }
  return request;
}

std::string FittedProcess::yaml(int draft_length, RequestEnd end, std::uint64_t rounds) const {
  const auto draft = [](double a) { return fmt::format("{{family: explicit, probabilities: [{:.4f}, {:.4f}]}}", a, 1.0 - a); };
  // Rounded so that the printed values sum to one.
  const auto distribution = [](const std::vector<double>& weights) {
    std::vector<std::string> texts;
    double left = 1.0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double x = i + 1 < weights.size() ? std::round(weights[i] * 1e4) / 1e4 : left;
      left -= x;
      texts.push_back(fmt::format("{:.4f}", std::max(x, 0.0)));
    }
    return fmt::format("[{}]", fmt::join(texts, ", "));
  };
  std::string context;
  if (process == Process::constant) context = "{process: fixed}";
  if (process == Process::by_depth) {
    std::vector<std::string> drafts;
    for (const double a : alpha[0]) drafts.push_back(draft(a));
    context = fmt::format("\n  process: by_depth\n  drafts:\n  - {}", fmt::join(drafts, "\n  - "));
  }
  if (process == Process::kept_state || moves(process)) {
    // The process `requests` would end a request within a round. States that stay give whole rounds, and each state gets its
    // share of them.
    std::vector<double> first = start;
    if (process == Process::kept_state && end.rounds == 0) {
      for (std::size_t s = 0; s < first.size(); ++s) first[s] *= rounds_to_emit(alpha[s][0], draft_length, end.tokens);
      const double sum = std::accumulate(first.begin(), first.end(), 0.0);
      for (double& x : first) x /= sum;
    }
    if (process == Process::requests_and_regimes && end.rounds == 0) first = by_rounds(*this, draft_length, end.tokens);
    context = fmt::format("\n  process: regimes\n  sequence_rounds: {}\n  start: {}\n  transition:", rounds, distribution(first));
    for (const std::vector<double>& row : transition) context += "\n  - " + distribution(row);
    context += "\n  states:";
    for (const std::vector<double>& a : alpha) {
      std::vector<std::string> drafts;
      for (const double x : a) drafts.push_back(draft(x));
      context += a.size() == 1 ? fmt::format("\n  - {{draft: {}}}", drafts[0])
                               : fmt::format("\n  - drafts:\n    - {}", fmt::join(drafts, "\n    - "));
    }
  }
  return fmt::format(
      "# Fitted to rounds of draft length {}. Longer drafts are extrapolated: specsim fit reports how well that worked within "
      "the "
      "record.\n"
      "experiment: fitted_{}\n"
      "pair:  # acceptance only: the target's token has probability 1, and the draft gives it the acceptance rate\n"
      "  vocab: 2\n  target: {{family: explicit, probabilities: [1, 0]}}\n  draft: {}\n"
      "context: {}\n"
      "decode: {{drafter: {{kind: chain, draft_length: {}}}, verifier: token}}\n",
      draft_length, to_text(process), draft(alpha[0][0]), context, draft_length);
}

FittedProcess fit_process(Process process, std::size_t states, const std::vector<RecordedRequest>& requests, int judged_depth,
                          const std::atomic<bool>* stop) {
  const Texts texts = texts_of(requests, judged_depth, requests.size());
  FittedProcess model = first_guess(process, states, texts.depths);
  const auto improve_on = [&](const Texts& some) {
    constexpr int kMostSteps = 500;
    double before = -std::numeric_limits<double>::infinity();
    for (int step = 0; step < kMostSteps && !(stop != nullptr && *stop); ++step) {
      const double now = with_states(states, [&]<std::size_t N>() { return improve<N>(model, some); });
      // Another step must gain more than this in log likelihood. Sums of so many terms cannot resolve smaller gains.
      if (now - before < std::max(1e-3, 3e-8 * std::abs(now)) && step > 2) break;
      before = now;
    }
  };
  // For a large record most steps use a part of it, which comes nearly as close.
  constexpr std::size_t kPart = 2000;
  if (requests.size() >= 2 * kPart) {
    Texts part = texts_of(requests, judged_depth, kPart);
    part.depths = texts.depths;
    improve_on(part);
  }
  improve_on(texts);
  return model;
}

}  // namespace specsim::fit
