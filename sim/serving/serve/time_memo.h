// Times of passes that were estimated before, by the whole numbers that they depend on.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace specsim::serve {

// Threads share it. Each slot takes the first key that falls on it and never changes afterwards, so that a reader needs no lock.
// Other keys of the slot are not kept. Memory grows with the keys, up to kPages pages (8 MB).
class TimeMemo {
 public:
  struct Times {
    double target = 0.0;
    double draft = 0.0;
    double work_joules = 0.0;
  };
  static constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 40;

  TimeMemo() = default;
  TimeMemo(const TimeMemo&) = delete;
  TimeMemo& operator=(const TimeMemo&) = delete;
  ~TimeMemo() {
    for (const std::atomic<Page*>& page : pages_) delete page.load(std::memory_order_relaxed);
  }

  // `kind`: above 0 and below 2^24; `tokens`: below kMostTokens. nullptr: not kept.
  [[nodiscard]] const Times* find(std::uint32_t kind, std::uint64_t tokens) const {
    const std::size_t at = slot_of(kind, tokens);
    const Page* const page = pages_[at / kPageSlots].load(std::memory_order_acquire);
    if (page == nullptr) return nullptr;
    const Slot& slot = (*page)[at % kPageSlots];
    return slot.key.load(std::memory_order_acquire) == key_of(kind, tokens) ? &slot.times : nullptr;
  }
  void keep(std::uint32_t kind, std::uint64_t tokens, const Times& times) {
    const std::size_t at = slot_of(kind, tokens);
    std::atomic<Page*>& place = pages_[at / kPageSlots];
    Page* page = place.load(std::memory_order_acquire);
    if (page == nullptr) {
      auto fresh = std::make_unique<Page>();
      if (place.compare_exchange_strong(page, fresh.get(), std::memory_order_acq_rel)) page = fresh.release();
    }
    Slot& slot = (*page)[at % kPageSlots];
    std::uint64_t nothing = 0;
    if (!slot.key.compare_exchange_strong(nothing, kBeingWritten, std::memory_order_relaxed)) return;
    slot.times = times;
    slot.key.store(key_of(kind, tokens), std::memory_order_release);
  }

 private:
  static constexpr std::size_t kPages = 512;
  static constexpr std::size_t kPageSlots = 512;
  static constexpr std::uint64_t kBeingWritten = kMostTokens - 1;  // with kind 0, which no key has
  struct alignas(32) Slot {
    std::atomic<std::uint64_t> key{0};
    Times times;
  };
  using Page = std::array<Slot, kPageSlots>;

  static std::uint64_t key_of(std::uint32_t kind, std::uint64_t tokens) { return kind * kMostTokens + tokens; }
  // Steps that follow each other have neighbouring slots; kinds begin far from each other (Fibonacci hashing).
  static std::size_t slot_of(std::uint32_t kind, std::uint64_t tokens) {
    return ((kind * std::uint64_t{0x9e3779b97f4a7c15} >> 46U) + tokens) % (kPages * kPageSlots);
  }

  std::array<std::atomic<Page*>, kPages> pages_{};
};

}  // namespace specsim::serve
