#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "doca/gpu/gpu.hpp"
#include "doca/gpu/mover.hpp"
#include "doca/include/doca_gpunetio.h"
#include "doca/verbs/external.hpp"
#include "rdma/mlx5/doorbell.hpp"

namespace offload::doca {

/// Words of a queue pair that kernels write, for a relay to the card. In memory that both access.
struct alignas(64) RelayedWords {
  alignas(64) std::uint64_t doorbell;
  alignas(64) std::uint32_t send_record;
  alignas(64) std::uint32_t receive_record;
};

/// Carries the words on: records in memory of the host, and doorbells. One thread.
class QueueRelay {
 public:
  /// `words`: all 0. `records`: those of the host, or null where kernels write the card's own.
  QueueRelay(const RelayedWords* words, std::uint32_t* records, std::uint64_t* card) noexcept
      : words_(words), records_(records), doorbell_(&words->doorbell, card) {}

  /// Takes one look. Returns whether there was anything.
  bool relay() noexcept;

 private:
  const RelayedWords* words_;
  std::uint32_t* records_;
  rdma::mlx5::DoorbellRelay doorbell_;
  std::uint32_t send_record_ = 0;
  std::uint32_t receive_record_ = 0;
};

}  // namespace offload::doca

/// A queue pair with an external data path that kernels use (doca_gpunetio_dev_verbs_qp.cuh).
struct doca_gpu_verbs_qp final : offload::doca::GpuQueue {
  /// Throws Error. `rings`: where kernels see the memory of its rings.
  doca_gpu_verbs_qp(doca_gpu& owner, offload::doca::ExternalQp& of,
                    doca_gpu_dev_verbs_nic_handler ringer, void* rings);
  doca_gpu_verbs_qp& operator=(doca_gpu_verbs_qp&&) = delete;
  ~doca_gpu_verbs_qp();

  bool gather(offload::doca::GpuStaging&) noexcept override { return relay->relay(); }
  bool pass_on() noexcept override { return false; }
  void fail(const char*) noexcept override {}

  offload::doca::GpuUse gpu;
  offload::doca::Use<doca_verbs_qp> pair;
  bool is_proxy;           ///< the program relays
  doca_gpu::Piece words;   ///< RelayedWords; none: nothing is relayed
  doca_gpu::Piece handle;  ///< of the kernels
  std::optional<offload::doca::QueueRelay> relay;
  offload::doca::GpuMover* mover = nullptr;  ///< the library's thread, if it relays
};
