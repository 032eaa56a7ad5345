#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "softcard/card/mirror.hpp"
#include "softcard/preload/cuda_driver.hpp"

namespace offload::softcard {

/// Copies of memory of GPUs, in pinned memory of the host. A separate stream copies, which waits
/// for no kernel. The caller serialises all calls.
class GpuMirrors final : public rdma::model::Mirror {
 public:
  GpuMirrors() = default;
  GpuMirrors& operator=(GpuMirrors&&) = delete;
  ~GpuMirrors() override;

  /// Returns the bytes by which the card accesses memory: the memory itself, or a copy of a GPU's.
  /// Throws Error.
  std::span<std::byte> add(void* address, std::size_t length);
  /// Ends a copy; does nothing for other memory.
  void remove(std::span<std::byte> bytes) noexcept;

  /// The copies that have been made, and the time for which the device waited for them.
  struct Counts {
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
    std::chrono::nanoseconds waited{};
    std::chrono::nanoseconds longest{};
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

  /// Throw Error if the driver fails, or does not end a copy in ten seconds.
  void fetch(std::span<const std::byte> copy) override;
  void store(std::span<const std::byte> copy) override;

 private:
  struct Copy {
    std::size_t length;
    CudaDriver::Address original;
    CudaDriver::Context context;
  };

  [[nodiscard]] const Copy* find(std::span<const std::byte> part, std::size_t& offset) const;
  CudaDriver::Stream stream_of(CudaDriver::Context context);
  /// Has `enqueue` copy the original of a part, waits for that and counts it.
  template <class Enqueue>
  void copy(std::span<const std::byte> part, std::uint64_t& count, Enqueue enqueue);
  void wait(CudaDriver::Stream stream);

  const CudaDriver* driver_ = nullptr;
  std::map<const std::byte*, Copy> copies_;
  std::map<CudaDriver::Context, CudaDriver::Stream> streams_;
  Counts counts_;
};

}  // namespace offload::softcard
