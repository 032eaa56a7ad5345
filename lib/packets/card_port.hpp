#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/packets/card_queue.hpp"
#include "packets/frame_memory.hpp"
#include "rdma/mlx5/card_queue_pair.hpp"

namespace offload::packets {

/// A queue of an mlx5 card's Ethernet port, which device functions (kernels/packets/card_queue.hpp)
/// receive from and send to: a queue pair for raw packets, with all frames of a FrameMemory of two
/// homes. The card gives it the frames of its rules (CardRule) alone. Frames of others get to the
/// kernel of Linux, as before.
///
///     packets::FrameMemory memory({.homes = 2});
///     packets::CardPort port(device, domain, memory, {rings, nullptr, {}});
///     const packets::CardRule rule(port, packets::parse_rule("udp dport 4000 to 0", 1));
///     const packets::HostCardQueue threads(port);   // what device functions get
///     while (runs) port.relay();
///
/// A GPU uses it if the frames and the memory of the rings are known to it (rdma::mlx5::SeenMemory,
/// gpu::HostRegistration); its image is then in its own memory.
///
/// Not movable. Device, domain and both memories outlive it. One thread makes it and calls relay().
class CardPort {
 public:
  /// Returns the bytes for the rings of a port with these frames. Throws Error: invalid_value.
  static std::size_t ring_bytes(const FrameMemory& memory);

  /// `rings`: memory of ring_bytes(). `traffic`: frames, or frames_and_own. Throws Error:
  /// invalid_value for frames of other than two homes, or more than 16384 in one; not_permitted
  /// without CAP_NET_RAW; the errors of rdma::mlx5::CardQueuePair.
  CardPort(const rdma::DeviceContext& device, const rdma::ProtectionDomain& domain,
           const FrameMemory& memory, rdma::mlx5::SeenMemory rings,
           rdma::mlx5::CardTraffic traffic = rdma::mlx5::CardTraffic::frames);
  CardPort& operator=(CardPort&&) = delete;

  [[nodiscard]] const rdma::mlx5::CardQueuePair& queue_pair() const noexcept { return pair_; }
  /// Returns the first byte of the frames.
  [[nodiscard]] std::byte* frames() const noexcept { return memory_.bytes().data(); }
  /// Rings the card for threads, as CardQueuePair::relay() does.
  bool relay() noexcept { return pair_.relay(); }

  /// Returns the size of the image: the data that device functions need beside frames and rings, as
  /// plain bytes to copy to their memory. It begins with their handle, a
  /// kernels::packets::CardQueue.
  [[nodiscard]] std::size_t image_bytes() const noexcept;
  /// Returns the bytes that go to `at`, where device functions see them, aligned to 64; once.
  /// `frames`: where they see the frames. `rings`: host() or device() of queue_pair().
  [[nodiscard]] std::vector<std::byte> image_for(std::byte* at, std::byte* frames,
                                                 const rdma::QueuePairMemory& rings) const;

 private:
  const FrameMemory& memory_;
  rdma::Handle<ibv_mr, ibv_dereg_mr> region_;
  rdma::mlx5::CardQueuePair pair_;
  std::uint32_t inline_bytes_;
};

/// The image of a port in memory of this process, for device functions on its threads.
class HostCardQueue {
 public:
  /// The port outlives it.
  explicit HostCardQueue(const CardPort& port);
  [[nodiscard]] const kernels::packets::CardQueue& queue() const noexcept {
    return *reinterpret_cast<const kernels::packets::CardQueue*>(lines_.data());
  }

 private:
  struct alignas(64) ImageLine {
    std::byte bytes[64];
  };
  std::vector<ImageLine> lines_;
};

}  // namespace offload::packets
