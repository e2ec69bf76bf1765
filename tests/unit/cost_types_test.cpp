// Element types that were not measured on a GPU, and kernels and all-reduces that its engine does not run: their replacements.
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace specsim::cost_types_test {

using namespace specsim::cost;
using specsim::tests::hardware_of;
using specsim::tests::KernelsOf;
using specsim::tests::make_cost;
using specsim::tests::near;

namespace {

std::unique_ptr<CostModel> served(const std::string& gpu, const std::string& target, const std::string& more) {
  return make_cost("roofline", fmt::format("{{hardware: {}, target: {}, draft: none, {}}}", gpu, target, more));
}

double seconds(const CostModel& model, double rows, double context = 128) {
  return model.pass(Role::target, {rows, 1, context, 1}).total();
}

}  // namespace

TEST_CASE("int4 weights without a measured kernel: well below bf16 at one row, gpt-fast's pass within 10 %", "[cost][types]") {
  for (const char* gpu : {"rtx-3090", "a10g", "v100-sxm", "rtx-5090", "h20", "a100-80gb-sxm"}) {
    INFO(gpu);
    const auto narrow = served(gpu, "{preset: llama-2-7b, dtype: {weights: int4, activations: fp16}}", "engine: bare");
    const auto plain = served(gpu, "{preset: llama-2-7b, dtype: fp16}", "engine: bare");
    CHECK(seconds(*narrow, 1) < 0.7 * seconds(*plain, 1));
    CHECK(seconds(*narrow, 64) < 1.3 * seconds(*plain, 64));
  }
  // EAGLE Table 4, gpt-fast on an RTX 3090: 106.9 tokens per second. No figure was fitted to it.
  const auto model = served("rtx-3090", "{preset: llama-2-7b, dtype: int4}", "engine: graphs");
  const double error = model->relative_error(Role::target, {1, 1, 128, 1});
  CHECK(std::abs(std::log(seconds(*model, 1) * 106.9)) < 0.1);
  CHECK(error > 0.2);
}

TEST_CASE("vLLM uses FlashInfer's all-reduce on Hopper and on Blackwell servers, elsewhere its own", "[cost][types]") {
  const auto model = [](const char* gpu, const std::string& engine, int gpus) {
    return served(gpu, fmt::format("{{preset: llama-3.1-70b, tensor_parallel: {}}}", gpus), "engine: " + engine)
        ->pass(Role::target, {64, 1, 128, 1});
  };
  const std::string own =
      "{preset: vllm, implementations: [{operation: allreduce, kernel: vLLM_custom_graph, most_pcie_gpus: 2}]}";
  for (const char* gpu : {"a100-80gb-sxm", "l40s"}) {
    INFO(gpu);
    CHECK(near(model(gpu, "vllm", 2).communication, model(gpu, own, 2).communication));
    CHECK(near(model(gpu, "vllm", 2).launch, model(gpu, own, 2).launch));
  }
  for (const char* gpu : {"h100-sxm", "b200"}) {
    INFO(gpu);
    CHECK(model(gpu, "vllm", 8).communication != model(gpu, own, 8).communication);
    CHECK(model(gpu, "vllm", 8).launch < model(gpu, own, 8).launch);
  }
  // FlashInfer is NVIDIA's alone.
  CHECK(near(model("mi300x", "vllm", 8).launch, model("mi300x", own, 8).launch));
  // 1 MB among eight A100s: vLLM's kernel 22 us, TensorRT-LLM's 83, by the measured tables.
  CHECK(1e6 * model("a100-80gb-sxm", "vllm", 8).communication / 160 == Approx(22).epsilon(0.15));
}

TEST_CASE("more than two GPUs on PCIe add up by NCCL under vLLM and SGLang", "[cost][types]") {
  const Hardware l40s = hardware_of("l40s");
  const auto time = [&](const char* library, double gpus) {
    const ModelShape model = specsim::tests::shape_of("llama-3.1-70b");
    const KernelsOf kernels(l40s, library, model, engine_of_library(library));
    return kernels->allreduces.estimate({gpus, 65536, false}).seconds;
  };
  KernelShape x;
  x.gpus = 8;
  x.bytes = 65536;
  const double nccl = 1e-6 * l40s.kernels->find(KernelKind::allreduce, "nccl-tests", "bfloat16")->microseconds(l40s, x);
  const double custom =
      1e-6 * l40s.kernels->find(KernelKind::allreduce, "vllm", "bfloat16", "vLLM_custom_graph")->microseconds(l40s, x);
  CHECK(nccl != custom);
  CHECK(near(served("l40s", "{preset: llama-3.1-70b, tensor_parallel: 8}", "engine: vllm_sync")
                 ->pass(Role::target, {4, 1, 128, 1})
                 .communication,
             160 * nccl));
  CHECK(near(time("sglang", 8), nccl));
  CHECK(time("trtllm", 8) != nccl);
  // A user's engine file overrides its kernels' properties, though it names no kernels.
  const auto of_graphs = [](const char* most) {
    return served("l40s", "{preset: llama-3.1-70b, tensor_parallel: 4}",
                  fmt::format("engine: {{preset: graphs, kernels: vllm, implementations: [{{operation: allreduce, kernel: "
                              "vLLM_custom_graph, most_pcie_gpus: {}}}]}}",
                              most))
        ->pass(Role::target, {4, 1, 128, 1})
        .communication;
  };
  CHECK_FALSE(near(of_graphs("8"), of_graphs("2")));
}

TEST_CASE("a narrower type that its kernel makes slower than bf16 is reported, with the kernel", "[cost][types]") {
  const auto said = [](const std::string& gpu, const std::string& target, const std::string& engine, const std::string& text) {
    const auto model = served(gpu, target, "engine: " + engine);
    const std::vector<std::string> warnings = model->warnings();
    return std::any_of(warnings.begin(), warnings.end(),
                       [&](const std::string& warning) { return warning.find(text) != std::string::npos; });
  };
  const std::string experts = "{preset: qwen3-30b-a3b, dtype: fp8}";
  // Experts by tensor that a version's kernel makes slower than those in blocks are estimated as blocks.
  CHECK_FALSE(said("h200-sxm", experts, "vllm", "times the time of bf16 at"));
  CHECK(said("h200-sxm", experts, "vllm",
             "fp8 experts scaled by tensor were measured at 1.5 times those scaled in blocks or more at 16 tokens"));
  const std::string blocks = "{preset: qwen3-30b-a3b, dtype: fp8_block}";
  CHECK(said("h200-sxm", blocks, "trtllm", "experts of fp8_block cost "));
  CHECK(said("h200-sxm", blocks, "trtllm", "by trtllm's kernel moe_torch_flow_cutlass"));
  CHECK_FALSE(said("h200-sxm", experts, "trtllm", "times the time of bf16 at"));
  CHECK_FALSE(said("h200-sxm", blocks, "vllm", "experts of"));
  CHECK(
      said("h100-sxm", "{preset: llama-3.1-8b, dtype: {weights: int8, activations: bf16}}", "vllm", "products of int8_wo cost "));
  CHECK_FALSE(said("h100-sxm", "{preset: llama-3.1-8b, dtype: fp8}", "vllm", "times the time of bf16 at"));
}

TEST_CASE("an engine without experts of a type is estimated with the fastest of all engines'", "[cost][types]") {
  const Hardware h200 = hardware_of("h200-sxm");
  const ModelShape model = specsim::tests::shape_of("{preset: qwen3-30b-a3b, dtype: fp8}");
  const auto experts = [&](const char* library) { return KernelsOf(h200, library, model).experts(16); };
  CHECK(experts("sglang") == experts("trtllm"));
  const ModelShape blocks = specsim::tests::shape_of("{preset: qwen3-30b-a3b, dtype: fp8_block}");
  CHECK(experts("vllm") == KernelsOf(h200, "vllm", blocks).experts(16));
}

TEST_CASE("the time of a cache of four bits follows from the bytes read, and the assumption is reported", "[cost][types]") {
  const auto attention = [](const std::string& bits, double context) {
    return served("h100-sxm", "{preset: llama-3.1-8b, kv_bits: " + bits + "}", "engine: vllm")
        ->pass(Role::target, {32, 1, context, 1})
        .kv;
  };
  CHECK(near(attention("4", 32000), attention("8", 16000), 0.01));
  CHECK(attention("4", 32000) < 0.7 * attention("8", 32000));
  const auto warned = [](const std::string& bits) {
    const auto warnings = served("h100-sxm", "{preset: llama-3.1-8b, kv_bits: " + bits + "}", "engine: vllm")->warnings();
    return std::any_of(warnings.begin(), warnings.end(), [](const std::string& text) {
      return text.find("no attention over a cache of 4 bits") != std::string::npos;
    });
  };
  CHECK(warned("4"));
  CHECK_FALSE(warned("8"));
  // Several tokens read the same bytes as one. Mutant: the kernel for several at 16 bits, 1.8 times one on an A100.
  for (const char* gpu : {"a100-80gb-sxm", "rtx-3090", "rtx-4090"})
    for (const char* bits : {"16", "8", "4"}) {
      INFO(gpu << ", " << bits << " bits");
      const auto kv = [&](const char* width, double tokens) {
        return served(gpu, fmt::format("{{preset: llama-3.1-8b, dtype: fp16, kv_bits: {}}}", width), "engine: vllm")
            ->pass(Role::target, {16, tokens, 4096, tokens})
            .kv;
      };
      CHECK(kv(bits, 2) / kv(bits, 1) < 1.15 * kv("16", 2) / kv("16", 1));
    }
}

TEST_CASE("products by the user's own efficiency are not warned of as fits", "[cost][types]") {
  const auto dearer = [](const char* more) {
    const auto warnings = served("h100-sxm", "{preset: llama-3.1-8b, dtype: {weights: int8, activations: bf16}}",
                                 fmt::format("engine: vllm{}", more))
                              ->warnings();
    return std::any_of(warnings.begin(), warnings.end(),
                       [](const std::string& text) { return text.find("times the time of bf16") != std::string::npos; });
  };
  CHECK(dearer(""));
  CHECK_FALSE(dearer(", quantized_efficiency: 0.9"));
}

TEST_CASE("a GPU with measured kernels reports which parts are another GPU's, and not all", "[cost][types]") {
  const auto first = [](const char* gpu) { return served(gpu, "llama-3.1-8b", "engine: vllm")->warnings(); };
  const auto has = [](const std::vector<std::string>& list, const std::string& text) {
    return std::any_of(list.begin(), list.end(), [&](const std::string& one) { return one.find(text) != std::string::npos; });
  };
  CHECK(has(first("b200"), ": norms, activations and sampling are estimated from measurements on the H100"));
  CHECK_FALSE(has(first("b200"), ": times are estimated from measurements"));
  CHECK(has(first("gb200"), ": its kernels are estimated with the fits of b200 at its own figures"));
  CHECK(has(first("a10g"),
            ": attention is estimated with the fits of rtx-3090 at its own figures, everything else from measurements on "
            "the A40"));
  CHECK(has(first("mi300x"),
            ": products in fp8 and fp8_block are estimated with the fits of mi300x, attention and everything else from "
            "measurements on the H100"));
}

TEST_CASE("a missing path is reported as a path, and key heads that do not divide the heads are refused", "[cost][types]") {
  const auto message = [](const std::string& target) {
    std::string mistakes;
    make_cost("roofline", "{hardware: h100-sxm, draft: none, target: " + target + "}", &mistakes);
    return mistakes;
  };
  CHECK(message("no/such").find("model \"no/such\": no such file or folder, allowed: the path of") != std::string::npos);
  CHECK(message("lama-3.1-8b").find("unknown model \"lama-3.1-8b\", did you mean") != std::string::npos);
  CHECK(message("{preset: llama-3.1-8b, kv_heads: 7}").find("kv_heads is 7 of 32 heads, allowed: a divisor") !=
        std::string::npos);
}

TEST_CASE("an engine's shares of the bandwidth apply only to weights, and are the same for all if a fit applies",
          "[cost][types]") {
  const auto at = [](const char* gpu, const char* engine, const char* shares) {
    return seconds(*served(gpu, "{preset: llama-2-7b, dtype: int4}",
                           fmt::format("engine: {{preset: {}, weight_only_shares: {}}}", engine, shares)),
                   1);
  };
  CHECK(at("rtx-3090", "graphs", "[0.4, 0.8]") > 1.7 * at("rtx-3090", "graphs", "[0.8, 0.8]"));
  CHECK(near(at("rtx-3090", "graphs", "[0.4, 0.8]"), at("rtx-3090", "graphs", "[0.4, 0.4]")));  // those of 8 bits are not read
  CHECK(near(at("a100-80gb-sxm", "trtllm", "[0.4, 0.8]"), at("a100-80gb-sxm", "trtllm", "[0.8, 0.8]")));
}

TEST_CASE("weights alone: an engine's file gives the time of more rows", "[cost][types]") {
  const auto over = [](const char* growth, double rows) {
    const auto model = served("rtx-3090", "{preset: llama-2-7b, dtype: int4}",
                              fmt::format("engine: {{preset: graphs, weight_only_growth: {}}}", growth));
    const PassTime time = model->pass(Role::target, {1, rows, 0, 0});
    return time.weights + time.compute;
  };
  CHECK(near(over("[0, 0]", 1), over("[0.5, 0]", 1)));
  CHECK(near(over("[0.1, 0]", 8), 1.3 * over("[0, 0.7]", 8)));  // three doublings; those of 8 bits are not read
}

}  // namespace specsim::cost_types_test
