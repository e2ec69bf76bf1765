// What prices say of how wrong they are.
#include "sim/hardware/gpu/kernels.h"
#include "sim/hardware/latency/deployment.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace specsim::cost_errors_test {

using namespace specsim::cost;
using specsim::tests::make_cost;
using specsim::tests::near;

TEST_CASE("a price errs by its kernels and, beside them, by its server", "[cost][kernels]") {
  // scripts/results/price_coverage.py estimates what is beside the kernels. Mutants: kernels alone, a sum instead of independent
  // parts, one figure for all models, experts' for dense ones.
  const auto on = [](const char* target, const char* more) {
    return make_cost("roofline", std::string("{hardware: h100-sxm, target: ") + target + ", draft: llama-3.2-1b" + more + "}");
  };
  const Pass pass{4, 5, 1024, 5};
  const auto dense = on("llama-3.1-8b", "");
  const auto mixture = on("qwen3-30b-a3b", "");
  for (const auto& [model, beside] : {std::pair{dense.get(), 0.07}, {mixture.get(), 0.16}}) {
    CHECK(model->server_error(Role::target) == beside);
    CHECK(near(model->relative_error(Role::target, pass), std::hypot(model->kernel_error(Role::target, pass), beside), 1e-9));
    CHECK(model->round_error() == 0.17);
  }
  CHECK(mixture->server_error(Role::draft) == 0.07);  // a dense draft
  CHECK(on("llama-3.1-8b", ", engine: llama_cpp")->server_error(Role::target) == 0.07);
  // Integer kernels' errors are of whole passes on users' machines: nothing is counted twice.
  const auto integer = make_cost(
      "roofline", "{hardware: rtx-4090, target: {preset: llama-3.1-8b, dtype: q4_k_m}, draft: none, engine: llama_cpp}");
  CHECK(integer->server_error(Role::target) == 0.0);
  CHECK(integer->relative_error(Role::target, pass) == integer->kernel_error(Role::target, pass));
}

TEST_CASE("parts of a pass count by their share of it, with the error of their own fit", "[cost][kernels]") {
  // Mutants: a part left out, a part's error taken for another's.
  const auto cost = make_cost(
      "roofline", "{hardware: h100-sxm, target: {preset: llama-3.1-70b, tensor_parallel: 4}, draft: none, engine: vllm}");
  const auto parts_of = [&](const Pass& pass) {
    const PassTime time = cost->pass(Role::target, pass);
    const Hardware& gpu = cost->deployment()->hardware;
    const auto spread = [&](KernelKind kind, const char* kernel) {
      return gpu.kernels->nearest(kind, "vllm", "bfloat16", kernel)->spread;
    };
    const double product = 0.6 * spread(KernelKind::product, "") * (time.weights + time.compute);
    const double attention = spread(KernelKind::attention_decode, "") * time.kv;
    const double small = 0.3 * (time.launch + time.sampling);
    const double seen = cost->kernel_error(Role::target, pass) * time.total();
    // What is left is the links'.
    return std::pair{
        std::sqrt(std::max(0.0, seen * seen - product * product - attention * attention - small * small)) / time.communication,
        attention / seen};
  };
  const auto [few_links, few_attention] = parts_of({1, 1, 64, 1});
  const auto [many_links, many_attention] = parts_of({64, 1, 32768, 1});
  CHECK(few_links > 0.01);
  CHECK(near(few_links, many_links, 0.25));  // the same fit's spread, whatever the pass
  CHECK(few_attention < 0.3);
  CHECK(many_attention > 0.5);
}

}  // namespace specsim::cost_errors_test
