// One matrix product, compared with a second implementation of the same formula; its steps, and its limits by hand.
#include "sim/hardware/latency/product_kernels.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

namespace specsim::cost_products_test {

using namespace specsim::cost;
using specsim::tests::near;

namespace {

// The unrounded parameters of the fit; configs/hardware rounds some.
Hardware gpu(double gb_per_s, double tflops, double multiprocessors, const Calibration& calibration) {
  Hardware hardware;
  hardware.bandwidth = 1e9 * gb_per_s;
  hardware.flops = 1e12 * tflops;
  hardware.multiprocessors = multiprocessors;
  hardware.calibration = calibration;
  return hardware;
}

Calibration fitted(double efficiency, double feed, double power, double kernel, double split, double odd, double wide) {
  Calibration c;
  c.memory_efficiency = efficiency;
  c.feed_tb_per_s = feed;
  c.overlap_power = power;
  c.kernel_us = kernel;
  c.split_us = split;
  c.odd_rows_penalty = odd;
  c.wide_penalty = wide;
  return c;
}

const Hardware a100 = gpu(2039, 312, 108, fitted(0.9076, 5.8087, 2.1186, 3.2097, 3.0957, 0, 0));
const Hardware h100 = gpu(3350, 989, 132, fitted(0.8938, 9.7166, 4.2714, 3.6812, 1.7241, 0.0925, 0));
const Hardware rtx4090 = gpu(1008, 165.2, 128, fitted(0.9651, 6.0755, 6.5777, 5.3838, 1.9164, 0, 0.1075));
const Hardware rtx3090 = gpu(936, 71, 82, fitted(0.852, 1.5818, 7.2581, 0.9766, 2.4563, 0, 0));

// Only memory counts: arithmetic and feed take almost no time.
Hardware stream(double power) { return gpu(1000, 1e12, 1, fitted(0.5, 1e12, power, 7, 1, 0, 0)); }

}  // namespace

TEST_CASE("a matrix product's time against a second implementation", "[cost][roofline]") {
  struct Row {
    const Hardware& hardware;
    double rows, inner, outer, bytes, us;
  };
  const Row rows[] = {{a100, 1, 4096, 12288, 2, 64.3539074822869},       {a100, 64, 4096, 22016, 2, 120.410796751617},
                      {a100, 65, 4096, 22016, 2, 143.881290170709},      {a100, 129, 8192, 7168, 2, 140.800642681975},
                      {a100, 512, 28672, 8192, 2, 1006.18784911466},     {h100, 1, 4096, 12288, 2, 37.5437834366251},
                      {h100, 72, 4096, 12288, 2, 43.0406043814495},      {h100, 97, 8192, 57344, 2, 327.658701605882},
                      {h100, 384, 11008, 4096, 2, 70.0017457257048},     {h100, 8, 8192, 10240, 1, 33.2280729033303},
                      {rtx4090, 16, 4096, 28672, 2, 248.045990347478},   {rtx4090, 17, 4096, 28672, 2, 274.130322831637},
                      {rtx4090, 256, 4096, 128256, 2, 1710.05785388456}, {rtx4090, 6, 4096, 6144, 0.5, 27.1995289860968},
                      {rtx3090, 6, 768, 2304, 2, 8.19605883225748},      {rtx3090, 100, 4096, 4096, 2, 82.7610701368184}};
  for (const Row& row : rows) {
    INFO(row.rows << " x " << row.inner << " x " << row.outer << " at " << row.bytes);
    CHECK(near(1e6 * product_seconds(row.hardware, row.rows, row.inner, row.outer, row.bytes), row.us, 1e-9));
  }
}

TEST_CASE("the built-in parameters are the fitted ones, rounded", "[cost][roofline]") {
  Hardware small_tiles = h100;  // up to 96 rows, with the remaining penalty
  small_tiles.calibration.odd_rows_penalty = 0.07;
  small_tiles.calibration.most_small_rows = 96.0;
  const std::pair<const char*, const Hardware*> pairs[] = {
      {"a100-80gb-sxm", &a100}, {"h100-sxm", &small_tiles}, {"rtx-4090", &rtx4090}, {"rtx-3090", &rtx3090}};
  for (const auto& [name, own] : pairs) {
    const Hardware shipped = specsim::tests::hardware_of(name);
    for (const double n : {1.0, 6.0, 17.0, 64.0, 96.0, 130.0, 512.0})
      CHECK(near(product_seconds(shipped, n, 4096, 14336, 2), product_seconds(*own, n, 4096, 14336, 2), 1e-3));
  }
}

TEST_CASE("a memory-bound product streams its bytes", "[cost][roofline]") {
  for (const double power : {1.0, 2.0, 7.0, 50.0, 100.0}) {  // the last two: seconds to that power are below any double
    const Hardware hardware = stream(power);
    const double bytes = 4096.0 * 8192.0 * 2.0 + 2.0 * 3.0 * (4096.0 + 8192.0);
    CHECK(near(product_seconds(hardware, 3, 4096, 8192, 2), bytes / (1e12 * 0.5) + 7e-6, 1e-9));
    Hardware faster = hardware;
    faster.bandwidth *= 2.0;
    CHECK(
        near(product_seconds(faster, 3, 4096, 8192, 2) - 7e-6, 0.5 * (product_seconds(hardware, 3, 4096, 8192, 2) - 7e-6), 1e-9));
  }
}

TEST_CASE("a compute-bound product does its operations, padded to whole tiles", "[cost][roofline]") {
  Hardware hardware = gpu(1e12, 1, 1, fitted(1, 1e12, 3, 0, 0, 0, 0));
  CHECK(near(product_seconds(hardware, 128, 4096, 1024, 2), 2.0 * 128 * 4096 * 1024 / 1e12, 1e-9));
  // 1 row takes a tile of 64, 65 rows one of 128; an inner length of 33 is padded to 64.
  CHECK(near(product_seconds(hardware, 1, 4096, 1024, 2), 2.0 * 64 * 4096 * 1024 / 1e12, 1e-9));
  CHECK(near(product_seconds(hardware, 65, 4096, 1024, 2), 2.0 * 128 * 4096 * 1024 / 1e12, 1e-9));
  CHECK(near(product_seconds(hardware, 64, 33, 64, 2), 2.0 * 64 * 64 * 64 / 1e12, 1e-9));
  // 5 tiles of 64 on 4 multiprocessors take two rounds if splitting the inner length does not help.
  hardware.multiprocessors = 4;
  hardware.calibration.split_us = 1e6;
  CHECK(near(product_seconds(hardware, 64, 4096, 320, 2), 2.0 * (2.0 * 64 * 64 * 4096) / (1e12 / 4), 1e-9));
}

TEST_CASE("the p-norm lies between sum and maximum", "[cost][roofline]") {
  Hardware hardware = gpu(1000, 1, 1, fitted(1, 1e12, 1, 0, 1e6, 0, 0));
  const double memory = (4096.0 * 1024 * 2 + 2.0 * 64 * (4096 + 1024)) / 1e12;
  const double arithmetic = 2.0 * 64 * 4096 * 1024 / 1e12;
  CHECK(near(product_seconds(hardware, 64, 4096, 1024, 2), memory + arithmetic, 1e-6));
  hardware.calibration.overlap_power = 2;
  CHECK(near(product_seconds(hardware, 64, 4096, 1024, 2), std::hypot(memory, arithmetic), 1e-6));
  hardware.calibration.overlap_power = 100;
  CHECK(near(product_seconds(hardware, 64, 4096, 1024, 2), std::max(memory, arithmetic), 1e-6));
}

TEST_CASE("more work never takes less time", "[cost][roofline]") {
  // On GPUs without the penalty for rows between powers of two.
  for (const Hardware* hardware : {&a100, &rtx4090, &rtx3090}) {
    double before = 0.0;
    for (int n = 1; n <= 600; ++n) {
      const double now = product_seconds(*hardware, n, 4096, 11008, 2);
      CHECK(now >= before);
      before = now;
    }
    before = 0.0;
    for (int inner = 64; inner <= 8192; inner += 32) {
      const double now = product_seconds(*hardware, 48, inner, 4096, 2);
      CHECK(now >= before);
      before = now;
    }
    before = 0.0;
    for (int outer = 64; outer <= 16384; outer += 64) {
      const double now = product_seconds(*hardware, 48, 4096, outer, 2);
      CHECK(now >= before);
      before = now;
    }
    for (const double n : {1.0, 80.0, 300.0}) {
      CHECK(product_seconds(*hardware, n, 4096, 4096, 1) < product_seconds(*hardware, n, 4096, 4096, 2));
      CHECK(product_seconds(*hardware, n, 4096, 4096, 2, 4) > product_seconds(*hardware, n, 4096, 4096, 2, 3));
      CHECK(product_seconds(*hardware, n, 4096, 4096, 2, 4) < 4.0 * product_seconds(*hardware, n, 4096, 4096, 2));
    }
  }
}

TEST_CASE("the steps: a tile at 65 rows, the H100's power of two, the 4090's 16", "[cost][roofline]") {
  const auto ratio = [](const Hardware& hardware, double n, double before) {
    return product_seconds(hardware, n, 4096, 22016, 2) / product_seconds(hardware, before, 4096, 22016, 2);
  };
  CHECK(ratio(a100, 64, 1) < 1.15);  // flat to 64
  CHECK(ratio(a100, 65, 64) > 1.15);
  CHECK(ratio(a100, 96, 65) < 1.05);
  CHECK(ratio(h100, 97, 96) < 0.95);
  CHECK(ratio(h100, 65, 64) > 1.05);
  CHECK(ratio(rtx4090, 17, 16) > 1.05);
  CHECK(ratio(rtx4090, 16, 1) < 1.05);
  // A fraction of a row counts as a whole one.
  CHECK(product_seconds(a100, 64.2, 4096, 22016, 2) == product_seconds(a100, 65, 4096, 22016, 2));
}

// Rows of results/gpu/h200-sxm/kernels/products_w4a16.csv: outputs, inputs, rows, microseconds. Mutants: weights unpacked once
// for all tiles (a third too fast at 512 rows); the peak of wgmma instead of mma.sync.
TEST_CASE("Marlin's products of 4-bit weights agree with those that were measured on an H200", "[cost][roofline]") {
  const Hardware hardware = specsim::tests::hardware_of("h200-sxm");
  const Engine engine = specsim::tests::engine_of("sglang");
  const CalibratedProduct calibrated(hardware, engine, {});
  const MarlinProduct marlin(hardware, calibrated);
  struct Row {
    double outer, inner, rows, us;
  };
  for (const Row& row : {Row{28672, 4096, 1, 27.092}, Row{28672, 4096, 16, 30.307}, Row{28672, 4096, 65, 77.674},
                         Row{28672, 4096, 512, 358.493}, Row{4096, 14336, 65, 56.852}, Row{57344, 8192, 64, 182.841},
                         Row{57344, 8192, 512, 1373.291}, Row{8192, 8192, 384, 158.613}}) {
    INFO(row.outer << " x " << row.inner << ", " << row.rows << " rows");
    const double seconds = *marlin.seconds({row.rows, row.inner, row.outer, 1.0, {4.0, "int4_wo"}});
    CHECK(std::abs(std::log(1e6 * seconds / row.us)) < 0.24);  // two of the standard errors that it states
  }
  CHECK_FALSE(marlin.seconds({1.0, 4096.0, 4096.0, 1.0, {16.0, "bfloat16"}}));
  CHECK_FALSE(marlin.seconds({1.0, 4096.0, 4096.0, 1.0, {4.0, "nvfp4"}}));
}

}  // namespace specsim::cost_products_test
