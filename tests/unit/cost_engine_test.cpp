// Engines are files: what is read from them, and what a config may change.
#include "sim/cost/cost_model.h"
#include "sim/cost/engine.h"
#include "sim/cost/presets.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

using namespace specsim;
using namespace specsim::cost;
using specsim::tests::make_cost;
using specsim::tests::near;

namespace {

Engine read_engine_of(const std::string& yaml) {
  Diagnostics diagnostics;
  const Engine engine = read_engine(config::parse_text(yaml, "test", diagnostics), diagnostics);
  diagnostics.throw_if_any();
  return engine;
}

}  // namespace

TEST_CASE("every engine of configs/engines is read, says where its figures come from, and has no more than a second",
          "[cost][engine]") {
  REQUIRE(engine_names().size() >= 4);
  for (const std::string& name : engine_names()) {
    INFO(name);
    const Engine engine = read_engine_of(name);
    CHECK(engine.name == name);
    CHECK(engine.source.size() > 10);
  }
}

TEST_CASE("figures of the engines that the first versions had stand", "[cost][engine]") {
  const Engine vllm = read_engine_of("vllm");
  CHECK(vllm.graphs);
  CHECK(vllm.host_us == 1207.0);
  CHECK(vllm.host_us_per_layer == 187.5);
  CHECK(vllm.largest_graph == 512.0);
  CHECK(read_engine_of("graphs").draft_floor_us == 500.0);
  CHECK(read_engine_of("eager").host_us_per_layer == 756.0);
  CHECK_FALSE(read_engine_of("bare").graphs);
}

TEST_CASE("an engine takes another's figures but those that are changed", "[cost][engine]") {
  const Engine engine = read_engine_of("{preset: vllm, host_us: 300, largest_graph: 64}");
  CHECK(engine.host_us == 300.0);
  CHECK(engine.largest_graph == 64.0);
  CHECK(engine.draft_floor_us == read_engine_of("vllm").draft_floor_us);
}

TEST_CASE("a cost model's own keys come before the engine's", "[cost][engine]") {
  const auto host = [](const std::string& engine) {
    return make_cost("roofline", "{hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b, " + engine + "}")
        ->pass(Role::target, {1, 1, 100, 1})
        .host;
  };
  CHECK(near(host("engine: {preset: vllm, host_us: 300}"), 300e-6));
  CHECK(near(host("engine: {preset: vllm, host_us: 300}, host_us: 200"), 200e-6));
  CHECK(near(host("engine: {source: a test of mine, graphs: true, host_us: 100}"), 100e-6));
}
