#pragma once

#include <cstddef>

#include "device/device.hpp"
#include "memory/range.hpp"

namespace offload::backend {

/// Allocates memory of `gpu`, with its dma-buf if its driver exports one. Makes `gpu` the calling
/// thread's current device. Throws Error: not_supported in a build without CUDA, and CUDA's errors.
memory::Range make_gpu_range(const device::Device& gpu, std::size_t length);

}  // namespace offload::backend
