// Link: literal timetables.
#include "sim/hardware/engine/link.h"
#include "tests/engine/draws.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>

namespace specsim::link_test {

using namespace specsim::engine;
using specsim::tests::at_ps;
using specsim::tests::ps;

TEST_CASE("a link's timetable: transmissions one after the other, deliveries a latency later") {
  struct {
    EventLoop engine;
    Link link{engine, "pcie", ps(500), 1e12};  // a byte takes a picosecond
    std::string log;
    void send(char name, std::uint64_t bytes, std::int64_t delivery) {
      CHECK(link.send(bytes, [this, name] { log += std::string(1, name) + "@" + std::to_string(engine.now().ps()) + " "; }) ==
            at_ps(delivery));
    }
  } bench;
  bench.send('a', 100, 600);
  bench.send('b', 50, 650);  // waits for a's last byte, not for its delivery
  bench.send('c', 0, 650);   // takes no time, arrives with b but after it
  bench.engine.schedule_at(at_ps(120), [&bench] {
    CHECK(bench.link.busy() == ps(120));
    bench.send('d', 10, 660);
  });
  bench.engine.schedule_at(at_ps(1000), [&bench] {
    CHECK(bench.link.busy() == ps(160));
    bench.send('e', 7, 1507);  // the link was idle
  });
  bench.engine.run();
  CHECK(bench.log == "a@600 b@650 c@650 d@660 e@1507 ");
  CHECK(bench.link.sent() == 5);
  CHECK(bench.link.busy() == ps(167));
}

TEST_CASE("transmissions are rounded to the nearest picosecond") {
  EventLoop engine;
  const Link link(engine, "nic", ps(0), 3e12);
  CHECK(link.transmission(1) == ps(0));
  CHECK(link.transmission(2) == ps(1));
  CHECK(link.transmission(3) == ps(1));
  CHECK(link.transmission(3'000'000'000'000) == Duration::from_seconds(1.0));
}

TEST_CASE("a link without a bandwidth fails") {
  EventLoop engine;
  for (const double bad : {0.0, -1.0, HUGE_VAL, static_cast<double>(NAN)})
    CHECK_THROWS_AS(Link(engine, "bad", ps(0), bad), InvariantBroken);
}

}  // namespace specsim::link_test
