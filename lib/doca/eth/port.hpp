#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/clock.hpp"
#include "core/fd.hpp"

namespace offload::doca {

/// The Ethernet queues of a network interface, which the contexts of this process share: a
/// packets::Port. Each queue has one receiver and one sender at a time. It is closed with the last
/// reference.
class EthPort {
 public:
  static constexpr std::uint32_t kQueues = 8;  ///< of an interface
  /// The longest frame, bytes: a place of AF_XDP, less the kernel's headroom in it.
  static constexpr std::uint32_t kMostFrame = 4096 - 256;
  /// The frames that wait for all receivers of an interface, and those that a sender has in flight.
  static constexpr std::uint32_t kFrames = 1024;

  /// Returns whether the library is built with the extension packets.
  static bool is_supported() noexcept;
  /// Returns the port of an interface; opens it if no other context has it. Any thread. Throws
  /// Error: not_supported without the extension packets or for an interface of several hardware
  /// queues, not_found, not_permitted, in_use, invalid_value for OFFLOAD_DOCA_ETH_RULES.
  static std::shared_ptr<EthPort> open(const std::string& interface);

  EthPort() = default;
  EthPort& operator=(EthPort&&) = delete;
  virtual ~EthPort() = default;

  // Any thread.

  /// Makes the caller the receiver of a queue: the rules that name it hold from now on. Throws
  /// Error: in_use, invalid_value for a queue from kQueues on.
  virtual void begin_receiving(std::uint32_t queue) = 0;
  /// Ends that: frames of its rules go to the kernel's stack, and those that wait are dropped.
  virtual void end_receiving(std::uint32_t queue) noexcept = 0;
  /// Returns a queue whose sender the caller becomes. Throws Error (full).
  virtual std::uint32_t begin_sending() = 0;
  virtual void end_sending(std::uint32_t queue) noexcept = 0;
  /// Returns a descriptor for the caller alone: readable with each frame of the queue. Throws
  /// Error.
  [[nodiscard]] virtual core::Fd watch(std::uint32_t queue) const = 0;

  /// Looks once a second whether the interface is gone, which no descriptor tells. `next_look`: the
  /// caller's, when to look.
  virtual bool is_gone(core::TimePoint now, core::TimePoint& next_look) noexcept = 0;

  // The receiver of the queue.

  /// Calls `take` for up to `most` frames that have arrived. Returns their number.
  virtual std::size_t receive(std::uint32_t queue, std::size_t most,
                              const std::function<void(std::span<const std::byte>)>& take) = 0;

  // The sender of the queue.

  /// A frame to be written and sent.
  struct Room {
    std::uint32_t number;  ///< below kFrames
    std::span<std::byte> bytes;
  };
  /// Returns none while all frames are in flight.
  virtual std::optional<Room> take_room(std::uint32_t queue) noexcept = 0;
  /// Sends the first `length` bytes of a room.
  virtual void send(std::uint32_t queue, const Room& room, std::uint32_t length) noexcept = 0;
  /// Gives a room back that is not sent; take_sent() returns its number.
  virtual void return_room(std::uint32_t queue, const Room& room) noexcept = 0;
  /// Wakes the driver, if it waits for that. Not for each frame.
  virtual void wake(std::uint32_t queue) noexcept = 0;
  /// Writes the numbers of frames that were sent. Returns how many.
  virtual std::size_t take_sent(std::uint32_t queue, std::span<std::uint32_t> numbers) noexcept = 0;
};

/// Writes the checksums of a frame's IPv4 header (`ip`), and of its UDP or TCP (`transport`).
/// Frames that have none stay as they are.
void write_checksums(std::span<std::byte> frame, bool ip, bool transport) noexcept;

/// Returns a number that is the same for all frames of one sender, receiver and pair of ports; 0
/// for a frame without IP.
std::uint32_t hash_of(std::span<const std::byte> frame) noexcept;

}  // namespace offload::doca
