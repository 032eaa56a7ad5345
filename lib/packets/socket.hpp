#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/fd.hpp"
#include "kernels/packets/queue.hpp"
#include "packets/frame_memory.hpp"

struct xdp_ring_offset;

namespace offload::packets {

/// The interface and the queue of a socket.
struct SocketPlace {
  std::string interface;  ///< for messages
  unsigned interface_index = 0;
  std::uint32_t hardware_queue = 0;
  bool only_copy = false;        ///< no zero copy, though the driver may have it
  int same_hardware_queue = -1;  ///< the socket that is bound there already; -1: none
};

/// An AF_XDP socket (Documentation/networking/af_xdp.rst) with its rings mapped. System calls
/// alone: libxdp keeps the rings' addresses to itself.
class Socket {
 public:
  /// Binds it. Throws Error; not_permitted says which capability is missing.
  Socket(FrameMemory& memory, const SocketPlace& place);
  Socket(Socket&&) = default;
  ~Socket();

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] const kernels::packets::Ring<kernels::packets::FrameDescriptor>& receive() const {
    return receive_;
  }
  [[nodiscard]] const kernels::packets::Ring<kernels::packets::FrameDescriptor>& send() const {
    return send_;
  }
  /// Only for the first socket of a hardware queue.
  [[nodiscard]] const kernels::packets::Ring<std::uint64_t>& fill() const { return fill_; }
  [[nodiscard]] const kernels::packets::Ring<std::uint64_t>& completions() const {
    return completions_;
  }
  /// The rings' pages.
  [[nodiscard]] std::span<const std::span<std::byte>> mappings() const { return mappings_; }
  /// Returns whether the driver moves frames without a copy.
  [[nodiscard]] bool is_zero_copy() const;

  /// The counters of the kernel.
  struct Statistics {
    std::uint64_t dropped = 0;        ///< received and dropped for other reasons than these
    std::uint64_t ring_full = 0;      ///< and dropped: the receive ring was full
    std::uint64_t no_frames = 0;      ///< times that the fill ring was empty
    std::uint64_t invalid_sends = 0;  ///< descriptors that it skipped
  };
  [[nodiscard]] Statistics statistics() const;

 private:
  void set_ring(int option, std::uint32_t entries, const char* name) const;
  template <class Ring>
  void map(Ring& ring, std::uint64_t page, const xdp_ring_offset& offsets, std::uint32_t entries);
  void bind(FrameMemory& memory, const SocketPlace& place) const;

  core::Fd fd_;
  kernels::packets::Ring<kernels::packets::FrameDescriptor> receive_{};
  kernels::packets::Ring<kernels::packets::FrameDescriptor> send_{};
  kernels::packets::Ring<std::uint64_t> fill_{};
  kernels::packets::Ring<std::uint64_t> completions_{};
  std::vector<std::span<std::byte>> mappings_;
};

}  // namespace offload::packets
