// Whole steps: the time that an engine adds around the kernels, and tables of measured steps estimated row by row.
#include "sim/hardware/latency/step_tables.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

namespace specsim::cost_steps_test {

using namespace specsim::cost;
using specsim::tests::make_cost;
using specsim::tests::near;

namespace {

using Lines = std::vector<std::vector<std::string>>;

std::unique_ptr<CostModel> with_engine(const std::string& engine, const std::string& more = "", const std::string& target = "") {
  return make_cost("roofline", fmt::format("{{hardware: h200-sxm, target: {{preset: llama-3.1-8b{}}}, draft: none, engine: "
                                           "{{source: a test, graphs: true, {}}}{}}}",
                                           target, engine, more));
}

double total(const CostModel& model, const Pass& pass) { return model.pass(Role::target, pass).total(); }

std::string refusal(const Lines& lines) {
  try {
    estimate_step_table("steps.csv", lines);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

const std::vector<std::string> kServer = {"gpu", "engine", "model", "tp", "ep", "batch", "mean_context", "median_ms"};
const std::vector<std::string> kLayers = {"gpu", "engine", "model", "tp", "phase", "batch", "new_tokens", "context", "ms"};
const std::vector<std::string> kServed = {"backend", "model_path", "system",      "precision",      "isl",
                                          "osl",     "tp_size",    "concurrency", "silicon_tpot_ms"};

}  // namespace

TEST_CASE("host time during GPU work is a floor, host time with an idle GPU is a term", "[cost][steps]") {
  const Pass pass{4, 1, 1000, 1};
  const double alone = total(*with_engine("host_us: 0"), pass);
  CHECK(near(total(*with_engine("host_us: 300, host_us_per_sequence: 20"), pass), alone + 380e-6));
  CHECK(total(*with_engine("overlapped_host_us: 300, overlapped_host_us_per_sequence: 20"), pass) == alone);
  CHECK(near(total(*with_engine("overlapped_host_us: 3e4, overlapped_host_us_per_sequence: 1000"), pass), 34e-3));
  CHECK(near(total(*with_engine("step_us: 250"), pass), alone + 250e-6));
}

TEST_CASE("a live server waits for the longest context and for its clients; lockstep does not", "[cost][steps]") {
  const auto model = with_engine("kernels: vllm, client_us_per_sequence: 28, unequal_contexts: 1.2", ", kernels: vllm");
  const Pass even{8, 1, 4000, 1, false};
  Pass live = even;
  live.live = true;
  const PassTime a = model->pass(Role::target, even);
  const PassTime b = model->pass(Role::target, live);
  CHECK(near(b.kv, a.kv * (1.0 + 0.2 * 7 / 8)));
  CHECK(near(b.host, a.host + 8 * 28e-6));
  live.batch = 1;
  CHECK(model->pass(Role::target, live).kv == model->pass(Role::target, {1, 1, 4000, 1, false}).kv);
  // Heads that share no keys: a sequence has many blocks, so the longest sequence does not delay the others.
  const auto ungrouped = [](const std::string& engine, bool in_server) {
    return make_cost("roofline", "{hardware: h100-sxm, target: llama-2-7b, draft: none, engine: {source: a test, graphs: true, " +
                                     engine + "}}")
        ->pass(Role::target, {8, 1, 4000, 1, in_server})
        .kv;
  };
  CHECK(ungrouped("kernels: vllm, unequal_contexts: 1.2", true) == ungrouped("kernels: vllm, unequal_contexts: 1.2", false));
}

TEST_CASE("prompts of a live server take longer than their kernels, and verified rows take the host's time", "[cost][steps]") {
  // Mutants: all rows scaled, not those of prompts alone; lockstep scaled; each row of a plain step counted.
  const auto model = with_engine("prompt_time: 1.5, verified_us_per_row: 10");
  const auto plain = with_engine("host_us: 0");
  const Pass prompt{1, 512, 0, 1};
  const PassTime a = plain->pass(Role::target, prompt);
  const PassTime b = model->pass(Role::target, prompt);
  CHECK(near(b.weights + b.compute, 1.5 * (a.weights + a.compute)));
  CHECK(near(b.kv, 1.5 * a.kv));
  CHECK(near(b.launch, a.launch));
  Pass lockstep = prompt;
  lockstep.live = false;
  CHECK(total(*model, lockstep) == total(*plain, lockstep));
  const Pass verification{4, 3, 100, 3};
  CHECK(near(total(*model, verification), total(*plain, verification) + 120e-6));
  CHECK(total(*model, {4, 1, 100, 1}) == total(*plain, {4, 1, 100, 1}));
  // A draft's catch-up is no prompt. Mutant: every row without logits is.
  const auto drafts = [](const char* engine) {
    return make_cost("roofline",
                     fmt::format("{{hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b, engine: {}}}", engine))
        ->draft_pass({4, 100}, 0, 3.0)
        .total();
  };
  CHECK(drafts("{preset: vllm, prompt_time: 2}") == drafts("{preset: vllm, prompt_time: 1}"));
  // Half of the rows of a mixed step are prompts'.
  const Segment prompts{1, 64, 0, 64 * 65 / 2};
  const Segment decoding{64, 64, 64000, 64 * 1001};
  const PassTime c = plain->mixed_pass(Role::target, prompts, decoding, 65, {});
  const PassTime d = model->mixed_pass(Role::target, prompts, decoding, 65, {});
  CHECK(near(d.weights + d.compute, 1.25 * (c.weights + c.compute)));
}

TEST_CASE("small kernels are counted by the engine; norms hide in all-reduces", "[cost][steps]") {
  const auto launch = [](const std::string& engine, const std::string& target = "") {
    return with_engine(engine, "", target)->pass(Role::target, {1, 1, 100, 1}).launch;
  };
  const double one = launch("small_kernels: 6") - launch("small_kernels: 5");
  CHECK(near(launch("small_kernels: 6") - launch("small_kernels: 3"), 3 * one, 1e-9));
  CHECK(launch("small_kernels: 6, implementations: [{operation: allreduce, fuses_norms: true}]") == launch("small_kernels: 6"));
  const std::string two = ", tensor_parallel: 2";
  CHECK(near(launch("small_kernels: 6", two) -
                 launch("small_kernels: 6, implementations: [{operation: allreduce, fuses_norms: true}]", two),
             2 * one, 1e-9));
}

TEST_CASE("all-reduces in the switch are never slower, and faster if there is much to move", "[cost][steps]") {
  const auto communication = [](const std::string& engine, double batch) {
    return with_engine("kernels: vllm, " + engine, ", kernels: vllm", ", tensor_parallel: 8")
        ->pass(Role::target, {batch, 1, 100, 1})
        .communication;
  };
  CHECK(communication("switch_share: 0.55", 1) == communication("switch_share: 0", 1));
  CHECK(communication("switch_share: 0.55", 256) < 0.8 * communication("switch_share: 0", 256));
}

TEST_CASE("a prompt's attention over earlier keys takes the additional time of the longer prompt", "[cost][steps]") {
  const auto model = with_engine("kernels: vllm", ", kernels: vllm");
  const auto kv = [&](double tokens, double context) { return model->pass(Role::target, {1, tokens, context, 1}).kv; };
  CHECK(kv(2048, 8192) > 2.0 * kv(2048, 0));
  CHECK(near(kv(4096, 4096) + kv(4096, 0), kv(8192, 0), 0.1));  // but for the floor of a kernel
}

TEST_CASE("host time for each row is a term", "[cost][steps]") {
  const Pass pass{4, 3, 1000, 3};
  CHECK(near(total(*with_engine("host_us_per_row: 10"), pass), total(*with_engine("host_us: 0"), pass) + 12 * 10e-6));
}

TEST_CASE("tables of steps are distinguished by their header and estimated row by row", "[cost][steps]") {
  CHECK(is_step_table(kServer));
  CHECK(is_step_table(kLayers));
  CHECK(is_step_table(kServed));
  CHECK_FALSE(is_step_table({"gpu", "engine", "dtype", "n", "k", "m", "us"}));
  const EstimatedSteps steps =
      estimate_step_table("steps.csv", {kServer,
                                        {"b300", "vllm 0.20.1", "Qwen3-32B", "1", "1", "8", "4096", "14"},
                                        {"b300", "vllm 0.20.1", "Qwen3-32B", "1", "4", "8", "4096", "14"},
                                        {"b300", "vllm 0.20.1", "Nobody-7B", "1", "1", "8", "4096", "14"},
                                        {"x1", "vllm 0.20.1", "Qwen3-32B", "1", "1", "8", "4096", "14"}});
  REQUIRE(steps.rows.size() == 4);
  CHECK(steps.rows[0].priced_ms > 11.0);  // 65 GB of weights at 8 TB/s take 8 ms
  CHECK(steps.rows[0].priced_ms < 17.0);
  CHECK(steps.rows[1].why == "experts on several GPUs in parallel are not estimated");
  CHECK(steps.rows[2].why == "no model Nobody-7B");
  CHECK(steps.rows[3].why == "no GPU x1");
  CHECK(step_gaps(steps).size() == 3);
  const std::vector<StepErrors> errors = step_errors(steps);
  CHECK(errors.back().gpu == "all");
  CHECK(errors.back().count == 1);
  CHECK(near(errors.back().median_ratio, steps.rows[0].priced_ms / 14.0));
}

TEST_CASE("steps of an unknown engine are estimated as another's, with a warning", "[cost][steps]") {
  const EstimatedSteps steps =
      estimate_step_table("steps.csv", {kServer, {"b300", "mine 1.0", "Qwen3-32B", "1", "1", "8", "4096", "14"}});
  CHECK(steps.rows[0].priced_ms > 10.0);
  REQUIRE(steps.warnings.size() == 1);
  CHECK(steps.warnings[0] == "engine \"mine 1.0\" is not known: its steps are estimated as vllm's; --engine names another");
}

TEST_CASE("steps in seconds or microseconds are a mistaken unit", "[cost][steps]") {
  for (const char* time : {"0.014", "14000"})
    CHECK(refusal({kServer, {"b300", "vllm", "Qwen3-32B", "1", "1", "8", "4096", time}})
              .find("times the column median_ms, allowed: times in milliseconds") != std::string::npos);
}

TEST_CASE("served steps are of one engine's clients, shared experts too, and fit its memory", "[cost][steps]") {
  std::vector<std::string> header = kServed;
  header.insert(header.end(), {"batch_size", "attention_dp_size", "moe_tp_size", "moe_ep_size"});
  const auto priced = [&](const char* model, const char* clients, const char* tensor, const char* batch, const char* engines,
                          const char* cut, const char* spread, const char* prompt = "1024") {
    return estimate_step_table(
               "served.csv",
               {header, {"trtllm", model, "b200_sxm", "fp8", prompt, "1024", tensor, clients, "10", batch, engines, cut, spread}})
        .rows[0];
  };
  const char* dense = "meta-llama/Llama-3.1-8B-Instruct";
  const char* mixture = "Qwen/Qwen3-30B-A3B";
  CHECK(priced(dense, "64", "1", "4", "", "", "").priced_ms == priced(dense, "4", "1", "", "", "", "").priced_ms);
  CHECK(priced(dense, "64", "1", "64", "", "", "").priced_ms == priced(dense, "64", "1", "", "", "", "").priced_ms);
  // Four engines that share their experts, one GPU each.
  CHECK(priced(mixture, "64", "1", "16", "4", "1", "4").priced_ms > 0.0);
  CHECK(priced(mixture, "64", "1", "16", "4", "1", "4").priced_ms != priced(mixture, "16", "1", "", "", "", "").priced_ms);
  // Whole experts on the four GPUs of a layer: the others wait for the GPU whose experts more tokens choose. Mutant: a slice of
  // each expert.
  const double cut = priced(mixture, "64", "4", "", "", "", "").priced_ms;
  const double whole = priced(mixture, "64", "4", "64", "1", "1", "4").priced_ms;
  CHECK(whole > cut);
  CHECK(whole < 1.2 * cut);
  CHECK(priced(mixture, "64", "1", "4", "16", "4", "4").why ==
        "attention on several GPUs by sequence is estimated with one GPU for each, and the experts on as many");
  CHECK(priced(mixture, "64", "4", "64", "1", "1", "8").why ==
        "experts on another number of GPUs than a layer are not estimated");
  CHECK(priced(mixture, "64", "4", "16", "", "1", "4").why == "how many engines share the clients is not given");
  CHECK(priced(dense, "2000", "1", "", "", "", "", "15000").why == "more sequences at once than fit the GPU's memory");
}

TEST_CASE("served tokens wait for the prompts of others", "[cost][steps]") {
  const auto tpot = [](const char* prompt, const char* output, const char* clients) {
    return estimate_step_table(
               "served.csv",
               {kServed, {"vllm", "meta-llama/Llama-3.1-8B-Instruct", "h200_sxm", "fp8", prompt, output, "1.0", clients, "10"}})
        .rows[0]
        .priced_ms;
  };
  CHECK(tpot("8192", "128", "16") > 1.5 * tpot("8192", "8192", "16"));  // a prompt for every 128 tokens
  CHECK(tpot("8192", "128", "1") < 1.02 * tpot("8192", "1024", "1"));   // one client waits for nobody
}

TEST_CASE("clients that wait for their first token do not decode meanwhile", "[cost][steps]") {
  std::vector<std::string> header = kServed;
  header.push_back("silicon_ttft_ms");
  const auto tpot = [&](const char* clients, const std::string& wait) {
    return estimate_step_table("served.csv", {header,
                                              {"vllm", "meta-llama/Llama-3.1-8B-Instruct", "h200_sxm", "fp8", "4096", "1000",
                                               "1.0", clients, "10", wait}})
        .rows[0]
        .priced_ms;
  };
  CHECK(tpot("64", "") == tpot("64", "0"));
  CHECK(near(tpot("64", "1e9"), tpot("1", "0"), 0.01));  // all except one of them wait
  // As long as 900 tokens take: half of 64 decode, with half as many prompts per token.
  const double half = tpot("32", "0");
  CHECK(near(tpot("64", fmt::format("{}", 900 * half)), half, 0.02));
}

TEST_CASE("mistakes in a table of steps are named with their line", "[cost][steps]") {
  const std::vector<std::string> good = {"b300", "vllm", "Qwen3-32B", "1", "gen", "8", "1", "4096", "14"};
  const auto with = [&](std::size_t at, const std::string& field) {
    std::vector<std::string> line = good;
    line[at] = field;
    return refusal({kLayers, good, line});
  };
  CHECK(with(8, "-14") == "steps.csv:3:36: ms is \"-14\", allowed: a number from 1e-06 on");
  CHECK(with(5, "many") == "steps.csv:3:27: batch is \"many\", allowed: a number from 1 on");
  CHECK(with(4, "decode") == "steps.csv:3:23: phase is \"decode\", allowed: gen, ctx");
  CHECK(refusal({kLayers, {"b300"}}) == "steps.csv:2: 1 fields, allowed: 9 as in the header");
  CHECK(refusal({kServed, {"vllm", "Llama-3.1-8B", "h200_sxm", "fp3", "1024", "1024", "1", "4", "10"}}) ==
        "steps.csv:2:28: precision is \"fp3\", allowed: bf16, fp8, fp4, int4");
}

}  // namespace specsim::cost_steps_test
