#include "sim/serving/serve/block_pool.h"
#include "sim/foundation/rng/address.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <list>
#include <map>
#include <vector>

namespace specsim::block_pool_test {

using specsim::serve::BlockPool;

namespace {

// The same rules in the simplest form: a list of free blocks in the order in which they were freed, and a search for hashes.
class PlainPool {
 public:
  explicit PlainPool(std::uint32_t blocks) {
    for (std::uint32_t block = 1; block < blocks; ++block) free_.push_back(block);
  }
  [[nodiscard]] std::size_t free() const { return free_.size(); }
  [[nodiscard]] std::uint32_t find(std::uint64_t hash) const {
    const auto at = by_hash_.find(hash);
    return at == by_hash_.end() || at->second.empty() ? 0 : at->second.front();
  }
  void use(std::uint32_t block) {
    if (users_[block]++ == 0) free_.remove(block);
  }
  std::uint32_t take_one() {
    const std::uint32_t block = free_.front();
    free_.pop_front();
    for (auto& [hash, blocks] : by_hash_) std::erase(blocks, block);
    users_[block] = 1;
    return block;
  }
  void name(std::uint32_t block, std::uint64_t hash) { by_hash_[hash].push_back(block); }
  void release(const std::vector<std::uint32_t>& blocks) {
    for (auto at = blocks.rbegin(); at != blocks.rend(); ++at)
      if (--users_[*at] == 0) free_.push_back(*at);
  }

 private:
  std::list<std::uint32_t> free_;
  std::map<std::uint32_t, int> users_;
  std::map<std::uint64_t, std::vector<std::uint32_t>> by_hash_;
};

}  // namespace

TEST_CASE("a pool with prefixes behaves like a plain list of free blocks", "[block_pool]") {
  constexpr std::uint32_t kBlocks = 24;
  BlockPool pool(kBlocks, 16, true);
  PlainPool plain(kBlocks);
  specsim::rng::Stream random_bits({1, 2}, specsim::rng::Purpose::start, 0, 0);
  std::vector<std::vector<BlockPool::Block>> held;
  int found = 0;
  int evicted = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    REQUIRE(pool.free() == plain.free());
    const std::uint64_t draw = random_bits();
    if ((draw % 3 == 0 || held.size() > 8) && !held.empty()) {
      const std::size_t at = (draw >> 8) % held.size();
      pool.release(held[at]);
      plain.release(held[at]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    // A sequence of up to four blocks of few contents: cached blocks are used again, others are allocated.
    std::vector<BlockPool::Block> blocks;
    for (std::uint64_t i = 0; i < 1 + (draw >> 4) % 4; ++i) {
      const std::uint64_t hash = (draw >> (16 + 4 * i)) % 40;
      const BlockPool::Block* const known = pool.find(hash);
      REQUIRE((known != nullptr ? *known : 0) == plain.find(hash));
      if (known != nullptr && std::find(blocks.begin(), blocks.end(), *known) == blocks.end()) {
        const BlockPool::Block block = *known;
        pool.use(block);
        plain.use(block);
        blocks.push_back(block);
        ++found;
      } else if (pool.free() > 0) {
        blocks.push_back(pool.take_one());
        REQUIRE(blocks.back() == plain.take_one());
        REQUIRE(blocks.back() != 0);  // the null block
        if ((draw >> 40) % 4 != 0) {
          pool.name(blocks.back(), hash);
          plain.name(blocks.back(), hash);
        }
        ++evicted;
      }
    }
    if (!blocks.empty()) held.push_back(std::move(blocks));
  }
  CHECK(found > 1000);
  CHECK(evicted > 1000);
}

TEST_CASE("blocks are counted up to the last token", "[block_pool]") {
  const BlockPool sixteen(100, 16, false);
  CHECK(sixteen.usable() == 99);
  CHECK(sixteen.blocks_for(0) == 0);
  CHECK(sixteen.blocks_for(16) == 1);
  CHECK(sixteen.blocks_for(17) == 2);
  const BlockPool odd(100, 24, false);
  CHECK(odd.blocks_for(48) == 2);
  CHECK(odd.blocks_for(49) == 3);
  BlockPool endless(specsim::serve::kUnlimitedBlocks, 16, false);
  endless.take(1000);
  CHECK(endless.free() == specsim::serve::kUnlimitedBlocks);
  CHECK_FALSE(endless.caches());
}

TEST_CASE("a pool without a limit drops no content, and reuses blocks without content", "[block_pool]") {
  BlockPool pool(specsim::serve::kUnlimitedBlocks, 16, true);
  REQUIRE(pool.caches());
  const BlockPool::Block known = pool.take_one();
  const BlockPool::Block nameless = pool.take_one();
  pool.name(known, 7);
  pool.release({known, nameless});
  for (int more = 0; more < 100; ++more) {
    const BlockPool::Block block = pool.take_one();
    CHECK(block != known);
    CHECK((block == nameless) == (more == 0));
  }
  REQUIRE(pool.find(7) != nullptr);
  CHECK(*pool.find(7) == known);
  pool.use(known);
  CHECK_FALSE(pool.is_free(known));
  CHECK(pool.free() == specsim::serve::kUnlimitedBlocks);
}

}  // namespace specsim::block_pool_test
