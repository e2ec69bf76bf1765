// Parts of a pass's latency that tables of served times contain only as a sum, each by hand: concurrent experts, the router,
// small kernels, all-reduces of mixtures, checkpoints by name, and Marlin's weights. Each case names the mutant that it rejects.
#include "sim/hardware/gpu/kernels.h"
#include "sim/hardware/latency/engine.h"
#include "sim/hardware/latency/step_tables.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace specsim::cost_mixtures_test {

using namespace specsim::cost;
using specsim::tests::hardware_of;
using specsim::tests::KernelsOf;
using specsim::tests::make_cost;
using specsim::tests::near;
using specsim::tests::shape_of;

namespace {

// 1 TB/s and arithmetic that takes no time: time is bytes, and `kernel_us` per product.
std::string plain_gpu(double kernel_us) {
  return fmt::format(
      "{{memory_gb: 2000, bandwidth_gb_per_s: 1000, bf16_tflops: 20000, fp8_tflops: 20000, multiprocessors: 1, link_gb_per_s: "
      "100, link_latency_us: 0.01, calibration: {{memory_efficiency: 1, feed_tb_per_s: 1000, overlap_power: 100, kernel_us: {}, "
      "split_us: 1e6, attention_efficiency: 1, attention_us: 0, elementwise_us: 0, experts_us: 0}}}}",
      kernel_us);
}

double products(const CostModel& model, double rows) {
  const PassTime time = model.pass(Role::target, {rows, 1, 100, 1});
  return time.weights + time.compute;
}

// Three layers, the first of them dense; a token uses one expert of four, of 25 MB, and the shared one, of 100 MB.
const std::string kMixture =
    "{layers: 3, dense_layers: 1, hidden: 4096, heads: 32, kv_heads: 8, head_dim: 128, ffn: 4096, gated: true, vocab: 1000, "
    "experts: 4, experts_per_token: 1, expert_ffn: 1024, shared_ffn: 4096}";

Engine engine_named(const std::string& name) {
  Diagnostics diagnostics;
  Engine engine = read_engine(PresetChoice{name, {}, {}}, diagnostics);
  diagnostics.throw_if_any();
  return engine;
}

}  // namespace

TEST_CASE("shared experts hide under the others except for their bytes, up to a number of rows of a captured pass",
          "[cost][mixtures]") {
  const auto over = [](double rows, const std::string& engine) {
    return products(
        *make_cost("roofline", fmt::format("{{hardware: {}, target: {}, draft: none, engine: {{source: a test, {}}}}}",
                                           plain_gpu(10), kMixture, engine)),
        rows);
  };
  // Two products of the shared expert take 10 us each in addition to their bytes, in two layers. Mutants: all of it hides
  // (sharing is 0), which saves 240 us; passes of more rows, or without a graph, save it as well. The time to move rows is not
  // bytes of weights, and hides too: 5 % of it.
  const double saved = 2 * 2 * 10e-6;
  for (const double rows : {1.0, 8.0})
    CHECK(near(over(rows, "graphs: true") - over(rows, "graphs: true, shared_rows: 8"), saved, 0.05));
  CHECK(over(9, "graphs: true") == over(9, "graphs: true, shared_rows: 8"));  // padded to 16
  CHECK(near(over(9, "graphs: true") - over(9, "graphs: true, shared_rows: 16"), saved, 0.05));
  CHECK(over(8, "graphs: false") == over(8, "graphs: false, shared_rows: 8"));
  CHECK(over(8, "graphs: true, largest_graph: 4") == over(8, "graphs: true, largest_graph: 4, shared_rows: 8"));
}

TEST_CASE("measured experts begin after the router's scores, and attention of bf16 is multiplied as such", "[cost][mixtures]") {
  const Hardware hardware = hardware_of("h200-sxm");
  const Engine engine = engine_named("vllm");
  // Mutants: no router; a router of the layers' type; experts and router in the dense layer too; attention in the layers' type.
  for (const char* dtype : {"bf16", "fp8", "{weights: fp8, attention: bf16}"}) {
    const std::string target = kMixture.substr(0, kMixture.size() - 1) + fmt::format(", dtype: {}}}", dtype);
    const ModelShape shape = shape_of(target);
    const KernelsOf own(hardware, "vllm", shape, engine);
    const auto model = make_cost(
        "roofline",
        fmt::format(
            "{{hardware: h200-sxm, target: {}, draft: none, engine: {{preset: vllm, shared_rows: 0, independent_choices: 1}}}}",
            target));
    const bool plain_attention = std::string(dtype).find("attention") != std::string::npos;
    for (const double rows : {1.0, 8.0}) {
      INFO(dtype << " over " << rows);
      const auto one = [&](double inner, double outer, bool plain) {
        return own.product(rows, inner, outer, plain ? WeightType{} : layer_type(shape));
      };
      double sum = 3 * (one(4096, (32 + 2 * 8) * 128, plain_attention) + one(32 * 128, 4096, plain_attention));
      sum += 3 * (one(4096, 2 * 4096, false) +
                  one(4096, 4096, false));  // one dense layer, two with a shared expert of the same width
      sum += 2 * (own.experts(rows) + one(4096, 4, true));
      sum += one(4096, 1000, true);  // the LM head
      CHECK(near(products(*model, rows), sum, 1e-9));
    }
  }
}

TEST_CASE("unmeasured experts have no separate router", "[cost][mixtures]") {
  const auto over = [](double kernel_us) {
    return products(*make_cost("roofline", fmt::format("{{hardware: {}, target: {}, draft: none, engine: bare}}",
                                                       plain_gpu(kernel_us), kMixture)),
                    1);
  };
  // Two products of attention, a dense or shared feed-forward's two in each layer, the experts' two in two layers, the LM head.
  // Mutant: the router is counted outside the formula too, 2 more.
  CHECK(near(over(10) - over(0), (3 * (2 + 2) + 2 * 2 + 1) * 10e-6, 1e-6));
}

TEST_CASE("small kernels of linear attention are counted by the layer", "[cost][mixtures]") {
  const double one = 1e-6 * hardware_of("h200-sxm").calibration.elementwise_us / 4.0;  // a calibration has four of them
  const auto pass = [](const std::string& target, const std::string& engine) {
    return make_cost("roofline", fmt::format("{{hardware: h200-sxm, target: {}, draft: none, kernels: vllm, engine: {{source: a "
                                             "test, graphs: true, kernels: vllm, {}}}}}",
                                             target, engine))
        ->pass(Role::target, {1, 1, 100, 1});
  };
  const auto linear = [&](const std::string& target) {
    return pass(target, "linear_kernels: 11").kv - pass(target, "linear_kernels: 4").kv;
  };
  // Mutants: all layers, or those with attention.
  const ModelShape hybrid = shape_of("qwen3.5-4b");
  REQUIRE(hybrid.linear_layers > 0.0);
  REQUIRE(hybrid.linear_layers < hybrid.layers);
  CHECK(near(linear("qwen3.5-4b"), 7 * one * hybrid.linear_layers, 1e-9));
  CHECK(linear("qwen3-4b") == 0.0);
}

TEST_CASE("another engine's all-reduce belongs only to mixtures if the engine's file states this", "[cost][mixtures]") {
  Engine engine = engine_named("sglang");
  REQUIRE(engine.implementations[0].mixtures);
  const auto chosen = [&](double capability, bool mixture) { return allreduce_choice(engine, "sglang", capability, mixture); };
  // Mutants: none, or all; norms stay in an all-reduce that does not include them.
  for (const double capability : {9.0, 10.0}) {
    CHECK(chosen(capability, true).library == "trtllm");
    CHECK(chosen(capability, true).rule.fuses_norms);
    CHECK(chosen(capability, false).library == "sglang");
    CHECK_FALSE(chosen(capability, false).rule.fuses_norms);
  }
  CHECK(chosen(8.0, true).library == "sglang");
  engine.implementations[0].mixtures = false;
  CHECK(chosen(9.0, false).library == "trtllm");
  // Passes use it: a dense model the engine's own all-reduce, a mixture FlashInfer's, which is TensorRT-LLM's.
  const auto communication = [](const std::string& target, const std::string& more) {
    return make_cost("roofline", fmt::format("{{hardware: h200-sxm, target: {{preset: {}, tensor_parallel: 2}}, draft: none, "
                                             "engine: {{preset: sglang{}}}}}",
                                             target, more))
        ->pass(Role::target, {8, 1, 100, 1})
        .communication;
  };
  CHECK(communication("llama-3.1-8b", "") ==
        communication("llama-3.1-8b", ", implementations: [{operation: allreduce, kernel: SGLang_CustomAllReduce_graph}]"));
  CHECK(communication("qwen3-30b-a3b", "") ==
        communication("qwen3-30b-a3b",
                      ", implementations: [{operation: allreduce, library: trtllm, kernel: TRTLLM, fuses_norms: true}]"));
  CHECK(communication("qwen3-30b-a3b", "") !=
        communication("qwen3-30b-a3b", ", implementations: [{operation: allreduce, kernel: SGLang_CustomAllReduce_graph}]"));
}

TEST_CASE("a served row is estimated with the checkpoint that its type names", "[cost][mixtures]") {
  const auto served = [](const std::string& model, const std::string& precision) {
    const EstimatedSteps table = estimate_step_table(
        "served.csv",
        {{"backend", "model_path", "system", "precision", "isl", "osl", "tp_size", "concurrency", "silicon_tpot_ms"},
         {"sglang", model, "b200_sxm", precision, "1000", "1000", "8", "1", "8"}});
    return table.rows.front().priced_ms;
  };
  // One client: steps of a decoding over .9 of the prompt and half of .9 of the output, without prompts in them.
  const auto priced = [](const std::string& model, const std::string& dtype) {
    return 1e3 * make_cost("roofline",
                           fmt::format("{{hardware: b200, target: {{preset: {}, tensor_parallel: 8, kv_bits: 8, dtype: {}}}, "
                                       "draft: none, engine: sglang, kernels: sglang}}",
                                       model, dtype))
                     ->pass(Role::target, {1, 1, 900 + 450, 1})
                     .total();
  };
  // Mutants: checkpoints are not looked at (fp8 by tensor, attention in fp4); attention's projections have the type of `weights`.
  CHECK(near(served("glm-5", "fp8"), priced("glm-5", "fp8_block"), 1e-9));
  CHECK_FALSE(near(served("glm-5", "fp8"), priced("glm-5", "fp8"), 1e-3));
  CHECK(near(served("deepseek-v3", "fp4"), priced("deepseek-v3", "{weights: nvfp4, attention: bf16}"), 1e-9));
  CHECK_FALSE(near(served("deepseek-v3", "fp4"), priced("deepseek-v3", "nvfp4"), 1e-3));
  // A model without such a checkpoint is cut to the type of that name.
  CHECK(near(served("llama-3.1-70b", "fp4"), priced("llama-3.1-70b", "nvfp4"), 1e-9));
}

TEST_CASE("bytes of a checkpoint whose attention stays in bf16, by hand", "[cost][mixtures]") {
  const std::string target = kMixture.substr(0, kMixture.size() - 1) + ", tied_embeddings: false, dtype: ";
  const double attention = 3 * (4096.0 * (32 + 2 * 8) * 128 + 32 * 128 * 4096.0);
  const double embeddings = 2.0 * 1000 * 4096;
  const ModelShape narrow = shape_of(target + "{weights: nvfp4, attention: bf16}}");
  const double rest = narrow.total_parameters() - attention - embeddings;
  // Mutant: attention in 4 bits.
  CHECK(near(narrow.weight_bytes(), 2.0 * (attention + embeddings) + 4.5 / 8 * rest));
  CHECK(near(shape_of(target + "nvfp4}").weight_bytes(), 2.0 * embeddings + 4.5 / 8 * (attention + rest)));
}

TEST_CASE("weights alone are read at the engine's share of a plain kernel's bandwidth", "[cost][mixtures]") {
  // 2 layers in bf16 and an LM head of 8 MB, at 1 TB/s; int4 has a scale for each 128 weights.
  const auto over = [](const std::string& dtype, const std::string& engine, double rows) {
    return products(
        *make_cost("roofline", fmt::format("{{hardware: {}, target: {{layers: 2, hidden: 4096, heads: 32, kv_heads: 32, "
                                           "head_dim: 128, ffn: 16384, gated: true, vocab: 1000, dtype: {}}}, draft: "
                                           "none, engine: {}}}",
                                           plain_gpu(0), dtype, engine)),
        rows);
  };
  const double head = 2.0 * 1000 * 4096 / 1e12;
  const double layers = over("bf16", "vllm", 1) - head;
  const std::string eight = "{weights: int8, activations: bf16}";
  // Marlin's share, and the median of libraries. Mutant: the shares of 8 and 4 bits are exchanged.
  struct Row {
    const char* engine;
    double four, eight;
  };
  for (const Row& row :
       {Row{"vllm", 0.92, 0.85}, Row{"sglang", 0.92, 0.85}, Row{"trtllm", 0.81, 0.9}, Row{"graphs", 0.54, 0.77}}) {
    INFO(row.engine);
    CHECK(near(over("int4", row.engine, 1) - head, 4.125 / 16 * layers / row.four, 0.003));
    CHECK(near(over(eight, row.engine, 1) - head, layers / 2 / row.eight, 0.003));
  }
  // Marlin takes no longer over more rows; the median of libraries takes 6 % and 3 % more for each doubling to 64. Mutants:
  // growth without an end; that of 8 bits for 4.
  for (const char* engine : {"vllm", "sglang", "vllm_sync", "sglang_sync"})
    CHECK(near(over("int4", engine, 16), over("int4", engine, 1), 0.02));
  const std::string middle = "{source: a test, graphs: true}";
  for (const double rows : {16.0, 64.0, 256.0}) {
    const double doublings = std::min(6.0, std::log2(rows));
    CHECK(near(over("int4", middle, rows) / over("int4", "{source: a test, graphs: true, weight_only_growth: [0, 0]}", rows),
               1.0 + 0.06 * doublings, 0.03));
    CHECK(near(over(eight, middle, rows) / over(eight, "{source: a test, graphs: true, weight_only_growth: [0, 0]}", rows),
               1.0 + 0.03 * doublings, 0.03));
  }
}

TEST_CASE("experts in fp8 by tensor are estimated as blocks if they were measured at much more", "[cost][mixtures]") {
  const ModelShape shape = shape_of(kMixture.substr(0, kMixture.size() - 1) + ", dtype: fp8}");
  REQUIRE(shape.expert_type == "fp8");
  // Two kernels whose formula is only a floor of 10 us; the correction multiplies the time of the one by tensor.
  const auto priced = [&](double dearer) {
    KernelFit blocks;
    blocks.kind = KernelKind::experts;
    blocks.engine = "vllm";
    blocks.rows = 100;
    blocks.dtype = *find_dtype("fp8_block");
    blocks.figures = {1, 1, 12, 10, 0, 0, 0};
    blocks.over = {0, 10};
    blocks.by.assign(4, {});
    blocks.correction = {0, 0};
    KernelFit tensor = blocks;
    tensor.dtype = *find_dtype("fp8");
    tensor.correction = {std::log(dearer), std::log(dearer)};
    Hardware hardware;
    hardware.bandwidth = 1e20;
    hardware.flops = hardware.fp8_flops = 1e30;
    hardware.kernels = std::make_shared<KernelFits>(KernelFits{{tensor, blocks}});
    return 1e6 * KernelsOf(hardware, "vllm", shape).experts(4);
  };
  // Mutants: never as blocks, always as blocks, the faster of both.
  CHECK(near(priced(1.4), 14, 1e-6));
  CHECK(near(priced(1.6), 10, 1e-6));
  CHECK(near(priced(0.8), 8, 1e-6));
}

TEST_CASE("experts of four bits are estimated by Marlin as it was measured with another such type", "[cost][mixtures]") {
  // 1 TB/s, and kernels that read at half of it, with a floor each: 10 us for the plain one, 30 and 50 for two of Marlin, 70 for
  // another.
  const auto fit = [](const char* engine, const char* kernel, const char* dtype, double floor_us, double rows) {
    KernelFit one;
    one.kind = KernelKind::experts;
    one.engine = engine;
    one.kernel = kernel;
    one.rows = rows;
    one.dtype = *find_dtype(dtype);
    one.figures = {0.5, 1, 12, floor_us, 0, 0, 0};
    one.over = {0, 10};
    one.by = {{9}, {}, {3}, {}};  // one layer, of 512 experts of which a token uses 8
    one.correction = {0, 0};
    return one;
  };
  const auto estimated_of = [&](const std::string& mixture, const std::string& dtype, const std::string& engine,
                                const std::vector<KernelFit>& fits) {
    const ModelShape shape =
        shape_of(mixture.substr(0, mixture.size() - 1) + ", dtype: {weights: bf16, experts: " + dtype + "}}");
    Hardware hardware;
    hardware.bandwidth = 1e12;
    hardware.flops = hardware.fp8_flops = 1e30;
    hardware.kernels = std::make_shared<KernelFits>(KernelFits{fits});
    return 1e6 * KernelsOf(hardware, engine, shape).experts(1);
  };
  const auto priced = [&](const std::string& dtype, const std::string& engine, const std::vector<KernelFit>& fits) {
    return estimated_of(kMixture, dtype, engine, fits);
  };
  KernelFit plain = fit("vllm", "triton", "bfloat16", 10, 500);
  plain.by.assign(4, {});
  const KernelFit own = fit("vllm", "marlin", "w4a16_mxfp4", 30, 100);
  const KernelFit others = fit("sglang", "a_marlin_moe", "w4a16_mxfp4", 50, 200);
  const KernelFit packed = fit("vllm", "flashinfer_trtllm", "w4a16_mxfp4", 70, 900);
  const std::vector<KernelFit> all = {plain, packed, others, own};
  const double bytes = 3.0 * 4096 * 1024 / 0.5e12 * 1e6;  // us of the one expert that a token uses, a byte per weight
  // Mutants: the plain kernel's by bytes (10); any kernel of the type (70); the one measured with most layers, whatever its
  // engine (50); MXFP4's bytes.
  CHECK(near(priced("int4_g32", "vllm", all), 30 + 4.5 / 8 * bytes, 1e-6));
  CHECK(near(priced("int4", "vllm", all), 30 + 4.125 / 8 * bytes, 1e-6));
  CHECK(near(priced("int4_g32", "vllm", {plain, packed, others}), 50 + 4.5 / 8 * bytes, 1e-6));
  // The formula's error for 512 experts holds for 64, and not for 4. Mutants: never, always.
  KernelFit twice = own;
  twice.correction = {std::log(2.0), std::log(2.0)};
  CHECK(near(priced("int4", "vllm", {plain, twice}), 30 + 4.125 / 8 * bytes, 1e-6));
  std::string many = kMixture;
  many.replace(many.find("experts: 4,"), 11, "experts: 64,");
  CHECK(near(estimated_of(many, "int4", "vllm", {plain, twice}), 2 * (30 + 4.125 / 8 * bytes), 1e-6));
  // TensorRT-LLM has its own kernels, so the time follows from bytes. Mutant: Marlin under every engine.
  CHECK(priced("int4_g32", "trtllm", all) < 30 + 4.5 / 8 * bytes);
  // MXFP4 if only integer types were measured (Ampere); not if it was measured itself, on one other layer. Mutant: by its own
  // type.
  CHECK(near(priced("mxfp4", "vllm", {plain, fit("vllm", "marlin", "int4_wo", 40, 100)}), 40 + 4.25 / 8 * bytes, 1e-6));
  CHECK(priced("mxfp4", "vllm", {plain, own}) < 30 + 4.25 / 8 * bytes);
}

TEST_CASE("a tuned server's tokens after the first choose fewer experts", "[cost][mixtures]") {
  // Nine tokens of which the later ones choose like half an independent one: five independent ones meet 4 (1 - .75^5) experts.
  // Mutants: the first token halved too, the factor ignored, fewer rows instead of fewer experts.
  const auto over = [](double rows, double routing) {
    const std::string zeros = fmt::format("[{}]", fmt::join(std::vector<double>(kFactors, 0.0), ", "));
    const std::string tuned = fmt::format("{{factors: {{routing: {}}}, covariance: [{}]}}", routing,
                                          fmt::join(std::vector<std::string>(kFactors, zeros), ", "));
    return products(
        *make_cost("roofline",
                   fmt::format("{{hardware: {}, target: {}, draft: none, engine: {{source: a test, graphs: false, tuned: {}}}}}",
                               plain_gpu(0), kMixture, tuned)),
        rows);
  };
  const double expert = 2.0 * 3.0 * 4096.0 * 1024.0 / 1e12;  // seconds, in each of two layers
  const double fewer = 2.0 * expert * 4.0 * (std::pow(0.75, 5) - std::pow(0.75, 9));
  // Moving the rows of an expert takes below 1 % of the time of its weights: 3 rows of 4,096 columns against 1,024.
  CHECK(near(over(9, 0.0) - over(9, std::log(0.5)), fewer, 0.01));
  CHECK(near(over(1, std::log(0.5)), over(1, 0.0), 1e-12));
}

TEST_CASE("the derivative of a pass by the choices of experts is that of its experts' bytes", "[cost][mixtures]") {
  // One to nine tokens: two of eight experts each. Mutants: no derivative; that of all rows, with the first.
  const auto model =
      make_cost("roofline", fmt::format("{{hardware: {}, target: {}, draft: none, engine: {{source: a test, graphs: false}}}}",
                                        plain_gpu(0), kMixture));
  for (const double rows : {1.0, 3.0, 9.0}) {
    const PassTime time = model->pass(Role::target, {1, rows, 128, rows});
    const double choices = rows - 1.0;
    const double left = std::pow(0.75, 1.0 + choices);
    CHECK(near(time.routing, time.experts * -std::log(0.75) * choices * left / (1.0 - left), 0.02));
    CHECK(pass_slope(time, Role::target, 1.0, false, 0.0)[static_cast<std::size_t>(Factor::routing)] == time.routing);
  }
}

TEST_CASE("whole experts on the GPUs that share a layer wait for the busiest one", "[cost][mixtures]") {
  // Of 128 experts a token chooses 8: two on each of four GPUs. The busiest has 2 + 1.01 sqrt(2 (1 - 1/16) 3/4) = 3.2 of them and
  // reads these, where slices are the bytes of two. Mutants: the mean of the GPUs; slices.
  const std::string experts = "h100-sxm, target: {preset: qwen3-30b-a3b, tensor_parallel: 4, whole_experts: ";
  const auto time = [&](const char* whole, double batch) {
    const auto model = make_cost("roofline", "{hardware: " + experts + whole + "}, draft: none, engine: vllm, kernels: none}");
    return model->pass(Role::target, {batch, 1, 100, 1}).experts;
  };
  CHECK(time("true", 1) > 1.2 * time("false", 1));      // besides what a layer of experts takes without its weights
  CHECK(time("true", 256) < 1.2 * time("false", 256));  // nearly all experts are used on each
  // Servers refuse slices of 192 columns where scales are stored for blocks of 128. Research code cuts them.
  const auto whole = [](const char* engine, const char* gpus) {
    return make_cost("roofline", fmt::format("{{hardware: h100-sxm, target: {{preset: qwen3-235b-a22b, dtype: fp8_block, "
                                             "tensor_parallel: {}}}, draft: none, engine: {}}}",
                                             gpus, engine))
        ->deployment()
        ->target->whole_experts;
  };
  CHECK(whole("vllm", "8"));
  CHECK_FALSE(whole("vllm", "4"));
  CHECK_FALSE(whole("graphs", "8"));
}

TEST_CASE("what explains a pass adds up to it", "[cost][mixtures]") {
  // Mutant: the router of measured experts is left out.
  for (const char* target : {"llama-3.1-8b", "mixtral-8x7b"}) {
    CAPTURE(target);
    const auto model =
        make_cost("roofline", fmt::format("{{hardware: h100-sxm, engine: vllm, target: {}, draft: none}}", target));
    const Pass pass{8, 1, 1024, 8};
    double sum = 0.0;
    for (const ExplainedOperation& one : model->deployed()->explain(Role::target, pass)) sum += one.count * one.seconds;
    CHECK(sum == Approx(model->pass(Role::target, pass).total()).epsilon(1e-9));
  }
}

}  // namespace specsim::cost_mixtures_test
