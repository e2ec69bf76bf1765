// The device for NVIDIA GPUs.
#include "sim/foundation/base/error.h"
#include "sim/lab/cuda/device.h"

#include <fmt/format.h>

#ifdef SPECSIM_WITH_CUDA

#include "sim/lab/cuda/gemm.h"
#include "sim/lab/cuda/gpu_launch.h"

#include <utility>

namespace specsim::cuda {

namespace {

// Throws the run-time library's error, with the place and the operation.
void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw IoError(fmt::format("GPU: {}: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status)));
}

// A handle of the run-time library.
template <class T, cudaError_t (*kDestroy)(T)>
class Handle {
 public:
  Handle() = default;
  ~Handle() {
    if (handle_ != nullptr) kDestroy(handle_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  T* make() { return &handle_; }
  operator T() const { return handle_; }  // NOLINT(google-explicit-constructor): as the library takes it

 private:
  T handle_ = nullptr;
};
using StreamHandle = Handle<cudaStream_t, cudaStreamDestroy>;
using EventHandle = Handle<cudaEvent_t, cudaEventDestroy>;

class GpuGraph final : public Graph {
 public:
  Handle<cudaGraph_t, cudaGraphDestroy> graph;
  Handle<cudaGraphExec_t, cudaGraphExecDestroy> ready;
};

class Gpu final : public Device {
 public:
  Gpu(int number, DeviceInfo info, bool poison) : number_(number), info_(std::move(info)), poison_(poison) {
    check(cudaSetDevice(number_), "choosing the device");
    check(cudaStreamCreateWithFlags(stream_.make(), cudaStreamNonBlocking), "making a stream");
    check(cudaEventCreate(begin_.make()), "making an event");
    check(cudaEventCreate(end_.make()), "making an event");
    gemm_ = open_gemm_library();
    if (gemm_ != nullptr) {
      info_.library = gemm_->name();
      workspace_ = Buffer<std::byte>(*this, GemmLibrary::kWorkspace);
    }
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::size_t free_memory() const override {
    std::size_t free = 0;
    std::size_t all = 0;
    check(cudaMemGetInfo(&free, &all), "asking for free memory");
    return free;
  }
  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, bytes);
    if (status == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());  // clears the error, since it is reported here
      throw BadInput({"GPU", 0, 0}, fmt::format("{:.3f} GiB are needed, allowed: at most the {:.3f} GiB that are free",
                                                gib(bytes), gib(free_memory())));
    }
    check(status, "allocating");
    if (poison_) check(cudaMemsetAsync(memory, 0xFF, bytes, stream_), "poisoning");
    return memory;
  }
  void release(void* memory) noexcept override { cudaFree(memory); }

  void upload(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return;
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "copying to the device");
    finish();
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return;
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "copying from the device");
    finish();
  }
  void upload_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t bytes,
                   std::size_t rows) override {
    check(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, bytes, rows, cudaMemcpyHostToDevice, stream_),
          "copying to the device");
    finish();
  }
  void clear_rows(void* to, std::size_t pitch, std::size_t bytes, std::size_t rows) override {
    check(rows == 1 ? cudaMemsetAsync(to, 0, bytes, stream_) : cudaMemset2DAsync(to, pitch, 0, bytes, rows, stream_), "clearing");
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "copying on the device");
  }
  void finish() override { check(cudaStreamSynchronize(stream_), "running the operations"); }

  std::unique_ptr<Graph> record(const std::function<void()>& work) override {
    auto graph = std::make_unique<GpuGraph>();
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "beginning a graph");
    try {
      work();
    } catch (...) {
      cudaGraph_t broken = nullptr;
      if (cudaStreamEndCapture(stream_, &broken) == cudaSuccess && broken != nullptr) cudaGraphDestroy(broken);
      static_cast<void>(cudaGetLastError());
      throw;
    }
    check(cudaStreamEndCapture(stream_, graph->graph.make()), "ending a graph");
    check(cudaGraphInstantiate(graph->ready.make(), graph->graph, 0), "preparing a graph");
    check(cudaGraphUpload(graph->ready, stream_), "uploading a graph");
    return graph;
  }
  void replay(const Graph& graph) override {
    check(cudaGraphLaunch(dynamic_cast<const GpuGraph&>(graph).ready, stream_), "launching a graph");
  }
  double seconds(const std::function<void()>& work) override {
    check(cudaEventRecord(begin_, stream_), "recording an event");
    work();
    check(cudaEventRecord(end_, stream_), "recording an event");
    check(cudaEventSynchronize(end_), "running the timed work");
    float milliseconds = 0.0F;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_), "reading a time");
    return 1e-3 * static_cast<double>(milliseconds);
  }
  std::unique_ptr<Device> another_stream() override { return std::make_unique<Gpu>(number_, info_, poison_); }

 private:
  void launch_kernel(const Kernel& kernel) override {
    check(start(kernel, stream_, info_.dependent_launch), "launching a kernel");
  }
  bool launch_product(const Gemm& product) override {
    return gemm_ != nullptr && gemm_->multiply(product, workspace_.data(), stream_);
  }
  static double gib(std::size_t bytes) { return static_cast<double>(bytes) * 0x1.0p-30; }

  int number_;
  DeviceInfo info_;
  bool poison_;
  StreamHandle stream_;
  EventHandle begin_;
  EventHandle end_;
  std::unique_ptr<GemmLibrary> gemm_;
  Buffer<std::byte> workspace_;
};

}  // namespace

std::unique_ptr<Device> open_gpu(int number, bool dependent_launch, bool poison) {
  const std::string place = fmt::format("GPU {}", number);
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  int driver = 0;
  int runtime = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  const auto version = [](int number_of) { return fmt::format("{}.{}", number_of / 1000, number_of % 1000 / 10); };
  if (status == cudaErrorInsufficientDriver)
    throw BadInput(
        {place, 0, 0},
        fmt::format("{}, allowed: a driver for CUDA {} or later",
                    driver == 0 ? "no NVIDIA driver is loaded" : "the driver is for CUDA " + version(driver), version(runtime)));
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0))
    throw BadInput({place, 0, 0}, "no NVIDIA GPU was found, allowed: one that this program can use");
  if (status != cudaSuccess)
    throw BadInput({place, 0, 0},
                   fmt::format("{} ({}), allowed: a working NVIDIA GPU", cudaGetErrorString(status), cudaGetErrorName(status)));
  if (number < 0 || number >= count)
    throw BadInput({place, 0, 0}, fmt::format("there is no GPU with this number, allowed: 0 to {}", count - 1));
  cudaDeviceProp properties = {};
  check(cudaGetDeviceProperties(&properties, number), "reading the device's properties");
  check(cudaSetDevice(number), "choosing the device");
  if (const cudaError_t loaded = find_code(); loaded != cudaSuccess)
    throw BadInput(
        {place, 0, 0},
        fmt::format("{} of compute capability {}.{}: {}, allowed: chips of CMAKE_CUDA_ARCHITECTURES when this was built",
                    properties.name, properties.major, properties.minor, cudaGetErrorString(loaded)));
  DeviceInfo info;
  info.name = properties.name;
  info.driver = fmt::format("CUDA {} driver, {} library", version(driver), version(runtime));
  info.compute_capability = 10 * properties.major + properties.minor;
  info.multiprocessors = properties.multiProcessorCount;
  info.memory = properties.totalGlobalMem;
  info.l2 = static_cast<std::size_t>(properties.l2CacheSize);
  info.dependent_launch = dependent_launch && info.compute_capability >= 90;
  return std::make_unique<Gpu>(number, info, poison);
}

}  // namespace specsim::cuda

#else

namespace specsim::cuda {

std::unique_ptr<Device> open_gpu(int number, bool /*dependent_launch*/, bool /*poison*/) {
  throw BadInput({fmt::format("GPU {}", number), 0, 0},
                 "this program was built without CUDA, allowed: one that is configured where nvcc is found");
}

}  // namespace specsim::cuda

#endif
