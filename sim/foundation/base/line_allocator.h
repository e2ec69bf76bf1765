// Arrays aligned to a cache line, so that data laid out in lines does not cross them.
#pragma once

#include <cstddef>
#include <new>

namespace specsim {

template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};
  LineAllocator() = default;
  template <class Other>
  explicit LineAllocator(const LineAllocator<Other>& /*other*/) {}
  [[nodiscard]] T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* data, std::size_t /*count*/) { ::operator delete(data, kLine); }
  bool operator==(const LineAllocator& /*other*/) const { return true; }
};

}  // namespace specsim
