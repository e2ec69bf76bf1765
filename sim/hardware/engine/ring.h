// A first-in-first-out queue in one growing array: no allocation unless it is longer than ever before (std::deque allocates
// as it moves along).
#pragma once

#include <cstddef>
#include <vector>

namespace specsim::engine {

template <class T>
class Ring {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  // Only when not empty.
  [[nodiscard]] const T& front() const { return items_[head_]; }
  void push(const T& item) {
    if (size_ == items_.size()) grow();
    items_[(head_ + size_++) & (items_.size() - 1)] = item;
  }
  void pop() {
    head_ = (head_ + 1) & (items_.size() - 1);
    --size_;
  }

 private:
  void grow() {
    std::vector<T> larger(items_.empty() ? 8 : 2 * items_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = items_[(head_ + i) & (items_.size() - 1)];
    items_.swap(larger);
    head_ = 0;
  }

  std::vector<T> items_;  // size is a power of two
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace specsim::engine
