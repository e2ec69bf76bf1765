// The second tier of the prefix cache in host memory: hits counted by hand, times by bytes and link, conservation.
#include "tests/serve/servers.h"
#include "tests/support/temporary_file.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace specsim::host_cache_test {

namespace {

constexpr std::uint32_t kBlock = 16;
constexpr std::uint32_t kBytes = 1000;  // per token
constexpr std::int64_t kMs = 1'000'000'000;
constexpr const char* kVllm = "kind: vllm_v1, prefix_caching: true, async: false";
constexpr const char* kSglang = "kind: sglang, radix_cache: true";
constexpr const char* kDraftModel =
    "  speculation: {policy: {kind: fixed, draft_length: 3}, acceptance: {alpha: 0}, method: draft_model}\n";

// So many GiB that the tier holds this many blocks.
std::string host(double blocks, const std::string& more = "") {
  return fmt::format("{{gib: {:.17g}, gb_per_s: 0.01, latency_us: 500, kv_bytes_per_token: {}{}}}",
                     (blocks + 0.5) * kBlock * kBytes / 0x1.0p30, kBytes, more);
}
// The link's time for this many blocks: 1 GB/s per 100 bytes/us.
std::int64_t load_time(std::uint32_t blocks) { return 500'000'000 + std::int64_t{blocks} * kBlock * kBytes * 100'000; }

// A step of the cost model below takes 1 ms, and .01 ms per token that is computed.
std::int64_t step_time(std::uint32_t tokens) { return kMs + std::int64_t{tokens} * kMs / 100; }

load::ServeExperiment traced(const tests::TemporaryFile& trace, const std::string& scheduler, const std::string& host_tier,
                             const std::string& speculation = "") {
  return tests::server(fmt::format(R"(serve:
  scheduler: {{{}}}
  kv: {{block: {}, blocks: 14{}}}
  arrivals: {{process: trace, file: "{}"}}
{}cost: {{model: affine, target_fixed_ms: 1, target_ms_per_token: 0.01, draft_fixed_ms: 0.5, draft_ms_per_token: 0.01}}
)",
                                   scheduler, kBlock, host_tier.empty() ? "" : ", host: " + host_tier, trace.path(),
                                   speculation));
}

// Texts A and B of ten blocks, one after the other, in a pool of 13 usable blocks. A request needs 11, so that B leaves the first
// two blocks of A.
constexpr const char* kTwoTexts =
    "arrived_us,prompt,output,block_hashes\n0,160,8,0-9\n1000000,160,8,100-109\n2000000,160,8,0-9\n";
constexpr std::uint32_t kOnGpu = 2;
constexpr std::uint32_t kInHost = 7;  // the tenth block has the last token, which is always computed

std::vector<std::uint32_t> found(const load::ServeResult& served) {
  std::vector<std::uint32_t> list;
  for (const serve::Sequence& one : served.result.sequences) list.push_back(one.found);
  return list;
}
std::vector<std::uint32_t> found_in_host(const load::ServeResult& served) {
  std::vector<std::uint32_t> list;
  for (const serve::Sequence& one : served.result.sequences) list.push_back(one.found_in_host);
  return list;
}

// Each token of an admitted prompt was found or computed in a step, and each that was found in host memory was loaded.
void check_conservation(const load::ServeResult& served) {
  const serve::ServerTotals& totals = served.result.totals.front();
  const std::uint64_t prompts = totals.rows - totals.rounds - totals.draft_rows;
  const double admitted = served.summary.prefix_lookup_tokens - served.summary.prefix_hit_tokens;
  // A request that is preempted before its prompt is computed computes fewer tokens than it was admitted with.
  CHECK((served.summary.preemptions > 0.0 ? static_cast<double>(prompts) <= admitted : static_cast<double>(prompts) == admitted));
  CHECK(served.summary.host_loaded_bytes == served.summary.host_hit_tokens * kBytes);
  CHECK(totals.host.busy >= static_cast<std::int64_t>(served.summary.host_loaded_bytes) * 100'000);
  for (const serve::Sequence& one : served.result.sequences) {
    std::int64_t life = 0;
    for (const std::int64_t spent : one.spent) life += spent;
    CHECK(life == one.last_token - one.sent);
  }
}

}  // namespace

TEST_CASE("blocks that the GPU evicted are found in host memory", "[serve]") {
  const tests::TemporaryFile trace(kTwoTexts);
  for (const char* const scheduler : {kVllm, "kind: vllm_v1, prefix_caching: true", kSglang})
    for (const char* const write : {"through", "back"}) {
      const load::ServeResult none = tests::run_server(traced(trace, scheduler, ""));
      CHECK(found(none) == std::vector<std::uint32_t>{0, 0, kOnGpu * kBlock});
      CHECK(none.summary.host_stored_bytes == 0.0);
      const load::ServeResult served = tests::run_server(traced(trace, scheduler, host(100, fmt::format(", write: {}", write))));
      CHECK(found(served) == std::vector<std::uint32_t>{0, 0, (kOnGpu + kInHost) * kBlock});
      CHECK(found_in_host(served) == std::vector<std::uint32_t>{0, 0, kInHost * kBlock});
      check_conservation(served);
    }
}

TEST_CASE("a tier that is written through holds what the GPU holds too", "[serve]") {
  // Ten blocks of host memory: B takes the places of all of A when it is computed, but only eight blocks of A were evicted.
  // Mutant: either policy as the other.
  const tests::TemporaryFile trace(kTwoTexts);
  for (const char* const scheduler : {kVllm, kSglang}) {
    CHECK(found_in_host(tests::run_server(traced(trace, scheduler, host(10)))) == std::vector<std::uint32_t>{0, 0, 0});
    const load::ServeResult back = tests::run_server(traced(trace, scheduler, host(10, ", write: back")));
    CHECK(found_in_host(back) == std::vector<std::uint32_t>{0, 0, kInHost * kBlock});
  }
}

TEST_CASE("a full tier drops the ends of texts first, the text that was used last at last", "[serve]") {
  // 15 blocks hold all of B and the first five of A. Mutant: the first blocks are dropped first, and nothing is found.
  const tests::TemporaryFile trace(kTwoTexts);
  const load::ServeResult served = tests::run_server(traced(trace, kVllm, host(15)));
  CHECK(found_in_host(served) == std::vector<std::uint32_t>{0, 0, 3 * kBlock});
}

TEST_CASE("vLLM computes the rest of a prompt after its blocks are loaded", "[serve]") {
  const tests::TemporaryFile trace(kTwoTexts);
  const load::ServeResult served = tests::run_server(traced(trace, kVllm, host(100)));
  const serve::Sequence& last = served.result.sequences.back();
  // Mutants: the latency or the bytes left out; a load that takes no time; loaded tokens that are computed too.
  CHECK(last.first_token - last.sent == load_time(kInHost) + step_time(160 - (kOnGpu + kInHost) * kBlock));
  CHECK(last.spent[static_cast<std::size_t>(serve::Cause::transfer)] == load_time(kInHost));
  CHECK(served.result.totals.front().host.busy == load_time(kInHost));
}

TEST_CASE("SGLang loads while the batch computes", "[serve]") {
  const tests::TemporaryFile trace(kTwoTexts);
  const auto waited = [&](const std::string& tier) {
    const serve::Sequence last = tests::run_server(traced(trace, kSglang, tier)).result.sequences.back();
    return last.first_token - last.sent;
  };
  CHECK(waited(host(100)) == load_time(kInHost));
  const std::string fast = fmt::format("{{gib: 1, gb_per_s: 1000, kv_bytes_per_token: {}}}", kBytes);
  CHECK(waited(fast) == step_time(160 - (kOnGpu + kInHost) * kBlock));
}

TEST_CASE("requests that need the same blocks load them once, one transfer at a time", "[serve]") {
  // In a pool of 39 usable blocks a third text pushes out parts of A and B; then A comes twice at once, and B. Under vLLM the
  // second A waits for the first one's blocks, and B goes before it. Mutant: both load.
  const tests::TemporaryFile trace(
      "arrived_us,prompt,output,block_hashes\n0,160,8,0-9\n1000000,160,8,100-109\n2000000,400,8,200-224\n"
      "3000000,160,8,0-9\n3000000,160,8,0-9\n3000000,160,8,100-109\n");
  for (const char* const scheduler : {kVllm, kSglang}) {
    load::ServeExperiment experiment = traced(trace, scheduler, host(100));
    experiment.pool.blocks = 40;
    const load::ServeResult served = tests::run_server(experiment);
    const std::vector<serve::Sequence>& sequences = served.result.sequences;
    CHECK(sequences[3].found == 9 * kBlock);
    CHECK(sequences[4].found == 9 * kBlock);
    CHECK(sequences[4].found_in_host == 0);
    check_conservation(served);
    const std::uint32_t both = sequences[3].found_in_host / kBlock + sequences[5].found_in_host / kBlock;
    CHECK(both > 0);
    CHECK(served.result.totals.front().host.loaded == both);
    if (scheduler == kVllm)
      CHECK(sequences[5].spent[static_cast<std::size_t>(serve::Cause::transfer)] >=
            load_time(sequences[3].found_in_host / kBlock) + load_time(sequences[5].found_in_host / kBlock));
  }
}

TEST_CASE("a draft model that lost its cache computes loaded tokens again", "[serve]") {
  const tests::TemporaryFile trace(kTwoTexts);
  const load::ServeResult kept = tests::run_server(traced(trace, kVllm, host(100), kDraftModel));
  const load::ServeResult lost = tests::run_server(traced(trace, kVllm, host(100, ", draft: lost"), kDraftModel));
  CHECK(kept.summary.draft_recomputed_tokens == 0.0);
  CHECK(kept.summary.host_hit_tokens > 0.0);
  CHECK(lost.summary.draft_recomputed_tokens == kept.summary.host_hit_tokens);
  CHECK(found(lost) == found(kept));
  // .01 ms per token in the draft's pass. Mutant: the whole prompt again.
  const auto first = [](const load::ServeResult& served) { return served.result.sequences.back().first_token; };
  CHECK(first(lost) - first(kept) == static_cast<std::int64_t>(lost.summary.host_hit_tokens) * kMs / 100);
}

TEST_CASE("with enough host memory conversations hit as in an unlimited cache", "[serve]") {
  const auto hits = [](const std::string& scheduler, const std::string& kv) {
    return found(tests::run_server(tests::server(fmt::format(R"(serve:
  scheduler: {{{}}}
  kv: {{block: {}{}}}
  arrivals: {{process: sessions, rate: 0.1, requests: 60, turns: 4, gap_s: 100, prefix: 75, prompt: 41, output: 23, closed: true}}
  speculation: {{policy: {{kind: fixed, draft_length: 3}}, acceptance: {{alpha: 0}}}}
cost: {{model: affine, target_fixed_ms: 1, draft_fixed_ms: 0.5}}
)",
                                                             scheduler, kBlock, kv))));
  };
  for (const char* const scheduler : {kVllm, "kind: vllm_v1, prefix_caching: true", kSglang}) {
    const std::vector<std::uint32_t> unlimited = hits(scheduler, "");
    for (const char* const write : {"through", "back"})
      CHECK(hits(scheduler, fmt::format(", blocks: 26, host: {}", host(1e6, fmt::format(", write: {}", write)))) == unlimited);
    CHECK(hits(scheduler, ", blocks: 26") != unlimited);
  }
}

TEST_CASE("a crowded server with host memory conserves tokens and time", "[serve]") {
  for (const char* const scheduler : {kVllm, "kind: vllm_v1, prefix_caching: true", kSglang})
    for (const auto& [on_gpu, blocks] : {std::pair{60, 100.0}, {60, 1e6}, {300, 1e6}}) {
      const load::ServeResult served =
          tests::run_server(tests::server(fmt::format(R"(serve:
  scheduler: {{{}}}
  kv: {{block: {}, blocks: {}, host: {}}}
  arrivals: {{process: sessions, rate: 8, requests: 400, turns: 4, gap_s: 0.5, prefix: 75, prompt: 41, output: 23, closed: true}}
{}cost: {{model: affine, target_fixed_ms: 6, target_ms_per_token: 0.02, draft_fixed_ms: 1, draft_ms_per_token: 0.004}}
)",
                                                      scheduler, kBlock, on_gpu, host(blocks, ", draft: lost"), kDraftModel)));
      CHECK(served.summary.completed == 400);
      CHECK((served.summary.preemptions == 0.0) == (on_gpu == 300));
      CHECK(served.summary.host_hit_tokens > 0.0);
      check_conservation(served);
    }
}

TEST_CASE("host memory needs a cache that evicts and a scheduler that loads", "[serve]") {
  const tests::TemporaryFile trace(kTwoTexts);
  const auto refused = [&](const std::string& kv, const std::string& scheduler, const std::string& speculation) {
    return fmt::format(
        "serve:\n  scheduler: {{{}}}\n  kv: {{{}}}\n  arrivals: {{process: trace, file: \"{}\"}}\n{}"
        "cost: {{model: affine, target_fixed_ms: 1, draft_fixed_ms: 1}}\n",
        scheduler, kv, trace.path(), speculation);
  };
  const std::string tier = fmt::format("host: {}", host(100));
  CHECK_THROWS_WITH(tests::server(refused(tier, kVllm, "")),
                    Catch::Contains("test:3:14: host is set and the cache on the GPU is unlimited"));
  CHECK_THROWS_WITH(tests::server(refused("blocks: 40, " + tier, "kind: vllm_v1", "")),
                    Catch::Contains("the scheduler loads nothing from it, allowed: vllm_v1 with prefix_caching, or sglang"));
  CHECK_THROWS_WITH(tests::server(refused("blocks: 40, host: {gib: 1, gb_per_s: 10}", kVllm, "")),
                    Catch::Contains("does not have the size of a token's cache, allowed: kv_bytes_per_token"));
  CHECK_THROWS_WITH(tests::server(refused("blocks: 40, host: {gib: 1}", kVllm, "")), Catch::Contains("gb_per_s"));
  CHECK_THROWS_WITH(tests::server(refused("blocks: 40, host: {gib: 1e-6, gb_per_s: 10, kv_bytes_per_token: 1000}", kVllm, "")),
                    Catch::Contains("hold no block of 1.6e+04 bytes"));
  const std::string head = "  speculation: {policy: {kind: fixed, draft_length: 3}, acceptance: {alpha: 0}}\n";
  CHECK_THROWS_WITH(tests::server(refused(fmt::format("blocks: 40, host: {}", host(100, ", draft: lost")), kVllm, head)),
                    Catch::Contains("draft is lost and a head drafts"));
}

}  // namespace specsim::host_cache_test
