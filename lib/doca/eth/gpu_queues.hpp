#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "doca/eth/port.hpp"
#include "doca/gpu/gpu.hpp"
#include "doca/gpu/mover.hpp"
#include "doca/include/doca_gpunetio_dev_eth_rxq.cuh"
#include "doca/include/doca_gpunetio_dev_eth_txq.cuh"
#include "doca/mmap.hpp"

namespace offload::doca {

/// The common part of a receive and a send queue of a kernel: words and entries in memory that it
/// shares with the library, and the queue by which it names them, in the GPU's memory. The
/// context's thread begins and ends it; between them it is the mover's.
class GpuEthPath : protected GpuQueue {
 public:
  GpuEthPath& operator=(GpuEthPath&&) = delete;

  /// The queue in the GPU's memory.
  [[nodiscard]] void* handle() const noexcept { return queue_.gpu; }

 protected:
  /// With `bytes` of entries. Throws Error.
  GpuEthPath(doca_gpu& gpu, std::size_t bytes);
  ~GpuEthPath() = default;

  /// Writes the queue to the GPU's memory. Throws Error.
  void set_queue(const void* queue, std::size_t bytes);
  [[nodiscard]] offload_gpu_eth_words* words() const noexcept {
    return static_cast<offload_gpu_eth_words*>(shared_.cpu);
  }
  [[nodiscard]] offload_gpu_eth_words* words_of_kernel() const noexcept {
    return static_cast<offload_gpu_eth_words*>(shared_.gpu);
  }
  [[nodiscard]] std::byte* entries() const noexcept {
    return static_cast<std::byte*>(shared_.cpu) + sizeof(offload_gpu_eth_words);
  }
  [[nodiscard]] std::byte* entries_of_kernel() const noexcept {
    return static_cast<std::byte*>(shared_.gpu) + sizeof(offload_gpu_eth_words);
  }

  void begin_path(std::shared_ptr<EthPort> port, std::uint32_t queue);
  /// Ends the calls of kernels with DOCA_ERROR_BAD_STATE.
  void end_path() noexcept;
  void fail(const char* why) noexcept final;
  [[nodiscard]] bool has_failed() const noexcept { return state_ != 0; }
  /// Tells the kernel of the entries that it has back.
  void publish(std::uint32_t count) noexcept;

  GpuUse gpu_;
  std::shared_ptr<EthPort> port_;  ///< from the begin to the end
  std::uint32_t port_queue_ = 0;

 private:
  GpuMover& mover_;
  doca_gpu::Piece shared_;
  doca_gpu::Piece queue_;
  std::uint32_t state_ = 0;
  std::uint32_t published_ = 0;
};

/// Receives frames into the places of a program's buffer.
class GpuEthReceiver final : public GpuEthPath {
 public:
  /// `buffer` has a power of two of places. `key`: of its mmap.
  GpuEthReceiver(doca_gpu& gpu, MemoryUse buffer, std::uint32_t place_bytes, std::uint32_t key);
  ~GpuEthReceiver() { end(); }

  void begin(std::shared_ptr<EthPort> port, std::uint32_t queue) {
    begin_path(std::move(port), queue);
  }
  void end() noexcept {
    end_path();
    buffer_.reset();
  }

 private:
  bool gather(GpuStaging& staging) noexcept override;
  bool pass_on() noexcept override;

  std::optional<MemoryUse> buffer_;  ///< until the end
  std::uint32_t place_bytes_;
  std::uint32_t mask_;
  std::uint32_t written_ = 0;                       ///< frames, modulo 2^32
  std::uint32_t released_ = 0;                      ///< by the kernel
  std::vector<doca_gpu_dev_eth_rxq_attr> arrived_;  ///< whose copies are under way
};

/// Sends the frames of a kernel, in order.
class GpuEthSender final : public GpuEthPath {
 public:
  struct Options {
    std::uint32_t entries = 0;  ///< a power of two
    bool may_wait = false;
    bool writes_ip_checksum = false;
    bool writes_transport_checksum = false;
  };
  GpuEthSender(doca_gpu& gpu, const Options& options);
  ~GpuEthSender() { end(); }

  void begin(std::shared_ptr<EthPort> port, std::uint32_t queue) {
    begin_path(std::move(port), queue);
  }
  /// Frames that are being copied are dropped.
  void end() noexcept;

 private:
  /// A frame whose bytes are being copied.
  struct Outgoing {
    MemoryUse memory;
    EthPort::Room room;
    std::span<const std::byte> bytes;
    bool notifies;
  };

  bool gather(GpuStaging& staging) noexcept override;
  bool pass_on() noexcept override;
  void take_entries(GpuStaging& staging);
  bool take_ends() noexcept;
  /// Gives back the rooms of frames that are not sent.
  void drop(EthPort& port) noexcept;

  Options options_;
  std::uint32_t read_ = 0;  ///< entries, modulo 2^32
  std::uint32_t ended_ = 0;
  std::uint64_t notified_ = 0;
  std::vector<Outgoing> outgoing_;
  /// By the number of the frame: whether it is this sender's, and whether its end is counted.
  enum class Sent : std::uint8_t { no, yes, notifies };
  std::array<Sent, EthPort::kFrames> sent_{};
};

}  // namespace offload::doca
