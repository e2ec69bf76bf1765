#include "sim/llm/family_fit.h"

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/token.h"
#include "sim/base/wide.h"
#include "sim/config/json_lines.h"
#include "sim/llm/thread_team.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>

namespace specsim::llm {

namespace {

enum Seen : std::uint8_t { kRejected, kAccepted, kUnseen, kSeen };

// What a text position showed.
struct Position {
  std::uint16_t depth = 0;
  Seen seen = kUnseen;
};

std::vector<Position> positions_of(const RecordedRequest& request) {
  std::vector<Position> text;
  for (const RecordedRound& round : request.rounds) {
    for (int depth = 0; depth < round.accepted; ++depth) text.push_back({static_cast<std::uint16_t>(depth), kAccepted});
    text.push_back({static_cast<std::uint16_t>(round.accepted), round.accepted < round.drafted ? kRejected : kUnseen});
  }
  return text;
}

// A model's probabilities side by side.
template <std::size_t N>
struct Chain {
  using States = std::array<double, N>;

  explicit Chain(const FamilyModel& model) : depths(model.alpha[0].size()), shows(depths * kSeen) {
    for (std::size_t s = 0; s < N; ++s) {
      start[s] = model.start[s];
      for (std::size_t r = 0; r < N; ++r) moves[s][r] = model.transition[s][r];
      for (std::size_t d = 0; d < depths; ++d) {
        shows[d * kSeen + kAccepted][s] = model.alpha[s][d];
        shows[d * kSeen + kRejected][s] = 1.0 - model.alpha[s][d];
        shows[d * kSeen + kUnseen][s] = 1.0;
      }
    }
  }
  [[nodiscard]] std::size_t place(const Position& at) const {
    return std::min<std::size_t>(at.depth, depths - 1) * kSeen + at.seen;
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
double run_forward(const Chain<N>& chain, const std::vector<Position>& text, Forward<N>& out) {
  out.sums.resize(text.size());
  out.scales.resize(text.size());
  double log_likelihood = 0.0;
  double product = 1.0;
  std::array<double, N> in = chain.start;
  for (std::size_t t = 0; t < text.size(); ++t) {
    const std::array<double, N>& shows = chain.shows[chain.place(text[t])];
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
      for (std::size_t r = 0; r < N; ++r) in[s] += here[r] * chain.moves[r][s];
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
double count_text(const Chain<N>& chain, const std::vector<Position>& text, Forward<N>& forward, Counts<N>& counts) {
  const double log_likelihood = run_forward(chain, text, forward);
  std::array<double, N> back;
  back.fill(1.0);
  for (std::size_t t = text.size(); t-- > 0;) {
    const std::size_t place = chain.place(text[t]);
    std::array<double, N> here;  // the states' probabilities given the text
    for (std::size_t s = 0; s < N; ++s) here[s] = forward.sums[t][s] * back[s];
    if (text[t].seen != kUnseen)
      for (std::size_t s = 0; s < N; ++s) {
        counts.judged[place / kSeen][s] += here[s];
        counts.accepted[place / kSeen][s] += text[t].seen == kAccepted ? here[s] : 0.0;
      }
    if (t == 0) {
      for (std::size_t s = 0; s < N; ++s) counts.start[s] += here[s];
      break;
    }
    std::array<double, N> ahead;
    for (std::size_t s = 0; s < N; ++s) ahead[s] = chain.shows[place][s] * back[s] * forward.scales[t];
    for (std::size_t r = 0; r < N; ++r) {
      back[r] = 0.0;
      for (std::size_t s = 0; s < N; ++s) {
        const double move = chain.moves[r][s] * ahead[s];
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
double count_request(const Chain<N>& chain, const Judged& request, Counts<N>& counts) {
  std::array<double, N> here;
  for (std::size_t s = 0; s < N; ++s)
    here[s] = std::log(chain.start[s]) + request.accepted * std::log(chain.shows[kAccepted][s]) +
              request.rejected * std::log(chain.shows[kRejected][s]);
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
double improve(FamilyModel& model, const Texts& texts) {
  const Chain<N> chain(model);
  Counts<N> counts(chain.depths);
  Forward<N> forward;
  double log_likelihood = 0.0;
  if (model.family == Family::requests)
    for (const Judged& request : texts.judged) log_likelihood += count_request(chain, request, counts);
  else
    for (const std::vector<Position>& text : texts.positions) log_likelihood += count_text(chain, text, forward, counts);
  for (std::size_t s = 0; s < N; ++s) {
    model.start[s] = counts.start[s] / static_cast<double>(texts.positions.size());
    for (std::size_t d = 0; d < chain.depths; ++d) model.alpha[s][d] = counts.accepted[d][s] / counts.judged[d][s];
    if (model.family != Family::regimes) continue;
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

double likelihood(const FamilyModel& model, const std::vector<RecordedRequest>& requests) {
  double sum = 0.0;
  for (const RecordedRequest& request : requests) sum += model.log_likelihood(request);
  return sum;
}

// Requests and regimes with as many states as the data pay for, by Bayes' information criterion.
FamilyModel fit_best_size(Family family, const std::vector<RecordedRequest>& requests) {
  if (family == Family::iid || family == Family::by_depth) return fit_family(family, 1, requests);
  std::optional<FamilyModel> best;
  double least = std::numeric_limits<double>::infinity();
  double size = 0.0;
  for (const RecordedRequest& request : requests) size += static_cast<double>(request.rounds.size());
  for (const std::size_t states : {2U, 3U}) {
    FamilyModel model = fit_family(family, states, requests);
    const double criterion = model.parameters() * std::log(size) - 2.0 * likelihood(model, requests);
    if (criterion < least) best = std::move(model);
    least = std::min(least, criterion);
  }
  return *best;
}

std::uint64_t judged_positions(const RecordedRequest& request) {
  std::uint64_t sum = 0;
  for (const RecordedRound& round : request.rounds)
    sum += static_cast<std::uint64_t>(round.accepted) + (round.accepted < round.drafted ? 1 : 0);
  return sum;
}

std::uint64_t emitted(const RecordedRequest& request) {
  std::uint64_t sum = 0;
  for (const RecordedRound& round : request.rounds) sum += static_cast<std::uint64_t>(round.accepted) + 1;
  return sum;
}

double tokens_per_round(const std::vector<RecordedRequest>& requests) {
  double tokens = 0.0;
  double rounds = 0.0;
  for (const RecordedRequest& request : requests) {
    tokens += static_cast<double>(emitted(request));
    rounds += static_cast<double>(request.rounds.size());
  }
  return tokens / rounds;
}

// What the bootstrap compares; each a list of counts or figures.
enum Statistic : std::size_t { kByDepth, kLaw, kRuns, kSpread, kStatistics };
using Figures = std::array<std::vector<double>, kStatistics>;

Figures figures(const std::vector<RecordedRequest>& requests, int draft_length) {
  constexpr std::size_t kRunBins = 12;
  Figures all;
  const auto depths = static_cast<std::size_t>(draft_length);
  std::vector<double> judged(depths, 0.0);
  all[kByDepth].assign(depths, 0.0);
  all[kLaw].assign(depths + 1, 0.0);
  all[kRuns].assign(kRunBins, 0.0);
  double rounds = 0.0;
  double runs = 0.0;
  double mean = 0.0;
  double squares = 0.0;
  for (const RecordedRequest& request : requests) {
    std::size_t run = 0;
    double own = 0.0;
    double own_judged = 0.0;
    for (const RecordedRound& round : request.rounds) {
      const auto accepted = static_cast<std::size_t>(round.accepted);
      for (std::size_t depth = 0; depth < accepted; ++depth) all[kByDepth][depth] += 1.0;
      for (std::size_t depth = 0; depth <= accepted && depth < static_cast<std::size_t>(round.drafted); ++depth)
        judged[depth] += 1.0;
      all[kLaw][accepted] += 1.0;
      rounds += 1.0;
      own += static_cast<double>(accepted);
      own_judged += static_cast<double>(accepted) + (round.accepted < round.drafted ? 1.0 : 0.0);
      run += accepted;
      if (round.accepted < round.drafted) {
        all[kRuns][std::min(run, kRunBins - 1)] += 1.0;
        runs += 1.0;
        run = 0;
      }
    }
    const double rate = own_judged > 0.0 ? own / own_judged : 0.0;
    mean += rate;
    squares += rate * rate;
  }
  // Shares: how many rounds a request takes is no part of the question.
  for (std::size_t depth = 0; depth < depths; ++depth) all[kByDepth][depth] /= std::max(judged[depth], 1.0);
  for (double& x : all[kLaw]) x /= rounds;
  for (double& x : all[kRuns]) x /= std::max(runs, 1.0);
  const auto n = static_cast<double>(requests.size());
  all[kSpread] = {squares / n - mean * mean / (n * n)};
  return all;
}

// How far `x` lies from the mean of the replicates, in their variances.
double distance(const std::vector<double>& x, const std::vector<double>& mean, const std::vector<double>& variance) {
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (variance[i] > 0.0)
      sum += (x[i] - mean[i]) * (x[i] - mean[i]) / variance[i];
    else if (std::abs(x[i] - mean[i]) > 1e-9)  // what no replicate shows
      return std::numeric_limits<double>::infinity();
  return sum;
}

// How many tokens a request was to emit, as far as its record tells: its last round began before it had them.
struct Length {
  std::uint64_t least = 1;
  std::uint64_t most = 1;
};

std::vector<Length> lengths_of(const std::vector<RecordedRequest>& requests) {
  std::vector<Length> lengths;
  Length common{0, std::numeric_limits<std::uint64_t>::max()};
  for (const RecordedRequest& request : requests) {
    const std::uint64_t most = emitted(request);
    lengths.push_back({most - static_cast<std::uint64_t>(request.rounds.back().accepted), most});
    common = {std::max(common.least, lengths.back().least), std::min(common.most, most)};
  }
  if (common.least <= common.most) lengths.assign(requests.size(), {common.least, common.least});
  return lengths;
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

// Threads that share a list of work.
class Workers {
 public:
  Workers(const FitRun& run, double all) : run_(run), all_(all), team_(run.threads) {}

  // Calls work(i) for every i < count, in any order, unless the run is stopped; each is `share` of all that progress counts.
  void each(std::size_t count, double share, const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next{0};
    team_.split(team_.size(), 1, [&](std::size_t, std::size_t) {
      for (std::size_t i = next++; i < count && !stopped(); i = next++) {
        work(i);
        const std::scoped_lock lock(mutex_);
        done_ += share;
        if (run_.progress) run_.progress(done_, all_);
      }
    });
  }
  [[nodiscard]] bool stopped() const { return run_.stop != nullptr && *run_.stop; }

 private:
  const FitRun& run_;
  double all_;
  double done_ = 0.0;
  std::mutex mutex_;
  ThreadTeam team_;
};

void bootstrap(FamilyReport& report, const std::vector<RecordedRequest>& requests, const std::vector<Length>& lengths,
               int draft_length, std::uint64_t seed, Workers& workers) {
  std::vector<Figures> replicates(kReplicates);
  std::vector<double> per_round(kReplicates);
  workers.each(kReplicates, 1.0, [&](std::size_t b) {
    rng::Stream random(rng::make_key(seed, rng::hash_text(to_text(report.model.family))), rng::Purpose::start, 0, b);
    std::vector<RecordedRequest> simulated;
    for (const auto& [least, most] : lengths) {
      const std::uint64_t tokens = least == most ? least : least + scale_word(random(), most - least + 1);
      simulated.push_back(report.model.simulate(draft_length, tokens, random));
    }
    replicates[b] = figures(simulated, draft_length);
    per_round[b] = tokens_per_round(simulated);
  });
  if (workers.stopped()) return;
  report.tokens_per_round = std::accumulate(per_round.begin(), per_round.end(), 0.0) / static_cast<double>(kReplicates);
  const Figures seen = figures(requests, draft_length);
  const std::array<double*, kStatistics> p = {&report.p_by_depth, &report.p_accepted, &report.p_runs, &report.p_requests};
  for (std::size_t k = 0; k < kStatistics; ++k) {
    const std::size_t size = seen[k].size();
    std::vector<double> mean(size, 0.0);
    std::vector<double> variance(size, 0.0);
    for (const Figures& one : replicates)
      for (std::size_t i = 0; i < size; ++i) mean[i] += one[k][i] / static_cast<double>(kReplicates);
    for (const Figures& one : replicates)
      for (std::size_t i = 0; i < size; ++i)
        variance[i] += (one[k][i] - mean[i]) * (one[k][i] - mean[i]) / static_cast<double>(kReplicates);
    const double own = distance(seen[k], mean, variance);
    const auto beyond = std::count_if(replicates.begin(), replicates.end(),
                                      [&](const Figures& one) { return distance(one[k], mean, variance) >= own; });
    *p[k] = (1.0 + static_cast<double>(beyond)) / (1.0 + static_cast<double>(kReplicates));
  }
}

constexpr std::size_t kFolds = 5;
constexpr double kFitShare = 50.0;  // of what progress counts, a replicate being one

// The requests outside a fold.
std::vector<RecordedRequest> without_fold(const std::vector<RecordedRequest>& requests, std::size_t fold) {
  std::vector<RecordedRequest> others;
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (i % kFolds != fold) others.push_back(requests[i]);
  return others;
}

std::optional<int> count_of(const config::Value* value, int most) {
  if (value == nullptr) return std::nullopt;
  const auto n = config::as_integer(*value);
  if (!n || *n < 0 || *n > most) return std::nullopt;
  return static_cast<int>(*n);
}

// What is wrong with the line, or nothing.
std::optional<std::string> read_request(const config::Value& line, RecordedRequest& request) {
  const std::optional<int> draft_length = count_of(line.find("draft_length"), kMaxDraftLength);
  const config::Value* const rounds = line.find("rounds");
  const config::Value* const drafted = line.find("drafted");
  if (line.find("tree") != nullptr) return "rounds of trees, allowed: of chains, which the families describe";
  if (!draft_length || *draft_length == 0 || rounds == nullptr || rounds->items.empty())
    return fmt::format("no record of rounds, allowed: {{\"draft_length\": 1 to {}, \"rounds\": [accepted, ...]}}",
                       kMaxDraftLength);
  if (drafted != nullptr && drafted->items.size() != rounds->items.size())
    return fmt::format("{} rounds and {} entries of \"drafted\", allowed: as many", rounds->items.size(), drafted->items.size());
  for (std::size_t i = 0; i < rounds->items.size(); ++i) {
    const std::optional<int> n = drafted != nullptr ? count_of(&drafted->items[i], *draft_length) : draft_length;
    const std::optional<int> accepted = n ? count_of(&rounds->items[i], *n) : std::nullopt;
    if (!accepted)
      return fmt::format("round {} accepted {}, allowed: an integer up to what was drafted", i + 1,
                         config::found_text(rounds->items[i]));
    request.rounds.push_back({*accepted, *n});
  }
  return std::nullopt;
}

}  // namespace

const char* to_text(Family family) {
  switch (family) {
    case Family::iid:
      return "iid";
    case Family::by_depth:
      return "by_depth";
    case Family::requests:
      return "requests";
    case Family::regimes:
      break;
  }
  return "regimes";
}

std::vector<RecordedRequest> read_rounds(const std::string& path, const std::string& kind) {
  Diagnostics diagnostics;
  std::vector<RecordedRequest> requests;
  config::read_json_lines(path, {}, "one a line", diagnostics, [&](const config::Value& object, const Location& where) {
    if (const config::Value* const own = object.find("kind"); !kind.empty() && (own == nullptr || own->text != kind)) return;
    RecordedRequest request;
    if (const std::optional<std::string> mistake = read_request(object, request)) diagnostics.add(where, *mistake);
    requests.push_back(std::move(request));
  });
  constexpr std::size_t kFewest = 10;
  if (diagnostics.empty() && requests.size() < kFewest)
    diagnostics.add({path, 0, 0}, fmt::format("{} requests{}, allowed: at least {}", requests.size(),
                                              kind.empty() ? "" : " of kind " + kind, kFewest));
  diagnostics.throw_if_any();
  return requests;
}

int FamilyModel::parameters() const {
  const auto states = static_cast<int>(start.size());
  return states * static_cast<int>(alpha[0].size()) + states - 1 + (family == Family::regimes ? states * (states - 1) : 0);
}

double FamilyModel::acceptance(std::size_t state, int depth) const {
  return alpha[state][std::min(static_cast<std::size_t>(depth), alpha[state].size() - 1)];
}

double FamilyModel::log_likelihood(const RecordedRequest& request) const {
  return with_states(start.size(), [&]<std::size_t N>() {
    Forward<N> forward;
    return run_forward(Chain<N>(*this), positions_of(request), forward);
  });
}

RecordedRequest FamilyModel::simulate(int draft_length, std::uint64_t tokens, rng::Stream& random) const {
  const auto pick = [&](const std::vector<double>& law) {
    double u = rng::to_unit(random());
    std::size_t at = 0;
    while (at + 1 < law.size() && u >= law[at]) u -= law[at++];
    return at;
  };
  RecordedRequest request;
  std::size_t state = pick(start);
  const auto move = [&] {
    if (family == Family::regimes) state = pick(transition[state]);
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

std::string FamilyModel::yaml(int draft_length, std::uint64_t tokens, std::uint64_t rounds) const {
  const auto draft = [](double a) { return fmt::format("{{family: explicit, probabilities: [{:.4f}, {:.4f}]}}", a, 1.0 - a); };
  // Rounded so that they sum to one as they stand in the file.
  const auto law = [](const std::vector<double>& weights) {
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
  if (family == Family::iid) context = "{process: fixed}";
  if (family == Family::by_depth) {
    std::vector<std::string> drafts;
    for (const double a : alpha[0]) drafts.push_back(draft(a));
    context = fmt::format("\n  process: by_depth\n  drafts:\n  - {}", fmt::join(drafts, "\n  - "));
  }
  if (family == Family::requests || family == Family::regimes) {
    // Process requests would end a request within a round. States that stay give whole rounds, each state its share of them.
    std::vector<double> first = start;
    if (family == Family::requests) {
      for (std::size_t s = 0; s < first.size(); ++s) first[s] *= rounds_to_emit(alpha[s][0], draft_length, tokens);
      const double sum = std::accumulate(first.begin(), first.end(), 0.0);
      for (double& x : first) x /= sum;
    }
    context = fmt::format("\n  process: regimes\n  sequence_rounds: {}\n  start: {}\n  transition:", rounds, law(first));
    for (const std::vector<double>& row : transition) context += "\n  - " + law(row);
    context += "\n  states:";
    for (const std::vector<double>& a : alpha) context += fmt::format("\n  - {{draft: {}}}", draft(a[0]));
  }
  return fmt::format(
      "experiment: fitted_{}\n"
      "pair:  # acceptance alone: the target is certain of its token, the draft as sure of it as it is accepted\n"
      "  vocab: 2\n  target: {{family: explicit, probabilities: [1, 0]}}\n  draft: {}\n"
      "context: {}\n"
      "decode: {{drafter: {{kind: chain, draft_length: {}}}, verifier: token}}\n",
      to_text(family), draft(alpha[0][0]), context, draft_length);
}

FamilyModel fit_family(Family family, std::size_t states, const std::vector<RecordedRequest>& requests) {
  Texts texts;
  std::size_t depths = 1;
  for (const RecordedRequest& request : requests) {
    texts.positions.push_back(positions_of(request));
    const auto count = [&](Seen seen) {
      return static_cast<double>(std::count_if(texts.positions.back().begin(), texts.positions.back().end(),
                                               [&](const Position& at) { return at.seen == seen; }));
    };
    texts.judged.push_back({count(kAccepted), count(kRejected)});
    for (const RecordedRound& round : request.rounds) depths = std::max(depths, static_cast<std::size_t>(round.drafted));
  }
  FamilyModel model;
  model.family = family;
  model.start.assign(states, 1.0 / static_cast<double>(states));
  for (std::size_t s = 0; s < states; ++s) {
    const double first = (static_cast<double>(s) + 1.0) / (static_cast<double>(states) + 1.0);  // spread over (0, 1)
    model.alpha.emplace_back(family == Family::by_depth ? depths : 1, first);
    model.transition.emplace_back(states, 0.0);
    constexpr double kStays = 0.8;
    for (std::size_t r = 0; r < states; ++r)
      model.transition[s][r] = states == 1 ? 1.0 : r == s ? kStays : (1.0 - kStays) / (static_cast<double>(states) - 1.0);
    if (family == Family::requests)
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

bool FamilyReport::rejected() const {
  constexpr double kLevel = 0.01 / static_cast<double>(kStatistics);
  return std::min({p_by_depth, p_accepted, p_runs, p_requests}) < kLevel;
}

FitReport fit_families(const std::vector<RecordedRequest>& requests, const FitRun& run) {
  constexpr std::array kFamilies = {Family::regimes, Family::requests, Family::by_depth, Family::iid};  // the slowest first
  FitReport report;
  double judged = 0.0;
  double rounds = 0.0;
  for (const RecordedRequest& request : requests) {
    for (const RecordedRound& round : request.rounds) report.draft_length = std::max(report.draft_length, round.drafted);
    judged += static_cast<double>(judged_positions(request));
    rounds += static_cast<double>(request.rounds.size());
  }
  const std::vector<Length> lengths = lengths_of(requests);
  double tokens = 0.0;
  for (const auto& [least, most] : lengths) tokens += 0.5 * static_cast<double>(least + most);
  const auto n = static_cast<double>(requests.size());
  report.tokens = static_cast<std::uint64_t>(std::llround(tokens / n));
  report.rounds = static_cast<std::uint64_t>(std::llround(rounds / n));
  report.tokens_per_round = tokens_per_round(requests);

  constexpr std::size_t kFits = kFolds + 1;  // of a family; the last to all requests
  Workers workers(run, static_cast<double>(kFamilies.size()) * (static_cast<double>(kFits) * kFitShare + kReplicates));
  std::array<std::array<FamilyModel, kFits>, kFamilies.size()> models;
  workers.each(kFamilies.size() * kFits, kFitShare, [&](std::size_t i) {
    models[i / kFits][i % kFits] = fit_best_size(kFamilies[i / kFits], without_fold(requests, i % kFits));
  });
  std::vector<std::vector<double>> scores;
  for (std::size_t f = kFamilies.size(); f-- > 0 && !workers.stopped();) {
    FamilyReport one;
    one.model = models[f][kFolds];
    one.log_likelihood = likelihood(one.model, requests);
    scores.emplace_back();
    for (std::size_t i = 0; i < requests.size(); ++i) scores.back().push_back(models[f][i % kFolds].log_likelihood(requests[i]));
    one.held_out = std::accumulate(scores.back().begin(), scores.back().end(), 0.0) / judged;
    bootstrap(one, requests, lengths, report.draft_length, run.seed, workers);
    report.families.push_back(std::move(one));
  }
  if (workers.stopped()) {
    report.families.clear();
    return report;
  }
  const bool all_rejected =
      std::all_of(report.families.begin(), report.families.end(), [](const FamilyReport& one) { return one.rejected(); });
  const auto usable = [&](const FamilyReport& one) { return all_rejected || !one.rejected(); };
  std::size_t best = report.families.size();
  for (std::size_t f = 0; f < report.families.size(); ++f)
    if (usable(report.families[f]) &&
        (best == report.families.size() || report.families[f].held_out > report.families[best].held_out))
      best = f;
  report.best = best;
  for (std::size_t f = report.families.size(); f-- > 0;) {
    FamilyReport& one = report.families[f];
    double squares = 0.0;
    const double mean = (report.families[best].held_out - one.held_out) * judged / n;  // a request's
    for (std::size_t i = 0; i < requests.size(); ++i) squares += std::pow(scores[best][i] - scores[f][i] - mean, 2);
    one.behind_best = report.families[best].held_out - one.held_out;
    one.behind_error = std::sqrt(squares * n / (n - 1.0)) / judged;
    const bool simpler = one.model.parameters() < report.families[report.best].model.parameters();
    if (simpler && usable(one) && one.behind_best <= one.behind_error) report.best = f;
  }
  return report;
}

double simulated_tokens_per_round(const FamilyModel& model, int draft_length, std::uint64_t tokens, std::uint64_t requests,
                                  std::uint64_t seed) {
  std::vector<RecordedRequest> simulated;
  rng::Stream random(rng::make_key(seed, rng::hash_text("tokens per round")), rng::Purpose::start, 0, 0);
  for (std::uint64_t i = 0; i < requests; ++i) simulated.push_back(model.simulate(draft_length, tokens, random));
  return tokens_per_round(simulated);
}

}  // namespace specsim::llm
