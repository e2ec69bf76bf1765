// A pass by hand, part by part, on a GPU and a model with round numbers.
#include "sim/hardware/latency/deployment.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace specsim::cost_roofline_test {

using namespace specsim::cost;
using specsim::tests::hardware_of;
using specsim::tests::make_cost;
using specsim::tests::near;

namespace {

// 1 TB/s, arithmetic without time: time is bytes, unless a test overrides it.
const std::string kGpu =
    "{memory_gb: 80, bandwidth_gb_per_s: 1000, bf16_tflops: 20000, multiprocessors: 1, link_gb_per_s: 100, link_latency_us: 5, "
    "calibration: {memory_efficiency: 1, feed_tb_per_s: 1000, overlap_power: 100, kernel_us: 0, split_us: 1e6, "
    "attention_efficiency: 1, attention_us: 0, elementwise_us: 0}}";
const std::string kShape = "layers: 2, hidden: 256, heads: 4, kv_heads: 2, head_dim: 64, ffn: 512, vocab: 1000";

std::string with(const std::string& shape, const std::string& more) {
  return "{" + shape + (more.empty() ? "" : ", " + more) + "}";
}

std::unique_ptr<CostModel> by_hand(const std::string& target_more, const std::string& more, const std::string& draft_more = "") {
  return make_cost("roofline", fmt::format("{{hardware: {}, target: {}, draft: {}, {}}}", kGpu, with(kShape, target_more),
                                           with(kShape, draft_more), more.empty() ? "engine: bare" : more));
}

// Seconds of the matrix products of a pass on kGpu, where time is bytes: weights once, activations of 16 bits in and out.
double products(double rows, double logit_rows, double bits = 16, double efficiency = 1, double shards = 1) {
  const auto product = [&](double m, double inner, double outer) {
    return m > 0 ? (inner * outer * bits / 8 / efficiency + 2 * m * (inner + outer)) / 1e12 : 0.0;
  };
  const double layer = product(rows, 256, 512 / shards) + product(rows, 256 / shards, 256) + product(rows, 256, 1024 / shards) +
                       product(rows, 512 / shards, 256);
  return 2 * layer + product(logit_rows, 256, 1000 / shards);
}

double matrix_products(const PassTime& time) { return time.weights + time.compute; }

// Bytes over 1 TB/s: of the layers' weights, the LM head's and the activations of a one-row pass.
constexpr double kLayer = 256.0 * 512 + 256 * 256 + 256 * 1024 + 512 * 256;
constexpr double kLayerActivations = (256.0 + 512) + (256 + 256) + (256 + 1024) + (512 + 256);

}  // namespace

TEST_CASE("weights once per pass, the LM head on every row that asks for logits", "[cost][roofline]") {
  const auto model = by_hand("", "");
  const PassTime one = model->pass(Role::target, {1, 1, 0, 1});
  CHECK(near(one.weights, (2 * (2 * kLayer + 2 * kLayerActivations) + 2.0 * 256 * 1000 + 2.0 * (256 + 1000)) / 1e12, 1e-9));
  CHECK(std::abs(one.compute) < 1e-18);
  for (const double tokens : {2.0, 6.0, 33.0}) {
    const PassTime time = model->pass(Role::target, {3, tokens, 0, tokens});
    CHECK(near(time.weights, one.weights));  // once, whatever the rows
    CHECK(near(matrix_products(time), products(3 * tokens, 3 * tokens)));
    CHECK(near(matrix_products(model->pass(Role::target, {3, tokens, 0, 1})), products(3 * tokens, 3)));  // prefill
    CHECK(near(matrix_products(model->pass(Role::target, {3, tokens, 0, 0})), products(3 * tokens, 0)));
  }
  // Logits: four bytes, moved three times.
  CHECK(near(model->pass(Role::target, {3, 6, 0, 6}).sampling, 3.0 * 18 * 1000 * 4 / 1e12));
  CHECK(near(model->pass(Role::target, {3, 6, 0, 1}).sampling, 3.0 * 3 * 1000 * 4 / 1e12));
}

TEST_CASE("keys and values once per sequence, whatever the tokens", "[cost][roofline]") {
  const auto model = by_hand("", "");
  const double per_token = 2.0 * 2 * 2 * 64 * 2;
  for (const double tokens : {1.0, 6.0, 40.0}) {
    const double kv = model->pass(Role::target, {3, tokens, 1000, tokens}).kv;
    CHECK(near(kv, per_token * 3 * (1000 + tokens) / 1e12));  // the cache read, the new tokens written
  }
  CHECK(near(by_hand("kv_bits: 8", "")->pass(Role::target, {3, 6, 1000, 6}).kv, 0.5 * per_token * 3 * 1006 / 1e12));
  // A window keeps the newest tokens: a longer context takes no more time.
  const auto window = by_hand("kv_window: 100", "");
  CHECK(near(window->pass(Role::target, {3, 1, 1000, 1}).kv, per_token * 3 * 101 / 1e12));
  CHECK(window->pass(Role::target, {3, 1, 1000, 1}).kv == window->pass(Role::target, {3, 1, 9000, 1}).kv);
  CHECK(near(window->pass(Role::target, {3, 1, 50, 1}).kv, per_token * 3 * 51 / 1e12));
}

TEST_CASE("attention's operations: 6 tokens onto 100 look at 621 pairs", "[cost][roofline]") {
  std::string slow = kGpu;
  slow.replace(slow.find("20000"), 5, "1.000");
  const auto model =
      make_cost("roofline", fmt::format("{{hardware: {}, target: {{{}}}, draft: {{{}}}, engine: bare}}", slow, kShape, kShape));
  CHECK(near(model->pass(Role::target, {3, 6, 100, 6}).kv, 4.0 * 2 * 4 * 64 * 3 * 621 / 1e12));
  CHECK(near(model->pass(Role::target, {1, 1, 0, 1}).kv, std::max(4.0 * 2 * 4 * 64 * 1 / 1e12, 2.0 * 2 * 2 * 64 * 2 / 1e12)));
}

TEST_CASE("tensor parallel: a share of everything, two all-reduces per layer", "[cost][roofline]") {
  const auto model = by_hand("tensor_parallel: 2", "");
  const PassTime time = model->pass(Role::target, {3, 6, 1000, 6});
  CHECK(near(matrix_products(time), products(18, 18, 16, 1, 2)));
  CHECK(near(time.kv, 0.5 * by_hand("", "")->pass(Role::target, {3, 6, 1000, 6}).kv));
  CHECK(near(time.communication, 2.0 * 2 * (5e-6 + 18.0 * 256 * 2 * (2.0 * 1 / 2) / 1e11)));
  CHECK(by_hand("", "")->pass(Role::target, {3, 6, 1000, 6}).communication == 0.0);
  // Launched one by one, all-reduces take longer than in a graph.
  std::string gpu = kGpu;
  gpu.replace(gpu.find("link_latency_us: 5"), 18, "link_latency_us: 5, graph_link_latency_us: 1");
  for (const auto& [engine, latency] :
       {std::pair{"bare", 1e-6}, {"graphs", 1e-6}, {"eager", 5e-6}, {"vllm, largest_graph: 1", 5e-6}})
    CHECK(near(make_cost("roofline", fmt::format("{{hardware: {}, target: {}, draft: {{{}}}, engine: {}}}", gpu,
                                                 with(kShape, "tensor_parallel: 2"), kShape, engine))
                   ->pass(Role::target, {3, 6, 1000, 6})
                   .communication,
               2.0 * 2 * (latency + (engine[0] == 'g' ? 24.0 : 18.0) * 256 * 2 * (2.0 * 1 / 2) / 1e11)));
  // 4 GPUs, 2 key and value heads: each GPU keeps and reads one of them.
  const auto copies = by_hand("tensor_parallel: 4", "");
  CHECK(near(copies->pass(Role::target, {3, 6, 1000, 6}).kv, time.kv));
  CHECK(copies->memory_budget({3, 1000}, 1, Kept::target)->lines[1].bytes ==
        model->memory_budget({3, 1000}, 1, Kept::target)->lines[1].bytes);
  CHECK(near(copies->pass(Role::target, {1, 1, 0, 0}).communication, 2.0 * 2 * (5e-6 + 256.0 * 2 * (2.0 * 3 / 4) / 1e11)));
}

TEST_CASE("captured graphs pad rows; beyond the largest, and without graphs, a floor", "[cost][roofline]") {
  const auto vllm = by_hand("", "engine: vllm_sync, largest_graph: 32");
  for (const auto& [rows, padded] :
       {std::pair{1.0, 1.0}, {2.0, 2.0}, {3.0, 4.0}, {5.0, 8.0}, {9.0, 16.0}, {24.0, 24.0}, {25.0, 32.0}})
    CHECK(near(matrix_products(vllm->pass(Role::target, {1, rows, 0, 1, false})), products(padded, 1)));
  const PassTime captured = vllm->pass(Role::target, {1, 32, 0, 1});
  CHECK(near(captured.host, 1.207e-3 + 20e-6));  // and one sequence's
  const PassTime eager = vllm->pass(Role::target, {1, 33, 0, 1, false});
  CHECK(near(matrix_products(eager), products(33, 1)));
  CHECK(near(by_hand("", "engine: vllm_sync, largest_graph: 32, host_us: 0")->pass(Role::target, {1, 33, 0, 1}).total(),
             2 * 187.5e-6));
  CHECK(near(vllm->pass(Role::draft, {1, 1, 0, 1}).host, 0.14e-3));
  CHECK(near(by_hand("", "engine: graphs")->pass(Role::draft, {1, 1, 0, 1}).total(), 0.5e-3));
  CHECK(near(by_hand("", "engine: vllm_sync, draft_us: 0")->pass(Role::draft, {1, 1, 0, 1}).host, 0.0));
  // Without graphs the host launches layer by layer, ahead of the GPU: a floor that affects a model of many layers.
  for (const Role role : {Role::target, Role::draft}) {
    const auto floored = by_hand("", "engine: eager")->pass(role, {1, 5, 0, 1});
    CHECK(near(floored.total(), 2 * 756e-6));
    CHECK(floored.host > 0.0);
  }
  CHECK(near(by_hand("", "engine: eager, host_us_per_layer: 0")->pass(Role::target, {1, 5, 0, 1}).host, 0.0));
  CHECK(near(by_hand("", "engine: vllm_sync, largest_graph: 3, host_us: 0, host_us_per_layer: 4000")
                 ->pass(Role::target, {1, 5, 0, 1})
                 .total(),
             8e-3));
  CHECK(near(by_hand("", "engine: vllm_sync, host_us: 10, round_us: 20")->round_overhead(1), 20e-6));
  // A largest graph of 3 rows includes 3.
  CHECK(near(matrix_products(by_hand("", "engine: vllm_sync, largest_graph: 3")->pass(Role::target, {1, 3, 0, 1, false})),
             products(3, 1)));
  // bare is a lower bound: no padding, no host, no floor.
  const PassTime bare = by_hand("", "")->pass(Role::target, {1, 5, 0, 1});
  CHECK(near(matrix_products(bare), products(5, 1)));
  CHECK(bare.host == 0.0);
}

TEST_CASE("weights of fewer bits stream faster, at a lesser share of the bandwidth", "[cost][roofline]") {
  const auto time = [&](const std::string& bits, const std::string& more) {
    return by_hand(bits, "engine: bare" + more)->pass(Role::target, {1, 1, 0, 1}).weights;
  };
  CHECK(near(time("weight_bits: 8, head_bits: 8", ""), products(1, 1, 8, 0.77)));
  CHECK(near(time("weight_bits: 4, head_bits: 4", ""), products(1, 1, 4, 0.54)));
  CHECK(near(time("weight_bits: 8, head_bits: 8", ", quantized_efficiency: 1"), products(1, 1, 8, 1)));
  CHECK(near(time("", ", quantized_efficiency: 0.5"), products(1, 1)));
}

TEST_CASE("experts: the pass reads those that all its tokens choose", "[cost][roofline]") {
  const std::string experts = "experts: 8, experts_per_token: 2, expert_ffn: 512";
  const auto model = by_hand(experts, "");
  const auto weights = [&](double active) {
    const double expert = 256.0 * 1024 + 512 * 256;
    return (2.0 * 2 * (256.0 * 512 + 256 * 256 + active * expert) + 2.0 * 256 * 1000) / 1e12;
  };
  // 2 for one token; 8 (1 - .75^6) = 6.6 for six, whether of one sequence or of six.
  const double six = 8.0 * (1.0 - std::pow(0.75, 6));
  for (const auto& [pass, active] :
       {std::pair{Pass{1, 1, 0, 1}, 2.0}, {Pass{1, 6, 0, 6}, six}, {Pass{6, 1, 0, 1}, six}, {Pass{64, 6, 0, 6}, 8.0}}) {
    const PassTime time = model->pass(Role::target, pass);
    CHECK(near(time.weights, weights(active), 0.02));                              // and the activations of a row
    if (pass.batch * pass.tokens <= 6) CHECK(time.compute < 0.01 * time.weights);  // reading more experts adds no arithmetic
  }
  // Padding rows choose no experts: 5 tokens in a graph of 8.
  const auto padded = by_hand("experts: 8, experts_per_token: 2, expert_ffn: 512", "engine: graphs");
  CHECK(near(padded->pass(Role::target, {1, 5, 0, 5}).weights, weights(8.0 * (1.0 - std::pow(0.75, 5))), 0.02));
  CHECK(model->memory_budget({1, 0}, 1, Kept::target)->lines[0].bytes ==
        2.0 * (2 * (256.0 * 512 + 256 * 256 + 8 * (256.0 * 1024 + 512 * 256)) + 2 * 256 * 1000.0));
}

TEST_CASE("an EAGLE head runs its layer, its joining product and the target's LM head", "[cost][roofline]") {
  const auto model = by_hand("", "", "fused_inputs: 2, shares_lm_head: true");
  const Hardware gpu = hardware_of(kGpu);
  CHECK(near(matrix_products(model->draft_pass({3, 100}, 0, 0)), products(3, 3) + product_seconds(gpu, 3, 512, 256, 2)));
  const auto memory_budget = model->memory_budget({1, 0}, 2, Kept::both);
  CHECK(memory_budget->lines[2].bytes == 2.0 * (2 * kLayer + 2.0 * 256 * 256));  // no LM head of its own
  std::string mistakes;
  make_cost("roofline", fmt::format("{{hardware: {}, target: {{{}, fused_inputs: 2}}, draft: {{{}}}}}", kGpu, kShape, kShape),
            &mistakes);
  CHECK(mistakes.find("the target is a head that cannot stand alone, allowed: a whole model") != std::string::npos);
}

TEST_CASE("a Markov head is read once for each position of a block, whatever the batch", "[cost][roofline]") {
  const auto with = [](double rank) {
    return make_cost("roofline", fmt::format("{{hardware: {}, target: {{{}}}, draft: {{{}, markov_rank: {}}}, engine: bare}}",
                                             kGpu, kShape, kShape, rank));
  };
  const auto head = with(64);
  const auto none = with(0);
  const Hardware gpu = hardware_of(kGpu);
  const double vocab = head->deployment()->draft->vocab;
  const auto more = [&](double batch, double positions) {
    return matrix_products(head->draft_level({batch, 100}, 0, positions, 0)) -
           matrix_products(none->draft_level({batch, 100}, 0, positions, 0));
  };
  for (const double batch : {1.0, 3.0, 64.0})
    for (const double positions : {1.0, 7.0})
      CHECK(near(more(batch, positions), positions * product_seconds(gpu, batch, 64, vocab, 2)));
  CHECK(head->pass(Role::target, {3, 8, 100, 8}).total() == none->pass(Role::target, {3, 8, 100, 8}).total());
  const ModelShape& shape = *head->deployment()->draft;
  CHECK(shape.total_parameters() - none->deployment()->draft->total_parameters() == Approx(2 * 64 * vocab));
  CHECK(shape.own_parameters() - none->deployment()->draft->own_parameters() == Approx(2 * 64 * vocab));
}

TEST_CASE("heads that guess several tokens take one pass for all of them", "[cost][roofline]") {
  const std::string heads =
      "{layers: 0, hidden: 256, heads: 4, kv_heads: 2, head_dim: 64, ffn: 0, vocab: 1000, prediction_heads: 3, head_matrices: 6}";
  const auto model =
      make_cost("roofline", fmt::format("{{hardware: {}, target: {{{}}}, draft: {}, engine: bare}}", kGpu, kShape, heads));
  const Hardware gpu = hardware_of(kGpu);
  const double once = 6 * product_seconds(gpu, 3, 256, 256, 2) + 3 * product_seconds(gpu, 3, 256, 1000, 2);
  CHECK(near(matrix_products(model->draft_pass({3, 100}, 0, 0)), once));
  CHECK(near(model->draft_pass({3, 100}, 0, 0).sampling, 3 * model->pass(Role::target, {3, 1, 100, 1}).sampling));
  CHECK(model->draft_pass({3, 100}, 0, 0).kv == 0.0);
  for (const int index : {1, 2, 4, 5}) CHECK(model->draft_pass({3, 100}, index, 0).total() == 0.0);
  CHECK(near(matrix_products(model->draft_pass({3, 100}, 3, 0)), once));  // a fourth token needs them again
  CHECK(model->draft_level({3, 100}, 1, 4, 0).total() == 0.0);
  CHECK(near(round_time(*model, {3, 100}, 3, 0).draft.total(), model->draft_pass({3, 100}, 0, 0).total()));
  CHECK(near(block_time(*model, {3, 100}, {1, 4, 2}, 8, 0).draft.total(), model->draft_pass({3, 100}, 0, 0).total()));
  const auto refused = [&](const std::string& draft, const std::string& text) {
    std::string mistakes;
    make_cost("roofline", fmt::format("{{hardware: {}, target: {{{}}}, draft: {}}}", kGpu, kShape, draft), &mistakes);
    INFO(mistakes);
    CHECK(mistakes.find(text) != std::string::npos);
  };
  refused("{preset: medusa-heads-7b, prediction_heads: 0, head_matrices: 0}", "layers is 0, allowed: with prediction_heads");
  refused("{preset: medusa-heads-7b, prediction_heads: 0}", "head_matrices is 5, allowed: 0 without prediction_heads");
  refused("{preset: medusa-heads-7b, shares_lm_head: true}", "shares_lm_head is true, allowed: false with prediction_heads");
  refused("{preset: medusa-heads-7b, offload: {share: 0.5, link_gb_per_s: 20}}", "layers is 0 with offload");
  std::string mistakes;
  make_cost("roofline", fmt::format("{{hardware: {}, target: medusa-heads-7b, draft: none}}", kGpu), &mistakes);
  CHECK(mistakes.find("the target is a head that cannot stand alone") != std::string::npos);
}

TEST_CASE("drafts from one pass take the time of one pass over all of them", "[cost][roofline]") {
  const auto model = make_cost(
      "roofline",
      "{hardware: h100-sxm, target: llama-3.1-8b, draft: {preset: eagle-head-8b, layers: 5, one_pass: true}, engine: bare}");
  const double all = model->pass(Role::draft, {32, 7, 100, 7}).total();
  CHECK(near(round_time(*model, {32, 100}, 7, 0).draft.total(), all));
  CHECK(near(round_time(*model, {32, 100}, 7, 0).verify.total(), model->pass(Role::target, {32, 8, 100, 8}).total()));
  // Like the drafter's own rounds; the mutant makes a pass for each.
  CHECK(near(block_time(*model, {32, 100}, {7}, 8, 0).draft.total(), all));
  const auto chain = make_cost(
      "roofline", "{hardware: h100-sxm, target: llama-3.1-8b, draft: {preset: eagle-head-8b, layers: 5}, engine: bare}");
  CHECK(round_time(*chain, {32, 100}, 7, 0).draft.total() > 3 * all);
  CHECK(round_time(*model, {32, 100}, 0, 0).draft.total() == 0.0);
}

TEST_CASE("parts add up, and batches of one kind add", "[cost][roofline]") {
  for (const std::string engine : {"bare", "vllm_sync", "eager"}) {
    const auto model =
        make_cost("roofline", "{hardware: a100-80gb-sxm, target: llama-2-7b, draft: llama-68m, engine: " + engine + "}");
    for (const Role role : {Role::target, Role::draft}) {
      const PassTime t = model->pass(role, {4, 6, 900, 6});
      CHECK(near(t.total(), t.weights + t.compute + t.kv + t.communication + t.launch + t.host + t.sampling, 1e-15));
      for (const double part : {t.weights, t.compute, t.kv, t.communication, t.launch, t.host, t.sampling}) CHECK(part >= 0.0);
    }
    const RoundTime plain = round_time(*model, {4, 900}, 0, 0.7);
    CHECK(plain.plain.total() == model->pass(Role::target, {4, 1, 900, 1}).total());
    CHECK(plain.verify.total() == plain.plain.total());
  }
  const auto model = by_hand("", "");
  const auto kv = [&](double batch, double context) { return model->pass(Role::target, {batch, 6, context, 6}).kv; };
  CHECK(near(kv(5, 700) + kv(3, 700), kv(8, 700)));
  CHECK(near(kv(4, 700) + kv(4, 100), kv(8, 400)));  // linear in the context, so means are enough
  // A draft pass includes the token to catch up with, and is further on in the text.
  const PassTime extra = model->draft_pass({4, 700}, 2, 0.5);
  CHECK(near(extra.kv, model->pass(Role::draft, {4, 1.5, 702, 1}).kv));
}

// An EAGLE-3 head's product over the target's three features has 3 x 4,096 x 4,096 16-bit weights. Later passes of a round do not
// read them again. An EAGLE head joins its input in each pass.
TEST_CASE("only the first pass of a round joins the target's features", "[cost]") {
  const Workload workload{1.0, 1024.0};
  const auto eagle3 =
      make_cost("roofline", "{hardware: h100-sxm, target: llama-3.1-8b, draft: eagle3-llama-3.1-8b, engine: bare}");
  const double saved = eagle3->draft_pass(workload, 0, 0.0).total() - eagle3->draft_pass(workload, 1, 0.0).total();
  const double at_peak = 3.0 * 4096.0 * 4096.0 * 2.0 / 3.35e12;
  CHECK(saved > at_peak);
  CHECK(saved < 2.0 * at_peak);
  const auto eagle = make_cost("roofline", "{hardware: h100-sxm, target: llama-3.1-8b, draft: eagle-head-8b, engine: bare}");
  CHECK(eagle->draft_pass(workload, 0, 0.0).weights == eagle->draft_pass(workload, 1, 0.0).weights);
}

// Above the rows of the largest graph the host launches kernel by kernel, so the time depends on the model's layers. The mutant
// is the same floor for any pass, such as the 6 ms of a model of 32 layers: with it a head of one layer took 6 ms above 512 rows,
// and 1.6 below.
TEST_CASE("the time of a head of one layer does not jump at the end of graphs", "[cost][roofline]") {
  const auto head = make_cost("roofline", "{hardware: h100-sxm, target: llama-3.1-8b, draft: eagle-head-8b}");
  for (const double batch : {512.0, 1024.0, 2048.0}) {
    const double at = head->pass(Role::draft, {batch, 1, 177, 1}).total();
    const double next = head->pass(Role::draft, {batch + 1, 1, 177, 1}).total();
    CHECK(next < 1.3 * at);  // another wave of tiles
    CHECK(next > 0.9 * at);
  }
  CHECK(head->pass(Role::draft, {1024, 1, 177, 1}).total() < 2.2 * head->pass(Role::draft, {512, 1, 177, 1}).total());
  // A whole model has this floor: 32 layers of launches take 6 ms.
  CHECK(head->pass(Role::target, {1, 513, 0, 1}).total() >= 6e-3);
  const auto small = make_cost("roofline", "{hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b, engine: graphs}");
  CHECK(small->pass(Role::draft, {1, 513, 0, 1}).total() >= 16 * 187.5e-6);
}

TEST_CASE("without a draft model proposals take no pass and no memory, but slots", "[cost][roofline]") {
  const auto none = make_cost("roofline", "{hardware: h100-sxm, target: llama-3.1-8b, draft: none, round_us: 0}");
  CHECK(none->pass(Role::draft, {8, 1, 2048, 1}).total() == 0.0);
  const RoundTime round = round_time(*none, {8, 2048}, 4, 0.5);
  CHECK(round.draft.total() == 0.0);
  // vLLM's host proposes with the GPU idle, so that the round also shows the 1.207 ms that other rounds hide.
  CHECK(near(round.total(), none->pass(Role::target, {8, 5, 2048, 5}).total() + 1.207e-3));
  const auto both = none->memory_budget({8, 2048}, 5, Kept::both);
  CHECK(both->needed_bytes() == none->memory_budget({8, 2048}, 5, Kept::target)->needed_bytes());
  REQUIRE(both->lines.size() == 3);
  CHECK(both->lines[2].what == "look-ahead slots");
  CHECK(near(both->lines[2].bytes, 131072.0 * 8 * 4));
  CHECK(none->with_twice_the_gpus() == nullptr);
  CHECK_FALSE(none->deployment()->draft.has_value());
}

TEST_CASE("norms and activations: a floor per layer, and their bytes", "[cost][roofline]") {
  std::string text = kGpu;
  text.replace(text.find("elementwise_us: 0"), 17, "elementwise_us: 9");
  const auto model =
      make_cost("roofline", fmt::format("{{hardware: {}, target: {{{}}}, draft: {{{}}}, engine: bare}}", text, kShape, kShape));
  CHECK(near(model->pass(Role::target, {2, 3, 0, 3}).launch, 2 * (9e-6 + 12.0 * 6 * 256 * 2 / 1e12)));
}

TEST_CASE("the memory that a server sets aside depends on its engine, and memory_share replaces it", "[cost][memory_budget]") {
  const auto available = [](const char* more, const Workload& workload) {
    const auto model = make_cost("roofline", fmt::format("{{hardware: h100-sxm, target: llama-3.1-8b, draft: none{}}}", more));
    return model->memory_budget(workload, 1, Kept::target)->available_bytes;
  };
  const double usable =
      make_cost("roofline", "{hardware: h100-sxm, target: llama-3.1-8b, draft: none}")->deployment()->hardware.memory_bytes;
  CHECK(available(", memory_share: 0.8", {8, 2048}) == 0.8 * usable);
  CHECK(available(", engine: llama_cpp", {8, 2048}) == 0.9 * usable);  // no rules of its own
  const double driven = usable - 0x1.0p29;
  CHECK(near(available(", engine: sglang", {8, 2048}), 0.83 * driven));  // mem_fraction_static of one H100
  // More sequences than max_num_seqs: a server that was started for this many samples all of them at once.
  const double logits = 128256 * 4.0 * 9.5;
  CHECK(near(available("", {8, 2048}) - available("", {2048, 2048}), 1024 * logits));
  // TensorRT-LLM keeps a tenth of the memory that weights and activations leave.
  const auto trtllm = make_cost("roofline", "{hardware: h100-sxm, target: llama-3.1-8b, draft: none, engine: trtllm}");
  const auto budget = trtllm->memory_budget({8, 2048}, 1, Kept::target);
  REQUIRE(budget->set_aside.size() == 3);
  CHECK(near(budget->set_aside[2].bytes, 0.1 * (driven - budget->lines[0].bytes - budget->set_aside[1].bytes)));
}

TEST_CASE("the memory_budget: weights and caches of both, in bytes", "[cost][memory_budget]") {
  const auto model =
      make_cost("roofline", "{hardware: a100-80gb-sxm, target: llama-2-7b, draft: {preset: llama-68m, kv_window: 512}}");
  const auto memory_budget = model->memory_budget({16, 2000}, 6, Kept::both);
  REQUIRE(memory_budget);
  REQUIRE(memory_budget->lines.size() == 5);
  CHECK(memory_budget->lines[0].bytes == 2.0 * (32 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008) + 2.0 * 32000 * 4096));
  CHECK(memory_budget->lines[1].bytes == 524288.0 * 16 * 2001);
  CHECK(memory_budget->lines[2].bytes == 2.0 * (2 * (4.0 * 768 * 768 + 3.0 * 768 * 3072) + 2.0 * 32000 * 768));
  CHECK(memory_budget->lines[3].bytes == 6144.0 * 16 * 512);
  CHECK(memory_budget->lines[4].bytes == 524288.0 * 16 * 5);  // the draft's window holds no more tokens, whatever is drafted
  // vLLM's own step on an A100 of 80 GB, 2,048 rows of which 256 are sampled. The activations are gate, up, their product and two
  // streams, or rows of the last layer and 12.5 copies of the logits in fp32, which are more; 0.1 GiB outside the allocator.
  const double activations = 2048 * 2.0 * (3.0 * 11008 + 2.0 * 4096);
  const double sampling = 2048 * 2.0 * 4096 + 256 * 32000.0 * 4.0 * 12.5;
  const double profiled = std::max(activations, sampling) + 0.1 * 0x1.0p30;
  CHECK(near(memory_budget->available_bytes, 0.9 * (85.9e9 - 0x1.0p29) - profiled));
  CHECK(memory_budget->fits());
  CHECK_FALSE(model->memory_budget({80, 2000}, 6, Kept::both)->fits());
  CHECK(model->memory_budget({16, 2000}, 6, Kept::target)->needed_bytes() ==
        memory_budget->lines[0].bytes + memory_budget->lines[1].bytes + memory_budget->lines[4].bytes);
  CHECK(model->memory_budget({16, 2000}, 6, Kept::draft)->needed_bytes() ==
        memory_budget->lines[2].bytes + memory_budget->lines[3].bytes);
  CHECK(memory_budget->to_text() ==
        "target weights 12.55 GiB, target KV 15.63 GiB, draft weights 0.13 GiB, draft KV 0.05 GiB, look-ahead slots 0.04 GiB: "
        "28.40 of 71.05 GiB; set aside: the driver 0.50 GiB, beyond gpu_memory_utilization 0.9 7.95 GiB, activations and logits "
        "0.50 GiB");
  const auto two = make_cost(
      "roofline",
      "{hardware: a100-80gb-sxm, target: {preset: llama-2-7b, tensor_parallel: 2}, draft: llama-68m, memory_share: 0.5}");
  // Each of two GPUs holds half of the target, and the whole draft if that is not divided.
  const auto half = two->memory_budget({16, 2000}, 6, Kept::both);
  CHECK(near(half->available_bytes, 0.5 * 85.9e9));
  CHECK(half->lines[0].bytes == 0.5 * memory_budget->lines[0].bytes);
  CHECK(half->lines[1].bytes == 0.5 * memory_budget->lines[1].bytes);
  CHECK(half->lines[2].bytes == memory_budget->lines[2].bytes);
  CHECK(half->to_text().find("GiB on the fullest of 2 GPUs") != std::string::npos);
  // Quantised layers leave LM head and embeddings unquantised by default.
  const auto bytes = [](const std::string& bits) {
    return make_cost("roofline", "{hardware: a100-80gb-sxm, draft: llama-68m, target: {preset: llama-2-7b, " + bits + "}}")
        ->memory_budget({1, 0}, 1, Kept::target)
        ->lines[0]
        .bytes;
  };
  const double layers = 32 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008);
  CHECK(bytes("weight_bits: 4") == 0.5 * layers + 2.0 * 2.0 * 32000 * 4096);
  CHECK(bytes("weight_bits: 4, head_bits: 8") == 0.5 * layers + 2.0 * 32000 * 4096);
  CHECK(bytes("weight_bits: 32") == 4.0 * layers + 4.0 * 2.0 * 32000 * 4096);
}

TEST_CASE("a faster memory and a slower host are the preset with those figures", "[cost][roofline]") {
  const std::string pair = "engine: vllm_sync, target: llama-3.1-8b, draft: llama-3.2-1b";
  const auto model = make_cost("roofline", "{hardware: h100-sxm, " + pair + "}");
  const auto faster = make_cost("roofline", "{hardware: {preset: h100-sxm, bandwidth_gb_per_s: 3685}, " + pair + "}");
  const auto slower = make_cost(
      "roofline", "{hardware: h100-sxm, host_us: 1327.7, client_us_per_sequence: 22, draft_us: 154, host_us_per_layer: 206.25, " +
                      pair + "}");
  for (const Role role : {Role::target, Role::draft}) {
    const Pass pass{4, 5, 3000, 5};
    CHECK(near(model->scaled(1.1, 1.0)->pass(role, pass).total(), faster->pass(role, pass).total()));
    CHECK(near(model->scaled(1.0, 1.1)->pass(role, pass).total(), slower->pass(role, pass).total()));
  }
  CHECK(faster->pass(Role::target, {4, 5, 3000, 5}).total() < model->pass(Role::target, {4, 5, 3000, 5}).total());
  CHECK(make_cost("ratio", "{cost_ratio: 0.1}")->scaled(1.1, 1.0) == nullptr);
}

TEST_CASE("the draft's GPUs are given to the target if their number is equal and its heads can be divided", "[cost][roofline]") {
  const auto twice = [](const std::string& target, const std::string& draft) {
    return make_cost("roofline", "{hardware: h100-sxm, target: " + target + ", draft: " + draft + "}")->with_twice_the_gpus();
  };
  CHECK(twice("llama-3.1-8b", "llama-3.2-1b") != nullptr);
  CHECK(twice("{preset: llama-3.1-70b, tensor_parallel: 4}", "llama-3.2-1b") == nullptr);
  CHECK(twice("{preset: llama-3.1-70b, tensor_parallel: 4}", "{preset: llama-3.2-1b, tensor_parallel: 4}") != nullptr);
  CHECK(twice("{preset: qwen2.5-7b, tensor_parallel: 4}", "{preset: qwen2.5-7b, tensor_parallel: 4}") == nullptr);
}

TEST_CASE("warnings: figures that nobody checked, a draft larger than its target", "[cost][roofline]") {
  CHECK(make_cost("roofline", "{hardware: a100-80gb-sxm, target: llama-2-7b, draft: tinyllama-1.1b}")->warnings().empty());
  const auto list = make_cost("roofline", "{hardware: rtx-3090, target: tinyllama-1.1b, draft: llama-2-7b}")->warnings();
  REQUIRE(list.size() == 2);
  CHECK(list[0] == "NVIDIA GeForce RTX 3090: its figures are from memory, not verified");
  CHECK(list[1].find("is larger than the target") != std::string::npos);
}

TEST_CASE("one figure of a preset is replaced, the others stay", "[cost][presets]") {
  const Hardware base = hardware_of("h100-sxm");
  const Hardware changed = hardware_of("{preset: h100-sxm, bandwidth_gb_per_s: 3000, calibration: {kernel_us: 1}}");
  CHECK(changed.bandwidth == 3e12);
  CHECK(changed.flops == base.flops);
  CHECK(changed.calibration.kernel_us == 1.0);
  CHECK(changed.calibration.overlap_power == base.calibration.overlap_power);
  CHECK(changed.calibration.odd_rows_penalty == base.calibration.odd_rows_penalty);
  CHECK(specsim::tests::shape_of("vicuna-7b").total_parameters() == specsim::tests::shape_of("llama-2-7b").total_parameters());
}

}  // namespace specsim::cost_roofline_test
