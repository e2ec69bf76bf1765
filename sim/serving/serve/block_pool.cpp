#include "sim/serving/serve/block_pool.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

namespace specsim::serve {

namespace {

constexpr BlockPool::Block kNullBlock = 0;

}  // namespace

BlockPool::BlockPool(std::uint32_t blocks, std::uint32_t block_tokens, bool prefix_caching,
                     const std::optional<HostCache::Setting>& host)
    : blocks_(blocks),
      block_tokens_(block_tokens),
      shift_(std::has_single_bit(block_tokens) ? std::countr_zero(block_tokens) : -1),
      caches_(prefix_caching),
      free_(blocks == kUnlimitedBlocks ? blocks : blocks - 1) {
  if (caches_) all_.resize(1);
  if (host) host_.emplace(*host);
}

void BlockPool::append_free(Block block) {
  Entry& ends = all_[kNullBlock];
  all_[block].before = ends.before;
  all_[block].after = kNullBlock;
  all_[ends.before].after = block;
  ends.before = block;
}

void BlockPool::remove_free(Block block) {
  const Entry& entry = all_[block];
  all_[entry.before].after = entry.after;
  all_[entry.after].before = entry.before;
}

const BlockPool::Block* BlockPool::find(std::uint64_t hash) const {
  const auto at = by_hash_.find(hash);
  return at == by_hash_.end() ? nullptr : &at->second;
}

bool BlockPool::has_state(std::uint64_t hash) const {
  const auto at = by_hash_.find(hash);
  for (Block block = at == by_hash_.end() ? kNullBlock : at->second; block != kNullBlock; block = all_[block].next_same)
    if (all_[block].has_state) return true;
  return false;
}

void BlockPool::use(Block block) {
  if (all_[block].users++ > 0 || unlimited()) return;
  remove_free(block);
  --free_;
}

void BlockPool::forget(Block block) {
  Entry& entry = all_[block];
  entry.named = false;
  entry.has_state = false;
  const auto first = by_hash_.find(entry.hash);
  if (first->second == block) {
    changes(entry.hash);
    if (entry.next_same != kNullBlock) {
      first->second = entry.next_same;
      return;
    }
    by_hash_.erase(first);
    if (host_ && host_->setting().on_eviction) host_->store(entry.hash);
    return;
  }
  Block before = first->second;
  while (all_[before].next_same != block) before = all_[before].next_same;
  all_[before].next_same = entry.next_same;
}

BlockPool::Block BlockPool::take_one() {
  Block block = all_[kNullBlock].after;
  if (all_.size() < blocks_ && !(unlimited() && block != kNullBlock)) {
    block = static_cast<Block>(all_.size());
    all_.emplace_back();
  } else {
    remove_free(block);
    if (all_[block].named) forget(block);
  }
  free_ -= unlimited() ? 0 : 1;
  all_[block].users = 1;
  return block;
}

void BlockPool::name(Block block, std::uint64_t hash) {
  Entry& entry = all_[block];
  entry.hash = hash;
  entry.named = true;
  entry.next_same = kNullBlock;
  if (host_ && !host_->setting().on_eviction) host_->store(hash);
  const auto [at, fresh] = by_hash_.try_emplace(hash, block);
  if (fresh) return changes(hash);
  Block last = at->second;
  while (all_[last].next_same != kNullBlock) last = all_[last].next_same;
  all_[last].next_same = block;
}

void BlockPool::release(const std::vector<Block>& blocks) {
  std::for_each(blocks.rbegin(), blocks.rend(), [&](Block block) {
    if (--all_[block].users > 0 || (unlimited() && all_[block].named)) return;
    append_free(block);
    free_ += unlimited() ? 0 : 1;
  });
}

void HostCache::store(std::uint64_t hash) {
  if (holds(hash)) return touch(hash);
  if (places_.size() == setting_.blocks) {
    places_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(hash);
  places_[hash] = {std::prev(order_.end())};
  ++totals_.stored;
}

void HostCache::touch(std::uint64_t hash) {
  const auto at = places_.find(hash);
  if (at != places_.end()) order_.splice(order_.end(), order_, at->second.at);
}

arrivals::Picoseconds HostCache::load(std::span<const std::uint64_t> hashes, arrivals::Picoseconds now) {
  const double bytes = static_cast<double>(hashes.size()) * setting_.block_bytes;
  const arrivals::Picoseconds taken =
      setting_.latency + std::llround(arrivals::kPicosecondsPerSecond * bytes / setting_.bytes_per_second);
  link_free_ = std::max(link_free_, now) + taken;
  for (const std::uint64_t hash : hashes)  // blocks taken for them may have pushed some out of the tier
    if (const auto at = places_.find(hash); at != places_.end()) at->second.arrives = link_free_;
  totals_.loaded += hashes.size();
  totals_.busy += taken;
  return link_free_;
}

}  // namespace specsim::serve
