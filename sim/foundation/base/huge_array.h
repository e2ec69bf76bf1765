// A large array of plain values, on huge pages if the kernel grants them. Tables that are read at random places would otherwise
// need a page walk per access. The contents start as zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace specsim {

constexpr std::size_t kHeapBytes = 16;  // overhead of an ordinary allocation

class HugeArray {
 public:
  HugeArray() = default;
  // Throws std::bad_alloc if the memory is not available.
  explicit HugeArray(std::size_t size);
  [[nodiscard]] std::uint64_t* data() { return data_.get(); }
  [[nodiscard]] const std::uint64_t* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Release {
    std::size_t bytes;
    void operator()(std::uint64_t* data) const;
  };
  std::unique_ptr<std::uint64_t, Release> data_{nullptr, Release{0}};
  std::size_t size_ = 0;
};

}  // namespace specsim
