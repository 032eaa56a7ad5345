#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "doca/gpu/gpu.hpp"
#include "doca/gpu/mover.hpp"
#include "doca/include/doca_gpunetio_dev_rdma.cuh"
#include "doca/mmap.hpp"
#include "doca/rdma/rdma_device.hpp"
#include "progress/engine.hpp"
#include "rdma/verbs/completion_loop.hpp"
#include "rdma/verbs/queue_pair.hpp"
#include "rdma/verbs/shared_receive_queue.hpp"

namespace offload::doca {

/// A ring that kernels of a context share with the library (doca_gpunetio_dev_rdma.cuh), and what
/// the device has of it. Requests of a kernel are untrusted: they are copied, then checked.
class KernelRing {
 public:
  /// For `entries`, a power of two; `has_events`: they are receives. Throws Error.
  KernelRing(doca_gpu& gpu, std::uint32_t entries, bool has_events);

  /// Returns the queue as kernels see it.
  [[nodiscard]] offload_gpu_rdma_queue seen() const noexcept;
  /// Returns a copy of the next request; nothing if there is none, or the ring has failed. Throws
  /// Error (invalid_value) if there are more requests than entries.
  std::optional<offload_gpu_rdma_request> next_request();
  /// The device has the request, and uses the memory until its end.
  void keep(std::optional<MemoryUse> local, std::optional<MemoryUse> remote);
  /// The oldest request that the device has ended; of a receive with an event.
  void end_oldest(const offload_gpu_rdma_event& event = {}) noexcept;
  /// Ends all calls of kernels with that error, once.
  void fail(doca_error_t error) noexcept;
  [[nodiscard]] bool has_failed() const noexcept { return state_ != 0; }
  /// Shows kernels what has ended.
  void publish() noexcept;

 private:
  struct Kept {
    std::optional<MemoryUse> local;
    std::optional<MemoryUse> remote;
  };

  doca_gpu::Piece piece_;
  std::uint32_t mask_;
  bool has_events_;
  std::uint32_t read_ = 0;
  std::uint32_t ended_ = 0;
  std::uint32_t state_ = 0;
  std::deque<Kept> kept_;
};

/// The data path of a context of RDMA for kernels: hands their requests to the device, on the
/// thread of the GPU. Connections are made and ended by the context's thread.
class RdmaKernelPath final : GpuQueue {
 public:
  struct Sizes {
    std::uint32_t connections;
    std::uint32_t sends;     ///< of each
    std::uint32_t receives;  ///< of all together
  };

  /// The device outlives it. Throws Error.
  RdmaKernelPath(doca_gpu& gpu, RdmaDevice& device, const Sizes& sizes);
  RdmaKernelPath& operator=(RdmaKernelPath&&) = delete;
  ~RdmaKernelPath() { end(); }

  [[nodiscard]] void* handle() const noexcept { return handle_.gpu; }
  /// Returns the queue of completions of its queue pairs, which only this polls.
  [[nodiscard]] rdma::CompletionLoop& completions() noexcept { return completions_; }
  [[nodiscard]] const rdma::SharedReceiveQueue& receives() const noexcept { return receives_; }

  // The context's thread.

  /// Uses a queue pair that is connected, under the lowest index that is free.
  void attach(const rdma::QueuePair& pair) noexcept;
  /// Does not use it any more, before it ends. Calls of kernels for it end with
  /// DOCA_ERROR_BAD_STATE.
  void detach(const rdma::QueuePair& pair) noexcept;
  /// Ends all calls of kernels with DOCA_ERROR_BAD_STATE.
  void end() noexcept;

 private:
  /// A connection, by its index.
  struct Slot {
    KernelRing ring;
    const rdma::QueuePair* pair = nullptr;
    std::uint32_t number = 0;  ///< the queue pair's
    bool was_used = false;
  };

  bool gather(GpuStaging& staging) noexcept override;
  bool pass_on() noexcept override { return false; }
  void fail(const char* why) noexcept override;
  bool post_receives();
  bool post_sends(std::uint32_t index);
  bool take_completions();

  GpuUse gpu_;
  RdmaDevice& device_;
  GpuMover& mover_;
  progress::Engine engine_;  ///< of the loop below, which nothing turns
  rdma::CompletionLoop completions_;
  rdma::SharedReceiveQueue receives_;
  KernelRing received_;
  doca_gpu::Piece connections_;
  doca_gpu::Piece handle_;
  std::mutex mutex_;  ///< of the members below
  std::deque<Slot> slots_;
  bool has_ended_ = false;
};

}  // namespace offload::doca
