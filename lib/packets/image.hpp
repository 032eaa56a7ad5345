#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "kernels/packets/queue.hpp"
#include "packets/frame_memory.hpp"
#include "packets/port.hpp"

namespace offload::packets {

/// The words of a ring that only device functions use.
struct alignas(64) RingWords {
  std::uint32_t producer;
  alignas(64) std::uint32_t consumer;
  std::uint32_t flags;  ///< 0: no thread is woken
};

/// The data of the ports of one FrameMemory for device functions, as plain bytes to copy to their
/// memory: the handles of the queues, the order of their rings, and the frames to send.
class Image {
 public:
  /// Returns the address of device functions for one of this process, in the frames or a ring.
  using SeenAt = std::function<void*(void*)>;

  /// The ports outlive it. Throws Error (invalid_value) if they are not all of the memory.
  Image(const FrameMemory& memory, std::span<const Port* const> ports);

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// The bytes that go to `at`, where device functions see them, aligned to 64. Once, as the rings
  /// begin with them.
  [[nodiscard]] std::vector<std::byte> made_for(std::byte* at, const SeenAt& seen_at) const;
  /// Returns the handles of all ports, in their order: kernels::packets::Queue[queue_count()].
  [[nodiscard]] kernels::packets::Queue* queues(std::byte* at) const noexcept;
  [[nodiscard]] std::size_t queue_count() const noexcept { return queue_count_; }

 private:
  struct Writer;

  const FrameMemory& memory_;
  std::vector<const Port*> ports_;
  std::size_t queue_count_ = 0;
  std::size_t hardware_count_ = 0;
  std::size_t bytes_ = 0;
};

/// The pages that device functions reach: frames and rings. For gpu::HostRegistration, each once.
std::vector<std::span<std::byte>> pages_of(const FrameMemory& memory,
                                           std::span<const Port* const> ports);

/// An image in memory of this process, for device functions on its threads.
class HostImage {
 public:
  HostImage(const FrameMemory& memory, std::span<const Port* const> ports);
  [[nodiscard]] std::span<kernels::packets::Queue> queues() const noexcept { return queues_; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
  std::span<kernels::packets::Queue> queues_;
};

}  // namespace offload::packets
