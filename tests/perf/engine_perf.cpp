// Speed goals of the event engine. Rates depend on the machine, so the goals in events per second are only printed. The test
// asserts the ratio to a plain std::priority_queue that does the same work in the same run. Each value is the best of several
// interleaved repetitions, because disturbances only ever slow a measurement down.
#include "sim/hardware/engine/event_loop.h"
#include "sim/hardware/engine/fifo_server.h"
#include "sim/hardware/engine/timeline.h"
#include "tests/perf/fast_exponential.h"

#include <fmt/format.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <queue>
#include <string>
#include <vector>

namespace specsim::engine {

namespace {

constexpr int kRepetitions = 7;
constexpr double kMeanPs = 1e6;

// Best rates, interleaved; each piece of work returns its count of operations.
std::vector<double> best_rates(const std::vector<std::function<std::uint64_t()>>& works) {
  std::vector<double> best(works.size(), 0.0);
  for (int r = 0; r < kRepetitions; ++r) {
    for (std::size_t i = 0; i < works.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      const std::uint64_t done = works[i]();
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      best[i] = std::max(best[i], static_cast<double>(done) / seconds);
    }
  }
  return best;
}

std::string goal(double rate, double wanted) {
  return fmt::format("{:6.1f} million/s (goal {:.0f}: {})", rate * 1e-6, wanted * 1e-6, rate >= wanted ? "met" : "NOT MET");
}

std::int64_t draw_ps(tests::FastExponential& draws, double mean) { return static_cast<std::int64_t>(draws() * mean); }

// The reference: the simplest implementation.
struct PlainEvent {
  std::int64_t time_ps;
  std::uint64_t sequence;
  std::uint32_t what;
  bool operator<(const PlainEvent& other) const {
    return time_ps != other.time_ps ? time_ps > other.time_ps : sequence > other.sequence;
  }
};

// ---- M/M/1 --------------------------------------------------------------------------------------------------------------

constexpr double kLoad = 0.8;
constexpr double kMeanWait = kLoad / (1.0 - kLoad);  // in mean services

// Events are arrivals and departures; a customer's wait is known when its service starts.
struct Waits {
  void add(std::int64_t wait_ps) { sum_ps += wait_ps; }
  [[nodiscard]] double mean(std::uint64_t customers) const {
    return static_cast<double>(sum_ps) / static_cast<double>(customers) / kMeanPs;
  }
  std::int64_t sum_ps = 0;
};

class EngineQueue {
 public:
  EngineQueue(std::uint64_t customers, std::uint64_t seed) : left_(customers), draws_(seed) {}
  std::uint64_t run() {
    engine_.schedule_at(SimTime(), [this] { arrive(); });
    return engine_.run();
  }
  Waits waits;

 private:
  void arrive() {
    if (--left_ > 0) engine_.schedule_after(Duration::from_ps(draw_ps(draws_, kMeanPs / kLoad)), [this] { arrive(); });
    if (busy_)
      waiting_.push(engine_.now());
    else
      serve();
  }
  void serve() {
    busy_ = true;
    engine_.schedule_after(Duration::from_ps(draw_ps(draws_, kMeanPs)), [this] { depart(); });
  }
  void depart() {
    busy_ = false;
    if (waiting_.empty()) return;
    waits.add((engine_.now() - waiting_.front()).ps());
    waiting_.pop();
    serve();
  }
  std::uint64_t left_;
  tests::FastExponential draws_;
  EventLoop engine_;
  Ring<SimTime> waiting_;
  bool busy_ = false;
};

class ServerQueue {
 public:
  ServerQueue(std::uint64_t customers, std::uint64_t seed) : left_(customers), draws_(seed) {}
  std::uint64_t run() {
    engine_.schedule_at(SimTime(), [this] { arrive(); });
    return engine_.run();
  }
  Waits waits;

 private:
  void arrive() {
    if (--left_ > 0) engine_.schedule_after(Duration::from_ps(draw_ps(draws_, kMeanPs / kLoad)), [this] { arrive(); });
    server_.request(Duration::from_ps(draw_ps(draws_, kMeanPs)), {},
                    [this, came = engine_.now()] { waits.add((engine_.now() - came).ps()); });
  }
  std::uint64_t left_;
  tests::FastExponential draws_;
  EventLoop engine_;
  FifoServer server_{engine_, "server"};
};

std::uint64_t plain_queue(std::uint64_t left, std::uint64_t seed, Waits& waits) {
  tests::FastExponential draws(seed);
  std::priority_queue<PlainEvent> events;
  Ring<std::int64_t> waiting;
  std::uint64_t sequence = 0;
  std::uint64_t executed = 0;
  bool busy = false;
  events.push({0, sequence++, 0});
  while (!events.empty()) {
    const PlainEvent event = events.top();
    events.pop();
    ++executed;
    if (event.what == 0) {
      if (--left > 0) events.push({event.time_ps + draw_ps(draws, kMeanPs / kLoad), sequence++, 0});
      if (busy) {
        waiting.push(event.time_ps);
        continue;
      }
    } else {
      busy = false;
      if (waiting.empty()) continue;
      waits.add(event.time_ps - waiting.front());
      waiting.pop();
    }
    busy = true;
    events.push({event.time_ps + draw_ps(draws, kMeanPs), sequence++, 1});
  }
  return executed;
}

// ---- hold ---------------------------------------------------------------------------------------------------------------

constexpr std::uint32_t kPending = 10'000;

// Each executed event schedules its successor; one in ten also cancels some other one and schedules another in its place.
constexpr bool cancels(std::uint64_t word) { return (word & 1023) < 102; }
constexpr std::uint32_t victim(std::uint64_t word) { return static_cast<std::uint32_t>(((word >> 32) * kPending) >> 32); }

class EngineHold {
 public:
  explicit EngineHold(std::uint64_t holds) : left_(holds) {
    for (std::uint32_t i = 0; i < kPending; ++i) schedule(i);
  }
  std::uint64_t run() { return engine_.run(); }

 private:
  void schedule(std::uint32_t i) {
    ids_[i] = engine_.schedule_after(Duration::from_ps(draw_ps(draws_, kMeanPs)), [this, i] { hold(i); });
  }
  void hold(std::uint32_t i) {
    if (--left_ == 0) engine_.stop();
    schedule(i);
    const std::uint64_t word = draws_.word();
    if (!cancels(word)) return;
    const std::uint32_t j = victim(word);
    engine_.cancel(ids_[j]);
    schedule(j);
  }
  std::uint64_t left_;
  tests::FastExponential draws_{5};
  EventLoop engine_;
  std::vector<EventId> ids_{kPending};
};

std::uint64_t plain_hold(std::uint64_t holds) {
  tests::FastExponential draws(5);
  std::priority_queue<PlainEvent> events;
  std::vector<std::uint64_t> current(kPending);  // the sequence that is not cancelled
  std::uint64_t sequence = 0;
  const auto schedule = [&](std::int64_t now_ps, std::uint32_t i) {
    current[i] = sequence;
    events.push({now_ps + draw_ps(draws, kMeanPs), sequence++, i});
  };
  for (std::uint32_t i = 0; i < kPending; ++i) schedule(0, i);
  for (std::uint64_t done = 0; done < holds;) {
    const PlainEvent event = events.top();
    events.pop();
    if (current[event.what] != event.sequence) continue;
    ++done;
    schedule(event.time_ps, event.what);
    const std::uint64_t word = draws.word();
    if (cancels(word)) schedule(event.time_ps, victim(word));
  }
  return holds;
}

}  // namespace

TEST_CASE("M/M/1: goal 20 million events a second, and at least 0.6 times a plain std::priority_queue") {
  const std::uint64_t customers = 1'000'000;
  Waits by_engine, by_server, plain;
  const std::vector<double> rates = best_rates({[&] {
                                                  EngineQueue queue(customers, 1);
                                                  const std::uint64_t events = queue.run();
                                                  by_engine = queue.waits;
                                                  return events;
                                                },
                                                [&] {
                                                  ServerQueue queue(customers, 1);
                                                  const std::uint64_t events = queue.run();
                                                  by_server = queue.waits;
                                                  return events;
                                                },
                                                [&] {
                                                  plain = {};
                                                  return plain_queue(customers, 1, plain);
                                                }});
  fmt::print("M/M/1, engine alone:  {}, {:.2f} times a plain priority queue\n", goal(rates[0], 20e6), rates[0] / rates[2]);
  fmt::print("M/M/1, by a Server:   {:6.1f} million/s, {:.2f} times\n", rates[1] * 1e-6, rates[1] / rates[2]);
  fmt::print("M/M/1, mean wait:     {:.3f}, {:.3f} by a Server, {:.3f} plain; closed form {:.3f}\n", by_engine.mean(customers),
             by_server.mean(customers), plain.mean(customers), kMeanWait);
  CHECK(by_engine.sum_ps == plain.sum_ps);  // the same draws in the same order
  // Daley's asymptotic variance of the mean of successive waits.
  const double variance = kLoad * (2.0 + 5.0 * kLoad - 4.0 * kLoad * kLoad + kLoad * kLoad * kLoad) / std::pow(1.0 - kLoad, 4.0);
  for (const Waits& waits : {by_engine, by_server})
    CHECK(std::abs(waits.mean(customers) - kMeanWait) < 4.9 * std::sqrt(variance / static_cast<double>(customers)));
  // Two or three pending events make no heap: this is the cost of calling actions and of ids, compared with a loop that has
  // neither.
  CHECK(rates[0] >= 0.6 * rates[2]);
}

TEST_CASE("hold, 10,000 pending, 10 % cancelled: goal 8 million a second, and at least 1.1 times a plain std::priority_queue") {
  const std::uint64_t holds = 2'000'000;
  constexpr int kTries = 4;  // other work on the machine only ever adds time: the best rates of all tries count
  std::vector<double> rates(2, 0.0);
  for (int attempt = 0; attempt < kTries && rates[0] <= 1.1 * rates[1]; ++attempt) {
    const std::vector<double> tried = best_rates({[&] { return EngineHold(holds).run(); }, [&] { return plain_hold(holds); }});
    for (std::size_t i = 0; i < rates.size(); ++i) rates[i] = std::max(rates[i], tried[i]);
  }
  fmt::print("hold, 10,000 pending: {}, {:.2f} times a plain priority queue with {:.1f} million/s\n", goal(rates[0], 8e6),
             rates[0] / rates[1], rates[1] * 1e-6);
  CHECK(rates[0] >= 1.1 * rates[1]);
}

TEST_CASE("a timeline of 700,000 spans: goal 5 s") {
  const std::string path = std::filesystem::temp_directory_path() / fmt::format("specsim_perf_{}.json", getpid());
  const std::vector<double> rates = best_rates({[&] {
    Timeline timeline(path);
    const Timeline::Lane lane = timeline.lane("gpu");
    for (std::int64_t i = 0; i < 700'000; ++i)
      timeline.span(lane, "target pass", SimTime::from_ps(i * 1'234'567), Duration::from_ps(std::int64_t{1'000'001}),
                    {{"round", i}, {"accepted", i % 6}});
    timeline.close();
    return timeline.spans();
  }});
  fmt::print("timeline:             {:6.1f} million spans/s, {:.2f} s for 700,000 (goal 5 s), {} MB\n", rates[0] * 1e-6,
             700'000 / rates[0], std::filesystem::file_size(path) / 1'000'000);
  std::filesystem::remove(path);
  CHECK(700'000 / rates[0] < 5.0);
}

TEST_CASE("one M/M/1 queue, for comparison with another simulator", "[.mm1]") {
  // Run by engine_simpy_test.py: one line of events, seconds and mean wait.
  const char* const text = std::getenv("SPECSIM_CUSTOMERS");
  REQUIRE(text != nullptr);
  const std::uint64_t customers = std::stoull(text);
  ServerQueue queue(customers, 20260401);
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t events = queue.run();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("mm1 {} {} {}\n", events, seconds, queue.waits.mean(customers));
}

}  // namespace specsim::engine
