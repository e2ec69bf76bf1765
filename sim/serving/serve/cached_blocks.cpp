#include "sim/serving/serve/cached_blocks.h"

#include <algorithm>

namespace specsim::serve {

namespace {

constexpr std::uint64_t kOwn = std::uint64_t{1} << 63;  // content that no other request has

}  // namespace

std::uint64_t CachedBlocks::hash_of(arrivals::RequestId request, std::uint32_t block, const EngineState& state) {
  const arrivals::Request& asked = state.workload->requests[request];
  const std::uint32_t per_hash = state.workload->hash_tokens / state.pool->block_tokens();
  const std::uint32_t end = (block + 1) * state.pool->block_tokens();
  if (per_hash == 0 || end > std::max(asked.prompt, asked.hashed) || block / per_hash >= asked.hashes)
    return kOwn | std::uint64_t{request} << 24 | block;
  return (state.workload->hashes[asked.first_hash + block / per_hash] * per_hash + block % per_hash) & ~kOwn;
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
  }
}

void CachedBlocks::release(arrivals::RequestId request, EngineState& state) {
  const auto at = of_.find(request);
  if (at == of_.end()) return;
  state.pool->release(at->second.blocks);
  of_.erase(at);
}

}  // namespace specsim::serve
