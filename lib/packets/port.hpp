#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/cpu.hpp"
#include "core/error.hpp"
#include "core/fd.hpp"
#include "packets/frame_memory.hpp"
#include "packets/socket.hpp"
#include "packets/steering.hpp"
#include "progress/context.hpp"
#include "progress/engine.hpp"

namespace offload::packets {

struct PortOptions {
  std::string interface;
  /// Queues of the interface (RX and TX of the same number); empty: all. Frames of other queues go
  /// to the kernel's stack.
  std::vector<std::uint32_t> hardware_queues{};
  std::uint32_t queues = 1;  ///< that rules choose from, of each hardware queue
  bool only_copy = false;    ///< no zero copy, though the driver may have it
  /// The engine's turns wake the driver. Else those who send do, by wake().
  bool wakes_driver = true;
};

/// An Ethernet port: queues of a network interface that device functions (kernels/packets) receive
/// from and send to, by AF_XDP, with the rules that say which frames get there. All else of the
/// interface's traffic is the kernel's, as before; and so is all of it once the port has stopped,
/// or its process is gone.
///
///     packets::FrameMemory memory({.homes = packets::homes_of(options)});
///     packets::Port port(memory, options);
///     port.steering().set_rules({packets::parse_rule("udp dport 4000 to 0", 1)});
///     port.connect(engine);
///     const packets::Image image(memory, ports);     // what device functions get
///     port.start();
///
/// What a CPU is for is system calls: a driver that has to be told of packets to send, or of free
/// frames, is told in turns of the engine. While it runs the engine looks in each turn, at least
/// every 50 us, and at once when packets have come.
///
/// One thread, that of the engine, but for wake(). It is started once: its rings' positions go on.
class Port final : public progress::Context, progress::EventHandler {
 public:
  /// Called once, in a turn of the engine, when the interface is gone. It must not throw.
  using OnError = std::function<void(Port&, const core::Error&)>;

  /// A hardware queue, with the frames that it receives into.
  struct HardwareQueue {
    std::uint32_t number;
    std::uint32_t home;
    std::size_t first;  ///< of queues(), whose socket has fill and completion ring
  };
  /// A queue that rules choose, with the frames that it sends.
  struct PortQueue {
    std::uint32_t hardware_queue;
    std::uint32_t number;
    std::uint32_t home;
    Socket socket;
  };

  /// Makes and binds the sockets, and loads the program. Throws Error: not_found for an interface
  /// or queue that there is not, not_permitted with the capability that is missing, in_use, full if
  /// the memory has not as many homes.
  Port(FrameMemory& memory, PortOptions options, OnError on_error = {});
  ~Port() override;

  [[nodiscard]] Steering& steering() noexcept { return steering_; }
  [[nodiscard]] const Steering& steering() const noexcept { return steering_; }
  [[nodiscard]] std::span<const HardwareQueue> hardware_queues() const noexcept {
    return hardware_;
  }
  /// In the order of hardware queues, and of numbers in each.
  [[nodiscard]] std::span<const PortQueue> queues() const noexcept { return queues_; }
  [[nodiscard]] bool is_zero_copy() const { return queues_.front().socket.is_zero_copy(); }
  /// Returns the statistics of all its queues.
  [[nodiscard]] Socket::Statistics statistics() const;

  /// Wakes the driver for frames to send and free frames of a queue, if it needs to be woken.
  /// Returns whether it was. Any thread; at most one system call for each.
  bool wake(std::size_t queue) noexcept;
  /// Returns how often the driver was woken. Any thread.
  [[nodiscard]] std::uint64_t wake_ups() const noexcept;

 private:
  Step on_start() override;
  Step on_stop() noexcept override;
  void on_abandon() noexcept override { leave(); }
  core::Status on_submit(progress::Task&) noexcept override {
    return core::ErrorCode::not_supported;
  }
  bool on_poll(std::size_t most) override;
  core::Duration arm() override;
  void on_events(std::uint32_t epoll_events) override;

  void add_hardware_queue(FrameMemory& memory, std::uint32_t number, unsigned interface_index);
  void fill(const HardwareQueue& hardware) const noexcept;
  void leave() noexcept;
  void look_at_link();

  PortOptions options_;
  const FrameMemory& memory_;
  OnError on_error_;
  Steering steering_;
  std::vector<HardwareQueue> hardware_;
  std::vector<PortQueue> queues_;
  core::Fd control_;  ///< any socket, to ask for the interface's state
  core::TimePoint next_look_{};
  /// The count of a queue, separate from words of other threads. Relaxed: it orders nothing.
  struct alignas(core::kCacheLinePair) WakeUps {
    std::atomic<std::uint64_t> count{0};
  };
  std::unique_ptr<WakeUps[]> wake_ups_;  ///< by queue
  bool is_up_ = true;
  bool is_used_ = false;
  bool is_gone_ = false;
  std::optional<core::Error> error_;
};

/// Returns the number of homes of frames that a port with these options needs. Throws Error
/// (not_found).
std::uint32_t homes_of(const PortOptions& options);

}  // namespace offload::packets
