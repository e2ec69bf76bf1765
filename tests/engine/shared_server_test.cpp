// SharedServer: timetables of processor sharing, conservation of work, insensitivity to the service distribution.
#include "sim/hardware/engine/shared_server.h"
#include "sim/hardware/engine/fifo_server.h"
#include "tests/engine/draws.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::shared_server_test {

using namespace specsim::engine;
using specsim::tests::at_ps;
using specsim::tests::Draws;
using specsim::tests::passes;
using specsim::tests::ps;
using specsim::tests::rejects;

namespace {

// Jobs "name at work weight most", and the time when each finished: "a@2000 b@2000 ".
struct Planned {
  char name;
  std::int64_t at;
  std::int64_t work;
  Share share = {};
};

std::string timetable(const std::vector<Planned>& jobs, std::int64_t busy_ps) {
  struct {
    EventLoop engine;
    SharedServer server{engine, "gpu"};
    std::string log;
  } bench;
  for (const Planned& job : jobs)
    bench.engine.schedule_at(at_ps(job.at), [&bench, &job] {
      bench.server.request(
          ps(job.work),
          [&bench, name = job.name] { bench.log += std::string(1, name) + "@" + std::to_string(bench.engine.now().ps()) + " "; },
          job.share);
    });
  bench.engine.run();
  CHECK(bench.server.busy() == ps(busy_ps));
  CHECK(bench.server.work_done_ps() == Approx(static_cast<double>(bench.server.work_asked().ps())).epsilon(1e-12));
  return bench.log;
}

constexpr double kMeanWork = 1e6;
constexpr std::size_t kJobs = 400'000;

struct Setting {
  bool exponential = true;
  double slower = 1.0;
  bool in_turn = false;  // mutant: first come, first served instead of sharing
  std::uint64_t seed = 1;
};

class Queue {
 public:
  explicit Queue(const Setting& setting, double load) : setting_(setting), load_(load), draws_(setting.seed) {
    sojourns.assign(kJobs, 0.0);
    engine_.schedule_at(SimTime(), [this] { arrive(); });
    engine_.run();
  }
  std::vector<double> sojourns;  // in the order of coming, in mean services at full speed
  [[nodiscard]] const SharedServer& shared() const { return shared_; }

 private:
  void arrive() {
    const Duration gap = Duration::from_ps(draws_.exponential(kMeanWork / load_));
    const double work = setting_.exponential ? draws_.exponential(kMeanWork) : kMeanWork;
    const Duration duration = Duration::from_ps(work * setting_.slower);
    const auto i = static_cast<std::uint32_t>(came_++);
    if (came_ < kJobs) engine_.schedule_after(gap, [this] { arrive(); });
    const auto leave = [this, i, now = engine_.now()] {
      sojourns[i] = static_cast<double>((engine_.now() - now).ps()) / kMeanWork;
    };
    if (setting_.in_turn)
      in_turn_.request(duration, leave);
    else
      shared_.request(duration, leave);
  }
  Setting setting_;
  double load_;
  Draws draws_;
  EventLoop engine_;
  SharedServer shared_{engine_, "shared"};
  FifoServer in_turn_{engine_, "in turn"};
  std::size_t came_ = 0;
};

}  // namespace

TEST_CASE("timetables of processor sharing") {
  CHECK(timetable({{'a', 0, 1000}}, 1000) == "a@1000 ");
  // Two equal jobs take exactly twice as long, three thrice.
  CHECK(timetable({{'a', 0, 1000}, {'b', 0, 1000}}, 2000) == "a@2000 b@2000 ");
  CHECK(timetable({{'a', 5, 1000}, {'b', 5, 1000}, {'c', 5, 1000}}, 3000) == "a@3005 b@3005 c@3005 ");
  // A late joiner: a runs alone to 400, then both at half speed; a has 600 left and is done at 1600, when b has 400 left.
  CHECK(timetable({{'a', 0, 1000}, {'b', 400, 1000}}, 2000) == "a@1600 b@2000 ");
  // Weights 3 and 1: a is done at 400 after 300 work; b has done 100 and needs 200 more alone.
  CHECK(timetable({{'a', 0, 300, {.weight = 3.0}}, {'b', 0, 300}}, 600) == "a@400 b@600 ");
  // a can use a quarter of the speed at most, alone or not; b gets the rest.
  CHECK(timetable({{'a', 0, 100, {.most = 0.25}}, {'b', 0, 300}}, 400) == "a@400 b@400 ");
  CHECK(timetable({{'a', 0, 100, {.most = 0.25}}}, 400) == "a@400 ");
  // Both are capped: the rest of the speed is unused.
  CHECK(timetable({{'a', 0, 100, {.most = 0.25}}, {'b', 0, 100, {.most = 0.5}}}, 400) == "b@200 a@400 ");
  // The share that a capped job leaves is divided by weight: a gets 1/8, b and c get 7/16 each and not 1/3.
  CHECK(timetable({{'a', 0, 200, {.most = 0.125}}, {'b', 0, 700}, {'c', 0, 700}}, 1600) == "a@1600 b@1600 c@1600 ");
  // A gap, an empty job, and a job that comes when another leaves.
  CHECK(timetable({{'a', 0, 10}, {'b', 10, 10}, {'c', 100, 0}, {'d', 200, 1}}, 21) == "a@10 b@20 c@100 d@201 ");
}

TEST_CASE("bad shares fail") {
  EventLoop engine;
  SharedServer server(engine, "gpu");
  for (const Share share :
       {Share{0.0, 1.0}, Share{-1.0, 1.0}, Share{1.0, 0.0}, Share{1.0, 1.5}, Share{NAN, 1.0}, Share{1.0, NAN}})
    CHECK_THROWS_AS(server.request(ps(1), {}, share), InvariantBroken);
  CHECK(server.active() == 0);
}

TEST_CASE("the work done is the work asked, with weights and caps at random") {
  struct RandomJobs {
    EventLoop engine;
    SharedServer server{engine, "gpu"};
    Draws draws{20260201};
    int left = 20'000;
    void come() {
      if (--left > 0) engine.schedule_after(Duration::from_ps(draws.exponential(1100.0)), [this] { come(); });
      server.request(Duration::from_ps(draws.exponential(1000.0)), {},
                     {.weight = 0.01 + draws.exponential(1.0), .most = 1.0 / static_cast<double>(1 + draws.below(3))});
    }
  } jobs;
  jobs.engine.schedule_at(SimTime(), [&jobs] { jobs.come(); });
  jobs.engine.run();
  REQUIRE(jobs.server.finished() == 20'000);
  // At most half a picosecond each, with different signs: far less in sum. A mutant that loses the work between two changes would
  // be off by hundreds of picoseconds per job.
  const double off = std::abs(jobs.server.work_done_ps() - static_cast<double>(jobs.server.work_asked().ps()));
  CHECK(off <= 0.5 * 20'000);
  CHECK(off / 20'000 < 0.01);
  CHECK(jobs.server.busy() <= jobs.engine.now() - SimTime());
}

TEST_CASE("M/M/1 and M/D/1 shared: the mean sojourn is 1 / (mu - lambda), whatever the service distribution", "[stat]") {
  const double load = 0.6;
  const double sojourn = 1.0 / (1.0 - load);
  for (const bool exponential : {true, false}) {
    const Queue queue({.exponential = exponential, .seed = exponential ? 20260202U : 20260203U}, load);
    passes(exponential ? "M/M/1-PS sojourn" : "M/D/1-PS sojourn", queue.sojourns, sojourn);
    CHECK(std::abs(queue.shared().work_done_ps() - static_cast<double>(queue.shared().work_asked().ps())) < 0.01 * kJobs);
    const Queue slower({.exponential = exponential, .slower = 1.02, .seed = 20260204}, load);
    rejects("service 2 % slower", slower.sojourns, sojourn);
  }
  // Blind with exponential service times, where both disciplines have this mean; deterministic times distinguish them.
  const Queue in_turn({.exponential = false, .in_turn = true, .seed = 20260205}, load);
  rejects("first come, first served", in_turn.sojourns, sojourn);
}

}  // namespace specsim::shared_server_test
