// The blocks that each sequence holds, if blocks of equal prefixes are computed once.
#pragma once

#include "sim/serving/serve/scheduler.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace specsim::serve {

class CachedBlocks {
 public:
  // The hash of a sequence's text up to the end of its block number `block`: equal for equal text.
  [[nodiscard]] static std::uint64_t hash_of(arrivals::RequestId request, std::uint32_t block, const EngineState& state);
  // The longest cached prefix of a sequence, of at most this many tokens, in whole blocks.
  void find(arrivals::RequestId request, std::uint32_t tokens, const EngineState& state,
            std::vector<BlockPool::Block>& hits) const;
  // Contents in host memory that continue a cached prefix of `first` blocks, in whole blocks of at most `tokens` in all.
  static void find_in_host(arrivals::RequestId request, std::uint32_t first, std::uint32_t tokens, const EngineState& state,
                           std::vector<std::uint64_t>& hashes);
  // The part of cached blocks at whose end a state is saved: for a target with layers of linear attention.
  static void cut_to_state(arrivals::RequestId request, const EngineState& state, std::vector<BlockPool::Block>& hits);
  // How many of these are among the free blocks.
  [[nodiscard]] static std::uint32_t among_free(const std::vector<BlockPool::Block>& hits, const BlockPool& pool);
  // A sequence begins with these blocks, which the prefix cache already contains.
  void begin(arrivals::RequestId request, const std::vector<BlockPool::Block>& hits, EngineState& state);
  // Gives the request this many more blocks for content of its own.
  void extend(arrivals::RequestId request, std::uint32_t count, EngineState& state);
  // Adds the whole blocks of the request's first `tokens` to the prefix cache, so that other requests find them.
  void name(arrivals::RequestId request, std::uint32_t tokens, EngineState& state);
  // Frees the request's blocks, the last one first; their content is found until they are reused.
  void release(arrivals::RequestId request, EngineState& state);

 private:
  struct Own {
    std::vector<BlockPool::Block> blocks;
    std::uint32_t named = 0;  // how many of these are in the prefix cache
  };
  // The request's first blocks are the last ones that host memory drops, the very first one last.
  static void touch_in_host(arrivals::RequestId request, std::uint32_t blocks, EngineState& state);
  std::unordered_map<arrivals::RequestId, Own> of_;
};

}  // namespace specsim::serve
