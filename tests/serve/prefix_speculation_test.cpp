// Hits in a prefix cache with speculation and without: each engine's rule, counted by hand, and hits that users measured.
#include "tests/serve/servers.h"
#include "tests/support/temporary_file.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace specsim::prefix_speculation_test {

namespace {

// Nothing is accepted, so that the last token of every answer is never computed.
constexpr const char* kHead = "  speculation: {policy: {kind: fixed, draft_length: 3}, acceptance: {alpha: 0}}\n";
constexpr const char* kAffine = "cost: {model: affine, target_fixed_ms: 1, draft_fixed_ms: 0.5, draft_ms_per_token: 0.01}\n";

std::vector<std::uint32_t> found(const load::ServeResult& served) {
  std::vector<std::uint32_t> list;
  for (const serve::Sequence& one : served.result.sequences) list.push_back(one.found);
  return list;
}

// Conservation: each token of an admitted prompt was found or computed in a step.
void check_rows(const load::ServeResult& served) {
  const serve::ServerTotals& totals = served.result.totals.front();
  const std::uint64_t prompts = totals.rows - totals.rounds - totals.draft_rows;
  CHECK(static_cast<double>(prompts) == served.summary.prefix_lookup_tokens - served.summary.prefix_hit_tokens);
}

// ---- conversations whose turns never overlap ----

constexpr std::uint32_t kPrefix = 75;
constexpr std::uint32_t kFresh = 41;
constexpr std::uint32_t kAnswer = 23;
constexpr std::uint32_t kTurns = 4;

std::string conversations(const std::string& scheduler, const std::string& kv, const std::string& speculation) {
  return fmt::format(R"(serve:
  scheduler: {{{}}}
  kv: {{{}}}
  arrivals: {{process: sessions, rate: 0.0002, requests: 40, turns: {}, gap_s: 1, prefix: {}, prompt: {}, output: {}, closed: true}}
{}{})",
                     scheduler, kv, kTurns, kPrefix, kFresh, kAnswer, speculation, kAffine);
}

// Tokens that a request shares with what the server computed before it: a turn with the turn before, whose last token was never
// computed; a session's first turn with the common prefix.
struct Shared {
  std::uint32_t prompt = 0;
  std::uint32_t tokens = 0;
  bool earlier_turn = false;
};
std::vector<Shared> shared_tokens(const load::ServeResult& served) {
  std::vector<Shared> list;
  for (const serve::Sequence& one : served.result.sequences) {
    const bool first = one.prompt == kPrefix + kFresh;
    list.push_back({one.prompt, !first ? one.prompt - kFresh - 1 : list.empty() ? 0 : kPrefix, !first});
  }
  return list;
}

std::uint32_t whole(std::uint32_t tokens, std::uint32_t block) { return tokens / block * block; }

void check_conversations(const std::string& scheduler, std::uint32_t block, const char* speculation,
                         const std::function<std::uint32_t(const Shared&)>& expected) {
  const load::ServeResult served =
      tests::run_server(tests::server(conversations(scheduler, fmt::format("block: {}, tokens: 1000000", block), speculation)));
  std::vector<std::uint32_t> wanted;
  for (const Shared& one : shared_tokens(served)) wanted.push_back(expected(one));
  CHECK(found(served) == wanted);
  check_rows(served);
}

}  // namespace

TEST_CASE("vLLM computes the last block of a hit again if a head drafts", "[serve]") {
  for (const char* const scheduler : {"kind: vllm_v1, prefix_caching: true", "kind: vllm_v1, prefix_caching: true, async: false"})
    for (const std::uint32_t block : {16U, 32U}) {
      check_conversations(scheduler, block, "", [&](const Shared& one) { return whole(one.tokens, block); });
      check_conversations(scheduler, block, kHead, [&](const Shared& one) {
        const std::uint32_t hit = whole(one.tokens, block);
        return hit - std::min(hit, block);
      });
    }
  // A separate draft model has a cache of its own in the same blocks, and n-grams have none.
  for (const char* const method : {"draft_model", "ngram"}) {
    const std::string other = fmt::format(
        "  speculation: {{policy: {{kind: fixed, draft_length: 3}}, acceptance: {{alpha: 0}}, method: {}}}\n", method);
    check_conversations("kind: vllm_v1, prefix_caching: true", 16, other.c_str(),
                        [&](const Shared& one) { return whole(one.tokens, 16); });
  }
}

TEST_CASE("SGLang's keys are pairs of tokens if a head drafts", "[serve]") {
  for (const char* const order : {"fcfs", "lpm"})
    for (const std::uint32_t block : {1U, 16U}) {
      const std::string scheduler = fmt::format("kind: sglang, radix_cache: true, schedule_policy: {}", order);
      // Shared tokens are known in blocks of 16.
      const auto hashed = [](const Shared& one) { return whole(one.earlier_turn ? one.tokens + 1 : one.tokens, 16); };
      check_conversations(scheduler, block, "",
                          [&](const Shared& one) { return whole(std::min(one.tokens, hashed(one)), block); });
      check_conversations(scheduler, block, kHead, [&](const Shared& one) {
        if (one.tokens == 0) return 0U;
        return whole(std::min(one.earlier_turn ? one.tokens - 1 : one.tokens, hashed(one)), block);
      });
    }
}

TEST_CASE("TensorRT-LLM finds whole blocks, with a head or without", "[serve]") {
  for (const char* const scheduler :
       {"kind: trtllm, block_reuse: true", "kind: trtllm, block_reuse: true, capacity: max_utilization",
        "kind: trtllm, block_reuse: true, max_num_tokens: 64"})
    for (const std::uint32_t block : {16U, 32U})
      for (const char* const speculation : {"", kHead})
        check_conversations(scheduler, block, speculation, [&](const Shared& one) { return whole(one.tokens, block); });
}

TEST_CASE("TensorRT-LLM keeps a request waiting while its first new block is computed", "[serve]") {
  // 0 computes 160 tokens, in 3 steps of 64. 1 and 2 begin with the same 160 and wait for it; 3 shares nothing and does not.
  // Then 1 finds all but its last block, as 2 does, whose next block 1 computes: it waits again and finds 1's first 32 tokens
  // more.
  const tests::TemporaryFile trace(
      "arrived_us,prompt,output,block_hashes\n0,160,4,0-9\n0,192,4,0-11\n0,224,4,0-13\n0,32,4,100-101\n");
  const auto run = [&](const char* more) {
    return tests::run_server(tests::server(fmt::format(R"(serve:
  scheduler: {{kind: trtllm, max_num_tokens: 64{}}}
  kv: {{block: 16, tokens: 4096}}
  arrivals: {{process: trace, file: "{}"}}
{})",
                                                       more, trace.path(), kAffine)));
  };
  const load::ServeResult served = run(", block_reuse: true");
  // Mutant: nobody waits, and 1 and 2 find nothing. Mutant: blocks join the cache when a step ends, and 1 begins earlier.
  CHECK(found(served) == std::vector<std::uint32_t>{0, 144, 176, 0});
  check_rows(served);
  const auto& all = served.result.sequences;
  CHECK(all[3].first_scheduled < all[0].first_token);
  CHECK(all[1].first_scheduled >= all[0].first_token);
  CHECK(all[2].first_scheduled >= all[1].first_token);
  CHECK(found(run("")) == std::vector<std::uint32_t>{0, 0, 0, 0});
}

TEST_CASE("llama.cpp's slot keeps its text and the draft's", "[serve]") {
  const auto run = [](bool keeps) {
    return tests::run_server(tests::server(
        conversations(fmt::format("kind: llama_cpp, slots: 1, context: 2048, cache_prompt: {}", keeps), "block: 16", kHead)));
  };
  const load::ServeResult kept = run(true);
  std::vector<std::uint32_t> wanted;
  // Hashes show whole blocks of 16 tokens; the answer's last token was never computed.
  for (const Shared& one : shared_tokens(kept))
    wanted.push_back(one.earlier_turn ? std::min(whole(one.tokens + 1, 16), one.tokens) : whole(one.tokens, 16));
  CHECK(found(kept) == wanted);
  check_rows(kept);
  // The draft reads what it has not seen: so many rows fewer, each .01 ms. Mutant: a draft that computes the whole prompt again.
  const load::ServeResult lost = run(false);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto drafting = static_cast<std::size_t>(serve::Cause::draft);
    const std::int64_t fewer = lost.result.sequences[i].spent[drafting] - kept.result.sequences[i].spent[drafting];
    CHECK(fewer == std::int64_t{wanted[i]} * 10'000'000);
  }
  CHECK(std::accumulate(wanted.begin(), wanted.end(), 0U) > 0);
}

TEST_CASE("llama.cpp takes the free slot with the longest common text, else the one that was free for longest", "[serve]") {
  // 0 and 1 take the slots; 2 continues 0; 3 takes the slot of 1, which ended before 2; so 4 finds nothing and takes the slot of
  // 2, which ended before 3, and 5 finds nothing either. 6 shares 160 of 1,616 tokens with 5: a tenth or less is not looked for,
  // but the slot of 4, free for longest, has none of it.
  const tests::TemporaryFile trace(
      "arrived_us,prompt,output,block_hashes\n0,160,8,0-9\n1000000,160,8,100-109\n2000000,320,8,0-9 20-29\n"
      "3000000,160,8,200-209\n4000000,320,8,100-109 120-129\n5000000,320,8,0-9 20-29\n6000000,1616,8,0-9 300-390\n");
  const load::ServeResult served = tests::run_server(tests::server(fmt::format(R"(serve:
  scheduler: {{kind: llama_cpp, slots: 2, context: 2048, cache_prompt: true}}
  arrivals: {{process: trace, file: "{}"}}
{})",
                                                                               trace.path(), kAffine)));
  CHECK(found(served) == std::vector<std::uint32_t>{0, 0, 160, 0, 0, 0, 0});
}

// ---- targets that have layers with a state ----

namespace {

std::string hybrid(const std::string& target, const std::string& arrivals, int draft_length, const std::string& more = "") {
  const std::string speculation =
      draft_length == 0
          ? ""
          : fmt::format("  speculation: {{policy: {{kind: fixed, draft_length: {}}}, acceptance: {{alpha: 0}}}}\n", draft_length);
  return fmt::format(R"(serve:
  scheduler: {{kind: vllm_v1, prefix_caching: true, max_num_batched_tokens: 8192{}}}
  arrivals: {{{}}}
{}cost: {{model: roofline, hardware: h200-sxm, target: {{{}, kv_bits: 8}}, draft: {}}}
)",
                     more, arrivals, speculation, target, target.substr(8, target.find(',') - 8) + "-mtp");
}

constexpr const char* kDense = "preset: qwen3.6-27b, tensor_parallel: 2";
constexpr const char* kExperts = "preset: qwen3.6-35b-a3b, tensor_parallel: 1";
constexpr const char* kSessions =
    "process: sessions, rate: 0.0002, requests: 5, turns: 1, prefix: 5000, prompt: 6000, output: 8, closed: true";

}  // namespace

TEST_CASE("blocks that hold a state have the size that servers logged", "[serve]") {
  // vLLM issue 53670: Qwen3.8-27B on two GPUs, cache in FP8, 7 drafts. Issue 54360: Qwen3.6-35B-A3B, cache in FP8, 3 drafts.
  CHECK(tests::server(hybrid(kDense, kSessions, 7)).pool.block_tokens == 1648);
  CHECK(tests::server(hybrid(kExperts, kSessions, 3)).pool.block_tokens == 2144);
  // Mutant: the window of the convolution without the drafts.
  CHECK(tests::server(hybrid(kDense, kSessions, 7)).plain_pool.block_tokens == 1568);
  CHECK(tests::server(hybrid(kDense, kSessions, 0)).pool.block_tokens == 1568);
}

TEST_CASE("hits of repeated prompts are those that a user measured", "[serve]") {
  // vLLM issue 54360, comment of 5 September 2026: version 0.28.0, Qwen3.6-35B-A3B with three drafts of its MTP module.
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> measured = {
      {3784, 0}, {7542, 4288}, {11292, 8576}, {15019, 12864}, {18770, 15008}};
  std::string rows = "arrived_us,prompt,output,block_hashes\n";
  std::vector<std::uint32_t> with;
  std::vector<std::uint32_t> without;
  std::uint64_t at = 0;
  for (const auto& [prompt, hit] : measured) {
    const std::size_t first = 10000 * with.size();
    for (int times = 0; times < 2; ++times, at += 100'000'000)
      rows += fmt::format("{},{},4,{}-{}\n", at, prompt, first, first + prompt / 16 - 1);
    with.insert(with.end(), {0, hit});
    without.insert(without.end(), {0, (prompt - 1) / 2096 * 2096});
  }
  const tests::TemporaryFile trace(rows);
  const std::string arrivals = fmt::format("process: trace, file: \"{}\"", trace.path());
  const load::ServeResult drafting = tests::run_server(tests::server(hybrid(kExperts, arrivals, 3)));
  CHECK(found(drafting) == with);
  check_rows(drafting);
  CHECK(found(tests::run_server(tests::server(hybrid(kExperts, arrivals, 0)))) == without);
}

TEST_CASE("a common prefix is found from the third session on if states decide", "[serve]") {
  // Five sessions begin with 5,000 tokens and go on with 6,000 of their own. The second finds its keys and values, but no state
  // there; its step ends where they end, so that the others find a state. Mutants: a state at every block; none before the
  // prompt's last block.
  const std::uint32_t drafting = (5000 / 1648 - 1) * 1648;
  CHECK(found(tests::run_server(tests::server(hybrid(kDense, kSessions, 7)))) ==
        std::vector<std::uint32_t>{0, 0, drafting, drafting, drafting});
  const std::uint32_t plain = 5000 / 1568 * 1568;
  CHECK(found(tests::run_server(tests::server(hybrid(kDense, kSessions, 0)))) ==
        std::vector<std::uint32_t>{0, 0, plain, plain, plain});
}

TEST_CASE("states are saved while a request decodes", "[serve]") {
  // A prompt of 1,000 tokens and an answer of 2,000 pass the end of a block of 1,568; the next turn finds it. It saves a state at
  // 3,136, the last block of its prompt, and at 4,704 while it decodes. With a head, a block of 1,648 is computed again: the
  // second turn finds nothing. Its step ends one block earlier, at 1,648, so that the third finds no state at 3,296.
  const char* const turns =
      "process: sessions, rate: 0.0002, requests: 3, turns: 3, gap_s: 100, prompt: 1000, output: 2000, closed: true";
  CHECK(found(tests::run_server(tests::server(hybrid(kDense, turns, 0)))) == std::vector<std::uint32_t>{0, 1568, 4704});
  CHECK(found(tests::run_server(tests::server(hybrid(kDense, turns, 7)))) == std::vector<std::uint32_t>{0, 0, 1648});
}

TEST_CASE("vLLM does not start if a step cannot hold such a block", "[serve]") {
  const std::string small = hybrid(kDense, kSessions, 7, ", max_num_seqs: 64");
  std::string yaml = small;
  yaml.replace(yaml.find("8192"), 4, "1024");
  CHECK_THROWS_WITH(tests::server(yaml),
                    Catch::Contains("a block has 1648 tokens") && Catch::Contains("max_num_batched_tokens, 1024"));
}

}  // namespace specsim::prefix_speculation_test
