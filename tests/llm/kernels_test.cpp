// The loops of the models on the CPU: AVX2 and AVX-512 give the same bits, which equal those of sums written out term by term.
#include "sim/lab/llm/kernels.h"

#include <catch2/catch.hpp>

#include <hwy/targets.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::kernels_test {

using namespace specsim::llm;

namespace {

// Instruction sets that the kernels are compiled for and the machine has.
std::vector<std::int64_t> targets_of_eight_lanes() {
  std::vector<std::int64_t> targets;
  for (const std::int64_t target : {HWY_AVX2, HWY_AVX3, HWY_AVX3_DL})
    if ((hwy::SupportedTargets() & HWY_TARGETS & target) != 0) targets.push_back(target);
  return targets;
}

void use(std::int64_t target) {  // 0: whichever is best
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

struct BestAgain {
  BestAgain() = default;
  BestAgain(const BestAgain&) = delete;
  BestAgain& operator=(const BestAgain&) = delete;
  ~BestAgain() { use(0); }
};

// Values of many sizes and both signs, whose sums few bits cannot hold exactly.
float value(std::size_t n) {
  const auto mixed = static_cast<std::uint32_t>(n * 2654435761U);
  return std::ldexp(static_cast<float>(mixed >> 8) - 8388608.0F, -23 - static_cast<int>(mixed % 7));
}

// Columns are added in turn to as many sums as a vector has lanes. These are added by halves down to four sums, and then as
// neighbours.
float dot(const std::vector<float>& a, const std::vector<float>& b, std::size_t lanes) {
  std::vector<float> sums(lanes, 0.0F);
  for (std::size_t i = 0; i < a.size(); ++i) sums[i % lanes] = std::fma(a[i], b[i], sums[i % lanes]);
  for (std::size_t n = lanes / 2; n > 0; n /= 2)
    for (std::size_t i = 0; i < n; ++i) sums[i] += sums[i + n];
  return sums[0];
}

}  // namespace

TEST_CASE("products are the same bits for AVX2 and AVX-512, and those of eight lanes", "[llm][kernels]") {
  const BestAgain again;
  const std::vector<std::int64_t> targets = targets_of_eight_lanes();
  if (targets.empty()) {
    WARN("this machine has neither AVX2 nor AVX-512: nothing was compared");
    return;
  }
  int differ_with_sixteen = 0;
  for (const Precision precision : {Precision::f32, Precision::f16, Precision::bf16}) {
    for (const std::size_t columns : {1, 16, 33, 200}) {
      for (const std::size_t rows : {1, 2, 3, 4, 5, 9}) {
        constexpr std::size_t kOutputs = 7;
        Matrix weights(kOutputs, columns, precision);
        std::vector<std::vector<float>> of_output(kOutputs, std::vector<float>(columns));
        for (std::size_t o = 0; o < kOutputs; ++o) {
          for (std::size_t i = 0; i < columns; ++i) of_output[o][i] = value(1 + o * columns + i);
          weights.set(o, 0, of_output[o]);
          weights.get(o, of_output[o]);  // as they were rounded
        }
        LineFloats x(rows * padded(columns), 0.0F);
        std::vector<std::vector<float>> of_row(rows, std::vector<float>(columns));
        for (std::size_t r = 0; r < rows; ++r)
          for (std::size_t i = 0; i < columns; ++i) x[r * padded(columns) + i] = of_row[r][i] = value(1000 + r * columns + i);
        for (const std::int64_t target : targets) {
          use(target);
          std::vector<float> y(rows * kOutputs, 0.0F);
          multiply(weights, 0, kOutputs, {x.data(), padded(columns), rows}, {y.data(), kOutputs}, false);
          for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t o = 0; o < kOutputs; ++o) {
              const float made = y[r * kOutputs + o];
              INFO("target " << target << ", " << columns << " columns, row " << r << ", output " << o);
              CHECK(made == dot(of_output[o], of_row[r], 8));
              if (made != dot(of_output[o], of_row[r], 16)) ++differ_with_sixteen;
            }
        }
      }
    }
  }
  CHECK(differ_with_sixteen > 100);  // an order of sums by sixteen lanes would have been noticed
}

TEST_CASE("attention, gates and exponentials are the same bits for AVX2 and AVX-512", "[llm][kernels]") {
  const BestAgain again;
  const std::vector<std::int64_t> targets = targets_of_eight_lanes();
  if (targets.size() < 2) WARN("this machine has not both AVX2 and AVX-512: nothing was compared");
  for (const std::size_t width : {16, 48, 64, 112}) {
    for (const std::size_t count : {1, 7, 16, 37}) {
      std::vector<float> query(width);
      std::vector<float> keys(width * 40);
      std::vector<float> values(width * 40);
      for (std::size_t i = 0; i < width; ++i) query[i] = value(i + 7);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        keys[i] = value(i + 100);
        values[i] = value(i + 20000);
      }
      std::vector<std::uint32_t> slots;
      for (std::size_t j = 0; j < count; ++j) slots.push_back(static_cast<std::uint32_t>(39 - j));
      const Attention attention{query.data(), keys.data(), values.data(), width, width, slots, 0.3F};
      std::vector<float> logits(count);
      for (std::size_t i = 0; i < count; ++i) logits[i] = 4.0F * value(i + 3);
      std::vector<std::vector<double>> made;
      for (const std::int64_t target : targets) {
        use(target);
        std::vector<float> scores(padded(count));
        std::vector<float> mixed(width);
        std::vector<float> swish(width);
        std::vector<float> gelu(width);
        std::vector<double> exponential(count);
        attend(attention, scores.data(), mixed.data());
        swiglu(query.data(), keys.data(), width, swish.data());
        geglu(query.data(), keys.data(), width, gelu.data());
        exponentials(logits, 4.0F, 0.7, exponential);
        std::vector<double>& all = made.emplace_back(exponential);
        for (const std::vector<float>& floats : {mixed, swish, gelu}) all.insert(all.end(), floats.begin(), floats.end());
      }
      for (std::size_t t = 1; t < made.size(); ++t) {
        INFO("target " << targets[t] << " against " << targets[0] << ", width " << width << ", " << count << " slots");
        const bool same = made[t] == made[0];
        CHECK(same);
      }
    }
  }
}

}  // namespace specsim::kernels_test
