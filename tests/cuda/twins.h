// A device made of the host: kernels run block by block, a block's threads as fibers that take turns at barriers, shuffles and
// matrix instructions. Memory is poisoned where it was not written, barriers that not all threads reach are an error, and `order`
// changes who goes first between two barriers: an outcome that depends on it lacks a barrier.
#pragma once

#include "sim/cuda/device.h"

namespace specsim::tests {

enum class Order { ascending, descending };

std::unique_ptr<cuda::Device> host_twin(Order order = Order::ascending);

// What the tests run on: the twin, or the GPU of the number in SPECSIM_GPU, with memory poisoned too. There `ascending` lets
// kernels overlap, `descending` does not: outcomes that differ lack a wait.
std::unique_ptr<cuda::Device> test_device(Order order = Order::ascending);
bool device_is_gpu();

}  // namespace specsim::tests
