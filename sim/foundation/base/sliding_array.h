// A long array of which only a part is in memory.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace specsim {

// Address space for `size` elements that are made in increasing order and let go in increasing order. If the system cannot
// take back pages, all of it stays in memory.
template <class T>
class SlidingArray {
 public:
  static_assert(std::is_trivially_destructible_v<T>);
  explicit SlidingArray(std::size_t size) : bytes_(size * sizeof(T) + alignof(T)) {
#ifdef __linux__
    void* const place = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) throw std::bad_alloc();
    first_ = static_cast<std::byte*>(place);
#else
    first_ = static_cast<std::byte*>(std::aligned_alloc(alignof(T), (bytes_ + alignof(T) - 1) / alignof(T) * alignof(T)));
    if (first_ == nullptr) throw std::bad_alloc();
#endif
  }
  ~SlidingArray() {
#ifdef __linux__
    munmap(first_, bytes_);
#else
    std::free(first_);
#endif
  }
  SlidingArray(const SlidingArray&) = delete;
  SlidingArray& operator=(const SlidingArray&) = delete;
  [[nodiscard]] T* data() { return reinterpret_cast<T*>(first_); }
  [[nodiscard]] T& operator[](std::size_t i) { return data()[i]; }
  // Makes an element with its default values.
  T& make(std::size_t i) { return *new (data() + i) T(); }
  // Elements before number `end` are not used any more.
  void let_go(std::size_t end) {
#ifdef __linux__
    constexpr std::size_t kPage = std::size_t{1} << 16;
    const std::size_t until = end * sizeof(T) / kPage * kPage;
    if (until <= gone_) return;
    madvise(first_ + gone_, until - gone_, MADV_DONTNEED);
    gone_ = until;
#else
    static_cast<void>(end);
#endif
  }

 private:
  std::size_t bytes_;
  std::byte* first_ = nullptr;
  std::size_t gone_ = 0;  // bytes
};

}  // namespace specsim
