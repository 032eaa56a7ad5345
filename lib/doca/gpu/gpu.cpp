#include "doca/gpu/gpu.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "device/device.hpp"
#include "doca/gpu/mover.hpp"
#include "doca/guard.hpp"

namespace offload::doca {
namespace {

using core::Error;
using core::ErrorCode;

/// The GPUs that are open.
struct OpenGpus {
  std::mutex mutex;
  std::vector<doca_gpu*> all;
};

/// Never destroyed, as destructors of a program may close GPUs at its end.
OpenGpus& open_gpus() {
  static auto& gpus = *new OpenGpus;
  return gpus;
}

/// Processors that stand in for a GPU: threads are its kernels.
struct HostGpu final : doca_gpu {
  Piece allocate(std::size_t size, std::size_t alignment, bool is_shared) override {
    const auto align = std::align_val_t(std::max(alignment, alignof(std::max_align_t)));
    void* const memory = ::operator new(size, align);
    std::memset(memory, 0, size);
    const auto free = [align](void* piece) { ::operator delete(piece, align); };
    return {std::shared_ptr<void>(memory, free), memory, is_shared ? memory : nullptr};
  }
  [[nodiscard]] bool has_for_itself(const void*) const noexcept override { return false; }
  void copy_in(void* gpu, const void* cpu, std::size_t size) override {
    std::memcpy(gpu, cpu, size);
  }
  void copy_out(void* cpu, const void* gpu, std::size_t size) override {
    std::memcpy(cpu, gpu, size);
  }
  void sync() override {}
};

/// Returns whether OFFLOAD_DOCA_GPUS, addresses with commas between them, has that address.
bool is_host_gpu(const std::string& address) {
  const char* const text = std::getenv("OFFLOAD_DOCA_GPUS");
  std::string_view rest = text != nullptr ? text : "";
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const auto listed = device::full_pci_address(part);
    if (!listed) {
      throw Error(ErrorCode::invalid_value, "OFFLOAD_DOCA_GPUS: '" + std::string(part) +
                                                "' is not a PCI address, as 17:00.0");
    }
    if (*listed == address) return true;
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  }
  return false;
}

}  // namespace

bool is_gpu_memory(const void* address) noexcept {
  OpenGpus& gpus = open_gpus();
  const std::lock_guard lock(gpus.mutex);
  return std::any_of(gpus.all.begin(), gpus.all.end(),
                     [&](const doca_gpu* gpu) { return gpu->has_for_itself(address); });
}

core::Status copy_gpu_bytes(void* to, const void* from, std::size_t length) noexcept {
  OpenGpus& gpus = open_gpus();
  const std::lock_guard lock(gpus.mutex);  // the GPU stays open
  for (doca_gpu* const gpu : gpus.all) {
    if (!gpu->has_for_itself(to) && !gpu->has_for_itself(from)) continue;
    const doca_error_t result = guarded("a copy", [&] {
      gpu->copy_in(to, from, length);
      gpu->sync();
    });
    return result == DOCA_SUCCESS ? core::Status() : core::Status(ErrorCode::io_failed);
  }
  return ErrorCode::not_supported;
}

}  // namespace offload::doca

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace

// Here, as they need the mover's type.
doca_gpu::doca_gpu() = default;
doca_gpu::~doca_gpu() = default;

GpuMover& doca_gpu::mover() {
  const std::lock_guard lock(mutex);
  if (!mover_thread) mover_thread = std::make_unique<GpuMover>(*this);
  return *mover_thread;
}

doca_error_t doca_gpu_create(const char* gpu_bus_id, doca_gpu** gpu_dev) {
  if (any_null(gpu_bus_id, gpu_dev)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] {
    const auto address = offload::device::full_pci_address(gpu_bus_id);
    if (!address) {
      throw Error(ErrorCode::invalid_value, std::string(gpu_bus_id) + " is not a PCI address");
    }
    std::unique_ptr<doca_gpu> gpu;
    if (is_host_gpu(*address)) {
      gpu = std::make_unique<HostGpu>();
    } else {
      gpu = open_cuda_gpu(*address);
    }
    OpenGpus& gpus = open_gpus();
    const std::lock_guard lock(gpus.mutex);
    gpus.all.push_back(gpu.get());  // it is whole until it is removed
    *gpu_dev = gpu.release();
  });
}

doca_error_t doca_gpu_destroy(doca_gpu* gpu_dev) {
  if (gpu_dev == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (is_used(*gpu_dev)) return DOCA_ERROR_IN_USE;
  {
    OpenGpus& gpus = open_gpus();
    const std::lock_guard lock(gpus.mutex);
    std::erase(gpus.all, gpu_dev);
  }
  gpu_dev->mover_thread.reset();
  end_share(*gpu_dev);
  return DOCA_SUCCESS;
}

doca_error_t doca_gpu_mem_alloc(doca_gpu* gpu_dev, size_t size, size_t alignment,
                                doca_gpu_mem_type mtype, void** memptr_gpu, void** memptr_cpu) {
  const bool is_shared = mtype != DOCA_GPU_MEM_TYPE_GPU;
  if (any_null(gpu_dev, memptr_gpu) || size == 0 || mtype > DOCA_GPU_MEM_TYPE_CPU_GPU ||
      (alignment != 0 && !std::has_single_bit(alignment)) || (is_shared && memptr_cpu == nullptr)) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (size > SIZE_MAX - alignment) return DOCA_ERROR_NO_MEMORY;
  const doca_error_t result = guarded(__func__, [&] {
    doca_gpu::Piece piece = gpu_dev->allocate(size, std::max<std::size_t>(alignment, 1), is_shared);
    void* const gpu = piece.gpu;
    void* const cpu = piece.cpu;
    const std::lock_guard lock(gpu_dev->mutex);
    gpu_dev->pieces.emplace(gpu, std::move(piece));
    *memptr_gpu = gpu;
    if (memptr_cpu != nullptr) *memptr_cpu = cpu;
  });
  return result == DOCA_ERROR_DRIVER ? DOCA_ERROR_NO_MEMORY : result;
}

doca_error_t doca_gpu_mem_free(doca_gpu* gpu_dev, void* memptr_gpu) {
  if (any_null(gpu_dev, memptr_gpu)) return DOCA_ERROR_INVALID_VALUE;
  doca_gpu::Piece piece;  // it is freed without the lock, as that may wait for kernels
  const std::lock_guard lock(gpu_dev->mutex);
  const auto found = gpu_dev->pieces.find(memptr_gpu);
  if (found == gpu_dev->pieces.end()) return DOCA_ERROR_NOT_FOUND;
  piece = std::move(found->second);
  gpu_dev->pieces.erase(found);
  return DOCA_SUCCESS;
}

doca_error_t doca_gpu_dmabuf_fd(doca_gpu* gpu_dev, void* memptr_gpu, size_t size, int* dmabuf_fd) {
  if (any_null(gpu_dev, memptr_gpu, dmabuf_fd) || size == 0) return DOCA_ERROR_INVALID_VALUE;
  offload::core::Fd fd;
  const doca_error_t result =
      guarded(__func__, [&] { fd = gpu_dev->export_dma_buf(memptr_gpu, size); });
  if (result != DOCA_SUCCESS) return result;
  if (!fd.valid()) return DOCA_ERROR_NOT_SUPPORTED;
  *dmabuf_fd = fd.release();
  return DOCA_SUCCESS;
}
