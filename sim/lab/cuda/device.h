// A device that runs kernels: memory, copies, launches, graphs, timing. It has one stream; operations run in order.
#pragma once

#include "sim/lab/cuda/acceptance.h"
#include "sim/lab/cuda/attention.h"
#include "sim/lab/cuda/cache.h"
#include "sim/lab/cuda/embedding.h"
#include "sim/lab/cuda/probe.h"
#include "sim/lab/cuda/product.h"

#include <boost/core/noncopyable.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace specsim::cuda {

// All kernels of a device. The list is closed: the CUDA compiler must compile each of them for the device, and the tests'
// replacement for a device, which runs on the host, must know them too.
using Kernel =
    std::variant<Embed, RmsNorm, ProductKernel<1>, ProductKernel<2>, ProductKernel<4>, Swiglu, Rotate, KeepPath,
                 AttentionKernel<32>, AttentionKernel<64>, AttentionKernel<128>, Combine, FillRandom, ReadAll, SlicePeaks,
                 DistributionWeights, NarrowCut, CutDistribution, NormaliseDistribution, DrawDraft, ResidualSums, Accept>;

// y[row][o] = weights[o] . x[row] (+ y), for many rows, computed by a library.
struct Gemm {
  const Bf16* weights = nullptr;  // [outputs][columns]
  unsigned outputs = 0;
  unsigned columns = 0;
  const Bf16* x = nullptr;  // [rows][columns]
  unsigned rows = 0;
  float* y = nullptr;  // [rows][outputs]
  bool add = false;
};

struct DeviceInfo {
  std::string name;
  std::string driver;          // driver and run-time library
  int compute_capability = 0;  // 90: 9.0
  int multiprocessors = 0;
  std::size_t memory = 0;
  std::size_t l2 = 0;
  std::string library;            // library that multiplies many rows; "" without
  bool dependent_launch = false;  // a kernel may start while the previous one ends
};

// A sequence of launches and copies that can be repeated.
class Graph : boost::noncopyable {
 public:
  virtual ~Graph() = default;
};

class Device : boost::noncopyable {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual const DeviceInfo& info() const = 0;
  [[nodiscard]] virtual std::size_t free_memory() const = 0;
  // Throws BadInput if there is too little memory; the message has the requested and the free amount.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;

  void launch(const Kernel& kernel) {
    launch_kernel(kernel);
    ++launches_;
  }
  // False if no library supports it; nothing has been computed then.
  bool multiply(const Gemm& product) {
    const bool done = launch_product(product);
    launches_ += done ? 1 : 0;
    return done;
  }
  // Kernels launched so far; a library's product is one launch.
  [[nodiscard]] std::size_t launches() const { return launches_; }
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  // Returns when the bytes have arrived.
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
  // Copies `rows` ranges of `bytes` each, at the given distances.
  virtual void upload_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t bytes,
                           std::size_t rows) = 0;
  virtual void clear_rows(void* to, std::size_t pitch, std::size_t bytes, std::size_t rows) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  // Waits for all operations; throws their first error.
  virtual void finish() = 0;

  // Records the operations of `work` instead of running them. It may launch, multiply and copy, nothing else.
  virtual std::unique_ptr<Graph> record(const std::function<void()>& work) = 0;
  virtual void replay(const Graph& graph) = 0;
  // Seconds of the device for the operations of `work`.
  virtual double seconds(const std::function<void()>& work) = 0;
  // Another stream of the same device; its work runs concurrently with this one's.
  virtual std::unique_ptr<Device> another_stream() = 0;

 private:
  virtual void launch_kernel(const Kernel& kernel) = 0;
  virtual bool launch_product(const Gemm& product) = 0;
  std::size_t launches_ = 0;
};

// The GPU with this number. Throws BadInput: there is no such GPU, the driver is too old, the program has no code for the chip,
// or it was built without CUDA. `dependent_launch`: kernels start while the previous ones end, if the chip supports it. `poison`:
// memory is NaN until it is written, for tests.
std::unique_ptr<Device> open_gpu(int number, bool dependent_launch = true, bool poison = false);

template <class T>
class Buffer {
 public:
  Buffer() = default;
  // Uninitialised until it is written, or zeros.
  Buffer(Device& device, std::size_t size, bool zeros = false) : device_(&device), size_(size) {
    if (size == 0) return;
    data_ = static_cast<T*>(device.allocate(size * sizeof(T)));
    if (zeros) device.clear_rows(data_, size * sizeof(T), size * sizeof(T), 1);
  }
  Buffer(Device& device, std::span<const T> values) : Buffer(device, values.size()) { upload(values); }
  ~Buffer() {
    if (data_ != nullptr) device_->release(data_);
  }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  void upload(std::span<const T> values) { device_->upload(data_, values.data(), values.size_bytes()); }
  [[nodiscard]] std::vector<T> download() const {
    std::vector<T> values(size_);
    device_->download(values.data(), data_, size_ * sizeof(T));
    return values;
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  Device* device_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace specsim::cuda
