// The pool beside weights and activations, held against what servers of vLLM 0.13 to 0.19 logged at their start.
#include "sim/serve/memory.h"
#include "tests/serve/servers.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace specsim;
using namespace specsim::tests;

namespace {

struct Logged {
  const char* what;
  const char* hardware;
  const char* target;
  const char* draft;
  int rows;      // max_num_batched_tokens
  int requests;  // max_num_seqs
  double tokens;
};

// Of Qwen3-32B's H100 the requests are `vllm serve`'s default for the GPU, as the memory shows: 256 would leave a sixth more. The
// checkpoint of its EAGLE-3 head brings embeddings of its own.
constexpr const char* kQwenHead = "{preset: eagle3-qwen3-32b, shares_embeddings: false, embedding_vocab: 151936}";
const std::vector<Logged> kLogged = {
    {"Qwen3-32B", "h100-sxm-94gb", "qwen3-32b", "none", 8192, 1024, 69232},
    {"with EAGLE-3", "h100-sxm-94gb", "qwen3-32b", kQwenHead, 8192, 1024, 47264},
    {"with Qwen3-1.7B", "h100-sxm-94gb", "qwen3-32b", "qwen3-1.7b", 8192, 1024, 32528},
    {"Llama-3.3-70B", "h100-pcie", "{preset: llama-3.1-70b, tensor_parallel: 2}", "none", 8192, 256, 26432},
    {"with Llama-3.2-1B", "h100-pcie", "{preset: llama-3.1-70b, tensor_parallel: 2}",
     "{preset: llama-3.2-1b, tensor_parallel: 2}", 8192, 256, 14864},
    {"Llama-3.1-8B", "rtx-4090", "llama-3.1-8b", "none", 2048, 256, 41408}};

std::string server_of(const Logged& one, const std::string& kv = "utilization: 0.9", int draft_length = 3) {
  const bool drafts = std::string(one.draft) != "none";
  return fmt::format(
      "serve:\n  scheduler: {{kind: vllm_v1, max_num_batched_tokens: {}, max_num_seqs: {}}}\n  kv: {{{}}}\n"
      "  arrivals: {{process: poisson, rate: 1, requests: 1}}\n  lengths: {{prompt: 10, output: 10}}\n{}"
      "cost: {{model: roofline, hardware: {}, target: {}, draft: \"{}\"}}\n",
      one.rows, one.requests, kv,
      drafts ? fmt::format("  speculation: {{policy: {{kind: fixed, draft_length: {}}}, acceptance: {{alpha: 0.5}}{}}}\n",
                           draft_length, std::string(one.draft).find("eagle") == std::string::npos ? ", method: draft_model" : "")
             : "",
      one.hardware, one.target, one.draft);
}

std::string unquoted(std::string text) {
  std::erase(text, '"');
  return text;
}

double pool(const Logged& one, const std::string& kv = "utilization: 0.9", int draft_length = 3) {
  return 16.0 * server(unquoted(server_of(one, kv, draft_length))).blocks;
}

}  // namespace

TEST_CASE("pools that servers logged", "[serve][memory]") {
  for (const Logged& one : kLogged) {
    const double own = pool(one);
    INFO(one.what << ": " << own << " of " << one.tokens << ", " << 100.0 * (own / one.tokens - 1.0) << " %");
    CHECK(std::abs(own / one.tokens - 1.0) < 0.07);
  }
}

TEST_CASE("the profile run measures one draft a request, whatever the draft length is", "[serve][memory]") {
  const Logged& head = kLogged[1];
  CHECK(pool(head, "utilization: 0.9", 1) == pool(head, "utilization: 0.9", 6));
}

TEST_CASE("what the profile run measures, by hand", "[serve][memory]") {
  const auto bytes = [](const Logged& one, double rows, double requests, bool speculative) {
    return serve::profiled_bytes(*server(unquoted(server_of(one))).cost->deployment(), {rows, requests}, speculative);
  };
  const Logged& plain = kLogged[0];
  const double outside = 0.1 * 0x1.0p30;
  // 256 rows of logits while they are sorted, beside the hidden states of 512 rows.
  CHECK(bytes(plain, 512, 256, false) == Approx(512 * 5120 * 2.0 + 256 * 151936 * 4.0 * 9.5 + outside));
  CHECK(bytes(plain, 512, 256, true) == Approx(512 * 5120 * 2.0 + 256 * 151936 * 4.0 * 12.5 + outside));
  // No more rows are sampled than the step has.
  CHECK(bytes(plain, 128, 256, false) == Approx(128 * 5120 * 2.0 + 128 * 151936 * 4.0 * 9.5 + outside));
  // Of few requests the layers take more: gate, up, their product, the layer's input and the residual.
  CHECK(bytes(plain, 16384, 8, false) == Approx(16384 * 2.0 * (3 * 25600 + 2 * 5120) + outside));
  // Four GPUs hold a quarter of each.
  CHECK(bytes({"", "h100-sxm", "{preset: qwen3-32b, tensor_parallel: 4}", "none", 8192, 8, 0}, 16384, 8, false) ==
        Approx(16384 * 2.0 * (3 * 6400 + 2 * 5120) + outside));
}

TEST_CASE("what stands in kv comes before what is computed", "[serve][memory]") {
  const Logged& one = kLogged[5];
  const double token = 32 * 2 * 8 * 128 * 2.0;
  const double computed = pool(one);
  // A flat reserve in its place, and CUDA graphs beside it.
  CHECK(std::abs(pool(one, "utilization: 0.9, graphs_gib: 1") - (computed - 0x1.0p30 / token)) <= 16.0);
  CHECK(std::abs(pool(one, "utilization: 0.9, reserved_gib: 3") -
                 (pool(one, "utilization: 0.9, reserved_gib: 2") - 0x1.0p30 / token)) <= 16.0);
  // A pool of the draft's own: the smaller one binds, and the plain server has none.
  const auto own = server(unquoted(server_of(kLogged[2], "tokens: 1600, draft_tokens: 800")));
  CHECK(own.blocks == 50);
  CHECK(own.plain_blocks == 100);
  CHECK(server(unquoted(server_of(kLogged[2], "tokens: 800, draft_tokens: 1600"))).blocks == 50);
}
