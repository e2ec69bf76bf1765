// Which blocks each sequence holds, where blocks of equal prefixes are computed once.
#pragma once

#include "sim/serving/serve/scheduler.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace specsim::serve {

class CachedBlocks {
 public:
  // What stands for a sequence's text up to the end of its block number `block`: equal for equal text.
  [[nodiscard]] static std::uint64_t hash_of(arrivals::RequestId request, std::uint32_t block, const EngineState& state);
  // The longest cached prefix of a sequence, of at most so many tokens, whole blocks alone.
  void find(arrivals::RequestId request, std::uint32_t tokens, const EngineState& state,
            std::vector<BlockPool::Block>& hits) const;
  // How many of these lie among the free blocks.
  [[nodiscard]] static std::uint32_t among_free(const std::vector<BlockPool::Block>& hits, const BlockPool& pool);
  // A sequence begins with these blocks, which are found by others already.
  void begin(arrivals::RequestId request, const std::vector<BlockPool::Block>& hits, EngineState& state);
  // The request gets so many more blocks, of content of its own.
  void extend(arrivals::RequestId request, std::uint32_t count, EngineState& state);
  // The whole blocks of the request's first `tokens` are found by other requests from now on.
  void name(arrivals::RequestId request, std::uint32_t tokens, EngineState& state);
  // Frees the request's blocks, the last one first; what they hold is found until they are taken.
  void release(arrivals::RequestId request, EngineState& state);

 private:
  struct Own {
    std::vector<BlockPool::Block> blocks;
    std::uint32_t named = 0;  // how many of these are found by others
  };
  std::unordered_map<arrivals::RequestId, Own> of_;
};

}  // namespace specsim::serve
