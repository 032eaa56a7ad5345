#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/fd.hpp"
#include "core/status.hpp"
#include "doca/include/doca_gpunetio.h"
#include "doca/use.hpp"

namespace offload::doca {
class GpuMover;
}

/// A GPU, or processors that stand in for one. Any thread.
struct doca_gpu {
  /// A piece of memory. The CPU has no address for a GPU's own.
  struct Piece {
    std::shared_ptr<void> owner;
    void* gpu = nullptr;
    void* cpu = nullptr;
  };

  doca_gpu();
  doca_gpu& operator=(doca_gpu&&) = delete;
  virtual ~doca_gpu();

  /// Makes it the GPU of the calling thread. Throws Error, as the others.
  virtual void select() {}
  /// Allocates zeroed memory. `alignment`: a power of two.
  virtual Piece allocate(std::size_t size, std::size_t alignment, bool is_shared) = 0;
  /// Returns whether only the GPU accesses that memory.
  [[nodiscard]] virtual bool has_for_itself(const void* address) const noexcept = 0;
  // Copies, which may go on until sync(): between memory of its kernels and shared pieces.
  virtual void copy_in(void* gpu, const void* cpu, std::size_t size) = 0;
  virtual void copy_out(void* cpu, const void* gpu, std::size_t size) = 0;
  /// Waits until the copies are done.
  virtual void sync() = 0;
  /// Exports whole pages of memory of its kernels; an invalid descriptor: it cannot.
  virtual offload::core::Fd export_dma_buf(void*, std::size_t) { return {}; }

  /// Returns where its kernels see a register of a card, of 8 bytes; null if they do not. The
  /// mapping lives as long as this.
  virtual void* map_register(void*) { return nullptr; }

  /// Returns the thread that moves messages, which it starts first if there is none.
  offload::doca::GpuMover& mover();

  std::atomic<std::size_t> users{0};   ///< contexts, buffer arrays and queue pairs
  std::atomic<std::size_t> shares{1};  ///< UMEMs and the handle
  std::mutex mutex;                    ///< of the members below
  std::map<void*, Piece> pieces;       ///< of the program, by the address for kernels
  std::unique_ptr<offload::doca::GpuMover> mover_thread;
};

namespace offload::doca {

/// Opens a GPU that CUDA knows. Throws Error: not_supported without CUDA or GPUs, not_found if
/// there are others.
std::unique_ptr<doca_gpu> open_cuda_gpu(const std::string& pci_address);

/// Returns whether only an open GPU accesses that memory.
bool is_gpu_memory(const void* address) noexcept;

/// Copies bytes of which only an open GPU accesses some, and waits for the end. The status is
/// not_supported if no open GPU does.
core::Status copy_gpu_bytes(void* to, const void* from, std::size_t length) noexcept;

using GpuUse = Use<doca_gpu>;

}  // namespace offload::doca
