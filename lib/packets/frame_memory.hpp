#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace offload::packets {

/// How many frames there are: those of each hardware queue to receive into, and as many of each
/// queue to send.
struct FrameSizes {
  std::uint32_t homes = 2;               ///< hardware queues and queues of all ports
  std::uint32_t frames_per_home = 2048;  ///< a power of two
  std::uint32_t frame_bytes = 2048;      ///< 2048 or 4096, as AF_XDP has it
};

/// The memory of the packets of one port, or of several that forward to each other: AF_XDP's UMEM.
/// Separate, zeroed pages, which can be registered with a GPU (gpu::HostRegistration). Outlives the
/// ports, which must be destroyed in reverse order: the others share the socket of the first.
class FrameMemory {
 public:
  /// Throws Error: invalid_value for invalid sizes, no_memory.
  explicit FrameMemory(const FrameSizes& sizes);
  FrameMemory& operator=(FrameMemory&&) = delete;
  ~FrameMemory();

  [[nodiscard]] const FrameSizes& sizes() const noexcept { return sizes_; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint32_t frames() const noexcept {
    return sizes_.homes * sizes_.frames_per_home;
  }

  // For ports.

  /// Returns the next free home. Throws Error (full).
  std::uint32_t take_home();
  /// The socket that the kernel knows the memory by; -1: none yet.
  [[nodiscard]] int socket() const noexcept { return socket_; }
  void set_socket(int socket) noexcept { socket_ = socket; }

 private:
  FrameSizes sizes_;
  std::span<std::byte> bytes_;
  std::uint32_t taken_ = 0;
  int socket_ = -1;
};

}  // namespace offload::packets
