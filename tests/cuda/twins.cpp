#include "tests/cuda/twins.h"

#include "sim/foundation/base/check.h"
#include "tests/support/sanitizers.h"

#include <boost/context/detail/fcontext.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <variant>

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SPECSIM_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define SPECSIM_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace specsim::tests {

namespace {

namespace context = boost::context::detail;

constexpr std::size_t kStack = std::size_t{64} << 10;
constexpr int kPoison = 0xFF;  // NaN as a float, as a double and as bf16

// The threads of one block, one after the other, each with its own stack.
class Block final : public cuda::HostBlock {
 public:
  explicit Block(Order order) : order_(order) {}

  void run(const cuda::Grid& grid, const std::function<void(unsigned thread)>& body) {
    threads_ = grid.threads;
    shared_.reset(static_cast<std::byte*>(std::aligned_alloc(16, (grid.shared_bytes + 16) / 16 * 16)));
    std::memset(shared_.get(), kPoison, grid.shared_bytes);
    body_ = &body;
    fibers_.resize(threads_);
    exchanged_.resize(threads_);
    while (stacks_.size() < threads_) stacks_.push_back(std::make_unique<std::byte[]>(kStack));
    for (unsigned i = 0; i < threads_; ++i) fibers_[i] = {.at = nullptr, .waits = Waits::no, .done = false};
    unsigned done = 0;
    while (done < threads_) {
      bool moved = false;
      for (unsigned k = 0; k < threads_; ++k) {
        const unsigned i = order_ == Order::ascending ? k : threads_ - 1 - k;
        if (fibers_[i].done || fibers_[i].waits != Waits::no) continue;
        moved = true;
        enter(i);
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
        if (fibers_[i].done) ++done;
      }
      moved = release() || moved;
      SPECSIM_CHECK(moved || done == threads_, "{} of {} threads wait for others that have ended, or wait elsewhere",
                    threads_ - done, threads_);
    }
  }

  void sync(unsigned thread) override { wait(thread, Waits::block); }
  std::uint64_t exchange(unsigned thread, std::uint64_t value, unsigned from_thread) override {
    SPECSIM_CHECK(from_thread / cuda::kWarp == thread / cuda::kWarp, "thread {} asks thread {}", thread, from_thread);
    exchanged_[thread].word = value;
    wait(thread, Waits::warp);
    const std::uint64_t other = exchanged_[from_thread].word;
    wait(thread, Waits::warp);
    return other;
  }
  void multiply(unsigned thread, float* c, const std::uint32_t* fragments) override {
    std::copy_n(fragments, 6, exchanged_[thread].fragments);
    wait(thread, Waits::warp);
    const unsigned warp = thread / cuda::kWarp * cuda::kWarp;
    const unsigned g = thread % cuda::kWarp / 4;
    const unsigned t = thread % 4;
    const auto half = [](std::uint32_t word, unsigned i) {
      return cuda::to_float({static_cast<std::uint16_t>(word >> (16 * i))});
    };
    for (unsigned h = 0; h < 2; ++h)
      for (unsigned n = 0; n < 2; ++n) {
        float& sum = c[2 * h + n];
        for (unsigned part = 0; part < 2; ++part)  // columns 0 .. 7, then 8 .. 15
          for (unsigned quad = 0; quad < 4; ++quad)
            for (unsigned i = 0; i < 2; ++i) {
              const std::uint32_t a = exchanged_[warp + 4 * g + quad].fragments[2 * part + h];
              const std::uint32_t b = exchanged_[warp + 4 * (2 * t + n) + quad].fragments[4 + part];
              sum += half(a, i) * half(b, i);
            }
      }
    wait(thread, Waits::warp);
  }
  std::byte* shared() override { return shared_.get(); }

 private:
  enum class Waits { no, warp, block };
  struct Fiber {
    context::fcontext_t at = nullptr;
    Waits waits = Waits::no;
    bool done = false;
#if defined(SPECSIM_THREAD_SANITIZER)
    void* shadow = nullptr;
#endif
  };
  struct Exchanged {
    std::uint64_t word = 0;
    std::uint32_t fragments[6] = {};
  };
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  struct Start {
    Block* block;
    unsigned thread;
  };

  void enter(unsigned i) {
    Fiber& fiber = fibers_[i];
    std::byte* const stack = stacks_[i].get();
    Start start{this, i};
    if (fiber.at == nullptr) fiber.at = context::make_fcontext(stack + kStack, kStack, &Block::body);
#if defined(SPECSIM_ADDRESS_SANITIZER)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, stack, kStack);
#endif
#if defined(SPECSIM_THREAD_SANITIZER)
    host_shadow_ = __tsan_get_current_fiber();
    if (fiber.shadow == nullptr) fiber.shadow = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(fiber.shadow, 0);
#endif
    const context::transfer_t back = context::jump_fcontext(fiber.at, &start);
#if defined(SPECSIM_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
#if defined(SPECSIM_THREAD_SANITIZER)
    if (fiber.done) {
      __tsan_destroy_fiber(fiber.shadow);
      fiber.shadow = nullptr;
    }
#endif
    fiber.at = back.fctx;
  }

  static void body(context::transfer_t from) {
    const Start start = *static_cast<Start*>(from.data);
    Block& block = *start.block;
    block.arrived(from.fctx);
    try {
      (*block.body_)(start.thread);
    } catch (...) {
      block.failure_ = std::current_exception();
    }
    block.fibers_[start.thread].done = true;
    block.leave(true);
  }
  void arrived(context::fcontext_t host) {
    host_ = host;
#if defined(SPECSIM_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(nullptr, &host_stack_, &host_stack_size_);
#endif
  }
  void leave([[maybe_unused]] bool for_good) {
#if defined(SPECSIM_ADDRESS_SANITIZER)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fake, host_stack_, host_stack_size_);
#endif
#if defined(SPECSIM_THREAD_SANITIZER)
    __tsan_switch_to_fiber(host_shadow_, 0);
#endif
    const context::transfer_t back = context::jump_fcontext(host_, nullptr);
    host_ = back.fctx;
#if defined(SPECSIM_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(fake, &host_stack_, &host_stack_size_);
#endif
  }
  void wait(unsigned thread, Waits what) {
    fibers_[thread].waits = what;
    leave(false);
  }
  // Continues groups whose threads all wait for the same operation.
  bool release() {
    bool any = false;
    const auto all_wait = [&](unsigned first, unsigned last, Waits what) {
      for (unsigned i = first; i < last; ++i)
        if (fibers_[i].done || fibers_[i].waits != what) return false;
      for (unsigned i = first; i < last; ++i) fibers_[i].waits = Waits::no;
      any = true;
      return true;
    };
    for (unsigned first = 0; first < threads_; first += cuda::kWarp)
      all_wait(first, std::min(first + cuda::kWarp, threads_), Waits::warp);
    if (!any) all_wait(0, threads_, Waits::block);
    return any;
  }

  Order order_;
  unsigned threads_ = 0;
  std::unique_ptr<std::byte, Free> shared_;
  const std::function<void(unsigned)>* body_ = nullptr;
  std::vector<Fiber> fibers_;
  std::vector<Exchanged> exchanged_;
  std::vector<std::unique_ptr<std::byte[]>> stacks_;
  std::exception_ptr failure_;
  context::fcontext_t host_ = nullptr;
#if defined(SPECSIM_ADDRESS_SANITIZER)
  const void* host_stack_ = nullptr;
  std::size_t host_stack_size_ = 0;
#endif
#if defined(SPECSIM_THREAD_SANITIZER)
  void* host_shadow_ = nullptr;
#endif
};

class Recording final : public cuda::Graph {
 public:
  std::vector<std::function<void()>> steps;
};

class Twin final : public cuda::Device {
 public:
  Twin(Order order, Change change) : order_(order), change_(std::move(change)), block_(order) { info_.name = "host"; }

  [[nodiscard]] const cuda::DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::size_t free_memory() const override { return std::size_t{32} << 20; }
  void* allocate(std::size_t bytes) override {
    void* const memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::memset(memory, kPoison, (bytes + 255) / 256 * 256);
    return memory;
  }
  void release(void* memory) noexcept override { std::free(memory); }

  void launch_kernel(const cuda::Kernel& kernel) override {
    act([this, kernel] {
      cuda::Kernel own = kernel;
      const auto start = [&] { std::visit([this](const auto& k) { run(k); }, own); };
      change_ ? change_(own, start) : start();
    });
  }
  bool launch_product(const cuda::Gemm& /*product*/) override { return false; }
  void upload(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void upload_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t bytes,
                   std::size_t rows) override {
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(static_cast<std::byte*>(to) + r * to_pitch, static_cast<const std::byte*>(from) + r * from_pitch, bytes);
  }
  void clear_rows(void* to, std::size_t pitch, std::size_t bytes, std::size_t rows) override {
    for (std::size_t r = 0; r < rows; ++r) std::memset(static_cast<std::byte*>(to) + r * pitch, 0, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    act([=] { std::memcpy(to, from, bytes); });
  }
  void finish() override {}

  std::unique_ptr<cuda::Graph> record(const std::function<void()>& work) override {
    auto graph = std::make_unique<Recording>();
    recording_ = graph.get();
    work();
    recording_ = nullptr;
    return graph;
  }
  void replay(const cuda::Graph& graph) override {
    for (const auto& step : dynamic_cast<const Recording&>(graph).steps) step();
  }
  double seconds(const std::function<void()>& work) override {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  std::unique_ptr<Device> another_stream() override { return std::make_unique<Twin>(order_, change_); }

 private:
  void act(std::function<void()> step) {
    if (recording_ != nullptr)
      recording_->steps.push_back(std::move(step));
    else
      step();
  }
  template <class K>
  void run(const K& kernel) {
    const cuda::Grid grid = kernel.grid();
    SPECSIM_CHECK(grid.threads <= K::kThreads && grid.shared_bytes <= 48 * 1024 && grid.y <= 65535 && grid.z <= 65535 &&
                      grid.x > 0 && grid.y > 0 && grid.z > 0,
                  "{} x {} x {} blocks of {} threads, {} bytes", grid.x, grid.y, grid.z, grid.threads, grid.shared_bytes);
    const auto turn = [&](unsigned k, unsigned count) { return order_ == Order::ascending ? k : count - 1 - k; };
    for (unsigned z = 0; z < grid.z; ++z)
      for (unsigned y = 0; y < grid.y; ++y)
        for (unsigned k = 0; k < grid.x; ++k) {
          const unsigned x = turn(k, grid.x);
          block_.run(grid, [&](unsigned i) { kernel(cuda::Thread(block_, i, x, y, z, grid.x)); });
        }
  }

  Order order_;
  Change change_;
  Block block_;
  cuda::DeviceInfo info_;
  Recording* recording_ = nullptr;
};

}  // namespace

std::unique_ptr<cuda::Device> host_twin(Order order, Change change) { return std::make_unique<Twin>(order, std::move(change)); }

bool device_is_gpu() {
  const char* const gpu = std::getenv("SPECSIM_GPU");
  return gpu != nullptr && *gpu != '\0';
}

std::unique_ptr<cuda::Device> test_device(Order order) {
  if (!device_is_gpu()) return host_twin(order);
  const char* const dependent_launch = std::getenv("SPECSIM_GPU_EARLY_START");
  return cuda::open_gpu(std::stoi(std::getenv("SPECSIM_GPU")),
                        order == Order::ascending && (dependent_launch == nullptr || std::string_view(dependent_launch) != "0"),
                        true);
}

}  // namespace specsim::tests
