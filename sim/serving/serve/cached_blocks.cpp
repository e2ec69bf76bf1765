#include "sim/serving/serve/cached_blocks.h"

#include <algorithm>

namespace specsim::serve {

namespace {

constexpr std::uint64_t kOwn = std::uint64_t{1} << 63;  // content that no other request has

}  // namespace

std::uint64_t CachedBlocks::hash_of(arrivals::RequestId request, std::uint32_t block, const EngineState& state) {
  const arrivals::Request& asked = state.workload->requests[request];
  // A block is known by the first hash that covers its end. Of several blocks in one hash each has its own number.
  const std::uint32_t hash_tokens = state.workload->hash_tokens;
  const std::uint32_t per_hash = (hash_tokens + state.pool->block_tokens() - 1) / state.pool->block_tokens();
  const std::uint32_t end = (block + 1) * state.pool->block_tokens();
  const std::uint32_t covering = (end - 1) / hash_tokens;
  if (end > std::max(asked.prompt, asked.hashed) || covering >= asked.hashes) return kOwn | std::uint64_t{request} << 24 | block;
  return (state.workload->hashes[asked.first_hash + covering] * per_hash + block % per_hash) & ~kOwn;
}

void CachedBlocks::find(arrivals::RequestId request, std::uint32_t tokens, const EngineState& state,
                        std::vector<BlockPool::Block>& hits) const {
  hits.clear();
  const std::uint32_t most = tokens / state.pool->block_tokens();
  for (std::uint32_t block = 0; block < most; ++block) {
    const BlockPool::Block* const found = state.pool->find(hash_of(request, block, state));
    if (found == nullptr) break;
    hits.push_back(*found);
  }
}

void CachedBlocks::find_in_host(arrivals::RequestId request, std::uint32_t first, std::uint32_t tokens, const EngineState& state,
                                std::vector<std::uint64_t>& hashes) {
  hashes.clear();
  const HostCache* const host = state.pool->host();
  if (host == nullptr) return;
  for (std::uint32_t block = first; block < tokens / state.pool->block_tokens(); ++block) {
    const std::uint64_t hash = hash_of(request, block, state);
    if (!host->holds(hash)) break;
    hashes.push_back(hash);
  }
}

void CachedBlocks::touch_in_host(arrivals::RequestId request, std::uint32_t blocks, EngineState& state) {
  if (state.pool->host() == nullptr) return;
  while (blocks-- > 0) state.pool->host()->touch(hash_of(request, blocks, state));
}

void CachedBlocks::cut_to_state(arrivals::RequestId request, const EngineState& state, std::vector<BlockPool::Block>& hits) {
  while (!hits.empty() && !state.pool->has_state(hash_of(request, static_cast<std::uint32_t>(hits.size()) - 1, state)))
    hits.pop_back();
}

std::uint32_t CachedBlocks::among_free(const std::vector<BlockPool::Block>& hits, const BlockPool& pool) {
  return static_cast<std::uint32_t>(
      std::count_if(hits.begin(), hits.end(), [&](BlockPool::Block block) { return pool.is_free(block); }));
}

void CachedBlocks::begin(arrivals::RequestId request, const std::vector<BlockPool::Block>& hits, EngineState& state) {
  Own& own = of_[request];
  for (const BlockPool::Block block : hits) {
    state.pool->use(block);
    own.blocks.push_back(block);
  }
  own.named = static_cast<std::uint32_t>(hits.size());
  touch_in_host(request, state.workload->requests[request].prompt / state.pool->block_tokens(), state);
}

void CachedBlocks::extend(arrivals::RequestId request, std::uint32_t count, EngineState& state) {
  Own& own = of_[request];
  for (std::uint32_t i = 0; i < count; ++i) own.blocks.push_back(state.pool->take_one());
}

void CachedBlocks::name(arrivals::RequestId request, std::uint32_t tokens, EngineState& state) {
  Own& own = of_[request];
  for (; own.named < tokens / state.pool->block_tokens(); ++own.named) {
    const std::uint64_t hash = hash_of(request, own.named, state);
    // Without a limit no request is preempted and returns to its own content, and nothing else would ever free these blocks.
    if ((hash & kOwn) != 0 && state.pool->unlimited()) continue;
    state.pool->name(own.blocks[own.named], hash);
    // Layers with a state save it where a step ends with a block, and while they decode.
    const std::uint32_t end = (own.named + 1) * state.pool->block_tokens();
    if (state.saves_states && (end == tokens || end > state.at(request).prefill_target))
      state.pool->save_state(own.blocks[own.named]);
  }
}

void CachedBlocks::release(arrivals::RequestId request, EngineState& state) {
  const auto at = of_.find(request);
  if (at == of_.end()) return;
  touch_in_host(request, at->second.named, state);
  state.pool->release(at->second.blocks);
  of_.erase(at);
}

}  // namespace specsim::serve
