// The interface of a kernel to the machine that runs it. The same source compiles for the GPU and, in the tests, for the host,
// where each thread of a block is a fiber. On the host, barriers, shuffles and matrix instructions are emulated; indices and
// arithmetic are the kernel's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define SPECSIM_KERNEL __device__ inline
#define SPECSIM_UNROLL _Pragma("unroll")  // arrays with an index known when compiling stay in registers
#else
#include "sim/foundation/base/check.h"

#include <cmath>
#define SPECSIM_KERNEL inline
#define SPECSIM_UNROLL
#endif

namespace specsim::cuda {

constexpr unsigned kWarp = 32;

// How a kernel is launched. At most 65535 in y and z.
struct Grid {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  unsigned threads = 1;
  std::size_t shared_bytes = 0;  // at most 48 KiB, which every device provides without opting in
};

struct alignas(16) Words {
  std::uint32_t word[4];
};

struct Bf16 {
  std::uint16_t bits;
};

#if defined(__CUDACC__)

class Thread {
 public:
  SPECSIM_KERNEL unsigned index() const { return threadIdx.x; }
  SPECSIM_KERNEL unsigned block_x() const { return blockIdx.x; }
  SPECSIM_KERNEL unsigned block_y() const { return blockIdx.y; }
  SPECSIM_KERNEL unsigned block_z() const { return blockIdx.z; }
  SPECSIM_KERNEL unsigned blocks_x() const { return gridDim.x; }
  SPECSIM_KERNEL std::byte* shared() const {
    extern __shared__ __align__(16) unsigned char memory[];
    return reinterpret_cast<std::byte*>(memory);
  }
  // Waits for all threads of the block, each of which must call it.
  SPECSIM_KERNEL void sync() const { __syncthreads(); }
  // The value of another thread of the warp; all threads of the warp must call it.
  template <class T>
  SPECSIM_KERNEL T shuffle_xor(T value, unsigned mask) const {
    return __shfl_xor_sync(0xFFFFFFFFU, value, static_cast<int>(mask));
  }
  // c += a b of 16 x 16 and 16 x 8 bf16 numbers, spread over the warp as PTX's mma.m16n8k16 has them: with g = lane / 4 and
  // t = lane % 4, a holds (g, 2t..), (g + 8, 2t..), (g, 2t + 8..), (g + 8, 2t + 8..), b (2t.., g), (2t + 8.., g),
  // c (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
  SPECSIM_KERNEL void multiply(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2, std::uint32_t a3,
                               std::uint32_t b0, std::uint32_t b1) const {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
  // The next kernel of the stream may be placed on the device as soon as all blocks of this one are ...
  SPECSIM_KERNEL void release_next() const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  }
  // ... and waits here until the previous kernel has ended: it must not read that kernel's results, nor write, before this.
  SPECSIM_KERNEL void wait_for_previous() const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  }
  // Small kernels wait first and release then, so that later kernels are not placed two kernels early.
  SPECSIM_KERNEL void take_turn() const {
    wait_for_previous();
    release_next();
  }
};

SPECSIM_KERNEL Words load(const Bf16* from) { return *reinterpret_cast<const Words*>(from); }
// For data that no kernel writes and that is not read again soon: weights. This load keeps its place in the program; the compiler
// may move loads of constant memory past wait_for_previous.
SPECSIM_KERNEL Words load_once(const Bf16* from) {
  Words words;
  asm volatile("ld.relaxed.gpu.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(words.word[0]), "=r"(words.word[1]), "=r"(words.word[2]), "=r"(words.word[3])
               : "l"(from)
               : "memory");
  return words;
}
// Integers that all threads may add to at once: the sum does not depend on the order.
SPECSIM_KERNEL void add_to(std::uint32_t* sum, std::uint32_t value) { atomicAdd(sum, value); }
SPECSIM_KERNEL void add_to(std::uint64_t* sum, std::uint64_t value) {
  static_assert(sizeof(unsigned long long) == sizeof value);
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(value));
}
SPECSIM_KERNEL std::uint32_t bits_of(float x) { return __float_as_uint(x); }
SPECSIM_KERNEL float float_of(std::uint32_t bits) { return __uint_as_float(bits); }
SPECSIM_KERNEL float exponential(float x) { return expf(x); }
SPECSIM_KERNEL float reciprocal_root(float x) { return 1.0F / sqrtf(x); }
SPECSIM_KERNEL float negative_infinity() { return __int_as_float(static_cast<int>(0xFF800000U)); }

#else

// One block on the host.
class HostBlock {
 public:
  HostBlock() = default;
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;
  virtual ~HostBlock() = default;
  virtual void sync(unsigned thread) = 0;
  virtual std::uint64_t exchange(unsigned thread, std::uint64_t value, unsigned from_thread) = 0;  // within a warp
  virtual void multiply(unsigned thread, float* c, const std::uint32_t* fragments) = 0;            // a0 .. a3, b0, b1
  virtual std::byte* shared() = 0;
};

class Thread {
 public:
  Thread(HostBlock& block, unsigned index, unsigned x, unsigned y, unsigned z, unsigned blocks_x)
      : block_(block), index_(index), x_(x), y_(y), z_(z), blocks_x_(blocks_x) {}
  [[nodiscard]] unsigned index() const { return index_; }
  [[nodiscard]] unsigned block_x() const { return x_; }
  [[nodiscard]] unsigned block_y() const { return y_; }
  [[nodiscard]] unsigned block_z() const { return z_; }
  [[nodiscard]] unsigned blocks_x() const { return blocks_x_; }
  [[nodiscard]] std::byte* shared() const { return block_.shared(); }
  void sync() const { block_.sync(index_); }
  template <class T>
  [[nodiscard]] T shuffle_xor(T value, unsigned mask) const {
    static_assert(sizeof(T) <= sizeof(std::uint64_t));
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    bits = block_.exchange(index_, bits, index_ ^ mask);
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }
  void multiply(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2, std::uint32_t a3, std::uint32_t b0,
                std::uint32_t b1) const {
    const std::uint32_t fragments[6] = {a0, a1, a2, a3, b0, b1};
    block_.multiply(index_, c, fragments);
  }
  void release_next() const {}
  void wait_for_previous() const {}
  void take_turn() const {}

 private:
  HostBlock& block_;
  unsigned index_;
  unsigned x_;
  unsigned y_;
  unsigned z_;
  unsigned blocks_x_;
};

inline Words load(const Bf16* from) {
  SPECSIM_CHECK(reinterpret_cast<std::uintptr_t>(from) % alignof(Words) == 0, "a load of 16 bytes at an odd place");
  Words words{};
  std::memcpy(&words, from, sizeof words);
  return words;
}
inline Words load_once(const Bf16* from) { return load(from); }
template <class T>
void add_to(T* sum, T value) {
  *sum += value;
}
inline std::uint32_t bits_of(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float float_of(std::uint32_t bits) {
  float x = 0.0F;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline float exponential(float x) { return std::exp(x); }
inline float reciprocal_root(float x) { return 1.0F / std::sqrt(x); }
inline float negative_infinity() { return -INFINITY; }

#endif

SPECSIM_KERNEL float to_float(Bf16 x) { return float_of(static_cast<std::uint32_t>(x.bits) << 16); }
// Rounds to the nearest, ties to even; a NaN stays NaN.
SPECSIM_KERNEL Bf16 to_bf16(float x) {
  const std::uint32_t bits = bits_of(x);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return {static_cast<std::uint16_t>(bits >> 16 | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16)};
}
SPECSIM_KERNEL std::uint32_t pair_of(float low, float high) {
  return static_cast<std::uint32_t>(to_bf16(low).bits) | static_cast<std::uint32_t>(to_bf16(high).bits) << 16;
}

// Sum (or maximum) of a value over the warp, the same in all threads and always in the same order.
template <class T>
SPECSIM_KERNEL T warp_sum(const Thread& thread, T value) {
  for (unsigned mask = kWarp / 2; mask > 0; mask /= 2) value += thread.shuffle_xor(value, mask);
  return value;
}
// The same over the block, using `room` in shared memory for one value per warp; a barrier on both sides.
template <class T>
SPECSIM_KERNEL T block_sum(const Thread& thread, T value, unsigned threads, T* room) {
  value = warp_sum(thread, value);
  thread.sync();
  if (thread.index() % kWarp == 0) room[thread.index() / kWarp] = value;
  thread.sync();
  T sum = room[0];
  for (unsigned w = 1; w < threads / kWarp; ++w) sum += room[w];
  return sum;
}

}  // namespace specsim::cuda
