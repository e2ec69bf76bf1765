// Latency of single kernels: formulas by hand, the correction between its knots, the built-in fits and errors in them.
#include "sim/hardware/gpu/kernels.h"
#include "sim/hardware/latency/kernel_tables.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace specsim::cost_kernels_test {

using namespace specsim::cost;
using specsim::tests::all_messages;
using specsim::tests::hardware_of;
using specsim::tests::KernelsOf;
using specsim::tests::make_cost;
using specsim::tests::near;

namespace {

// 1 TB/s, 100 multiprocessors, arithmetic and links that take no time.
Hardware plain_gpu() {
  Hardware hardware;
  hardware.bandwidth = 1e12;
  hardware.flops = hardware.fp8_flops = hardware.int8_flops = hardware.fp4_flops = 1e20;
  hardware.multiprocessors = 100;
  hardware.link_bandwidth = 1e11;
  return hardware;
}

KernelFit plain_fit(KernelKind kind, std::vector<double> figures, std::size_t others) {
  KernelFit fit;
  fit.kind = kind;
  fit.dtype = *find_dtype("bfloat16");
  std::copy(figures.begin(), figures.end(), fit.figures.begin());
  fit.over = {0, 10};
  fit.by.assign(others, {});
  fit.correction = {0, 0};
  return fit;
}

}  // namespace

TEST_CASE("a product that streams its weights, by hand", "[cost][kernels]") {
  const KernelFit fit = plain_fit(KernelKind::product, {0.5, 1e9, 12, 3, 1e6, 1, 0.5}, 4);
  KernelShape x;
  x.rows = 4;
  x.inner = 1000;
  x.outer = 2000;
  const double bytes = 2.0 * 1000 * 2000 + 2.0 * 4 * 1000 + 2.0 * 4 * 2000;
  CHECK(near(fit.microseconds(plain_gpu(), x), 1e6 * bytes / 0.5e12 + 3, 1e-6));
  KernelFit narrow = fit;
  narrow.dtype = *find_dtype("int4_wo");
  CHECK(near(narrow.microseconds(plain_gpu(), x), 1e6 * (bytes - 1.5 * 1000 * 2000) / 0.5e12 + 3, 1e-6));
}

TEST_CASE("a product bound by arithmetic pays for whole tiles and part of whole waves", "[cost][kernels]") {
  Hardware hardware = plain_gpu();
  hardware.flops = 1e12;
  hardware.bandwidth = 1e20;
  KernelShape x;
  x.rows = 16;
  x.inner = 640;
  x.outer = 64.0 * 101;
  // 101 tiles of 64 x 16 on 100 multiprocessors: 1.01 waves, in whole ones 2; wider tiles do not help.
  const double work = 1e6 * 2.0 * 16 * 640 * x.outer / 1e12;
  const double even = plain_fit(KernelKind::product, {1, 1e9, 12, 0, 1e6, 1, 0.0}, 4).microseconds(hardware, x);
  const double whole = plain_fit(KernelKind::product, {1, 1e9, 12, 0, 1e6, 1, 1.0}, 4).microseconds(hardware, x);
  CHECK(near(even, work, 1e-6));
  CHECK(near(whole, work * 2.0 / 1.01, 1e-6));
}

TEST_CASE("decode attention, experts and all-reduces, by hand", "[cost][kernels]") {
  KernelShape x;
  x.batch = 4;
  x.context = 1000;
  x.heads = 32;
  x.kv_heads = 8;
  const double kept = 2.0 * 4 * 1000 * 8 * 128 * 2;
  CHECK(near(plain_fit(KernelKind::attention_decode, {0.8, 12, 7, 0, 0}, 3).microseconds(plain_gpu(), x), 7 + 1e6 * kept / 0.8e12,
             1e-9));
  // Cached vectors of 512 and 64 elements that all heads share: 3 tokens of 32 heads are 96 rows, padded to 128.
  KernelShape latent = x;
  latent.tokens = 3;
  const double vectors = 4 * 1002.0 * (512 + 64) * 2;
  CHECK(near(plain_fit(KernelKind::attention_latent, {0.8, 1e6, 12, 7, 0, 0}, 3).microseconds(plain_gpu(), latent),
             7 + 1e6 * vectors / 0.8e12, 1e-9));
  CHECK(near(plain_fit(KernelKind::attention_latent, {1e6, 0.5, 12, 7, 0, 0}, 3).microseconds(plain_gpu(), latent),
             7 + 1e6 * 2.0 * (2 * 512 + 64) * 4 * 1002 * 128 / (0.5 * plain_gpu().flops), 1e-9));
  CHECK(near(plain_fit(KernelKind::attention_latent, {1e6, 1e6, 12, 7, 2, 0.5}, 3).microseconds(plain_gpu(), latent),
             7 + 4 * (2 + 96 * 0.5), 1e-9));
  KernelShape serial = x;
  serial.tokens = 9;
  // 4 x 32 blocks of 128 queries, each of which reads 1005 keys. 100 multiprocessors run them at once if each holds two, and in
  // two waves if each holds one.
  const KernelFit blocks = plain_fit(KernelKind::attention_verify, {1e6, 1, 12, 7, 0.5, 128}, 2);
  CHECK(near(blocks.microseconds(plain_gpu(), serial), 7 + 1005 * 0.5, 1e-9));
  Hardware small = plain_gpu();
  small.compute_capability = 8.6;
  CHECK(near(blocks.microseconds(small, serial), 7 + 2 * 1005 * 0.5, 1e-9));
  KernelShape experts;
  experts.hidden = 100;
  experts.expert_width = 50;
  experts.experts = 8;
  experts.experts_per_token = 2;
  experts.tokens = 3;
  const KernelFit layer = plain_fit(KernelKind::experts, {1, 1, 12, 5, 0.5, 0.25}, 4);
  CHECK(near(layer.microseconds(plain_gpu(), experts), 5 + 1e6 * 6 * 3 * 100 * 50 * 2 / 1e12 + 0.5 * 6 + 0.25 * 6, 1e-9));
  KernelShape ungated = experts;  // two matrices each
  ungated.matrices = 2;
  CHECK(near(layer.microseconds(plain_gpu(), ungated), 5 + 1e6 * 6 * 2 * 100 * 50 * 2 / 1e12 + 0.5 * 6 + 0.25 * 6, 1e-9));
  experts.skew = 1.0;  // then experts are chosen independently
  const double active = 8 * (1 - std::pow(0.75, 3));
  CHECK(
      near(layer.microseconds(plain_gpu(), experts), 5 + 1e6 * active * 3 * 100 * 50 * 2 / 1e12 + 0.5 * active + 0.25 * 6, 1e-9));
  KernelShape link;
  link.gpus = 4;
  link.bytes = 1e6;
  CHECK(near(plain_fit(KernelKind::allreduce, {0.5, 0, 2}, 1).microseconds(plain_gpu(), link), 1e6 * 1.5 * 1e6 / 0.5e11, 1e-9));
}

TEST_CASE("another board's memory takes what a byte costs beyond the data sheet along, per multiprocessor", "[cost][kernels]") {
  KernelFits fits;
  fits.list = {plain_fit(KernelKind::product, {0.8, 1e9, 12, 3, 1e6, 1, 0.5}, 4),
               plain_fit(KernelKind::attention_decode, {1.02, 12, 7, 0, 0}, 3), plain_fit(KernelKind::allreduce, {0.5, 0, 2}, 1)};
  const Hardware measured = plain_gpu();
  Hardware slower = measured;
  slower.bandwidth = 0.5e12;
  // A byte takes 1 unit and .25 beyond it; the slower memory takes 2 and the same .25.
  CHECK(near(on_board(fits, measured, slower, {})->list[0].figures[0], 2.0 / 2.25));
  CHECK(on_board(fits, measured, slower, {})->list[1].figures[0] == 1.02);  // read in the data sheet's time: no bytes are beyond
  CHECK(on_board(fits, measured, slower, 0.5)->list[1].figures[0] == 0.51);
  CHECK(on_board(fits, measured, slower, {})->list[2].figures[0] == 0.5);  // a share of the link
  Hardware smaller = measured;
  smaller.multiprocessors = 50;
  CHECK(near(on_board(fits, measured, smaller, {})->list[0].figures[0], 1.0 / 1.5));
  CHECK(on_board(fits, measured, measured, {})->list[0].figures[0] == 0.8);
  // The A100 of 40 GB: the estimate was 12.77 ms for a step that takes 12.18 with its host.
  const double share = hardware_of("a100-40gb-sxm").kernels->find(KernelKind::product, "vllm", "bfloat16")->figures[0];
  CHECK(share > hardware_of("a100-80gb-sxm").kernels->find(KernelKind::product, "vllm", "bfloat16")->figures[0] + 0.03);
}

TEST_CASE("the correction is linear between its knots and constant beyond", "[cost][kernels]") {
  KernelFit fit = plain_fit(KernelKind::allreduce, {0.5, 10, 2}, 1);
  fit.over = {10, 12};
  fit.by = {{1, 3}};
  fit.correction = {0.1, 0.0, 0.4, 0.2, 0.0, 0.0};  // at 1 KiB: .1 + 0 or .4 by the GPUs, at 4 KiB .2
  KernelFit none = fit;
  none.correction.assign(6, 0.0);
  const auto correction = [&](double bytes, double gpus) {
    KernelShape x;
    x.bytes = bytes;
    x.gpus = gpus;
    return std::log(fit.microseconds(plain_gpu(), x) / none.microseconds(plain_gpu(), x));
  };
  CHECK(near(correction(1024, 2), 0.1, 1e-9));
  CHECK(near(correction(1024, 4), 0.3, 1e-9));
  CHECK(near(correction(1024, 8), 0.5, 1e-9));
  CHECK(near(correction(2048, 8), 0.35, 1e-9));
  CHECK(near(correction(4096, 8), 0.2, 1e-9));
  CHECK(near(correction(1 << 20, 64), 0.2, 1e-9));
  KernelShape x;
  x.bytes = 2048;
  x.gpus = 4;
  CHECK(fit.covers(plain_gpu(), x));
  CHECK(
      std::isinf(plain_fit(KernelKind::attention_latent, {1, 1, 12, 0, 0, 0}, 3).most_of_others(0)));  // none: looked at nowhere
  x.gpus = 16;
  CHECK_FALSE(fit.covers(plain_gpu(), x));
}

TEST_CASE("the coordinates of a correction besides the first, one at a time", "[cost][kernels]") {
  // The correction is the coordinate itself, so that the logarithm of the latency reveals it. It detects exchanged coordinates,
  // tiles of another size and waves that are not rounded up.
  const auto looks_at = [](KernelKind kind, std::size_t which, const KernelShape& x) {
    KernelFit fit =
        kind == KernelKind::product ? plain_fit(kind, {0.5, 1e9, 12, 40, 1e6, 1, 0.5}, 6) : plain_fit(kind, {0.5, 3, 8, 1, 0}, 6);
    const KernelFit none = fit;
    fit.by[which] = {0, 10};
    fit.correction = {0, 0, 10, 0, 0, 10};
    return std::log(fit.microseconds(plain_gpu(), x) / none.microseconds(plain_gpu(), x));
  };
  KernelShape x;
  x.rows = 192;
  x.outer = 9600;
  x.inner = 4096;
  const auto product = [&](std::size_t which) { return looks_at(KernelKind::product, which, x); };
  CHECK(near(product(3), 0.75, 1e-9));  // 75 x 2 tiles of 128 are one and a half waves of 100
  CHECK(near(product(4), 0.9, 1e-9));   // 150 x 3 of 64 are four and a half
  CHECK(near(product(5), 6, 1e-9));     // no tile of 256 rows up to 192
  x.rows = 193;
  CHECK(near(product(5), std::log2(96), 1e-9));  // one wave of tiles of 256 rows has 96 columns each
  x.rows = 4096;                                 // the most that were measured are 1,024
  x.outer = 2400;
  CHECK(near(product(5), 8, 1e-9));
  x.batch = 16;
  x.context = 1024;
  x.heads = 32;
  x.kv_heads = 8;
  x.head_dim = 128;
  CHECK(near(looks_at(KernelKind::attention_decode, 3, x), 4, 1e-9));
  CHECK(near(looks_at(KernelKind::attention_decode, 4, x), 0.64, 1e-9));  // 128 sequences and key heads on 100 multiprocessors
  CHECK(near(looks_at(KernelKind::attention_decode, 5, x), 7, 1e-9));
}

TEST_CASE("every built-in fit is read, estimates its GPU and states its error", "[cost][kernels]") {
  std::size_t fits = 0;
  for (const char* gpu : {"a100-80gb-sxm", "h100-sxm", "h200-sxm", "b200", "l40s", "rtx-4090", "rtx-3090", "rtx-pro-6000"}) {
    const Hardware hardware = hardware_of(gpu);
    REQUIRE(hardware.kernels != nullptr);
    for (const KernelFit& fit : hardware.kernels->list) {
      INFO(gpu << " " << kernel_kind_name(fit.kind) << " " << fit.engine << " " << fit.dtype.name << " " << fit.kernel);
      KernelShape x;
      x.rows = 64;
      x.inner = x.outer = 4096;
      x.batch = 8;
      x.tokens = 8;
      x.context = 4096;
      x.heads = 32;
      x.kv_heads = 8;
      x.hidden = 2048;
      x.expert_width = 768;
      x.experts = 128;
      x.experts_per_token = 8;
      x.bytes = 65536;
      const double us = fit.microseconds(hardware, x);
      CHECK(us > 1);
      CHECK(us < 20000);
      if (fit.kind == KernelKind::product && fit.dtype.arithmetic == Arithmetic::bf16 && fit.dtype.weight_bytes == 2.0) {
        CHECK(fit.median_error < 5);
        CHECK(fit.high_error < 15);
      }
      ++fits;
    }
  }
  CHECK(fits > 150);
}

TEST_CASE("small products have their own fit, which joins the other one", "[cost][kernels]") {
  const Hardware hardware = plain_gpu();
  KernelFit fit = plain_fit(KernelKind::product, {0.5, 1e9, 12, 40, 1e6, 1, 0.5}, 4);
  KernelFit small = plain_fit(KernelKind::product, {0.5, 1e9, 12, 10, 1e6, 1, 0.5}, 4);
  fit.by[2] = {24, 30};
  fit.correction.assign(6, 0.0);
  small.by[2] = {16, 20};
  small.correction = fit.correction;
  fit.small = std::make_shared<const KernelFit>(small);
  KernelShape shape;
  shape.rows = 1;
  shape.inner = 1024;
  const auto priced = [&](const KernelFit& of, double outer) {
    shape.outer = outer;
    return of.microseconds(hardware, shape);
  };
  CHECK(priced(fit, 512) == priced(small, 512));    // 2^19: a small one
  CHECK(priced(fit, 1024) == priced(small, 1024));  // 2^20: the largest of those
  fit.small.reset();
  const double other = priced(fit, 2048);
  const double at_four = priced(fit, 4096);
  fit.small = std::make_shared<const KernelFit>(small);
  CHECK(near(priced(fit, 2048), std::sqrt(other * priced(small, 2048)), 1e-9));  // 2^21: half of the way
  CHECK(priced(fit, 4096) == at_four);                                           // four times the largest
  shape.outer = 512;
  CHECK(fit.floor_us(hardware, shape) == 10.0);
  CHECK(fit.covers(hardware, shape));
  shape.outer = 4096;
  CHECK(fit.floor_us(hardware, shape) == 40.0);
}

TEST_CASE("attention of several tokens takes whole waves of the fit's blocks of queries", "[cost][kernels]") {
  KernelFit fit = plain_fit(KernelKind::attention_verify, {1, 1, 12, 0, 128, 64}, 2);
  KernelShape x;
  x.heads = x.kv_heads = 50;
  x.head_dim = 128;
  x.context = 100000;
  Hardware small = plain_gpu();
  small.compute_capability = 8.9;
  const auto waves = [&](const Hardware& on, double tokens) {
    x.tokens = tokens;
    return std::round(100 * fit.microseconds(on, x) / 1.28e7) / 100;
  };
  CHECK(waves(small, 128) == 1);  // 2 blocks a head, of 100 that fit
  CHECK(waves(small, 129) == 2);
  // Two blocks share a multiprocessor with more memory (H200: vLLM's FlashAttention 2 at batch 8 and 16 of 32 heads).
  CHECK(waves(plain_gpu(), 128) == 1);
  CHECK(waves(plain_gpu(), 129) == 1.16);
  CHECK(waves(plain_gpu(), 385) == 2.7);
  fit.figures[5] = 128;
  CHECK(waves(small, 256) == 1);
  // RTX PRO 6000 (LLMServingSim 5daddb21a545), which runs blocks of 64: as long over 273 tokens as over 16, twice that over 410.
  const Hardware gpu = hardware_of("rtx-pro-6000");
  const KernelFit* measured = gpu.kernels->find(KernelKind::attention_verify, "", "bfloat16");
  REQUIRE(measured != nullptr);
  CHECK(measured->figures[5] == 64);
  x.heads = 32;
  x.kv_heads = 8;
  x.head_dim = 128;
  x.context = 16384;
  for (const auto& [tokens, us] :
       {std::pair(16.0, 369.4), std::pair(273.0, 371.2), std::pair(410.0, 694.6), std::pair(923.0, 1048.3)}) {
    x.tokens = tokens;
    CHECK(near(measured->microseconds(gpu, x), us, 0.08 * us));
  }
}

TEST_CASE("small products as measured: a B200's floors are not those of large ones", "[cost][kernels]") {
  // ai-dynamo/aiconfigurator 095f58a51c4c, four rows; the weights fit in the second-level cache, from memory they take 1 us
  // longer.
  const std::vector<std::string> header = {"gpu", "engine", "dtype", "n", "k", "m", "us"};
  const EstimatedKernels table = estimate_kernel_table("t.csv", {header,
                                                                 {"b200", "trtllm", "nvfp4", "512", "7168", "4", "19.01"},
                                                                 {"b200", "trtllm", "nvfp4", "1024", "5120", "4", "15.73"},
                                                                 {"b200", "trtllm", "fp8_block", "512", "7168", "4", "10.47"},
                                                                 {"b200", "sglang", "fp8_block", "1024", "5120", "4", "16.57"},
                                                                 {"h100-sxm", "vllm", "bfloat16", "768", "768", "1", "3.582"}});
  for (const EstimatedKernel& row : table.rows) {
    CAPTURE(row.gpu, row.engine, row.dtype, row.us, row.priced_us);
    CHECK(near(row.priced_us, row.us, 0.25 * row.us));
  }
}

TEST_CASE("a layer of experts runs on the fastest of its engine's kernels", "[cost][kernels]") {
  // TensorRT-LLM's two for nvfp4 took 41.2 and 159.1 us for four rows of DeepSeek-V3 on four B200s with even routing.
  const Hardware b200 = hardware_of("b200");
  Diagnostics diagnostics;
  const ModelShape model =
      read_model(PresetChoice{"deepseek-v3", {}, {{"tensor_parallel", "4", {}}, {"dtype", "nvfp4", {}}}}, "model", diagnostics);
  REQUIRE(diagnostics.empty());
  const double us = 1e6 * KernelsOf(b200, "trtllm", model, engine_of_library("trtllm")).experts(4);
  CHECK(us > 35);
  CHECK(us < 65);
}

TEST_CASE("four-bit weights alone leave the memory bound within few rows", "[cost][kernels]") {
  const Hardware a100 = hardware_of("a100-80gb-sxm");
  const KernelsOf kernels(a100, "trtllm", specsim::tests::shape_of("llama-3.1-8b"));
  const auto us = [&](double rows, double outer, double bits) { return kernels.product(rows, outer, 4096, {bits, {}}); };
  CHECK(us(48, 65536, 4) / us(1, 65536, 4) > 1.5);            // measured: 1.86, and 2.00 the other way round
  CHECK(near(us(16, 4096, 4) / us(1, 4096, 4), 1.30, 0.15));  // 1.30 was measured; fits must be within 15 %
  CHECK(std::max(us(48, 65536, 16) / us(1, 65536, 16), us(16, 4096, 16) / us(1, 4096, 16)) < 1.1);
}

TEST_CASE("attention of several tokens: serial blocks pay, split ones hardly do", "[cost][kernels]") {
  const auto kv = [](const char* gpu, const char* attention, double tokens) {
    const std::string text = std::string("{hardware: ") + gpu +
                             ", target: llama-3.1-8b, draft: none, engine: bare, kernels: vllm, attention: " + attention + "}";
    return make_cost("roofline", text)->pass(Role::target, {1, tokens, 8192, tokens}).kv;
  };
  CHECK(kv("a100-80gb-sxm", "automatic", 16) > 1.5 * kv("a100-80gb-sxm", "automatic", 1));
  CHECK(kv("a100-80gb-sxm", "split", 16) < 1.2 * kv("a100-80gb-sxm", "split", 1));
  CHECK(kv("h100-sxm", "automatic", 16) < 1.2 * kv("h100-sxm", "automatic", 1));
  CHECK(kv("a100-80gb-sxm", "automatic", 1) == kv("a100-80gb-sxm", "serial", 1));
}

TEST_CASE("an engine is estimated by its own measured kernels by default", "[cost][kernels]") {
  const auto ms = [](const std::string& gpu, const std::string& rest) {
    const auto model = make_cost("roofline", "{hardware: " + gpu + ", target: llama-3.1-8b, draft: none, " + rest + "}");
    return 1e3 * model->pass(Role::target, {64, 5, 2048, 5}).total();
  };
  CHECK(ms("h100-sxm", "engine: vllm") == ms("h100-sxm", "engine: vllm, kernels: vllm"));
  CHECK(ms("h100-sxm", "engine: vllm") != ms("h100-sxm", "engine: vllm, kernels: none"));
  // Engines without measured kernels use the GPU's own calibration, and vLLM's kernels if the calibration is another GPU's.
  CHECK(ms("h100-sxm", "engine: bare") == ms("h100-sxm", "engine: bare, kernels: none"));
  CHECK(ms("b200", "engine: bare") == ms("b200", "engine: bare, kernels: vllm"));
  CHECK(ms("b200", "engine: bare") != ms("b200", "engine: bare, kernels: none"));
  // A TPU has no measurements, and a user's own calibration is not overridden.
  CHECK(ms("tpu-v4", "engine: vllm") == ms("tpu-v4", "engine: vllm, kernels: none"));
  CHECK(ms("{preset: h100-sxm, calibration: {kernel_us: 500}}", "engine: vllm") > 32 * 4 * 0.5);
}

TEST_CASE("estimates state their errors: that of the fit, or that of another GPU's measurements", "[cost][kernels]") {
  const auto error = [](const char* gpu, const char* engine) {
    const auto model = make_cost(
        "roofline", std::string("{hardware: ") + gpu + ", target: llama-3.1-8b, draft: llama-3.2-1b, engine: " + engine + "}");
    const double target = model->kernel_error(Role::target, {1, 5, 1024, 5});
    CHECK(target > 0.0);
    CHECK(model->kernel_error(Role::draft, {1, 1, 1024, 1}) > 0.0);
    return target;
  };
  CHECK(error("h100-sxm", "vllm") < 0.05);
  CHECK(error("h100-sxm", "bare") < 0.05);
  CHECK(error("mi300x", "vllm") > 1.5 * error("h100-sxm", "vllm"));
  CHECK(error("h800", "vllm") > 1.2 * error("h100-sxm", "vllm"));  // the H100's fits, on another board
  CHECK(error("h20", "bare") > 1.5 * error("h100-sxm", "vllm"));
  // A type that none of the engine's kernels was measured with is estimated from the data sheet, whatever the activations' type.
  for (const char* sheet : {"vllm, target: {preset: llama-3.1-8b, dtype: {weights: int4, activations: fp8}}",
                            "graphs, target: {preset: llama-3.1-8b, dtype: fp8}"})
    CHECK(make_cost("roofline", std::string("{hardware: h100-sxm, draft: none, engine: ") + sheet + "}")
              ->relative_error(Role::target, {1, 5, 1024, 5}) > 0.15);
  CHECK(make_cost("ratio", "{cost_ratio: 0.1}")->relative_error(Role::target, {1, 5, 1024, 5}) == 0.0);
}

TEST_CASE("a GPU of little arithmetic reads weights near its bandwidth for one row, whatever the engine", "[cost][kernels]") {
  // Tiles of at least 64 rows, as in the H100's calibration, would be bound by the H20's arithmetic: half the bandwidth.
  for (const char* engine : {"bare", "vllm"}) {
    const auto model =
        make_cost("roofline",
                  std::string("{hardware: h20, target: llama-3.1-8b, draft: none, kernels: automatic, engine: ") + engine + "}");
    const double bytes = 15.0e9;
    CHECK(model->pass(Role::target, {1, 1, 512, 1}).weights < bytes / (0.7 * 4000e9));
  }
}

TEST_CASE("all-reduces measured over NVLink are not used for other links", "[cost][kernels]") {
  const auto communication = [](const std::string& gpu, const char* kernels) {
    const auto model = make_cost(
        "roofline",
        "{hardware: " + gpu + ", target: {preset: llama-3.1-70b, tensor_parallel: 2}, draft: none, kernels: " + kernels + "}");
    return model->pass(Role::target, {8, 4, 512, 4}).communication;
  };
  for (const char* gpu : {"h100-pcie", "{preset: h100-sxm, link_gb_per_s: 25}"})
    CHECK(communication(gpu, "automatic") == communication(gpu, "none"));
  CHECK(communication("h100-sxm", "automatic") != communication("h100-sxm", "none"));
  // Over PCIe they were measured on the L40S, which has the same links as an L40 and an L4.
  for (const char* gpu : {"l40", "l4"}) CHECK(near(communication(gpu, "vllm"), communication("l40s", "vllm")));
}

TEST_CASE("an error in a file of fits is reported with its place", "[cost][kernels]") {
  std::string mistakes;
  make_cost("roofline", "{hardware: {preset: h100-sxm, kernels: h100-smx}, target: llama-3.1-8b, draft: none}", &mistakes);
  CHECK(mistakes.find("unknown kernels \"h100-smx\", did you mean \"h100-sxm\"? allowed: ") != std::string::npos);
  make_cost("roofline", "{hardware: tpu-v4, target: llama-3.1-8b, draft: none, kernels: vllm}", &mistakes);
  CHECK(mistakes.find("kernels is vllm, allowed: none on ") != std::string::npos);
}

TEST_CASE("the token that a draft catches up with attends as tokens that are verified, a prompt as prompts", "[cost][kernels]") {
  const auto model =
      make_cost("roofline", "{hardware: h100-sxm, target: llama-3.1-70b, draft: llama-3.2-1b, engine: vllm, kernels: vllm}");
  const auto kv = [&](double tokens) { return model->pass(Role::draft, {16, tokens, 4096, 1}).kv; };
  CHECK(kv(1.7) < 1.1 * kv(1));  // FlashAttention 3 shares the keys among blocks
  CHECK(kv(512) > 4 * kv(1));
}

TEST_CASE("a prompt's chunk on Blackwell: one block reads all keys, more than a wave of blocks run one after the other",
          "[cost][kernels]") {
  // Milliseconds of vLLM 0.20 on B300s, Qwen3-32B (steps_vllm_b300_layerwise); nothing was fitted to them. With keys at 28 ns,
  // from a fit to one context, the first is 2.0 times too slow; without waves the 1,024 tokens cost the same as 512.
  const auto ms = [](const char* gpus, double tokens, double context) {
    const auto model = make_cost("roofline", std::string("{hardware: b300, target: {model: qwen3-32b, tensor_parallel: ") + gpus +
                                                 "}, draft: none, engine: vllm}");
    return 1e3 * model->pass(Role::target, {1, tokens, context, 1, false}).total();
  };
  CHECK(near(ms("1", 16, 32768), 36.8, 0.08));
  CHECK(near(ms("8", 16, 32768), 27.6, 0.08));
  CHECK(near(ms("8", 128, 8192), 10.6, 0.08));
  // Keys of one sequence are split less than possible, which only rows from the second-level cache show. Mutant: a fit without
  // these rows, .77 of the time.
  CHECK(near(ms("8", 1, 16), 4.7, 0.1));
  // Cases with an error above a tenth, on record with their ratio: the same over 32,768 keys, whose slope is a B200's, and a
  // chunk of several waves.
  CHECK(near(ms("8", 1, 32768) / 5.861, 0.874, 0.01));
  CHECK(near(ms("1", 1024, 32768) / 95.6, 1.16, 0.01));
}

TEST_CASE("a walk takes the key of a prompt of one head, and whole waves of blocks of 256 queries", "[cost][kernels]") {
  KernelFit fit = plain_fit(KernelKind::attention_prefill, {1, 1, 12, 10, 0.01, 128}, 2);  // .005 us for a key of the last block
  KernelShape x;
  x.heads = 64;
  x.kv_heads = 8;
  x.head_dim = 128;
  x.context = 1e6;
  const auto walk = [&](double tokens) {
    x.tokens = tokens;
    return fit.walk_us(plain_gpu(), x);
  };
  const double least = 10 + 0.01 * 32.5;  // 64 tokens alone
  CHECK(near(walk(1), least + 0.005 * (1e6 + 1), 1e-6));
  CHECK(near(walk(256), least + 0.005 * (1e6 + 256), 1e-6));      // 64 blocks on 100 multiprocessors
  CHECK(near(walk(257), least + 2 * 0.005 * (1e6 + 257), 1e-6));  // 128
}

TEST_CASE("a pass beyond the measured range is reported with its dimension, a pass within is not", "[kernels]") {
  const auto cost = make_cost("roofline", "{hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b}");
  const auto told = [&](double batch, double tokens, double context) {
    std::string all;
    for (const std::string& line : cost->beyond_measured(Role::target, {batch, tokens, context, tokens})) all += line + "\n";
    return all;
  };
  CHECK(told(64, 8, 2048).empty());
  CHECK(told(64, 9, 2048) == "llama-3.1-8b: passes of more than 512 rows, beyond the measured range of its kernels\n");
  // Eight heads of 128 keys and as many values of two bytes: 4,096 bytes per token and layer, measured to 2^32.
  CHECK(told(32, 1, 32000).empty());
  CHECK(told(256, 1, 32000) ==
        "llama-3.1-8b: passes of more than 4.295 GB of a layer's cache, beyond the measured range of its kernels\n");
  const auto plain = make_cost("roofline", "{hardware: h100-sxm, kernels: none, target: llama-3.1-8b, draft: llama-3.2-1b}");
  CHECK(plain->beyond_measured(Role::target, {1000, 9, 32000, 9}).empty());
}

}  // namespace specsim::cost_kernels_test
