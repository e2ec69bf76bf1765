// The paged cache: a pool of blocks of tokens. With prefix caching each block has its content's hash.
//
// As vLLM's V1 block pool: one block, the null block, is never handed out; a freed block keeps its content until it is handed out
// again; free blocks are taken in the order in which they were freed, a sequence's last block freed first.
#pragma once

#include "sim/serving/arrivals/request_trace.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace specsim::serve {

// Host memory as a second tier of the prefix cache: contents of blocks, and the link on which they come back to the GPU.
//
// Copies to the host take no time here: they use the link's other direction while the GPU computes.

class HostCache {
 public:
  struct Setting {
    std::size_t blocks = 0;
    double block_bytes = 0.0;       // of each GPU's part of a block
    double bytes_per_second = 0.0;  // of the link of each GPU
    arrivals::Picoseconds latency = 0;
    // Blocks are copied when the GPU evicts them. Otherwise as soon as they are computed, so that they are in both tiers.
    bool on_eviction = false;
    bool keeps_draft = true;  // a draft's cache is kept along with the target's
  };
  struct Totals {
    std::uint64_t stored = 0;  // blocks
    std::uint64_t loaded = 0;
    arrivals::Picoseconds busy = 0;  // time that the link loads
  };

  explicit HostCache(const Setting& setting) : setting_(setting) {}
  [[nodiscard]] const Setting& setting() const { return setting_; }
  [[nodiscard]] const Totals& totals() const { return totals_; }
  [[nodiscard]] bool holds(std::uint64_t hash) const { return places_.contains(hash); }
  // The content becomes the last one to be dropped; if it is new, the first one to be dropped goes when the tier is full.
  void store(std::uint64_t hash);
  // The same for a content that may be here.
  void touch(std::uint64_t hash);
  // Loads these contents in one transfer, after those before it. Returns when they are on the GPU.
  arrivals::Picoseconds load(std::span<const std::uint64_t> hashes, arrivals::Picoseconds now);
  // When the last transfer of a content that the tier holds ends; 0 if there was none.
  [[nodiscard]] arrivals::Picoseconds arrives(std::uint64_t hash) const { return places_.at(hash).arrives; }

 private:
  struct Place {
    std::list<std::uint64_t>::iterator at;
    arrivals::Picoseconds arrives = 0;
  };
  Setting setting_;
  Totals totals_;
  std::list<std::uint64_t> order_;  // the next one to be dropped comes first
  std::unordered_map<std::uint64_t, Place> places_;
  arrivals::Picoseconds link_free_ = 0;
};

constexpr std::uint32_t kUnlimitedBlocks = std::numeric_limits<std::uint32_t>::max();

// A set of hashes that may report members that it does not have, but never misses one.
class HashSketch {
 public:
  void clear() { bits_.assign(kBits / 64, 0); }
  void add(std::uint64_t hash) {
    if (bits_.empty()) clear();
    bits_[place(hash) / 64] |= std::uint64_t{1} << place(hash) % 64;
  }
  [[nodiscard]] bool may_hold(std::uint64_t hash) const {
    return !bits_.empty() && (bits_[place(hash) / 64] >> place(hash) % 64 & 1U) != 0;
  }

 private:
  static constexpr std::uint64_t kBits = std::uint64_t{1} << 20U;
  static std::uint64_t place(std::uint64_t hash) { return hash * 0x9e3779b97f4a7c15U >> 44U; }
  std::vector<std::uint64_t> bits_;
};

class BlockPool {
 public:
  using Block = std::uint32_t;
  // `blocks`: total, including the null block; kUnlimitedBlocks: no limit, and no content is ever forgotten.
  // `host`: a second tier for the contents of blocks, with prefix caching and a limit.
  BlockPool(std::uint32_t blocks, std::uint32_t block_tokens, bool prefix_caching,
            const std::optional<HostCache::Setting>& host = std::nullopt);

  [[nodiscard]] std::uint32_t block_tokens() const { return block_tokens_; }
  // Blocks that this many tokens need; the last one may be partly filled.
  [[nodiscard]] std::uint32_t blocks_for(std::uint64_t tokens) const {
    return static_cast<std::uint32_t>(shift_ >= 0 ? (tokens + block_tokens_ - 1) >> shift_
                                                  : (tokens + block_tokens_ - 1) / block_tokens_);
  }
  [[nodiscard]] bool caches() const { return caches_; }
  [[nodiscard]] bool unlimited() const { return blocks_ == kUnlimitedBlocks; }
  [[nodiscard]] std::uint32_t usable() const { return unlimited() ? blocks_ : blocks_ - 1; }
  [[nodiscard]] std::uint32_t free() const { return free_; }

  // Without prefix caching blocks are counted and have no numbers.
  void take(std::uint32_t count) { free_ -= unlimited() ? 0 : count; }
  void give_back(std::uint32_t count) { free_ += unlimited() ? 0 : count; }

  // ---- with prefix caching ----
  // The block that holds this content, or nothing.
  [[nodiscard]] const Block* find(std::uint64_t hash) const;
  // No sequence uses it: it is among the free blocks, and using it takes one of them.
  [[nodiscard]] bool is_free(Block block) const { return all_[block].users == 0; }
  // Counts one more sequence that uses a block found in the prefix cache.
  void use(Block block);
  // A block for new content. The pool must have a free one.
  Block take_one();
  // Gives the block a hash under which it is found from now on.
  void name(Block block, std::uint64_t hash);
  // With states of linear attention: the state at the block's end is saved with it, until the block is handed out again.
  void save_state(Block block) {
    all_[block].has_state = true;
    changes(all_[block].hash);
  }
  [[nodiscard]] bool has_state(std::uint64_t hash) const;
  // A sequence gives up its blocks, the last one first; those that no other sequence uses are free from now on.
  void release(const std::vector<Block>& blocks);
  // The second tier, or nullptr.
  [[nodiscard]] HostCache* host() { return host_ ? &*host_ : nullptr; }
  [[nodiscard]] const HostCache* host() const { return host_ ? &*host_ : nullptr; }
  // A caller adds the contents that it asks for repeatedly to watched(), and reads and clears changed(): those for which find()
  // may return something else now, and possibly some that are not watched.
  [[nodiscard]] HashSketch& watched() { return watched_; }
  [[nodiscard]] std::vector<std::uint64_t>& changed() { return changed_; }

 private:
  void changes(std::uint64_t hash) {
    if (watched_.may_hold(hash)) changed_.push_back(hash);
  }
  struct Entry {
    std::uint64_t hash = 0;
    Block before = 0;  // the free block before this one in the order of taking, and the one after it
    Block after = 0;
    Block next_same = 0;  // another block with the same hash, whose content was computed twice; the null block: none
    std::uint32_t users = 0;
    bool named = false;
    bool has_state = false;
  };
  void append_free(Block block);
  void remove_free(Block block);
  void forget(Block block);

  std::uint32_t blocks_;
  std::uint32_t block_tokens_;
  int shift_ = -1;  // block_tokens is 2^shift
  bool caches_;
  std::uint32_t free_;
  // [block]: those that were ever handed out. All others are free, and a limited pool takes them first. The free ones among the
  // former form a ring, in the order of taking, closed by the null block; with unlimited blocks it holds only blocks without a
  // hash.
  std::vector<Entry> all_;
  std::unordered_map<std::uint64_t, Block> by_hash_;
  std::optional<HostCache> host_;
  HashSketch watched_;
  std::vector<std::uint64_t> changed_;
};

}  // namespace specsim::serve
