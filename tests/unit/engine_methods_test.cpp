// Methods in the files of servers, and which methods are then marked.
#include "sim/answers/plan/engine_methods.h"
#include "sim/hardware/latency/engine.h"
#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/verify/verifier.h"
#include "tests/support/cells.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

namespace specsim::engine_methods_test {

namespace {

std::optional<bool> runs(const std::string& engine, const std::string& decode, const std::string& draft_sampling = "{}") {
  const spec::Experiment experiment = tests::experiment_of(fmt::format(
      "{{experiment: engine, rounds: 1000, pair: {{vocab: 50, target: {{family: zipf, exponent: 1.1}}, draft: {{from: target, "
      "transform: temperature, value: 1.3}}, draft_sampling: {}}}, decode: {}, cost: {{model: roofline, hardware: h100-sxm, "
      "target: llama-3.1-8b, draft: llama-3.2-1b, engine: {}}}}}",
      draft_sampling, decode, engine));
  return plan::engine_runs(experiment.cells.at(0));
}

const std::string kDrawn = "{drafter: {kind: chain, draft_length: 3}, verifier: token}";
const std::string kChosen = "{drafter: {kind: chain, draft_length: 3, selection: argmax}, verifier: token}";
const std::string kBlock = "{drafter: {kind: chain, draft_length: 3}, verifier: block}";
const std::string kGrown = "{drafter: {kind: tree_dynamic, depth: 3, width: 4, nodes: 8}, verifier: tree_point_mass}";
const std::string kPath = "{drafter: {kind: tree_dynamic, depth: 3, width: 1, nodes: 3}, verifier: tree_point_mass}";
const std::string kDrawnTree =
    "{drafter: {kind: tree_static, branching: [2, 1], siblings: without_replacement}, verifier: without_replacement}";

}  // namespace

TEST_CASE("the methods of each engine's file are names of drafters and verifiers", "[engine_methods]") {
  int say = 0;
  for (const std::string& name : cost::engine_names()) {
    Diagnostics diagnostics;
    const cost::EngineMethods methods = cost::read_engine(cost::PresetChoice{name, {}, {}}, diagnostics).methods;
    diagnostics.throw_if_any();
    INFO(name);
    if (!methods.drafters.empty()) ++say;
    CHECK(methods.drafters.empty() == methods.verifiers.empty());
    CHECK(methods.trees.empty() == methods.tree_verifiers.empty());
    for (const auto* list : {&methods.drafters, &methods.trees})
      for (const std::string& drafter : *list) CHECK((drafter == "chain" || draft::drafters().find(drafter) != nullptr));
    for (const auto* list : {&methods.verifiers, &methods.tree_verifiers})
      for (const std::string& verifier : *list) CHECK(verify::verifiers().find(verifier) != nullptr);
  }
  CHECK(say == 8);
}

TEST_CASE("vLLM runs chains, drawn or chosen, also as blocks, and no tree", "[engine_methods]") {
  CHECK(runs("vllm", kDrawn) == true);
  CHECK(runs("vllm", kChosen) == true);
  CHECK(runs("vllm", kBlock) == true);
  CHECK(runs("vllm", kGrown) == false);
  CHECK(runs("vllm", kDrawnTree) == false);
}

TEST_CASE("SGLang grows trees, draws none and judges no blocks", "[engine_methods]") {
  CHECK(runs("sglang", kDrawn) == true);
  CHECK(runs("sglang", kGrown) == true);
  CHECK(runs("sglang", kBlock) == false);
  CHECK(runs("sglang", kDrawnTree) == false);
  CHECK(runs("sglang_sync", kDrawn) == false);
}

TEST_CASE("llama.cpp takes the draft's likeliest tokens", "[engine_methods]") {
  CHECK(runs("llama_cpp", kChosen) == true);
  CHECK(runs("llama_cpp", kDrawn) == false);
  CHECK(runs("llama_cpp", kDrawn, "{temperature: 0}") == true);
  CHECK(runs("llama_cpp", kDrawn, "{top_k: 1}") == true);
  CHECK(runs("llama_cpp", kGrown) == false);
  CHECK(runs("llama_cpp", "{drafter: {kind: eagle3, depth: 3, width: 1}, verifier: tree_point_mass}") == true);
  CHECK(runs("llama_cpp", kPath) == false);  // a chain, by a drafter that it does not have
}

TEST_CASE("an engine whose file lists no methods marks none", "[engine_methods]") {
  CHECK_FALSE(runs("graphs", kGrown).has_value());
  CHECK_FALSE(runs("transformers", kDrawnTree).has_value());
  CHECK(runs("{preset: graphs, methods: {drafters: [chain], verifiers: [token]}}", kDrawn) == false);
  CHECK(runs("{preset: graphs, methods: {drafters: [chain], verifiers: [token], draws: true}}", kDrawn) == true);
}

}  // namespace specsim::engine_methods_test
