#include "sim/foundation/base/huge_array.h"

#include <sys/mman.h>

#include <new>

namespace specsim {

HugeArray::HugeArray(std::size_t size) : size_(size) {
  if (size == 0) return;
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  // Small tables use only the memory that they need: clearing 2 MiB for each of ten thousand small cells takes seconds.
  const std::size_t needed = size * sizeof(std::uint64_t);
  const std::size_t bytes = needed < kHugePage / 2 ? needed : (needed + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  if (bytes >= kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: small pages work as well, only more slowly
  data_ = std::unique_ptr<std::uint64_t, Release>(static_cast<std::uint64_t*>(memory), Release{bytes});
}

void HugeArray::Release::operator()(std::uint64_t* data) const { munmap(data, bytes); }

}  // namespace specsim
