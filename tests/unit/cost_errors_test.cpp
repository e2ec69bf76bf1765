// The stated errors of latency estimates.
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

TEST_CASE("an estimate errs by the server's factors, by its kernels, and by a rest that belongs to neither", "[cost][kernels]") {
  // By hand, from the parts of the pass. Mutants: kernels alone, a sum instead of independent parts, a factor's share left out.
  const auto model = make_cost("roofline", "{hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b}");
  const Pass pass{4, 5, 1024, 5};
  const PassTime time = model->pass(Role::target, pass);
  const FactorBelief belief = model->uncertainty()->factors().value();
  const auto error = [&](Factor factor) {
    return std::sqrt(belief.covariance[static_cast<std::size_t>(factor)][static_cast<std::size_t>(factor)]);
  };
  const double total = time.total();
  const double kernels = model->kernel_error(Role::target, pass);
  double variance =
      (1.0 - model->shared_variance(Role::target, pass)) * kernels * kernels + kDiscrepancies.tpot * kDiscrepancies.tpot;
  for (const double part :
       {error(Factor::products) * (time.weights + time.compute + time.launch + time.sampling) / total,
        error(Factor::arithmetic) * time.compute / total, error(Factor::attention) * time.kv / total,
        error(Factor::verification) * time.kv / total, error(Factor::speculation), error(Factor::step) * 1e-6 / total,
        error(Factor::sequence) * 4e-6 / total, error(Factor::row) * 20e-6 / total})
    variance += part * part;
  CHECK(near(model->relative_error(Role::target, pass), std::sqrt(variance), 1e-9));
  // Unmeasured kernels make the prior wider by their stated error.
  const auto assumed =
      make_cost("roofline", "{hardware: a100-80gb-sxm, target: {preset: llama-3.1-8b, dtype: int4}, draft: none, engine: vllm}");
  const FactorBelief wide = assumed->uncertainty()->factors().value();
  CHECK(near(wide.covariance[0][0], 0.04 * 0.04 + 0.3 * 0.3, 1e-9));
  CHECK(near(belief.covariance[0][0], 0.04 * 0.04, 1e-9));
}

TEST_CASE("parts of a pass count by their share of its time, with the error of their own fit", "[cost][kernels]") {
  // Mutants: a part left out, or the errors of two parts exchanged.
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
    // The rest is the links'.
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
