// Timeline: the exact text of the file, completely or not at all, and a traced run for timeline_test.py to read.
#include "sim/hardware/engine/timeline.h"
#include "sim/foundation/base/check.h"
#include "sim/foundation/base/error.h"
#include "sim/hardware/engine/fifo_server.h"
#include "sim/hardware/engine/link.h"
#include "sim/hardware/engine/shared_server.h"
#include "tests/engine/draws.h"

#include <unistd.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>

namespace specsim::timeline_test {

using namespace specsim::engine;
using specsim::tests::at_ps;
using specsim::tests::Draws;
using specsim::tests::ps;

namespace {

class Folder {
 public:
  Folder() { std::filesystem::create_directories(path_); }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file() const { return path_ / "trace.json"; }
  [[nodiscard]] bool empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::filesystem::path path_ = std::filesystem::temp_directory_path() / fmt::format("specsim_timeline_{}", getpid());
};

}  // namespace

TEST_CASE("a small timeline's text") {
  const Folder folder;
  Timeline timeline(folder.file());
  const Timeline::Lane gpu = timeline.lane("gpu \"0\"");
  const Timeline::Lane link = timeline.lane("link\n");
  timeline.span(gpu, "draft", at_ps(0), ps(1'500'000));
  timeline.span(gpu, "target", at_ps(1'500'000), ps(1),
                {{"tokens", std::int64_t{5}}, {"rate", 0.5}, {"none", NAN}, {"kind", std::string_view("a\\b")}}, "good");
  timeline.span(link, "send", SimTime::max(), Duration::from_ps(std::int64_t{10'000'001}));
  CHECK(timeline.spans() == 3);
  CHECK_FALSE(std::filesystem::exists(folder.file()));
  timeline.close();
  CHECK(read_whole_file(folder.file()) == R"({"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"gpu \"0\""}},
{"ph":"M","pid":1,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"link\u000a"}},
{"ph":"M","pid":1,"tid":2,"name":"thread_sort_index","args":{"sort_index":2}},
{"ph":"X","pid":1,"tid":1,"ts":0,"dur":1.500000,"name":"draft"},
{"ph":"X","pid":1,"tid":1,"ts":1.500000,"dur":0.000001,"name":"target","cname":"good","args":{"tokens":5,"rate":0.5,"none":null,"kind":"a\\b"}},
{"ph":"X","pid":1,"tid":2,"ts":9223372036854.775807,"dur":10.000001,"name":"send"}
]}
)");
  CHECK_THROWS_AS(timeline.close(), InvariantBroken);
  CHECK_THROWS_AS(timeline.span(gpu, "late", at_ps(0), ps(0)), InvariantBroken);
}

TEST_CASE("a timeline that is not closed leaves nothing, also when much was written") {
  const Folder folder;
  try {
    Timeline timeline(folder.file());
    const Timeline::Lane lane = timeline.lane("lane");
    CHECK_THROWS_AS(timeline.span(Timeline::Lane{2}, "unknown", at_ps(0), ps(0)), InvariantBroken);
    for (int i = 0; i < 50'000; ++i) timeline.span(lane, "span", at_ps(i), ps(1));
    CHECK_FALSE(folder.empty());
    throw std::runtime_error("no");
  } catch (const std::runtime_error&) {
  }
  CHECK(folder.empty());
  CHECK_THROWS_AS(Timeline(folder.file() + "/below/trace.json"), IoError);
}

TEST_CASE("a traced run", "[.timeline]") {
  // Run by timeline_test.py, which names the file.
  const char* const path = std::getenv("SPECSIM_TIMELINE");
  REQUIRE(path != nullptr);
  struct TracedServers {
    explicit TracedServers(const std::string& file) : timeline(file) {
      one.trace(timeline);
      three.trace(timeline);
      shared.trace(timeline);
      link.trace(timeline);
    }
    Timeline timeline;
    EventLoop engine;
    FifoServer one{engine, "one"};
    FifoServer three{engine, "three", 3};
    SharedServer shared{engine, "shared"};
    Link link{engine, "link", ps(2'000'000), 1e9};
    Draws draws{20260301};
    int left = 2000;
    void come() {
      if (--left > 0) engine.schedule_after(Duration::from_ps(draws.exponential(2e6)), [this] { come(); });
      one.request(Duration::from_ps(draws.exponential(1.5e6)), [this] {
        three.request(Duration::from_ps(draws.exponential(4e6)), [this] {
          shared.request(Duration::from_ps(draws.exponential(1e6)), [this] { link.send(draws.below(3000)); });
        });
      });
    }
  } traced(path);
  traced.engine.schedule_at(SimTime(), [&traced] { traced.come(); });
  traced.engine.run();
  CHECK(traced.timeline.spans() == 8000);
  traced.timeline.close();
}

}  // namespace specsim::timeline_test
