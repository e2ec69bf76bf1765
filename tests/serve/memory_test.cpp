// The KV pool left by weights and activations, compared with the startup logs of vLLM 0.13 to 0.19.
#include "sim/serving/serve/memory.h"
#include "sim/foundation/config/choose.h"
#include "tests/serve/servers.h"

#include <catch2/catch.hpp>

#include <cmath>

namespace specsim::memory_test {

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

// The requests for Qwen3-32B's H100 are `vllm serve`'s default for the GPU, as its memory shows: 256 would leave a sixth more.
// The checkpoint of its EAGLE-3 head has its own embeddings.
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
  const std::string draft = one.draft;
  const bool drafts = draft != "none";
  const bool stands_alone = draft.find("eagle") == std::string::npos && draft.find("mtp") == std::string::npos;
  return fmt::format(
      "serve:\n  scheduler: {{kind: vllm_v1, max_num_batched_tokens: {}, max_num_seqs: {}}}\n  kv: {{{}}}\n"
      "  arrivals: {{process: poisson, rate: 1, requests: 1}}\n  lengths: {{prompt: 10, output: 10}}\n{}"
      "cost: {{model: roofline, hardware: {}, target: {}, draft: \"{}\"}}\n",
      one.rows, one.requests, kv,
      drafts ? fmt::format("  speculation: {{policy: {{kind: fixed, draft_length: {}}}, acceptance: {{alpha: 0.5}}{}}}\n",
                           draft_length, stands_alone ? ", method: draft_model" : "")
             : "",
      one.hardware, one.target, one.draft);
}

std::string unquoted(std::string text) {
  std::erase(text, '"');
  return text;
}

double pool(const Logged& one, const std::string& kv = "utilization: 0.9", int draft_length = 3) {
  return 16.0 * server(unquoted(server_of(one, kv, draft_length))).pool.blocks;
}

}  // namespace

TEST_CASE("pools that servers logged", "[serve][memory]") {
  for (const Logged& one : kLogged) {
    const double own = pool(one);
    INFO(one.what << ": " << own << " of " << one.tokens << ", " << 100.0 * (own / one.tokens - 1.0) << " %");
    CHECK(std::abs(own / one.tokens - 1.0) < 0.07);
  }
}

TEST_CASE("the profile run measures one draft per request, whatever the draft length is", "[serve][memory]") {
  const Logged& head = kLogged[1];
  CHECK(pool(head, "utilization: 0.9", 1) == pool(head, "utilization: 0.9", 6));
}

TEST_CASE("the activations of the profile run, by hand", "[serve][memory]") {
  const auto bytes = [](const Logged& one, double rows, double requests, bool speculative) {
    return cost::profiled_bytes(*server(unquoted(server_of(one))).cost->deployment(), {rows, requests}, speculative);
  };
  const Logged& plain = kLogged[0];
  const double outside = 0.1 * 0x1.0p30;
  // 256 rows of logits while they are sorted, in addition to the hidden states of 512 rows.
  CHECK(bytes(plain, 512, 256, false) == Approx(512 * 5120 * 2.0 + 256 * 151936 * 4.0 * 9.5 + outside));
  CHECK(bytes(plain, 512, 256, true) == Approx(512 * 5120 * 2.0 + 256 * 151936 * 4.0 * 12.5 + outside));
  // At most the rows of the step are sampled.
  CHECK(bytes(plain, 128, 256, false) == Approx(128 * 5120 * 2.0 + 128 * 151936 * 4.0 * 9.5 + outside));
  // With few requests the layers take more: gate, up, their product, the layer's input and the residual.
  CHECK(bytes(plain, 16384, 8, false) == Approx(16384 * 2.0 * (3 * 25600 + 2 * 5120) + outside));
  // Four GPUs hold a quarter of each.
  CHECK(bytes({"", "h100-sxm", "{preset: qwen3-32b, tensor_parallel: 4}", "none", 8192, 8, 0}, 16384, 8, false) ==
        Approx(16384 * 2.0 * (3 * 6400 + 2 * 5120) + outside));
}

TEST_CASE("SGLang's share of the memory is for weights and cache, TensorRT-LLM's only for the cache", "[serve][memory]") {
  const auto tokens = [](const char* scheduler, const char* kv) {
    return 16.0 * server(fmt::format("serve:\n  scheduler: {{{}}}\n  kv: {{{}}}\n  arrivals: {{process: poisson, rate: 1}}\n"
                                     "  lengths: {{prompt: 10, output: 10}}\n"
                                     "cost: {{model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: none}}\n",
                                     scheduler, kv))
                      .pool.blocks;
  };
  const double gib = 0x1.0p30;
  const double token = 32 * 2 * 8 * 128 * 2.0;
  const cost::Deployment deployment =
      *server(unquoted(server_of({"", "h100-sxm", "llama-3.1-8b", "none", 8192, 256, 0}))).cost->deployment();
  const double all = deployment.hardware.memory_bytes - 0.5 * gib;
  const double weights = 14.96 * gib;  // bytes of weights in the model's file
  const double activations = cost::profiled_bytes(deployment, {8192, 0}, false);
  CHECK(tokens("kind: sglang", "utilization: 0.83") == Approx((0.83 * all - weights) / token).epsilon(1e-3));
  CHECK(tokens("kind: trtllm, max_num_tokens: 8192", "utilization: 0.9") ==
        Approx(0.9 * (all - weights - activations) / token).epsilon(1e-3));
  CHECK(activations == Approx(8192 * 2.0 * (3 * 14336 + 2 * 4096) + 0.1 * gib));
  // A given value replaces the part outside the cache.
  CHECK(tokens("kind: sglang", "utilization: 0.83, reserved_gib: 1") ==
        Approx((0.83 * all - weights - gib) / token).epsilon(1e-3));
}

TEST_CASE("a request keeps a state of linear attention for each token that it may draft", "[serve][memory]") {
  const Logged hybrid = {"Qwen3.6-27B", "h200-sxm", "qwen3.6-27b", "qwen3.6-27b-mtp", 8192, 256, 0};
  const std::string kv = "utilization: 0.9, reserved_gib: 0";
  const auto experiment = server(unquoted(server_of(hybrid, kv)));
  const cost::ModelShape& target = *experiment.cost->deployment()->target;
  const double state = target.recurrent_bytes();
  CHECK(state > 48 * 48 * 128 * 128 * 4.0);         // layers, heads, and a head's own dimension
  const double cache = 4096.0 * 2 * 4 * 256 * 2.0;  // a usual context in another layer: 4 heads of keys and of values
  const double without = 16.0 * experiment.plain_pool.blocks * (16 * cache + state);
  for (const int drafts : {1, 3, 7}) {
    // The module's layer has keys, too. Mutant: one state, however long the drafts are.
    const double held = pool(hybrid, kv, drafts) * (17 * cache + (1.0 + drafts) * state);
    CHECK(held > 0.98 * without);  // the module's weights
    CHECK(held < without);
  }
}

TEST_CASE("SGLang's default reserve, by hand", "[serve][memory]") {
  // Half a GiB, 1.5 MiB per token of a chunk, an eighth of a GiB per GPU, 2 MiB per request of the largest graph, 8 MiB per size
  // of a prompt's graphs (58 up to 8,192 tokens, 50 up to 4,096, 42 up to 2,048), at least 10 GiB from 60 GiB on.
  const auto share = [](const char* name, const char* scheduler, int gpus) {
    Diagnostics diagnostics;
    const cost::Hardware hardware = cost::read_hardware(config::scalar(name, {}), diagnostics);
    config::Value own = config::parse_text(scheduler, "test", diagnostics);
    for (const auto& [key, value] : serve::schedulers().find("sglang")->defaults(hardware))
      if (own.find(key) == nullptr) own.fields.push_back({key, {}, config::scalar(std::to_string(value), {})});
    const auto chosen = config::choose(serve::schedulers(), own, "kind", "test", diagnostics);
    diagnostics.throw_if_any();
    return std::pair(chosen.entry->read(chosen.arguments, diagnostics)()->usual_share(hardware, gpus),
                     hardware.memory_bytes / 0x1.0p20);
  };
  const auto [h100, h100_mib] = share("h100-sxm", "{kind: sglang}", 1);
  CHECK(h100 == Approx(1 - (512 + 1.5 * 8192 + 128 + 2 * 256 + 8 * 58) / h100_mib).margin(5.1e-4));
  const auto [two, two_mib] = share("h100-sxm", "{kind: sglang, chunked_prefill_size: 2048}", 4);
  CHECK(two == Approx(1 - 10240 / two_mib).margin(5.1e-4));
  const auto [small, small_mib] = share("rtx-4090", "{kind: sglang}", 1);
  CHECK(small == Approx(1 - (512 + 1.5 * 4096 + 128 + 2 * 48 + 8 * 50) / small_mib).margin(5.1e-4));
  const auto [chunk, chunk_mib] = share("rtx-4090", "{kind: sglang, chunked_prefill_size: 2048}", 1);
  CHECK(chunk == Approx(1 - (512 + 1.5 * 2048 + 128 + 2 * 48 + 8 * 42) / chunk_mib).margin(5.1e-4));
}

TEST_CASE("keys in kv override the calculated values", "[serve][memory]") {
  const Logged& one = kLogged[5];
  const double token = 32 * 2 * 8 * 128 * 2.0;
  const double computed = pool(one);
  // A flat reserve in its place, plus CUDA graphs.
  CHECK(std::abs(pool(one, "utilization: 0.9, graphs_gib: 1") - (computed - 0x1.0p30 / token)) <= 16.0);
  CHECK(std::abs(pool(one, "utilization: 0.9, reserved_gib: 3") -
                 (pool(one, "utilization: 0.9, reserved_gib: 2") - 0x1.0p30 / token)) <= 16.0);
  // A separate pool of the draft: the smaller one binds, and a server without speculation has none.
  const auto own = server(unquoted(server_of(kLogged[2], "tokens: 1600, draft_tokens: 800")));
  CHECK(own.pool.blocks == 50);
  CHECK(own.plain_pool.blocks == 100);
  CHECK(server(unquoted(server_of(kLogged[2], "tokens: 800, draft_tokens: 1600"))).pool.blocks == 50);
}

}  // namespace specsim::memory_test
