// Host memory as a second tier of the prefix cache: contents of blocks, and the link on which they come back to the GPU.
//
// Copies to the host take no time here: they use the link's other direction while the GPU computes.
#pragma once

#include "sim/serving/arrivals/request_trace.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>

namespace specsim::serve {

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

}  // namespace specsim::serve
