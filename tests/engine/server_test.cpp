// FifoServer: its timetable, exact recursions of queueing theory, Little's law, and closed forms.
#include "sim/hardware/engine/fifo_server.h"
#include "tests/engine/draws.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::server_test {

using namespace specsim::engine;
using specsim::tests::at_ps;
using specsim::tests::Draws;
using specsim::tests::passes;
using specsim::tests::ps;
using specsim::tests::rejects;

namespace {

constexpr double kMeanService = 1e6;  // ps: rounding to a picosecond is a millionth
constexpr std::size_t kCustomers = 600'000;

enum class Distribution { exponential, deterministic };

struct Setting {
  double load = 0.7;  // the busy share of each requested unit
  unsigned units = 1;
  Distribution service = Distribution::exponential;
  double slower = 1.0;  // mutant: services longer by this factor
  double lost = 0.0;    // mutant: the share of customers who are turned away
  std::uint64_t seed = 1;
};

// Poisson arrivals at a FifoServer; records each customer's wait and time in system in mean services.
class Queue {
 public:
  explicit Queue(const Setting& setting) : setting_(setting), draws_(setting.seed), server_(engine_, "queue", setting.units) {
    waits.reserve(kCustomers);
    engine_.schedule_at(SimTime(), [this] { arrive(); });
    engine_.run();
  }
  std::vector<double> waits;           // in the order of starts
  std::vector<double> in_system_seen;  // the state seen by arriving customers: time averages, since the arrivals are Poisson
  std::vector<std::int64_t> arrivals_ps;
  std::vector<std::int64_t> services_ps;
  std::vector<std::int64_t> starts_ps;
  uint128 sojourn_ps = 0;
  [[nodiscard]] const FifoServer& server() const { return server_; }
  [[nodiscard]] const EventLoop& engine() const { return engine_; }

 private:
  void arrive() {
    const double service = setting_.service == Distribution::exponential ? draws_.exponential(kMeanService) : kMeanService;
    const Duration gap = Duration::from_ps(draws_.exponential(kMeanService / setting_.load / setting_.units));
    if (arrivals_ps.size() + 1 < kCustomers) engine_.schedule_after(gap, [this] { arrive(); });
    in_system_seen.push_back(static_cast<double>(server_.in_system()));
    const SimTime now = engine_.now();
    const Duration duration = Duration::from_ps(service * setting_.slower);
    arrivals_ps.push_back(now.ps());
    services_ps.push_back(duration.ps());
    if (setting_.lost > 0.0 && draws_.exponential(1.0) < -std::log1p(-setting_.lost)) return;
    server_.request(
        duration, [this, now] { sojourn_ps += static_cast<std::uint64_t>((engine_.now() - now).ps()); },
        [this, now] {
          starts_ps.push_back(engine_.now().ps());
          waits.push_back(static_cast<double>((engine_.now() - now).ps()) / kMeanService);
        });
  }
  Setting setting_;
  Draws draws_;
  EventLoop engine_;
  FifoServer server_;
};

// Pr(wait > 0) in M/M/c, by the recursion of Erlang's B.
double erlang_c(unsigned units, double load) {
  const double offered = load * units;
  double b = 1.0;
  for (unsigned k = 1; k <= units; ++k) b = offered * b / (k + offered * b);
  return b / (1.0 - load * (1.0 - b));
}

}  // namespace

TEST_CASE("a server's timetable: two units, five jobs") {
  EventLoop engine;
  FifoServer server(engine, "gpu", 2);
  struct Entry {
    std::string events;
    void add(char what, int job, SimTime now) { events += what + std::to_string(job) + "@" + std::to_string(now.ps()) + " "; }
  } log;
  const int services[] = {10, 4, 5, 1, 7};
  for (int i = 0; i < 5; ++i)
    server.request(
        ps(services[i]), [&log, &engine, i] { log.add('f', i, engine.now()); },
        [&log, &engine, i] { log.add('s', i, engine.now()); });
  engine.run();
  CHECK(log.events == "s0@0 s1@0 s2@4 f1@4 s3@9 f2@9 s4@10 f0@10 f3@10 f4@17 ");
  CHECK(server.finished() == 5);
  CHECK(server.in_system_ps() == 10 + 4 + 9 + 10 + 17);
}

TEST_CASE("a request made when a job finishes queues after those that already wait") {
  EventLoop engine;
  FifoServer server(engine, "gpu");
  std::string order;
  server.request(ps(1), [&] {
    order += 'a';
    server.request(ps(1), [&] { order += 'c'; });
  });
  server.request(ps(1), [&] { order += 'b'; });
  engine.run();
  CHECK(order == "abc");
  CHECK_THROWS_AS(FifoServer(engine, "none", 0), InvariantBroken);
}

TEST_CASE("waits follow Lindley's recursion exactly") {
  for (const Distribution distribution : {Distribution::exponential, Distribution::deterministic}) {
    const Queue queue({.load = 0.9, .service = distribution, .seed = 20260101});
    std::int64_t free_at = 0;
    bool equal = queue.starts_ps.size() == kCustomers;
    for (std::size_t i = 0; equal && i < kCustomers; ++i) {
      const std::int64_t start = std::max(free_at, queue.arrivals_ps[i]);
      free_at = start + queue.services_ps[i];
      equal = queue.starts_ps[i] == start;
    }
    CHECK(equal);
  }
}

TEST_CASE("waits at four units follow Kiefer and Wolfowitz's recursion exactly") {
  const Queue queue({.load = 0.9, .units = 4, .seed = 20260102});
  std::vector<std::int64_t> free_at(4, 0);
  bool equal = queue.starts_ps.size() == kCustomers;
  for (std::size_t i = 0; equal && i < kCustomers; ++i) {
    const auto first = std::min_element(free_at.begin(), free_at.end());
    const std::int64_t start = std::max(*first, queue.arrivals_ps[i]);
    *first = start + queue.services_ps[i];
    equal = queue.starts_ps[i] == start;
  }
  CHECK(equal);
}

TEST_CASE("Little's law holds to the picosecond on a path that ends empty") {
  for (const unsigned units : {1U, 3U}) {
    const Queue queue({.load = 0.8, .units = units, .seed = 20260103});
    REQUIRE(queue.server().in_system() == 0);
    CHECK(queue.server().requested() == kCustomers);
    CHECK(queue.server().finished() == kCustomers);
    CHECK((queue.server().in_system_ps() == queue.sojourn_ps));
  }
}

TEST_CASE("M/M/1: mean wait and mean number in system", "[stat]") {
  const double load = 0.7;
  const double wait = load / (1.0 - load);
  const double number = load / (1.0 - load);
  const Queue queue({.load = load, .seed = 20260104});
  passes("M/M/1 wait", queue.waits, wait);
  passes("M/M/1 number in system", queue.in_system_seen, number);
  const Queue slower({.load = load, .slower = 1.02, .seed = 20260105});
  rejects("service 2 % slower, by the wait", slower.waits, wait);
  rejects("service 2 % slower, by the number", slower.in_system_seen, number);
  const Queue lost({.load = load, .lost = 0.02, .seed = 20260106});
  rejects("2 % of customers lost, by the wait", lost.waits, wait);
  rejects("2 % of customers lost, by the number", lost.in_system_seen, number);
}

TEST_CASE("M/D/1: mean wait and mean number in system", "[stat]") {
  const double load = 0.7;
  const double wait = load / (2.0 * (1.0 - load));  // Pollaczek and Khinchine
  const double number = load + load * wait;
  const Queue queue({.load = load, .service = Distribution::deterministic, .seed = 20260107});
  passes("M/D/1 wait", queue.waits, wait);
  passes("M/D/1 number in system", queue.in_system_seen, number);
  const Queue slower({.load = load, .service = Distribution::deterministic, .slower = 1.02, .seed = 20260108});
  rejects("service 2 % slower, by the wait", slower.waits, wait);
  rejects("service 2 % slower, by the number", slower.in_system_seen, number);
}

TEST_CASE("M/M/c: mean wait and the part of customers who wait are Erlang's", "[stat]") {
  const unsigned units = 4;
  const double load = 0.8;
  const double delayed = erlang_c(units, load);
  CHECK(erlang_c(1, 0.3) == Approx(0.3).epsilon(1e-14));
  CHECK(erlang_c(2, 0.5) == Approx(1.0 / 3.0).epsilon(1e-14));
  const double wait = delayed / (units * (1.0 - load));
  const auto waited = [](const std::vector<double>& waits) {
    std::vector<double> result;
    result.reserve(waits.size());
    for (const double w : waits) result.push_back(w > 0.0 ? 1.0 : 0.0);
    return result;
  };
  const Queue queue({.load = load, .units = units, .seed = 20260109});
  passes("M/M/4 wait", queue.waits, wait);
  passes("M/M/4 part that waits", waited(queue.waits), delayed);
  const Queue slower({.load = load, .units = units, .slower = 1.02, .seed = 20260110});
  rejects("service 2 % slower, by the wait", slower.waits, wait);
  rejects("service 2 % slower, by the part that waits", waited(slower.waits), delayed);
  const Queue one({.load = load, .units = 1, .seed = 20260111});
  rejects("one fast unit in the place of four", waited(one.waits), delayed);
}

}  // namespace specsim::server_test
