#include "sim/serving/serve/host_cache.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace specsim::serve {

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
