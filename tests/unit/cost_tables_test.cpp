// Tables of measured kernels: latency estimates of their rows, format errors, mistaken units, kernels that cannot exist.
#include "sim/hardware/latency/kernel_tables.h"
#include "tests/support/costs.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace specsim::cost_tables_test {

using namespace specsim::cost;
using specsim::tests::near;

namespace {

std::vector<std::vector<std::string>> product_table(const std::string& us) {
  return {{"gpu", "engine", "dtype", "n", "k", "m", "us"}, {"h100-sxm", "vllm", "bfloat16", "8192", "8192", "8", us}};
}

std::string message_of(const std::vector<std::vector<std::string>>& fields) {
  try {
    (void)estimate_kernel_table("t.csv", fields);
  } catch (const BadInput& error) {
    return to_string(error.list().front().where) + ": " + error.list().front().message;
  }
  return "";
}

}  // namespace

TEST_CASE("a table of kernels is estimated row by row", "[cost][kernels]") {
  auto fields = product_table("100");
  fields.push_back({"no-such-gpu", "vllm", "bfloat16", "8192", "8192", "8", "100"});
  fields.push_back({"h100-sxm", "vllm", "bfloat16", "8192", "8192", "4096", "100"});
  const EstimatedKernels table = estimate_kernel_table("t.csv", fields);
  CHECK(table.kind == KernelKind::product);
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0].covered);
  // 134 MB at 3.35 TB/s are 40 us.
  CHECK(table.rows[0].priced_us > 40);
  CHECK(table.rows[0].priced_us < 60);
  CHECK(table.rows[1].priced_us == 0);
  CHECK(table.warnings.size() == 1);
  CHECK_FALSE(table.rows[2].covered);  // more rows than were measured
  // A type that the GPU does not support has no latency estimate, as `pass` refuses it.
  fields = product_table("100");
  fields.push_back({"a100-80gb-sxm", "vllm", "fp8", "8192", "8192", "8", "100"});
  const EstimatedKernels without = estimate_kernel_table("t.csv", fields);
  CHECK(without.rows[1].priced_us == 0);
  REQUIRE(without.warnings.size() == 1);
  CHECK(without.warnings[0] ==
        "a100-80gb-sxm, fp8: NVIDIA A100 80GB SXM does not have this arithmetic; these rows are not estimated");
  const auto errors = kernel_errors(table);
  REQUIRE(errors.size() == 3);
  CHECK(errors[0].rows == "all");
  CHECK(errors[0].count == 2);
  CHECK(errors[0].covered == 1);  // row by row; mutant: each twice
  CHECK(errors[1].rows == "2-16");
  CHECK(near(errors[1].median_ratio, table.rows[0].priced_us / 100));
}

TEST_CASE("errors of estimates are those of numpy's quantiles", "[cost][kernels]") {
  // Off by 0, 10 and 20 %; the 90th percentile lies .8 of the way between the last two.
  const EstimateErrors errors = estimate_errors({1.1, 0.8, 1.0});
  CHECK(errors.count == 3);
  CHECK(errors.median_ratio == 1.0);
  CHECK(errors.median_error == Approx(0.1));
  CHECK(errors.high_error == Approx(0.18));
  CHECK(errors.worst_error == Approx(0.2));
}

TEST_CASE("an error in a table is reported with its line", "[cost][kernels]") {
  CHECK(message_of({}).find("it is empty") != std::string::npos);
  CHECK(message_of({{"a", "b"}}).find("t.csv:1: the header is \"a,b\", allowed: the columns of product") != std::string::npos);
  CHECK(message_of(product_table("fast")) == "t.csv:2:36: us is \"fast\", allowed: a number in [1e-09, 1e+15]");
  auto half = product_table("100");
  half[1][5] = "8.5";
  CHECK(message_of(half) == "t.csv:2:34: m is \"8.5\", allowed: a whole number");
  // A ratio to it would be infinite.
  CHECK(message_of(product_table("5e-324")) == "t.csv:2:36: us is \"5e-324\", allowed: a number in [1e-09, 1e+15]");
  auto fields = product_table("100");
  fields[1][2] = "bfloat17";
  CHECK(message_of(fields).find("t.csv:2:15: dtype is \"bfloat17\", did you mean \"bfloat16\"? allowed: bfloat16, ") !=
        std::string::npos);
  fields = product_table("100");
  fields[1].pop_back();
  CHECK(message_of(fields) == "t.csv:2: 6 fields, allowed: 7 as in the header");
  // Headers that identify a table, and tables with no rows.
  const std::vector<std::string> header = product_table("100")[0];
  auto other = header;
  other.push_back(header[1]);
  CHECK(message_of({other}) == "t.csv:1: column \"" + header[1] + "\" twice, allowed: each once");
  CHECK(message_of({{"gpu;engine;dtype;n;k;m;us"}}) == "t.csv:1: fields with semicolons between, allowed: commas");
  other = header;
  other[0] = "GPU";
  CHECK(message_of({other}).find("in capitals, allowed: small letters") != std::string::npos);
  other = header;
  std::replace(other.begin(), other.end(), std::string("us"), std::string("ms"));
  CHECK(message_of({other}) == "t.csv:1: column ms, allowed: us, because times are in microseconds");
  CHECK(message_of({header}) == "t.csv:1: there is only a header, allowed: rows of measured kernels below it");
  fields = product_table("100");
  fields[1][0] = "h100-smx";
  CHECK(message_of(fields).find(
            "t.csv:2: no row is on a known GPU; the first is on \"h100-smx\", did you mean \"h100-sxm\"? allowed: ") !=
        std::string::npos);
  // A mistaken unit is detected in a single row.
  CHECK(message_of(product_table("0.05")).find("allowed: times in microseconds") != std::string::npos);
  CHECK(message_of(product_table("50000")).find("allowed: times in microseconds") != std::string::npos);
  CHECK(message_of({{"a", "b"}}).find("whole steps (gpu,engine,model,tp,ep,batch,mean_context,median_ms)") != std::string::npos);
}

TEST_CASE("some rows in another unit are reported with the first of them", "[cost][kernels]") {
  auto fields = product_table("60");
  for (const char* us : {"61", "0.06", "60"}) {
    fields.push_back(fields[1]);
    fields.back().back() = us;
  }
  const EstimatedKernels table = estimate_kernel_table("t.csv", fields);
  REQUIRE(table.warnings.size() == 1);
  CHECK(table.warnings.front().find("t.csv:4: the estimated time is ") == 0);
  CHECK(table.warnings.front().find("times the column us, and 1 of 4 rows are further off") != std::string::npos);
  fields.erase(fields.begin() + 3);
  CHECK(estimate_kernel_table("t.csv", fields).warnings.empty());
}

TEST_CASE("weights from memory come at the data sheet's bandwidth at most", "[cost][kernels]") {
  auto fields = product_table("10");  // 134 MB: 4 times the bandwidth of an H100, 5 times the estimate
  fields[0].push_back("set_over_l2");
  fields[1].push_back("9");
  CHECK(message_of(fields).find(
            "t.csv:1: by the median of column us, weights from memory are read at 4.01 times the GPU's bandwidth") == 0);
  fields[1].back() = "0.5";  // out of the cache
  CHECK_NOTHROW(estimate_kernel_table("t.csv", fields));
}

TEST_CASE("kernels that cannot exist are refused with their column", "[cost][kernels]") {
  auto fields = product_table("100");
  fields[1][3] = "1e12";
  CHECK(message_of(fields) == "t.csv:2:24: n is 1e+12, allowed: at most 1e+09");
  const std::vector<std::string> experts = {"gpu",  "engine",  "dtype", "kernel",  "hidden", "inter",
                                            "topk", "experts", "tp",    "routing", "tokens", "us"};
  const auto of_experts = [&](const char* topk, const char* tp) {
    return message_of({experts, {"h100-sxm", "vllm", "bfloat16", "", "4096", "14336", topk, "8", tp, "balanced", "8", "500"}});
  };
  CHECK(of_experts("9", "1") == "t.csv:2:36: topk is 9 of 8 experts, allowed: at most as many as experts");
  const auto routed = [&](const char* routing) {
    return message_of({experts, {"h100-sxm", "vllm", "bfloat16", "", "4096", "14336", "2", "8", "1", routing, "8", "500"}});
  };
  CHECK(routed("power_law_1.2").empty());
  for (const char* wrong : {"power_law_-1", "power_law_0", "power_law_11", "power_law_x", "even"})
    CHECK(routed(wrong).find("allowed: balanced, power_law_EXPONENT") != std::string::npos);
  CHECK(of_experts("2", "3") == "t.csv:2:40: tp is 3, allowed: a divisor of inter, 14336");
  // A gate by its column, or else by the layer; SGLang 0.5.10 had no experts without a gate.
  std::vector<std::string> gated = experts;
  gated.insert(gated.end(), {"version", "gated"});
  const auto priced = [&](const char* hidden, const char* inter, const char* version, const char* gate) {
    return estimate_kernel_table("t.csv", {gated,
                                           {"h100-sxm", "sglang", "bfloat16", "sglang_fused_moe_triton", hidden, inter, "6",
                                            "128", "1", "balanced", "8", "500", version, gate}})
        .rows[0]
        .priced_us;
  };
  CHECK(priced("2688", "1856", "0.5.14", "") == priced("2688", "1856", "0.5.14", "no"));
  CHECK(priced("2688", "1856", "0.5.14", "") < 0.8 * priced("2688", "1856", "0.5.14", "yes"));
  CHECK(priced("2688", "1856", "0.5.10", "") == priced("2688", "1856", "0.5.10", "yes"));
  CHECK(priced("2048", "768", "0.5.14", "") == priced("2048", "768", "0.5.14", "yes"));
  CHECK(
      message_of(
          {gated, {"h100-sxm", "sglang", "bfloat16", "", "2688", "1856", "6", "128", "1", "balanced", "8", "500", "", "perhaps"}})
          .ends_with(": gated is \"perhaps\", allowed: yes, no"));
  CHECK(message_of({{"gpu", "engine", "kernel", "heads", "kv_heads", "head_dim", "kv_dtype", "batch", "context", "us"},
                    {"h100-sxm", "vllm", "", "32", "5", "128", "bfloat16", "1", "1024", "10"}}) ==
        "t.csv:2:19: kv_heads is 5 of 32 heads, allowed: a divisor, because each serves equally many heads");
  CHECK(message_of({{"gpu", "engine", "kernel", "heads", "kv_heads", "head_dim", "kv_dtype", "batch", "context", "us"},
                    {"h100-sxm", "vllm", "", "32", "8", "128", "bfloat16", "1", "1e12", "10"}}) ==
        "t.csv:2:36: context is 1e+12, allowed: at most 1e+09");
  CHECK(message_of({{"gpu", "engine", "kernel", "gpus", "bytes", "us"}, {"h100-sxm", "vllm", "", "1", "1024", "10"}}) ==
        "t.csv:2:16: gpus is 1, allowed: two or more, because one GPU has nothing to add up");
}

}  // namespace specsim::cost_tables_test
