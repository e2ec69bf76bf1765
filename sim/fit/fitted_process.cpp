#include "sim/fit/fitted_process.h"

#include "sim/base/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace specsim::fit {

namespace {

enum Outcome : std::uint8_t { kRejected, kAccepted, kUnjudged, kOutcomes };

// What a text position showed.
struct Position {
  std::uint16_t depth = 0;
  Outcome outcome = kUnjudged;
};

std::vector<Position> positions_of(const RecordedRequest& request) {
  std::vector<Position> text;
  for (const RecordedRound& round : request.rounds) {
    for (int depth = 0; depth < round.accepted; ++depth) text.push_back({static_cast<std::uint16_t>(depth), kAccepted});
    text.push_back({static_cast<std::uint16_t>(round.accepted), round.accepted < round.drafted ? kRejected : kUnjudged});
  }
  return text;
}

// A model's probabilities side by side.
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
  std::vector<std::array<double, N>> sums;  // each position's scaled to one
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

// Expected counts of one step of expectation and maximisation. Half an acceptance and half a rejection are added to the counts of
// every probability, so that none becomes 0 or 1 for want of data.
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
    std::array<double, N> here;  // the states' probabilities given the text
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

struct Judged {
  double accepted = 0.0;
  double rejected = 0.0;
};

// The same of a request that keeps its state: how often it accepted and rejected is all that matters.
template <std::size_t N>
double count_request(const Probabilities<N>& probabilities, const Judged& request, Counts<N>& counts) {
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
  std::vector<Judged> judged;  // [request]
};

// One step of expectation and maximisation; returns the likelihood before it.
template <std::size_t N>
double improve(FittedProcess& model, const Texts& texts) {
  const Probabilities<N> probabilities(model);
  Counts<N> counts(probabilities.depths);
  Forward<N> forward;
  double log_likelihood = 0.0;
  if (model.process == Process::kept_state)
    for (const Judged& request : texts.judged) log_likelihood += count_request(probabilities, request, counts);
  else
    for (const std::vector<Position>& text : texts.positions) log_likelihood += count_text(probabilities, text, forward, counts);
  for (std::size_t s = 0; s < N; ++s) {
    model.start[s] = counts.start[s] / static_cast<double>(texts.positions.size());
    for (std::size_t d = 0; d < probabilities.depths; ++d) model.alpha[s][d] = counts.accepted[d][s] / counts.judged[d][s];
    if (model.process != Process::regimes) continue;
    const double sum = std::accumulate(counts.moves[s].begin(), counts.moves[s].end(), 0.0);
    for (std::size_t r = 0; r < N; ++r)
      model.transition[s][r] = (counts.moves[s][r] + 0.5) / (sum + 0.5 * static_cast<double>(N));
  }
  return log_likelihood;
}

// work.template operator()<number of states>().
template <class Work>
double with_states(std::size_t states, const Work& work) {
  SPECSIM_CHECK(states >= 1 && states <= 3, "{} states", states);
  if (states == 1) return work.template operator()<1>();
  return states == 2 ? work.template operator()<2>() : work.template operator()<3>();
}

// Rounds that a request with one alpha takes on average, by the renewal equation m(t) = 1 + sum over e of P(emitted = e) m(t -
// e).
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

}  // namespace

const char* to_text(Process process) {
  switch (process) {
    case Process::constant:
      return "constant";
    case Process::by_depth:
      return "by_depth";
    case Process::kept_state:
      return "kept_state";
    case Process::regimes:
      break;
  }
  return "regimes";
}

int FittedProcess::parameters() const {
  const auto states = static_cast<int>(start.size());
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

RecordedRequest FittedProcess::simulate(int draft_length, std::uint64_t tokens, rng::Stream& random) const {
  const auto pick = [&](const std::vector<double>& distribution) {
    double u = rng::to_unit(random());
    std::size_t at = 0;
    while (at + 1 < distribution.size() && u >= distribution[at]) u -= distribution[at++];
    return at;
  };
  RecordedRequest request;
  std::size_t state = pick(start);
  const auto move = [&] {
    if (process == Process::regimes) state = pick(transition[state]);
  };
  for (std::uint64_t text = 0; text < tokens;) {
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

std::string FittedProcess::yaml(int draft_length, std::uint64_t tokens, std::uint64_t rounds) const {
  const auto draft = [](double a) { return fmt::format("{{family: explicit, probabilities: [{:.4f}, {:.4f}]}}", a, 1.0 - a); };
  // Rounded so that they sum to one as they stand in the file.
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
  if (process == Process::kept_state || process == Process::regimes) {
    // Process requests would end a request within a round. States that stay give whole rounds, each state its share of them.
    std::vector<double> first = start;
    if (process == Process::kept_state) {
      for (std::size_t s = 0; s < first.size(); ++s) first[s] *= rounds_to_emit(alpha[s][0], draft_length, tokens);
      const double sum = std::accumulate(first.begin(), first.end(), 0.0);
      for (double& x : first) x /= sum;
    }
    context = fmt::format("\n  process: regimes\n  sequence_rounds: {}\n  start: {}\n  transition:", rounds, distribution(first));
    for (const std::vector<double>& row : transition) context += "\n  - " + distribution(row);
    context += "\n  states:";
    for (const std::vector<double>& a : alpha) context += fmt::format("\n  - {{draft: {}}}", draft(a[0]));
  }
  return fmt::format(
      "experiment: fitted_{}\n"
      "pair:  # acceptance alone: the target is certain of its token, the draft as sure of it as it is accepted\n"
      "  vocab: 2\n  target: {{family: explicit, probabilities: [1, 0]}}\n  draft: {}\n"
      "context: {}\n"
      "decode: {{drafter: {{kind: chain, draft_length: {}}}, verifier: token}}\n",
      to_text(process), draft(alpha[0][0]), context, draft_length);
}

FittedProcess fit_process(Process process, std::size_t states, const std::vector<RecordedRequest>& requests) {
  Texts texts;
  std::size_t depths = 1;
  for (const RecordedRequest& request : requests) {
    texts.positions.push_back(positions_of(request));
    const auto count = [&](Outcome outcome) {
      return static_cast<double>(std::count_if(texts.positions.back().begin(), texts.positions.back().end(),
                                               [&](const Position& at) { return at.outcome == outcome; }));
    };
    texts.judged.push_back({count(kAccepted), count(kRejected)});
    for (const RecordedRound& round : request.rounds) depths = std::max(depths, static_cast<std::size_t>(round.drafted));
  }
  FittedProcess model;
  model.process = process;
  model.start.assign(states, 1.0 / static_cast<double>(states));
  for (std::size_t s = 0; s < states; ++s) {
    const double first = (static_cast<double>(s) + 1.0) / (static_cast<double>(states) + 1.0);  // spread over (0, 1)
    model.alpha.emplace_back(process == Process::by_depth ? depths : 1, first);
    model.transition.emplace_back(states, 0.0);
    constexpr double kStays = 0.8;
    for (std::size_t r = 0; r < states; ++r)
      model.transition[s][r] = states == 1 ? 1.0 : r == s ? kStays : (1.0 - kStays) / (static_cast<double>(states) - 1.0);
    if (process == Process::kept_state)
      for (std::size_t r = 0; r < states; ++r) model.transition[s][r] = r == s ? 1.0 : 0.0;
  }
  constexpr int kMostSteps = 500;
  constexpr double kEnough = 1e-3;  // of log likelihood, for a step
  double before = -std::numeric_limits<double>::infinity();
  for (int step = 0; step < kMostSteps; ++step) {
    const double now = with_states(states, [&]<std::size_t N>() { return improve<N>(model, texts); });
    if (now - before < kEnough && step > 2) break;
    before = now;
  }
  return model;
}

}  // namespace specsim::fit
