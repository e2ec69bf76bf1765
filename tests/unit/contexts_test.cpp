// Context processes: the declared properties of each for the context at a text position.
#include "tests/unit/contexts.h"
#include "sim/foundation/base/check.h"
#include "sim/rounds/families/text_layout.h"
#include "tests/support/samples.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace specsim::contexts_test {

using namespace specsim::tests;
using Kind = families::ContextShape::Kind;

namespace {

// False if the parameters contradict each other.
bool readable(const std::string& context) {
  try {
    static_cast<void>(tests::experiment_of(yaml_of(context, 1)));
    return true;
  } catch (const BadInput&) {
    return false;
  }
}

// Processes and their kinds.
const std::vector<std::pair<std::string, Kind>>& known_examples() {
  static const std::vector<std::pair<std::string, Kind>> list = {
      {"{process: fixed}", Kind::fixed},
      {"{process: iid, pool: 40}", Kind::iid_pool},
      {"{process: iid, pool: 1}", Kind::iid_pool},
      {"{process: iid, fresh: true}", Kind::iid_fresh},
      {"{process: markov, order: 1}", Kind::markov},
      {"{process: markov, order: 2}", Kind::markov},
      {"{process: markov, states: 7}", Kind::markov},
      {std::string(kRegimes) + "}", Kind::regimes},
      {"{process: text, persistence: .4, between_requests: .2, drift: .1, depths: 3}", Kind::regimes},
      {"{process: by_depth, drafts: [{from: target, transform: mix_noise, value: .1}, {from: target, transform: mix_noise, "
       "value: .6}]}",
       Kind::by_depth},
      {"{process: requests, request_tokens: 30, types: [{weight: 2, draft: {from: target, transform: mix_noise, value: .2}}, "
       "{weight: 1}]}",
       Kind::requests},
      {"{process: copy, prompt_tokens: 5}", Kind::markov},
      {"{process: trace, file: tests/data/trace_small.jsonl}", Kind::trace},
      {"{process: trace, file: tests/data/trace_laws.jsonl}", Kind::trace},
  };
  return list;
}

// These, and each registered process by its entry.
const std::vector<std::string>& examples() {
  static const std::vector<std::string> list = [] {
    std::vector<std::string> all;
    for (const auto& [yaml, kind] : known_examples()) all.push_back(yaml);
    for (const families::ContextEntry& entry : families::context_processes().entries())
      for (const std::string& sample : tests::samples_of(entry.info, "process"))
        if (readable(sample)) all.push_back(sample);
    return all;
  }();
  return list;
}

// The context at each text position where a round ended: (sequence, text position) -> context.
class Positions final : public decode::RoundSink {
 public:
  void chunk(std::uint64_t index) {
    chunk_ = index;
    length_.assign(decode::kLanes, 0);
    text_.assign(decode::kLanes, {});
  }
  void round(std::uint32_t lane, std::uint32_t, std::span<const Token> emitted, std::uint32_t next_context) override {
    length_[lane] += emitted.size();
    text_[lane].insert(text_[lane].end(), emitted.begin(), emitted.end());
    at_[{chunk_ * decode::kLanes + lane, length_[lane]}] = next_context;
    if (follow_) follow_(text_[lane], next_context);
  }
  void follow(std::function<void(const std::vector<Token>&, std::uint32_t)> f) { follow_ = std::move(f); }
  [[nodiscard]] const std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t>& at() const { return at_; }

 private:
  std::uint64_t chunk_ = 0;
  std::vector<std::uint64_t> length_;
  std::vector<std::vector<Token>> text_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> at_;
  std::function<void(const std::vector<Token>&, std::uint32_t)> follow_;
};

}  // namespace

TEST_CASE("every context process has its declared shape", "[contexts]") {
  for (const auto& [yaml, kind] : known_examples()) {
    INFO(yaml);
    const std::shared_ptr<const families::ContextModel> owner = model(yaml);
    const families::ContextProcess& process = *owner->process;
    CHECK(process.shape().kind == kind);
    CHECK((process.shape().contexts == 0) == (kind == Kind::iid_fresh));
    CHECK((process.shape().request_tokens > 0) == (kind == Kind::requests));
    CHECK(process.moves() == (kind != Kind::fixed && kind != Kind::by_depth && kind != Kind::requests));
  }
  for (const std::string& yaml : examples()) {
    INFO(yaml);
    const std::shared_ptr<const families::ContextModel> owner = model(yaml);
    const families::ContextModel& made = *owner;
    const families::ContextShape& shape = made.process->shape();
    CHECK(yaml.starts_with("{process: " + made.name));
    CHECK((made.pairs.size() == 1 || made.pairs.size() == static_cast<std::size_t>(shape.contexts)));
    for (const families::PairSource& pair : made.pairs) CHECK(pair.depths() == static_cast<std::size_t>(shape.depths));
    if (!shape.start.empty()) {
      CHECK(shape.start.size() == static_cast<std::size_t>(shape.contexts));
      CHECK(std::abs(std::accumulate(shape.start.begin(), shape.start.end(), 0.0) - 1.0) < 1e-12);
    }
    if (shape.kind != Kind::markov) CHECK_THROWS_AS(made.process->next(0, 0), InvariantBroken);
  }
}

TEST_CASE("a process starts and steps independently of the requested lanes", "[contexts]") {
  for (const std::string& yaml : examples()) {
    INFO(yaml);
    const std::shared_ptr<const families::ContextModel> owner = model(yaml);
    const families::ContextModel& made = *owner;
    const families::ContextProcess& process = *made.process;
    if (process.shape().contexts == 0) continue;
    const auto contexts = static_cast<std::uint32_t>(process.shape().contexts);
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{512}, std::uint64_t{1} << 32}) {
      std::vector<std::uint32_t> all(256);
      process.start(kKey, first, 256, all.data());
      for (std::uint64_t i = 0; i < 256; ++i) {
        std::uint32_t one = 77;
        process.start(kKey, first + i, 1, &one);
        REQUIRE(one == all[i]);
        REQUIRE(one < contexts);
      }
      if (!process.moves()) continue;
      // Every third lane in a separate call, the rest in another, compared with all at once.
      std::vector<std::uint32_t> position(256);
      std::vector<Token> tokens(256);
      for (std::uint32_t i = 0; i < 256; ++i) {
        position[i] = i * 37 % 1000;
        tokens[i] = i % 9;
      }
      std::vector<std::uint32_t> every(256);
      std::iota(every.begin(), every.end(), 0U);
      std::vector<std::uint32_t> together = all;
      process.step(kKey, first, every.data(), 256, position.data(), tokens.data(), together.data());
      std::vector<std::uint32_t> apart = all;
      for (const bool third : {true, false}) {
        std::vector<std::uint32_t> lanes;
        std::vector<Token> own;
        for (std::uint32_t i = 0; i < 256; ++i) {
          if ((i % 3 == 0) != third) continue;
          lanes.push_back(i);
          own.push_back(tokens[i]);
        }
        process.step(kKey, first, lanes.data(), lanes.size(), position.data(), own.data(), apart.data());
      }
      REQUIRE(together == apart);
    }
  }
}

TEST_CASE("iid: the pool is used evenly and neighbours are independent", "[contexts][stat]") {
  // Detects a pool index off by one, a context that stays for two positions, and lanes that move together.
  constexpr std::uint32_t pool = 12;
  const std::shared_ptr<const families::ContextModel> owner = model("{process: iid, pool: 12}");
  const families::ContextModel& made = *owner;
  std::vector<double> use(pool, 0.0);
  std::vector<double> at_start(pool, 0.0);
  std::vector<double> along(pool * pool, 0.0);
  std::vector<double> across(pool * pool, 0.0);
  std::vector<std::uint32_t> before(256, 0);
  std::uint32_t left = 0;
  constexpr std::uint32_t positions = 1000;
  double n = 0.0;
  double pairs = 0.0;
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{256}}) {
    walk(*made.process, kKey, first, positions, [&](std::uint32_t lane, std::uint32_t p, std::uint32_t context) {
      REQUIRE(context < pool);
      use[context] += 1.0;
      n += 1.0;
      if (p == 0) at_start[context] += 1.0;
      if (p % 2 == 1) {
        along[before[lane] * pool + context] += 1.0;
        pairs += 1.0;
      }
      if (lane % 2 == 1) across[left * pool + context] += 1.0;
      before[lane] = context;
      left = context;
    });
  }
  CHECK(chi_square_p(use, std::vector<double>(pool, n / pool)) > kLevel);
  CHECK(chi_square_p(at_start, std::vector<double>(pool, 512.0 / pool)) > kLevel);
  CHECK(chi_square_p(along, std::vector<double>(pool * pool, pairs / (pool * pool))) > kLevel);
  CHECK(chi_square_p(across, std::vector<double>(pool * pool, n / 2.0 / (pool * pool))) > kLevel);
}

TEST_CASE("iid and regimes: the context is a function of sequence and text position, however the text was drafted",
          "[contexts]") {
  // A run without speculation visits every position and so reveals the function; drafting 1, 5 or 9 tokens with rejections must
  // then meet the same contexts. It detects a state that advances with drafted instead of emitted tokens, or is drawn again after
  // a rejection.
  for (const std::string& context :
       {std::string("{process: iid, pool: 40, sequence_rounds: 40}"), std::string(kRegimes) + ", sequence_rounds: 40}"}) {
    const tests::ReadyCell plain(yaml_of(context, 0));
    constexpr std::uint64_t kSequences = 300;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> known;
    // A longer text without speculation, so that it covers the range of drafting.
    const spec::Cell& cell = plain.cell();
    const decode::Simulator long_text(plain.preparation(), plain.prepared(), plain.draw_key(), 0, 400);
    decode::Counts counts = long_text.empty_counts();
    Positions sink;
    for (std::uint64_t i = 0; i < 2; ++i) {
      sink.chunk(i);
      long_text.run(i, kSequences * 400, counts, &sink);
    }
    known = sink.at();
    REQUIRE(known.size() == kSequences * 400);
    for (const int draft_length : {1, 5, 9}) {
      const tests::ReadyCell ready(yaml_of(context, draft_length));
      REQUIRE(ready.cell().pairing_group == cell.pairing_group);
      Positions drafted;
      const decode::Counts own = simulate(ready, kSequences * 40, &drafted);
      CHECK(own.accepted.at(0) > 0);
      CHECK(own.emitted < own.rounds * static_cast<std::uint64_t>(draft_length + 1));  // there were rejections
      std::uint64_t wrong = 0;
      for (const auto& [where, seen] : drafted.at()) wrong += known.at(where) != seen ? 1 : 0;
      INFO(context << ", draft_length " << draft_length);
      CHECK(wrong == 0);
      CHECK(drafted.at().size() == own.rounds);
    }
  }
}

TEST_CASE("regimes: start distribution and transition frequencies", "[contexts][stat]") {
  // Detects a transposed matrix, a start in state 0, and a start distribution that is not the stationary one.
  constexpr std::size_t states = 3;
  const std::vector<double> rows = {.8, .15, .05, .3, .3, .4, .1, 0, .9};
  // Stationary: pi P = pi. From column 1: pi1 = .15 pi0 / .7; from column 0: pi2 = (.2 pi0 - .3 pi1) / .1.
  std::vector<double> stationary = {1.0, 0.15 / 0.7, 0.0};
  stationary[2] = (0.2 - 0.3 * stationary[1]) / 0.1;
  const double sum = std::accumulate(stationary.begin(), stationary.end(), 0.0);
  for (double& p : stationary) p /= sum;
  for (const bool given : {false, true}) {
    const std::vector<double> start = given ? std::vector<double>{.2, .7, .1} : stationary;
    const std::shared_ptr<const families::ContextModel> owner =
        model(std::string(kRegimes) + (given ? ", start: [.2, .7, .1]}" : "}"));
    const families::ContextModel& made = *owner;
    const families::ContextShape& shape = made.process->shape();
    for (std::size_t i = 0; i < states; ++i) CHECK(std::abs(shape.start[i] - start[i]) < 1e-12);
    CHECK(shape.transition == rows);
    std::vector<double> starts(states, 0.0);
    std::vector<double> moves(states * states, 0.0);
    std::vector<std::uint32_t> before(256, 0);
    constexpr std::uint64_t kChunks = 40;
    for (std::uint64_t chunk = 0; chunk < kChunks; ++chunk) {
      walk(*made.process, kKey, chunk * 256, 40, [&](std::uint32_t lane, std::uint32_t p, std::uint32_t state) {
        REQUIRE(state < states);
        if (p == 0)
          starts[state] += 1.0;
        else
          moves[before[lane] * states + state] += 1.0;
        before[lane] = state;
      });
    }
    std::vector<double> expected(states);
    for (std::size_t i = 0; i < states; ++i) expected[i] = 256.0 * kChunks * start[i];
    INFO("start given: " << given);
    CHECK(chi_square_p(starts, expected) > kLevel);
    for (std::size_t i = 0; i < states; ++i) {
      const std::vector<double> row(moves.begin() + static_cast<std::ptrdiff_t>(i * states),
                                    moves.begin() + static_cast<std::ptrdiff_t>((i + 1) * states));
      const double n = std::accumulate(row.begin(), row.end(), 0.0);
      CHECK(chi_square_p(row, {n * rows[i * states], n * rows[i * states + 1], n * rows[i * states + 2]}) > kLevel);
    }
  }
}

TEST_CASE("regimes: the overrides of a state replace pair's distributions there and nowhere else", "[contexts]") {
  const std::shared_ptr<const families::ContextModel> owner = model(std::string(kRegimes) + "}");
  const families::ContextModel& made = *owner;
  REQUIRE(made.pairs.size() == 3);
  const families::DistributionAddress address{kKey, 0};
  std::vector<std::vector<double>> target(3, std::vector<double>(9));
  std::vector<std::vector<double>> draft(3, std::vector<double>(9));
  for (std::size_t i = 0; i < 3; ++i) {
    made.pair(i).draw_target(address, target[i]);
    made.pair(i).draw_draft(address, 0, target[i], draft[i]);
  }
  CHECK(target[0] == target[1]);  // the same address of the same distribution
  CHECK(target[0] != target[2]);
  CHECK(draft[1] == std::vector<double>(9, 1.0 / 9.0));
  CHECK(std::is_sorted(target[2].rbegin(), target[2].rend()));
}

TEST_CASE("text: scales as of a normal distribution, correlated along a text as the parameters say", "[contexts]") {
  constexpr double kPersistence = 0.6;
  constexpr double kBetween = 0.3;
  for (const double between : {0.0, kBetween}) {
    const families::TextLayout layout(between);
    const std::vector<families::ContextScales> scales = layout.scales();
    const std::vector<std::vector<double>> transition = layout.transition(kPersistence);
    const std::size_t n = scales.size();
    REQUIRE(n == transition.size());
    const auto mean_of = [n](const auto& of) {
      double sum = 0.0;
      for (std::size_t c = 0; c < n; ++c) sum += of(c) / static_cast<double>(n);
      return sum;
    };
    CHECK(mean_of([&](std::size_t c) { return scales[c].target; }) == Approx(0.0).margin(1e-12));
    CHECK(mean_of([&](std::size_t c) { return scales[c].draft; }) == Approx(0.0).margin(1e-12));
    CHECK(mean_of([&](std::size_t c) { return scales[c].target * scales[c].target; }) == Approx(1.0).epsilon(1e-9));
    CHECK(mean_of([&](std::size_t c) { return scales[c].draft * scales[c].draft; }) == Approx(1.0).epsilon(1e-9));
    CHECK(std::abs(mean_of([&](std::size_t c) { return scales[c].target * scales[c].draft; })) < 0.02);
    // Each context as likely as before, and the correlation of a scale with its next ones: the part that requests keep, and the
    // variance between halves of a normal distribution, 2 / pi, of the rest.
    std::vector<double> now(n);
    for (std::size_t c = 0; c < n; ++c) now[c] = scales[c].draft;
    double kept = (1.0 - between) * 2.0 / 3.14159265358979;
    for (int lag = 1; lag <= 3; ++lag) {
      std::vector<double> next(n, 0.0);
      for (std::size_t from = 0; from < n; ++from) {
        double row = 0.0;
        double column = 0.0;
        for (std::size_t to = 0; to < n; ++to) {
          next[from] += transition[from][to] * now[to];
          row += transition[from][to];
          column += transition[to][from];
        }
        CHECK(row == Approx(1.0).epsilon(1e-12));
        CHECK(column == Approx(1.0).epsilon(1e-12));
      }
      now = next;
      kept *= kPersistence;
      CHECK(mean_of([&](std::size_t c) { return scales[c].draft * now[c]; }) == Approx(between + kept).margin(0.015));
    }
  }
}

TEST_CASE("text: a place in the block adds noise to the draft, and nothing else changes", "[contexts]") {
  const std::shared_ptr<const families::ContextModel> plain = model("{process: text}");
  const std::shared_ptr<const families::ContextModel> owner = model("{process: text, drift: .5, depths: 5}");
  CHECK(plain->process->shape().depths == 1);
  REQUIRE(owner->process->shape().depths == 5);
  std::vector<double> overlap(5, 0.0);
  for (std::uint64_t c = 0; c < families::TextLayout::kContexts; ++c) {
    const families::DistributionAddress address = owner->address(kKey, c);
    std::vector<double> target(9);
    std::vector<double> same(9);
    owner->pair(c).draw_target(address, target);
    plain->pair(c).draw_target(plain->address(kKey, c), same);
    CHECK(target == same);
    for (std::size_t depth = 0; depth < overlap.size(); ++depth) {
      std::vector<double> draft(9);
      owner->pair(c).draw_draft(address, depth, target, draft);
      plain->pair(c).draw_draft(plain->address(kKey, c), depth, target, same);
      if (depth == 0) CHECK(draft == same);
      // The logits are off by one number for each token, which grows as the root of the place.
      if (depth > 1) {
        std::vector<double> first(9);
        owner->pair(c).draw_draft(address, 1, target, first);
        const auto noise = [&](const std::vector<double>& of, std::size_t x) {
          return std::log(of[x] / of[0] * same[0] / same[x]);
        };
        for (std::size_t x = 1; x < 9; ++x)
          CHECK(noise(draft, x) == Approx(std::sqrt(static_cast<double>(depth)) * noise(first, x)).margin(1e-9));
      }
      for (std::size_t x = 0; x < 9; ++x) overlap[depth] += std::min(target[x], draft[x]) / 256.0;
    }
  }
  CHECK(std::is_sorted(overlap.rbegin(), overlap.rend()));
  CHECK(overlap[4] < overlap[0] - 0.02);
}

TEST_CASE("markov: contexts follow the emitted tokens", "[contexts]") {
  // The state after each round compared with the text, by the definition: the last `order` tokens in base vocab, zeros before the
  // text.
  for (const int order : {1, 2, 3}) {
    const tests::ReadyCell ready(yaml_of(fmt::format("{{process: markov, order: {}, sequence_rounds: 30}}", order), 4));
    const families::ContextShape& shape = ready.cell().contexts->process->shape();
    CHECK(shape.contexts == static_cast<int>(std::lround(std::pow(9, order))));
    Positions sink;
    std::uint64_t wrong = 0;
    std::uint64_t seen = 0;
    sink.follow([&](const std::vector<Token>& text, std::uint32_t context) {
      std::uint64_t expected = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(order); ++i) {
        const std::size_t back = static_cast<std::size_t>(order) - i;
        expected = expected * 9 + (back <= text.size() ? text[text.size() - back] : 0);
      }
      wrong += expected != context ? 1 : 0;
      ++seen;
    });
    simulate(ready, 5000, &sink);
    CHECK(seen == 5000);
    CHECK(wrong == 0);
    for (std::uint32_t context = 0; context < static_cast<std::uint32_t>(shape.contexts); ++context)
      for (Token token = 0; token < 9; ++token)
        REQUIRE(ready.cell().contexts->process->next(context, token) ==
                (context * 9 + token) % static_cast<std::uint32_t>(shape.contexts));
  }
}

TEST_CASE("markov, hashed: a fixed map of state and token onto all states", "[contexts]") {
  const tests::ReadyCell ready(yaml_of("{process: markov, states: 7, sequence_rounds: 30}", 4));
  const families::ContextProcess& process = *ready.cell().contexts->process;
  CHECK(process.shape().contexts == 7);
  std::set<std::uint32_t> reached;
  for (std::uint32_t context = 0; context < 7; ++context) {
    std::set<std::uint32_t> from_here;
    for (Token token = 0; token < 9; ++token) {
      const std::uint32_t next = process.next(context, token);
      REQUIRE(next < 7);
      REQUIRE(next == process.next(context, token));
      from_here.insert(next);
    }
    CHECK(from_here.size() > 1);  // the token matters
    reached.insert(from_here.begin(), from_here.end());
  }
  CHECK(reached.size() == 7);
  // The simulation follows the same map.
  Positions sink;
  std::uint64_t wrong = 0;
  sink.follow([&](const std::vector<Token>& text, std::uint32_t context) {
    std::uint32_t expected = 0;
    for (const Token token : text) expected = process.next(expected, token);
    wrong += expected != context ? 1 : 0;
  });
  simulate(ready, 5000, &sink);
  CHECK(wrong == 0);
}

TEST_CASE("what context processes refuse", "[contexts]") {
  const auto refused = [](const std::string& context) -> std::string {
    try {
      static_cast<void>(tests::experiment_of(yaml_of(context, 1)));
    } catch (const BadInput& bad) {
      return bad.what();
    }
    return "";
  };
  CHECK(refused("{process: markov, order: 4}").find("at most 4096 states") != std::string::npos);
  CHECK_FALSE(refused("{process: markov, order: 1, states: 5}").empty());
  CHECK_FALSE(refused("{process: iid, pool: 5, fresh: true}").empty());
  CHECK_FALSE(refused("{process: iid, pool: 0}").empty());
  CHECK_FALSE(refused("{process: by_depth, drafts: []}").empty());
  CHECK_FALSE(refused("{process: regimes, states: [{}, {}], transition: [[.5, .5]]}").empty());
  CHECK_FALSE(refused("{process: regimes, states: [{}, {}], transition: [[.5, .4], [.5, .5]]}").empty());
  CHECK_FALSE(refused("{process: regimes, states: [{}, {}], transition: [[.5, .5], [.5, .5]], start: [.5, .4]}").empty());
  CHECK(refused("{process: regimes, states: [{}, {}], transition: [[1, 0], [0, 1]]}").find("unique stationary distribution") !=
        std::string::npos);
  CHECK(refused("{process: regimes, states: [{}, {}], transition: [[1, 0], [0, 1]], start: [.5, .5]}").empty());
  CHECK_FALSE(refused("{process: requests, request_tokens: 10, types: []}").empty());
  CHECK_FALSE(refused("{process: requests, request_tokens: 0, types: [{}]}").empty());
  CHECK_FALSE(refused("{process: requests, request_tokens: 10, types: [{weight: 0}]}").empty());
  CHECK_FALSE(refused("{process: requests, request_tokens: 10, types: [{}], sequence_rounds: 64}").empty());
  CHECK_FALSE(refused("{process: fixed, sequence_rounds: 0}").empty());
}

}  // namespace specsim::contexts_test
