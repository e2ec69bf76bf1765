// A device emulated on the host. Kernels run block by block; a block's threads are fibers that switch at barriers, shuffles and
// matrix instructions. Unwritten memory is poisoned, and a barrier that some threads do not reach is an error. `order` changes
// which block of a row, and which thread between two barriers, runs first: a result that depends on it lacks a barrier.
#pragma once

#include "sim/lab/cuda/device.h"

#include <catch2/catch.hpp>

namespace specsim::tests {

enum class Order { ascending, descending };

// Sees each kernel before it runs, may give it other arguments, runs it, and may change memory, which is the host's.
using Change = std::function<void(cuda::Kernel& kernel, const std::function<void()>& run)>;

std::unique_ptr<cuda::Device> host_twin(Order order = Order::ascending, Change change = {});

// The device under test: the twin, or the GPU with the number in SPECSIM_GPU, with poisoned memory. There `ascending` lets
// kernels start early unless SPECSIM_GPU_EARLY_START is 0, `descending` does not: outcomes that differ lack a wait.
std::unique_ptr<cuda::Device> test_device(Order order = Order::ascending);
bool device_is_gpu();

// A mistake that a test must see: all kernels of one kind run with other arguments.
struct Mutant {
  const char* name = "";
  Change change;
};
template <class K, class F>
Mutant mutant(const char* name, F edit) {
  return {name, [edit](cuda::Kernel& kernel, const std::function<void()>& run) {
            if (K* const own = std::get_if<K>(&kernel)) edit(*own);
            run();
          }};
}

// `right(device)`: whether what a device makes of a test's inputs passes that test. It does on a device as it is, and on that of
// no mutant; one whose kernels cannot even run does not either. On twins alone: a GPU's tests need not wait for them.
template <class F>
void check_rejects(const std::vector<Mutant>& mutants, const F& right) {
  if (device_is_gpu()) return;
  CHECK(right(*host_twin()));
  for (const Mutant& mutant : mutants) {
    CAPTURE(mutant.name);
    bool passes = false;
    try {
      passes = right(*host_twin(Order::ascending, mutant.change));
    } catch (const std::exception&) {
      passes = false;
    }
    CHECK_FALSE(passes);
  }
}

}  // namespace specsim::tests
