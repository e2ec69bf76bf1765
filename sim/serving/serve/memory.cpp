#include "sim/serving/serve/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace specsim::serve {

namespace {

constexpr double kMostBlocks = 4e9;
constexpr double kGib = 0x1.0p30;

// Blocks of a pool that fills `utilization` of the memory of `deployment`'s GPU together with the weights of the kept models.
std::uint32_t blocks_on(const cost::Deployment* deployment, cost::Kept kept, const config::Arguments& kv,
                        const cost::CostModel& cost, const ServerMemory& memory, std::optional<int> draft_length,
                        std::uint32_t block_tokens, Diagnostics& diagnostics) {
  const bool speculative = draft_length.has_value() && kept != cost::Kept::draft;
  // While a request runs, it holds a state of linear attention for each token that it may draft, and one more. Slots of drafts in
  // the paged cache are taken per step, by the scheduler.
  const bool keeps_states = deployment != nullptr && deployment->target && deployment->target->recurrent_bytes() > 0.0;
  const int states = keeps_states ? draft_length.value_or(0) : 0;
  const auto bytes = [&](double context) { return cost.memory_budget({1.0, context - states}, states, kept); };
  const auto none = cost.memory_budget({0.0, 0.0}, 0, kept);
  const auto many = bytes(1e6);
  if (!none || !many || deployment == nullptr || !deployment->target) {
    diagnostics.add(kv.where("utilization"),
                    "the cost model does not know the GPU's memory, allowed: blocks or tokens, or the cost model roofline");
    return 2;
  }
  double a_token = (many->needed_bytes() - none->needed_bytes()) * 1e-6;
  // If layers keep only a window, or a state, a token of a short context takes more memory than one of a long context: the pool
  // is estimated for this usual length.
  constexpr double kUsualContext = 4096.0;
  constexpr double kMoreThanRounding = 1.001;
  const double usual = (bytes(kUsualContext)->needed_bytes() - none->needed_bytes()) / kUsualContext;
  if (usual > kMoreThanRounding * a_token) a_token = usual;
  constexpr double kFlatGib = 2.0;
  const double activations = kv.has("reserved_gib") ? kv.number("reserved_gib") * kGib
                             : memory.profiled      ? cost::profiled_bytes(*deployment, *memory.profiled, speculative)
                             : memory.share == cost::MemoryShare::weights_and_cache ? 0.0
                                                                                    : kFlatGib * kGib;
  const double all = deployment->hardware.memory_bytes - cost::kDriverBytes;
  const std::string whose = none->device.empty() ? "" : none->device + ": ";
  const double used = none->needed_bytes() + activations + kv.number("graphs_gib") * kGib;
  const double left = memory.share == cost::MemoryShare::cache_of_rest ? (all - used) * kv.number("utilization")
                                                                       : all * kv.number("utilization") - used;
  const double blocks = std::floor(left / (a_token * static_cast<double>(block_tokens)));
  if (!(blocks >= 2.0)) {
    diagnostics.add(
        kv.where("utilization"),
        fmt::format("{}weights take {:.2f} GiB and activations {:.2f} GiB, which {}, allowed: room for two blocks: use more GPUs "
                    "(tensor_parallel), a larger utilization, weights of fewer bits, or fewer requests at once, because "
                    "activations are set aside for them",
                    whose, none->needed_bytes() / kGib, activations / kGib,
                    left < 0.0 ? fmt::format("is {:.2f} GiB more than available", -left / kGib)
                               : fmt::format("leaves {:.2f} GiB for the cache", left / kGib)));
    return 2;
  }
  return static_cast<std::uint32_t>(std::min(blocks, kMostBlocks));
}

// Blocks of the pool in memory. A draft on its own GPU has its cache there: the smaller of the two pools limits.
std::uint32_t blocks_in_memory(const config::Arguments& kv, const cost::CostModel& cost, const ServerMemory& memory,
                               std::optional<int> draft_length, std::uint32_t block_tokens, Diagnostics& diagnostics) {
  const cost::Deployment* const deployment = cost.deployment();
  const cost::Kept kept = draft_length ? cost::Kept::both : cost::Kept::target;
  const std::uint32_t blocks = blocks_on(deployment, kept, kv, cost, memory, draft_length, block_tokens, diagnostics);
  if (!draft_length || deployment == nullptr || !deployment->draft_place) return blocks;
  const cost::Deployment alone = cost::alone_on_draft_place(*deployment);
  return std::min(blocks, blocks_on(&alone, cost::Kept::draft, kv, cost, memory, draft_length, block_tokens, diagnostics));
}

std::uint32_t block_of(const config::Arguments& kv, const cost::CostModel* cost, const ServerMemory& memory, int draft_length) {
  const cost::Deployment* const deployment = cost != nullptr ? cost->deployment() : nullptr;
  if (!kv.given("block") && memory.saves_states && deployment != nullptr && deployment->target)
    if (const std::uint32_t tokens = cost::vllm_hybrid_block(*deployment->target, draft_length); tokens > 0) return tokens;
  return static_cast<std::uint32_t>(kv.integer("block"));
}

std::uint32_t count_blocks(const config::Arguments& kv, const cost::CostModel* cost, const ServerMemory& memory,
                           std::optional<int> draft_length, std::uint32_t block_tokens, Diagnostics& diagnostics) {
  const bool speculative = draft_length.has_value();
  if (!speculative && kv.has("plain_tokens"))
    return static_cast<std::uint32_t>(std::max<std::int64_t>(kv.integer("plain_tokens") / block_tokens, 2));
  std::vector<std::string> given;
  for (const char* name : {"blocks", "tokens", "utilization"})
    if (kv.has(name)) given.emplace_back(name);
  const auto in_tokens = [&](const char* name) {
    const std::int64_t blocks = kv.integer(name) / block_tokens;
    if (blocks < 2)
      diagnostics.add(kv.where(name), fmt::format("{} tokens are {} blocks, allowed: at least 2", kv.integer(name), blocks));
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(blocks, 2, static_cast<std::int64_t>(kMostBlocks)));
  };
  std::uint32_t blocks = kUnlimitedBlocks;
  if (given.size() > 1) {
    diagnostics.add(kv.where(given[1]),
                    fmt::format("{} is given together with {}, allowed: one of blocks, tokens, utilization", given[1], given[0]));
    return 2;
  }
  if (kv.has("draft_tokens") && kv.has("utilization")) {
    diagnostics.add(kv.where("draft_tokens"),
                    "draft_tokens is given together with utilization, which holds both caches, allowed: together with blocks "
                    "or tokens");
    return 2;
  }
  if (kv.has("blocks"))
    blocks = static_cast<std::uint32_t>(kv.integer("blocks"));
  else if (kv.has("utilization"))
    blocks = cost != nullptr ? blocks_in_memory(kv, *cost, memory, draft_length, block_tokens, diagnostics) : 2;
  else if (kv.has("tokens"))
    blocks = in_tokens("tokens");
  return speculative && kv.has("draft_tokens") ? std::min(blocks, in_tokens("draft_tokens")) : blocks;
}

struct HostOptions {
  double gib = 0.0;
  double gb_per_s = 0.0;
  double latency_us = 0.0;
  bool on_eviction = false;
  bool keeps_draft = true;
  std::optional<double> kv_bytes_per_token;
};

const config::Fields<HostOptions>& host_fields() {
  static const config::Fields<HostOptions> fields = {
      {"gib", &HostOptions::gib, "GiB of host memory for each GPU of an engine", config::above(0, 1e6), config::required},
      {"gb_per_s", &HostOptions::gb_per_s, "rate of the link from the host to each GPU", config::above(0, 1e6), config::required},
      {"latency_us", &HostOptions::latency_us, "its latency, once for each request that loads", config::between(0, 1e9)},
      {"write", &HostOptions::on_eviction,
       "through: blocks are copied to the host when they are computed, and take memory in both tiers; back: when the GPU evicts "
       "them",
       config::one_of<bool>({{"through", false}, {"back", true}})},
      {"draft", &HostOptions::keeps_draft,
       "kept: the draft's cache is kept with the target's; lost: a draft model computes loaded tokens again in its next pass",
       config::one_of<bool>({{"kept", true}, {"lost", false}})},
      {"kv_bytes_per_token", &HostOptions::kv_bytes_per_token,
       "bytes of a token's cache on each GPU, if the cost model does not have them", config::between(1, 1e9)},
  };
  return fields;
}

// The second tier of a pool. `speculative`: the pool holds a draft's cache too.
std::optional<HostCache::Setting> read_host(const config::Arguments& kv, const cost::CostModel* cost, bool speculative,
                                            const PoolSize& pool, Diagnostics& diagnostics) {
  if (!kv.has("host")) return std::nullopt;
  const std::size_t before = diagnostics.list().size();
  const config::Arguments arguments = config::read_arguments(kv.value("host"), host_fields(), {}, "serve.kv.host", diagnostics);
  if (diagnostics.list().size() != before) return std::nullopt;
  if (pool.blocks == kUnlimitedBlocks)
    diagnostics.add(kv.where("host"),
                    "host is set and the cache on the GPU is unlimited, which evicts nothing, allowed: with blocks, "
                    "tokens or utilization");
  const HostOptions options = host_fields().read(arguments);
  double bytes = options.kv_bytes_per_token.value_or(0.0);
  if (bytes == 0.0 && cost != nullptr) {
    const cost::Kept kept = speculative && options.keeps_draft ? cost::Kept::both : cost::Kept::target;
    const auto none = cost->memory_budget({1.0, 0.0}, 0, kept);
    const auto many = cost->memory_budget({1.0, 1e6}, 0, kept);
    if (none && many) bytes = (many->needed_bytes() - none->needed_bytes()) * 1e-6;
  }
  if (bytes == 0.0) {
    diagnostics.add(kv.where("host"),
                    "the cost model does not have the size of a token's cache, allowed: kv_bytes_per_token, or the "
                    "cost model roofline");
    return std::nullopt;
  }
  HostCache::Setting host;
  host.block_bytes = bytes * pool.block_tokens;
  host.blocks = static_cast<std::size_t>(options.gib * kGib / host.block_bytes);
  host.bytes_per_second = 1e9 * options.gb_per_s;
  host.latency = std::llround(1e-6 * arrivals::kPicosecondsPerSecond * options.latency_us);
  host.on_eviction = options.on_eviction;
  host.keeps_draft = options.keeps_draft;
  if (host.blocks == 0)
    diagnostics.add(arguments.where("gib"),
                    fmt::format("{:g} GiB hold no block of {:.4g} bytes, allowed: at least one", options.gib, host.block_bytes));
  return host;
}

}  // namespace

const std::vector<config::Parameter>& host_parameters() { return host_fields().parameters(); }

const std::vector<config::Parameter>& kv_parameters() {
  using config::elsewhere, config::Value;
  static const config::Fields<PoolSize> fields = {
      {"block", elsewhere<std::int64_t>,
       "tokens per block; if omitted, vllm_v1 with prefix_caching computes it for a target that has layers with a state",
       config::between(1, 65536), config::Default{"16"}},
      {"blocks", elsewhere<std::int64_t>, "blocks of the pool, one of which no sequence gets", config::between(2, kMostBlocks)},
      {"tokens", elsewhere<std::int64_t>, "the pool in tokens, as servers log it", config::between(2, 1e13)},
      {"draft_tokens", elsewhere<std::int64_t>,
       "tokens of the draft's own pool, if its cache is not in the target's blocks: the smaller of the two pools limits",
       config::between(2, 1e13)},
      {"plain_tokens", elsewhere<std::int64_t>, "the pool of the server without speculation, when no draft takes memory",
       config::between(2, 1e13)},
      {"utilization", elsewhere<double>,
       "share of the GPU's memory, if the cost model knows it: for weights, activations and cache (gpu_memory_utilization); for "
       "weights and cache (sglang's mem_fraction_static); for the cache, of what weights and activations leave (trtllm's "
       "free_gpu_memory_fraction)",
       config::between(0.05, 1)},
      {"reserved_gib", elsewhere<double>,
       "GiB for activations besides the cache; default: vllm_v1 and trtllm compute what their profile runs measure, sglang "
       "reserves nothing in its share, other schedulers take 2",
       config::between(0, 1e4)},
      {"graphs_gib", elsewhere<double>,
       "GiB of that share that CUDA graphs take: vLLM up to version 0.20 captures them outside it; from 0.21 on it logs an "
       "estimate that it subtracts",
       config::between(0, 1e4), config::Default{"0"}},
      {"host", elsewhere<Value>, "a second tier of the prefix cache in host memory; if omitted, evicted blocks are lost"}};
  return fields;
}

PoolSize read_pool(const config::Arguments& kv, const cost::CostModel* cost, const ServerMemory& memory,
                   std::optional<int> draft_length, Diagnostics& diagnostics) {
  const std::uint32_t block_tokens = block_of(kv, cost, memory, draft_length.value_or(0));
  PoolSize pool{count_blocks(kv, cost, memory, draft_length, block_tokens, diagnostics), block_tokens, std::nullopt};
  pool.host = read_host(kv, cost, draft_length.has_value(), pool, diagnostics);
  return pool;
}

}  // namespace specsim::serve
