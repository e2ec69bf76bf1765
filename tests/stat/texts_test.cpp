// Process `text` compared with an independent model. `check` takes the distributions, and the sequence of contexts, from the
// program, so it cannot see a mistake in either. Here both are written independently from the reference page: in a large
// vocabulary a context whose logits get normal noise of standard deviation n has an overlap of 2 Phi(-n / 2), and tokens per
// round follow from that by a chain over kinds of requests, halves and places.
#include "sim/experiments/judge/prediction.h"
#include "tests/support/cells.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace specsim::texts_test {

namespace {

struct Text {
  double persistence = 0.0;
  double between_requests = 0.0;
  int request_tokens = 0;
  double drift = 0.0;
  int depths = 2;
  double value = 0.0;
  double spread = 0.0;
  int draft_length = 4;
};

// Behaviour of a wrong program.
enum class Mistake {
  none,
  drift_a_place_early,
  drift_not_rooted,
  any_stretch,
  any_request,
  scales_not_pulled_apart,
  last_depth_off
};

double phi(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

// The z that a normal number is below with probability `share`.
double quantile(double share) {
  double low = -10.0;
  double high = 10.0;
  for (int i = 0; i < 80; ++i) (phi(0.5 * (low + high)) < share ? low : high) = 0.5 * (low + high);
  return low;
}

// States: kinds of requests by difficulty (2, or 1 if all requests are equal) x halves of the hard part x places. The entropy of
// a context does not affect a large vocabulary's overlap.
class Model {
 public:
  Model(const Text& text, Mistake mistake) : text_(text), mistake_(mistake) {
    constexpr int kContexts = 256;
    constexpr int kStretches = 4;  // halves of the entropy part x halves of the hard part
    kinds_ = text.between_requests > 0.0 ? 2 : 1;
    places_ = kContexts / kStretches / (kinds_ * kinds_);
    std::vector<double> middles;
    double squares = 0.0;
    for (int i = 0; i < 2 * places_; ++i) {
      middles.push_back(quantile((i + 0.5) / (2 * places_)));
      squares += middles.back() * middles.back() / (2 * places_);
    }
    const double own = std::sqrt((1.0 - text.between_requests) / (mistake == Mistake::scales_not_pulled_apart ? 1.0 : squares));
    for (int kind = 0; kind < kinds_; ++kind)
      for (const double middle : middles) {
        const double of_kind = kinds_ == 1 ? 0.0 : (kind == 0 ? -1.0 : 1.0) * std::sqrt(text.between_requests);
        hard_.push_back(of_kind + own * middle);
      }
  }

  [[nodiscard]] double tokens_per_round() const { return text_.request_tokens > 0 ? of_requests() : of_rounds(); }

 private:
  using Mass = std::vector<double>;  // [state]

  [[nodiscard]] double acceptance(std::size_t state, int place) const {
    const int last = text_.depths - 1 + (mistake_ == Mistake::last_depth_off ? 1 : 0);
    double depth = std::min(place, last);
    if (mistake_ == Mistake::drift_a_place_early) depth += 1.0;
    if (mistake_ == Mistake::drift_not_rooted) depth *= depth;
    const double noise = text_.value * std::exp(text_.spread * hard_[state]);
    return 2.0 * phi(-0.5 * std::sqrt(noise * noise + text_.drift * text_.drift * depth));
  }

  // One text position on.
  [[nodiscard]] Mass moved(const Mass& mass) const {
    const auto places = static_cast<std::size_t>(places_);
    const double stays = mistake_ == Mistake::any_stretch ? 0.0 : text_.persistence;
    double all = 0.0;
    for (const double share : mass) all += share;
    Mass next(mass.size());
    for (std::size_t kind = 0; kind < static_cast<std::size_t>(kinds_); ++kind) {
      double half[2] = {0.0, 0.0};
      for (std::size_t i = 0; i < 2 * places; ++i) half[i / places] += mass[kind * 2 * places + i];
      double of_kind = half[0] + half[1];
      if (mistake_ == Mistake::any_request) of_kind = all / kinds_;
      for (std::size_t i = 0; i < 2 * places; ++i)
        next[kind * 2 * places + i] = (stays * half[i / places] + (1.0 - stays) * 0.5 * of_kind) / static_cast<double>(places);
    }
    return next;
  }

  // Enumerates rounds that start from `start`: calls ends(tokens, probabilities of the end by context after the last token).
  template <class Ends>
  void round(Mass start, const Ends& ends) const {
    for (int place = 0; place < text_.draft_length; ++place) {
      Mass rejected(start.size());
      for (std::size_t s = 0; s < start.size(); ++s) {
        const double accepted = start[s] * acceptance(s, place);
        rejected[s] = start[s] - accepted;
        start[s] = accepted;
      }
      ends(place + 1, moved(rejected));
      start = moved(start);
    }
    ends(text_.draft_length + 1, moved(start));
  }

  static double sum(const Mass& mass) {
    double all = 0.0;
    for (const double share : mass) all += share;
    return all;
  }

  // Sequences of 64 rounds, the default.
  [[nodiscard]] double of_rounds() const {
    constexpr int kRounds = 64;
    Mass start(hard_.size(), 1.0 / static_cast<double>(hard_.size()));
    double tokens = 0.0;
    for (int i = 0; i < kRounds; ++i) {
      Mass next(start.size(), 0.0);
      round(start, [&](int emitted, const Mass& mass) {
        tokens += emitted * sum(mass);
        for (std::size_t s = 0; s < mass.size(); ++s) next[s] += mass[s];
      });
      start = next;
    }
    return tokens / kRounds;
  }

  // Requests of equally many tokens; a round that the end cuts short counts neither in rounds nor in tokens.
  [[nodiscard]] double of_requests() const {
    const auto size = static_cast<std::size_t>(text_.request_tokens);
    std::vector<Mass> starts(size + 1, Mass(hard_.size(), 0.0));  // [text position]: rounds that start there
    starts[0].assign(hard_.size(), 1.0 / static_cast<double>(hard_.size()));
    double rounds = 0.0;
    double tokens = 0.0;
    for (std::size_t at = 0; at < size; ++at)
      round(starts[at], [&](int emitted, const Mass& mass) {
        const std::size_t behind = at + static_cast<std::size_t>(emitted);
        if (behind > size) return;
        rounds += sum(mass);
        tokens += emitted * sum(mass);
        for (std::size_t s = 0; s < mass.size(); ++s) starts[behind][s] += mass[s];
      });
    return tokens / rounds;
  }

  Text text_;
  Mistake mistake_;
  int kinds_ = 1;
  int places_ = 1;
  std::vector<double> hard_;  // [state]
};

// A target whose tokens have nearly equal probabilities, so that the noise affects thousands of them.
double tokens_per_round(const Text& text) {
  std::string context =
      fmt::format("process: text, persistence: {}, between_requests: {}", text.persistence, text.between_requests);
  if (text.request_tokens > 0) context += fmt::format(", request_tokens: {}", text.request_tokens);
  if (text.drift > 0.0) context += fmt::format(", drift: {}, depths: {}", text.drift, text.depths);
  const tests::ReadyCell ready(fmt::format(
      "{{experiment: texts, seed: 20261127, rounds: 100000, pair: {{vocab: 8000, target: {{family: normal_logits, sigma: 0.1, "
      "spread: 0.2}}, draft: {{from: target, transform: logit_noise, value: {}, spread: {}}}}}, context: {{{}}}, decode: "
      "{{drafter: {{kind: chain, draft_length: {}}}}}}}",
      text.value, text.spread, context, text.draft_length));
  const judge::Prediction prediction = judge::predict_exact(ready.cell(), ready.facts(), ready.cell().work());
  REQUIRE(prediction.known);
  return prediction.tokens_per_round;
}

}  // namespace

// An overlap is a mean over 8000 tokens of a number in [0, 1] whose standard deviation is below .3: .0033, and .0002 over 256
// contexts. Tokens per round move by up to 2.5 times as much relative to themselves: a tolerance of .25 % is five standard
// deviations, and each mistake of the model moves one of the texts by more than twice that.
TEST_CASE("texts have the tokens per round of a model that reads none of their code, and not those of wrong models") {
  constexpr double kTolerance = 0.0025;
  using M = Mistake;
  const struct {
    Text text;
    std::vector<Mistake> rejects;
  } cases[] = {
      {{.persistence = 0.95, .between_requests = 0.1, .value = 0.4, .spread = 1.2, .draft_length = 10},
       {M::any_stretch, M::any_request, M::scales_not_pulled_apart}},
      {{.persistence = 0.9, .between_requests = 0.0, .drift = 0.5, .depths = 3, .value = 0.4, .spread = 0.6, .draft_length = 8},
       {M::drift_a_place_early, M::drift_not_rooted, M::last_depth_off}},
      {{.persistence = 0.5,
        .between_requests = 0.5,
        .request_tokens = 40,
        .drift = 0.4,
        .depths = 4,
        .value = 0.6,
        .spread = 0.6,
        .draft_length = 5},
       {M::drift_a_place_early, M::drift_not_rooted}},
  };
  for (const auto& [text, rejects] : cases) {
    const double ours = tokens_per_round(text);
    const double model = Model(text, Mistake::none).tokens_per_round();
    INFO("program " << ours << " model " << model);
    CHECK(ours == Approx(model).epsilon(kTolerance));
    for (const Mistake mistake : rejects) {
      const double wrong = Model(text, mistake).tokens_per_round();
      INFO("mistake " << static_cast<int>(mistake) << ": " << wrong);
      CHECK(std::abs(ours / wrong - 1.0) > 2.0 * kTolerance);
    }
  }
}

}  // namespace specsim::texts_test
