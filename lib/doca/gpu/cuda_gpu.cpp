#include <cuda_runtime_api.h>

#include <mutex>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/log.hpp"
#include "doca/gpu/gpu.hpp"
#include "gpu/cuda_ranges.hpp"
#include "gpu/cuda_stream.hpp"
#include "gpu/error.hpp"
#include "gpu/register_pages.hpp"

namespace offload::doca {
namespace {

using core::Error;
using core::ErrorCode;
using gpu::check_cuda;

/// The alignment that CUDA's allocations have.
constexpr std::size_t kCudaAlignment = 256;

int find_gpu(const std::string& pci_address) {
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess || count == 0) {
    throw Error(ErrorCode::not_supported,
                std::string("CUDA has no GPU: ") + cudaGetErrorString(status));
  }
  int index = 0;
  if (cudaDeviceGetByPCIBusId(&index, pci_address.c_str()) != cudaSuccess) {
    cudaGetLastError();  // it is no error of later calls
    throw Error(ErrorCode::not_found, "CUDA has no GPU at " + pci_address);
  }
  return index;
}

/// Makes a GPU that of the calling thread while it lives: a program that works on another one goes
/// on there.
class Selected {
 public:
  explicit Selected(int index) {
    check_cuda(cudaGetDevice(&former_), "cudaGetDevice");
    if (former_ == index) return;
    check_cuda(cudaSetDevice(index), "cudaSetDevice");
    has_changed_ = true;
  }
  Selected& operator=(Selected&&) = delete;
  ~Selected() {
    if (has_changed_) gpu::log_cuda(cudaSetDevice(former_), "cudaSetDevice");
  }

 private:
  int former_ = 0;
  bool has_changed_ = false;
};

/// A GPU of CUDA. It has its own stream for copies, so that they run beside kernels.
struct CudaGpu final : doca_gpu {
  explicit CudaGpu(int number) : index(number) {
    const Selected selected(index);
    stream.emplace();
  }

  void select() override { check_cuda(cudaSetDevice(index), "cudaSetDevice"); }

  Piece allocate(std::size_t size, std::size_t alignment, bool is_shared) override {
    const Selected selected(index);
    const std::size_t more = alignment > kCudaAlignment ? alignment : 0;
    void* memory = nullptr;
    Piece piece;
    if (is_shared) {
      check_cuda(cudaHostAlloc(&memory, size + more, cudaHostAllocPortable), "cudaHostAlloc");
      piece.owner = {memory, [](void* old) { gpu::log_cuda(cudaFreeHost(old), "cudaFreeHost"); }};
    } else {
      check_cuda(cudaMalloc(&memory, size + more), "cudaMalloc");
      piece.owner = {memory, [](void* old) { gpu::log_cuda(cudaFree(old), "cudaFree"); }};
    }
    check_cuda(cudaMemsetAsync(memory, 0, size + more, stream->get()), "cudaMemsetAsync");
    stream->sync();
    const std::size_t past = reinterpret_cast<std::uintptr_t>(memory) % alignment;
    piece.gpu = static_cast<std::byte*>(memory) + (past != 0 ? alignment - past : 0);
    if (is_shared) piece.cpu = piece.gpu;  // one address for both
    return piece;
  }

  [[nodiscard]] bool has_for_itself(const void* address) const noexcept override {
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
      cudaGetLastError();  // unknown memory is an error to CUDA before 11
      return false;
    }
    return attributes.type == cudaMemoryTypeDevice && attributes.device == index;
  }

  void copy_in(void* gpu, const void* cpu, std::size_t size) override { copy(gpu, cpu, size); }
  void copy_out(void* cpu, const void* gpu, std::size_t size) override { copy(cpu, gpu, size); }
  void sync() override { stream->sync(); }

  offload::core::Fd export_dma_buf(void* address, std::size_t size) override {
    const Selected selected(index);
    return gpu::export_dma_buf(address, size);
  }

  void* map_register(void* address) override {
    const Selected selected(index);
    const std::lock_guard lock(mutex);
    try {
      return registers.seen_at(address);
    } catch (const Error& error) {
      core::log_info("GPU: {}", error.what());
      return nullptr;
    }
  }

  void copy(void* to, const void* from, std::size_t size) {
    check_cuda(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream->get()),
               "cudaMemcpyAsync");
  }

  int index;
  std::optional<gpu::CudaStream> stream;
  gpu::RegisterPages registers;
};

}  // namespace

std::unique_ptr<doca_gpu> open_cuda_gpu(const std::string& pci_address) {
  return std::make_unique<CudaGpu>(find_gpu(pci_address));
}

}  // namespace offload::doca
