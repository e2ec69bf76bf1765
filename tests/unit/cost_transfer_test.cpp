// Estimates for GPUs and engines with few or no measurements: the source of their values, and the warnings.
#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/kernel_tables.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace specsim::cost_transfer_test {

using namespace specsim::cost;
using specsim::tests::make_cost;
using specsim::tests::near;

namespace {

// Attention over the given number of tokens, relative to one token, at 32,768 cached tokens.
double walk_of(const std::string& gpu, const std::string& engine, const std::string& rest = "") {
  const auto model =
      make_cost("roofline", fmt::format("{{hardware: {}, target: llama-3.1-8b, draft: none, engine: {}{}}}", gpu, engine, rest));
  const auto kv = [&](double tokens) { return model->pass(Role::target, {1, tokens, 32768, tokens}).kv; };
  return kv(4) / kv(1);
}

bool warns(const CostModel& model, const std::string& text) {
  const std::vector<std::string> list = model.warnings();
  return std::any_of(list.begin(), list.end(), [&](const std::string& one) { return one.find(text) != std::string::npos; });
}

// A B200 from its data sheet alone.
const std::string kSheet =
    "{name: mine, memory_gb: 192, bandwidth_gb_per_s: 8000, bf16_tflops: 2250, multiprocessors: 148, l2_mb: 126, link_gb_per_s: "
    "900, "
    "link_latency_us: 10, compute_capability: 10.0}";

}  // namespace

TEST_CASE("vLLM reads all keys per block for several tokens with FlashAttention 2, whatever was measured there",
          "[cost][transfer]") {
  // Mutant: by the name of whichever kernel estimated a single token, which left out the cards that nobody measured.
  for (const char* gpu :
       {"rtx-3090", "rtx-a6000", "a40", "a10g", "rtx-4090", "l4", "l40s", "rtx-5090", "rtx-pro-6000", "a100-80gb-sxm"}) {
    INFO(gpu);
    CHECK(walk_of(gpu, "vllm") > 2);
    CHECK(walk_of(gpu, "vllm_sync") > 2);
    for (const char* engine :
         {"sglang", "trtllm", "llama_cpp",
          "graphs"}) {  // split: 3.8 times one token with wide heads on an RTX 3090, where reading all keys per block takes 21
      INFO(engine);
      CHECK(walk_of(gpu, engine) < 2);
    }
  }
  for (const char* gpu : {"h100-sxm", "b200"}) CHECK(walk_of(gpu, "vllm") < 1.5);
  // A requested setting holds on every engine.
  CHECK(walk_of("rtx-a6000", "sglang", ", attention: serial") > 2);
  CHECK(walk_of("rtx-a6000", "vllm", ", attention: split") < 1.6);
  CHECK(walk_of("l40s", "graphs", ", attention: serial") > 2);
}

TEST_CASE(
    "an H200's attention of several tokens as it was measured: FlashAttention 3 shares the keys, FlashAttention 2 walks them",
    "[cost][transfer]") {
  // Microseconds per layer of 32 heads on 8, each of 128 (results/gpu/h200-sxm/kernels).
  const auto layer = [](const std::string& gpu, const std::string& attention, double batch, double tokens, double context) {
    const auto model = make_cost("roofline", fmt::format("{{hardware: {}, target: llama-3.1-8b, draft: none, attention: {}, "
                                                         "engine: {{preset: vllm, unequal_contexts: 1}}}}",
                                                         gpu, attention));
    return 1e6 / 32 * model->pass(Role::target, {batch, tokens, context, tokens}).kv;
  };
  // From FlashAttention 3 only the ratio of several tokens to one is used; its own time is that of vLLM's kernels.
  for (const auto& [batch, context, tokens, over_one] :
       {std::tuple{1.0, 32768.0, 8.0, 1.02}, {16.0, 4096.0, 8.0, 0.99}, {64.0, 2048.0, 16.0, 1.06}, {64.0, 2048.0, 32.0, 1.19}}) {
    INFO(batch << " x " << context << ", " << tokens);
    CHECK(near(layer("h200-sxm", "split", batch, tokens, context) / layer("h200-sxm", "split", batch, 1, context), over_one,
               0.13));  // mutant: as one token
  }
  // Groups of eight heads fill a tile of 64 rows with eight tokens, one of 128 with sixteen; the keys are read for each tile.
  const auto model = make_cost("roofline",
                               "{hardware: h200-sxm, target: llama-3.1-70b, draft: none, engine: {preset: vllm, "
                               "unequal_contexts: 1}}");
  const auto keys = [&](double batch, double context, double tokens) {
    return model->pass(Role::target, {batch, tokens, context, tokens}).kv;
  };
  for (const auto& [batch, context, tokens, over_one] :
       {std::tuple{64.0, 2048.0, 8.0, 1.06}, {64.0, 2048.0, 12.0, 1.16}, {64.0, 2048.0, 32.0, 2.05}, {8.0, 8192.0, 32.0, 1.67}}) {
    INFO(batch << " x " << context << ", " << tokens);
    CHECK(near(keys(batch, context, tokens) / keys(batch, context, 1), over_one, 0.1));  // mutant: keys read once
  }
  for (const auto& [batch, context, us] :
       {std::tuple{1.0, 8192.0, 160.0}, {1.0, 32768.0, 630.0}, {8.0, 8192.0, 236.0}, {64.0, 2048.0, 506.0}}) {
    INFO(batch << " x " << context);
    const double walked = layer("h200-sxm", "serial", batch, 8, context);
    CHECK(near(walked, us, 0.12));
  }
}

TEST_CASE("FlashAttention 2 walks the cache for several query tokens: RTX 4090 and 3090 as measured", "[cost][transfer]") {
  const auto layer_us = [](const char* gpu, double tokens, double context) {
    const auto model =
        make_cost("roofline", std::string("{hardware: ") + gpu + ", target: llama-3.1-8b, draft: none, engine: vllm}");
    return 1e6 / 32 * model->pass(Role::target, {1, tokens, context, 1, false}).kv;
  };
  // LLMServingSim's RTX 4090: 37.8 and 264.3 us; vLLM's flash-attention issue 193, on an unnamed GPU: 1.34 ms.
  CHECK(layer_us("rtx-4090", 1, 8192) == Approx(37.8).epsilon(0.15));
  CHECK(layer_us("rtx-4090", 16, 8192) == Approx(264.3).epsilon(0.15));
  CHECK(layer_us("rtx-4090", 2, 8192) == Approx(264.3).epsilon(0.15));
  CHECK(layer_us("rtx-3090", 8, 32768) == Approx(1336).epsilon(0.15));
  // A B200 verifies with decode kernels, which hardly take longer: flashinfer issue 1832.
  CHECK(layer_us("b200", 8, 8192) >= layer_us("b200", 1, 8192));
  CHECK(layer_us("b200", 8, 8192) < 1.5 * layer_us("b200", 1, 8192));
}

TEST_CASE("FlashAttention 2 on an A100 and an L40S as vLLM's single tokens of unshared heads were measured", "[cost][transfer]") {
  const auto layer = [](const std::string& gpu, const std::string& model, double tokens, double context) {
    const auto cost = make_cost("roofline", fmt::format("{{hardware: {}, target: {}, draft: none, "
                                                        "engine: {{preset: vllm, unequal_contexts: 1}}}}",
                                                        gpu, model));
    return 1e6 / 32 * cost->pass(Role::target, {1, tokens, context, tokens}).kv;
  };
  // attention_decode_aic, eight heads on eight: a sequence's blocks read the keys once, for any number of heads.
  for (const auto& [gpu, context, us] : {std::tuple{"a100-80gb-sxm", 8192.0, 198.3},
                                         {"a100-80gb-sxm", 32768.0, 764.5},
                                         {"l40s", 8192.0, 156.0},
                                         {"l40s", 32768.0, 615.0}}) {
    INFO(gpu << ", " << context);
    // Mutant: by a prompt's kernel that shares keys, 270 us at 32,768 on the A100; scaled by the RTX 4090's clock, 1000 on the
    // L40S.
    CHECK(near(layer(gpu, "llama-3.1-8b", 8, context), us, 0.1));
    // Heads of Llama-2-7B share no keys, so one token also reads all keys in each block. Mutant: split, half of it.
    CHECK(layer(gpu, "llama-2-7b", 1, context) > 0.9 * us);  // on the L40S reading from memory takes longer
    CHECK(near(layer(gpu, "llama-2-7b", 8, context), layer(gpu, "llama-2-7b", 1, context), 0.02));
    CHECK(layer(gpu, "llama-3.1-8b", 1, context) < 0.4 * us);
  }
}

TEST_CASE("int4 on Hopper: up to 32 rows take vLLM as long as one, and an H100 uses the H200's measurements",
          "[cost][transfer]") {
  const auto grows = [](const std::string& gpu, const std::string& engine, double rows) {
    const auto model = make_cost(
        "roofline",
        fmt::format("{{hardware: {}, target: {{preset: llama-3.1-70b, dtype: int4}}, draft: none, engine: {}}}", gpu, engine));
    const auto products = [&](double n) {
      return model->pass(Role::target, {n, 1, 0, 1}).weights + model->pass(Role::target, {n, 1, 0, 1}).compute;
    };
    return products(rows) / products(1);
  };
  for (const char* gpu : {"h100-sxm", "h200-sxm", "h800"}) {
    INFO(gpu);
    // Mutant: by TensorRT-LLM's kernel, whose eight rows take 1.8 times one. Machete's tiles hold 16 and 32 rows.
    CHECK(grows(gpu, "vllm", 8) < 1.05);
    CHECK(grows(gpu, "vllm", 32) < 1.1);
    CHECK(grows(gpu, "sglang", 8) < 1.05);
    CHECK(grows(gpu, "sglang", 64) > 1.5);
    CHECK(grows(gpu, "trtllm", 8) > 1.5);
  }
  // The source of measurements is reported if another GPU's replace them; bf16 causes no message.
  const auto said = [](const std::string& gpu, const std::string& dtype) {
    const auto model = make_cost(
        "roofline",
        fmt::format("{{hardware: {}, target: {{preset: llama-3.1-70b, dtype: {}}}, draft: none, engine: vllm}}", gpu, dtype));
    return fmt::format("{}", fmt::join(model->warnings(), "\n"));
  };
  CHECK(said("h100-sxm", "int4").find("products of int4_wo are estimated with the fits of h200-sxm") != std::string::npos);
  CHECK(said("h200-sxm", "int4").find("estimated with the fits of") == std::string::npos);
  CHECK(said("h100-sxm", "bf16").find("products of") == std::string::npos);
}

TEST_CASE("the time to read all keys grows with the width of a head: the RTX 3090 as measured, with heads of 256",
          "[cost][transfer]") {
  Diagnostics diagnostics;
  const Hardware gpu = read_hardware(PresetChoice{"rtx-3090", {}, {}}, diagnostics);
  REQUIRE(diagnostics.empty());
  const auto& fits = gpu.kernels->list;
  const auto fit = std::find_if(fits.begin(), fits.end(), [](const KernelFit& one) {
    return one.kind == KernelKind::attention_verify && one.kernel == "FA2 varlen q=8 no split";
  });
  REQUIRE(fit != fits.end());
  KernelShape x;
  x.batch = 1;
  x.tokens = 8;
  x.heads = 12;
  x.kv_heads = 2;
  x.head_dim = 256;
  for (const auto& [context, us] : {std::pair{4096.0, 375.0}, {32768.0, 2939.3}, {200000.0, 15788.6}}) {
    x.context = context;
    CHECK(near(fit->microseconds(gpu, x), us, 0.05));  // vLLM flash-attention 193
  }
  // Mutant: the same time for any width, 2939 us; the issue has 1336 for 32 heads of 128, on an unnamed GPU.
  x.context = 32768;
  x.heads = 32;
  x.kv_heads = 8;
  x.head_dim = 128;
  CHECK(near(fit->microseconds(gpu, x), 1336, 0.15));
}

TEST_CASE("a GPU with only a data sheet uses the nearest architecture's kernels", "[cost][transfer]") {
  const auto on = [](const std::string& gpu) {
    return make_cost("roofline", fmt::format("{{hardware: {}, target: llama-3.1-8b, draft: none, engine: vllm}}", gpu));
  };
  const auto mine = on(kSheet);
  const auto real = on("b200");
  for (const double rows : {1.0, 8.0, 64.0, 256.0}) {
    const Pass pass{rows, 1, 0, 1};
    // Mutant: the defaults of a calibration, three times too slow at 256 rows.
    CHECK(near(mine->pass(Role::target, pass).total(), real->pass(Role::target, pass).total(), 0.03));
    CHECK(mine->kernel_error(Role::target, pass) > 3 * real->kernel_error(Role::target, pass));
  }
  CHECK(warns(*mine, "mine: its kernels are estimated with the fits of b200"));
  // A custom calibration overrides the built-in one.
  const auto own = on(kSheet.substr(0, kSheet.size() - 1) + ", calibration: {kernel_us: 500}}");
  CHECK(own->pass(Role::target, {1, 1, 0, 1}).total() > 32 * 4 * 500e-6);
}

TEST_CASE("an H100 of 94 GB is the same chip with a slower memory", "[cost][transfer]") {
  const auto seconds = [](const char* gpu, const char* dtype, double rows) {
    const std::string cost =
        fmt::format("{{hardware: {}, target: {{preset: llama-3.1-8b, dtype: {}}}, draft: none, engine: vllm}}", gpu, dtype);
    return make_cost("roofline", cost)->pass(Role::target, {rows, 1, 0, 1}).total();
  };
  for (const char* dtype : {"bf16", "fp8", "int4"})
    for (const double rows : {1.0, 256.0}) {
      INFO(dtype << ", rows: " << rows);
      const double ratio = seconds("h100-sxm-94gb", dtype, rows) / seconds("h100-sxm", dtype, rows);
      // Mutant: the calibration's formula, which makes it the faster of the two (.74 in int4).
      CHECK(ratio > 1.0);
      CHECK(ratio < 3350.0 / 2400.0);  // the ratio of the bandwidths
    }
}

TEST_CASE("more GPUs than the links join cause a warning, and a mesh has one link for each pair", "[cost][transfer]") {
  const auto on = [](const std::string& gpu, int gpus) {
    return make_cost(
        "roofline",
        fmt::format("{{hardware: {}, target: {{preset: llama-3.1-70b, tensor_parallel: {}}}, draft: none}}", gpu, gpus));
  };
  CHECK(warns(*on("h200-sxm", 16), "16 GPUs are estimated as if its links joined them; the links join 8"));
  CHECK_FALSE(warns(*on("h200-sxm", 8), "as if its links joined them"));
  CHECK_FALSE(warns(*on("gb200", 16), "as if its links joined them"));
  Hardware mesh;
  mesh.link_bandwidth = 448e9;
  mesh.mesh_gpus = 8;
  CHECK(near(link_bandwidth(mesh, 2), 64e9));
  CHECK(near(link_bandwidth(mesh, 8), 448e9));
  mesh.mesh_gpus.reset();
  CHECK(link_bandwidth(mesh, 2) == 448e9);
  // NCCL on L40S (nccl-tests 2.27.3): 8.4 MB over 8 GPUs and over 2, and 4 KB. PCIe 5.0 is twice as fast. Mutant: each GPU has
  // the whole link.
  const auto sum = [](const char* gpu, double gpus, double bytes) {
    return 1e6 * *LinkAllReduce(specsim::tests::hardware_of(gpu)).seconds({gpus, bytes, false});
  };
  CHECK(near(sum("rtx-4090", 8, 8388608), 9988, 0.15));
  CHECK(near(sum("rtx-4090", 2, 8388608), 429, 0.15));
  CHECK(near(sum("rtx-4090", 8, 8388608) / sum("rtx-pro-6000", 8, 8388608), 2, 0.02));
  CHECK(near(sum("rtx-4090", 2, 4096), 30));
  // Hosts differ in how GPUs reach each other over PCIe.
  CHECK(LinkAllReduce(specsim::tests::hardware_of("rtx-3090")).error({2, 1e5, false}).common == 0.6);
  CHECK(LinkAllReduce(specsim::tests::hardware_of("v100-sxm")).error({2, 1e5, false}).common == 0.3);
  CHECK(LinkAllReduce(specsim::tests::hardware_of("mi300x")).error({2, 1e5, false}).common == 0.6);
}

TEST_CASE("experts of layers that no table has: by their bytes, with their own error and a message", "[cost][transfer]") {
  const auto model = [](const std::string& gpu, const std::string& target, const std::string& engine = "vllm") {
    return make_cost("roofline", fmt::format("{{hardware: {}, target: {}, draft: none, engine: {}}}", gpu, target, engine));
  };
  const auto said = [](const CostModel& cost) { return fmt::format("{}", fmt::join(cost.warnings(), "\n")); };
  // The L40S was measured with gpt-oss in mxfp4 under vLLM. Mutant: its fit to one layer of 896 experts gives 11.8, 28, 57.5 and
  // 48.5 ms.
  const auto l40s = model("l40s", "gpt-oss-20b");
  double before = 0.0;
  for (const double tokens : {1.0, 4.0, 16.0, 64.0, 128.0}) {
    const double now = l40s->pass(Role::target, {1, tokens, 0, tokens}).total();
    INFO(tokens << " tokens, " << 1e3 * now << " ms");
    CHECK(now > before);
    before = now;
  }
  CHECK(before < 0.035);  // all weights are read in 16 ms
  CHECK(said(*l40s).find("2880 wide") == std::string::npos);
  CHECK(said(*model("a100-80gb-sxm", "gpt-oss-20b")).find("32 experts, 4 per token, 2880 wide: no layer like it was measured") !=
        std::string::npos);
  // Served gpt-oss-120b on eight H100s, vLLM, 1,024 tokens in and out: ms per token by concurrency (InferenceX issue 828).
  const auto h100 = model("h100-sxm", "{preset: gpt-oss-120b, tensor_parallel: 8}");
  for (const auto& [batch, ms] : {std::pair{4.0, 3.72}, {8.0, 4.05}, {16.0, 4.83}, {32.0, 5.82}, {64.0, 7.36}}) {
    const Pass pass = {batch, 1, 1536, 1};
    const double priced = 1e3 * h100->pass(Role::target, pass).total();
    INFO(batch << " sequences, " << priced << " ms for " << ms);
    CHECK(std::abs(std::log(priced / ms)) < 2.0 * h100->kernel_error(Role::target, pass));
  }
  for (const auto& [gpu, target] : {std::pair{"rtx-4090", "gpt-oss-20b"},
                                    {"rtx-4090", "{preset: qwen3-30b-a3b, dtype: {experts: int4}}"},
                                    {"a100-80gb-sxm", "gpt-oss-120b"}}) {
    INFO(gpu << ", " << target);
    const auto cost = model(gpu, target);
    CHECK(said(*cost).find("experts, ") != std::string::npos);
    CHECK(cost->kernel_error(Role::target, {16, 1, 0, 1}) > 0.15);
  }
  // Measured layers cause no message.
  CHECK(said(*model("h100-sxm", "{preset: qwen3-30b-a3b, dtype: bf16}")).find("experts, ") == std::string::npos);
}

TEST_CASE("one row that a version's dispatch makes slow takes the time of two: vLLM in fp8 on a B200", "[cost][transfer]") {
  const auto model =
      make_cost("roofline", "{hardware: b200, target: {preset: llama-3.1-8b, dtype: fp8}, draft: none, engine: vllm}");
  const auto products = [&](double rows) {
    const PassTime time = model->pass(Role::target, {1, rows, 0, rows});
    return time.weights + time.compute;
  };
  CHECK(near(products(1) / products(2), 1.0, 0.05));  // mutant: the measured value, 1.6 times
  CHECK(fmt::format("{}", fmt::join(model->warnings(), "\n")).find("products of fp8 over one row were measured at") !=
        std::string::npos);
}

TEST_CASE("the time of experts does not jump when their rows fill a tile", "[cost][transfer]") {
  const auto model = make_cost("roofline", "{hardware: h200-sxm, target: gpt-oss-120b, draft: none, engine: vllm}");
  const auto weights = [&](double rows) {
    const PassTime time = model->pass(Role::target, {rows, 1, 0, 1});
    return time.weights + time.compute;
  };
  // 512 tokens of four experts are 16 rows for each of 128. Mutant: whole tiles of the mean, 1.9 times the step before.
  CHECK(weights(520) < 1.1 * weights(504));
  CHECK(weights(768) > weights(512));
}

TEST_CASE("prompts take whole waves of blocks, as an A100 was measured", "[cost][transfer]") {
  Diagnostics diagnostics;
  const Hardware gpu = read_hardware(PresetChoice{"a100-80gb-sxm", {}, {}}, diagnostics);
  REQUIRE(diagnostics.empty());
  const KernelFit* fit = gpu.kernels->find(KernelKind::attention_prefill, "sglang", "bfloat16");
  REQUIRE(fit != nullptr);
  KernelShape x;
  x.heads = 32;
  x.kv_heads = 8;
  x.head_dim = 128;
  // attention_prefill_aic. Mutant: the waves of a few verified tokens, 8 to 25 % off.
  for (const auto& [batch, tokens, us] :
       {std::tuple{1.0, 1536.0, 169.5}, {2.0, 256.0, 28.38}, {4.0, 4096.0, 2945.0}, {8.0, 1536.0, 934.2}}) {
    x.batch = batch;
    x.tokens = tokens;
    CHECK(near(fit->microseconds(gpu, x), us, 0.04));
  }
}

TEST_CASE("AITER's tables are read without changes, and rows of an unmeasured type are reported", "[cost][transfer]") {
  const auto priced = [](const char* dtype) {
    return estimate_kernel_table("mine.csv", {{"gpu", "dtype", "scheme", "out", "lib", "n", "k", "m", "us"},
                                              {"mi300x", dtype, "", "", "ck", "7168", "2304", "144", "17.22"}});
  };
  const EstimatedKernels block = priced("float8_blockscale");
  CHECK(block.rows.front().covered);
  CHECK(near(block.rows.front().priced_us, 17.22, 0.3));
  CHECK(priced("fp8/int8").rows.front().dtype == "fp8");
  const EstimatedKernels none = priced("w4a8");
  CHECK(none.rows.front().priced_us == 0.0);
  REQUIRE(none.warnings.size() == 1);
  CHECK(none.warnings.front().find("no kernel of this type was measured on any GPU") != std::string::npos);
}

TEST_CASE("a server's products in fp8 on an MI300X may lack a tuned kernel", "[cost][transfer]") {
  // Mutants: the factor on products in bf16 too, or on prompts, whose tiles fill the GPU; its error left out of the pass's.
  const auto model = [](const std::string& type, const std::string& times) {
    return make_cost("roofline", fmt::format("{{hardware: {{preset: mi300x, untuned_times: {}}}, target: {{preset: llama-3.1-8b, "
                                             "dtype: {}}}, draft: none, engine: sglang}}",
                                             times, type));
  };
  const auto weights = [&](const std::string& type, const std::string& times, double rows) {
    const PassTime time = model(type, times)->pass(Role::target, {1, rows, 512, 1});
    return time.weights + time.compute;
  };
  // The output's 32 tiles of 128 columns leave most of the 304 compute units idle, the 224 of gate and up a quarter.
  const double more = weights("fp8_block", "2.7", 1) / weights("fp8_block", "1", 1);
  CHECK(more > 1.9);  // by bytes 1.93; small products, which take longer than their bytes, weigh more
  CHECK(more < 2.2);
  CHECK(weights("fp8_block", "2.7", 2048) < 1.01 * weights("fp8_block", "1", 2048));
  CHECK(weights("bf16", "2.7", 1) == weights("bf16", "1", 1));
  // DeepSeek-R1 at four clients after one shape was tuned: 22.05 ms per token (ROCm/aiter pull request 1930).
  const auto deepseek = make_cost("roofline",
                                  "{hardware: mi300x, target: {preset: deepseek-v3, tensor_parallel: 8}, draft: none, engine: "
                                  "sglang}");
  const Pass four{4, 1, 1500, 1};
  const double wide = std::exp(1.96 * deepseek->relative_error(Role::target, four));
  const double milliseconds = 1e3 * deepseek->pass(Role::target, four).total();
  CHECK(milliseconds < 22.05);
  CHECK(milliseconds * wide > 22.05);
}

TEST_CASE("the error of host time grows with the host time", "[cost][transfer]") {
  // Launches of 32 layers from Python take 22.9 ms, and another machine's processor a third more or less. Mutant: the error of a
  // captured pass, .37 ms, whose host time is hidden.
  const auto error = [](const std::string& engine) {
    return make_cost("roofline", "{hardware: a100-80gb-sxm, target: vicuna-7b, draft: none, engine: " + engine + "}")
        ->relative_error(Role::target, {1, 1, 0, 1});
  };
  CHECK(error("transformers") > 0.25);
  CHECK(error("graphs") < 0.15);
}

}  // namespace specsim::cost_transfer_test
