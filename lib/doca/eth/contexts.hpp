#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "doca/eth/port.hpp"
#include "progress/context.hpp"
#include "progress/task.hpp"
#include "tasks/memory/buffer.hpp"

namespace offload::doca {

class EthReceiveContext;
class EthSendContext;
class GpuEthReceiver;
class GpuEthSender;

/// A buffer for the next frame, which is written behind its data.
class EthReceiveTask final : public progress::Task {
 public:
  using ContextType = EthReceiveContext;

  memory::BufferRef buffer;
  std::uint32_t hash = 0;
  std::uint64_t time = 0;  ///< nanoseconds of CLOCK_REALTIME at which the context took the frame

  void let_go() noexcept { buffer.reset(); }
};

/// A frame to send: the data of a buffer, or of a list of them.
class EthSendTask final : public progress::Task {
 public:
  using ContextType = EthSendContext;

  memory::BufferRef buffer;

  void let_go() noexcept { buffer.reset(); }
};

/// The most buffers of a frame that is sent.
inline constexpr std::uint32_t kMostFrameBuffers = 32;

/// Receives the frames of a queue into buffers, in the order of their submission. A frame that is
/// longer than the tailroom of its buffer fails the task with `io_failed`; not_connected says that
/// the interface is gone, which is seen within a second while a buffer waits. Submission returns
/// invalid_value without a buffer, not_permitted for a region that is read-only, and not_supported
/// for memory that the processor cannot reach.
class EthReceiveContext final : public progress::Context, progress::EventHandler {
 public:
  explicit EthReceiveContext(std::string interface)
      : Context("eth receiver"), interface_(std::move(interface)) {}
  ~EthReceiveContext() override { end(); }

  /// Sets the data path of a kernel, instead of tasks; null: tasks. It is idle, and `receiver`
  /// outlives its stop.
  void set_receiver(GpuEthReceiver* receiver) noexcept { receiver_ = receiver; }
  /// Receives from a queue of the interface from now on. Throws Error: bad_state if it is not
  /// running, or has one; in_use, invalid_value.
  void set_queue(std::uint32_t queue);
  /// The program wants the hash and time of each frame.
  void set_wanted(bool hash, bool time) noexcept {
    wants_hash_ = hash;
    wants_time_ = time;
  }

 private:
  static constexpr std::size_t kAtOnce = 64;

  /// Frames are there: a context with tasks is polled in each turn.
  void on_events(std::uint32_t) override {}
  Step on_start() override;
  Step on_stop() noexcept override;
  core::Status on_submit(progress::Task& task) noexcept override;
  bool on_poll(std::size_t most) override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;
  }
  /// The descriptor of the queue wakes the engine.
  core::Duration arm() override { return core::Duration::max(); }

  /// Writes a frame to a task's buffer. Returns whether it fits.
  bool fill(EthReceiveTask& task, std::span<const std::byte> frame) const;
  std::size_t receive(std::size_t most);

  std::string interface_;
  std::shared_ptr<EthPort> port_;  ///< since the start
  std::optional<std::uint32_t> queue_;
  core::Fd watched_;  ///< while it has a queue and tasks
  GpuEthReceiver* receiver_ = nullptr;
  core::TimePoint next_look_{};  ///< at the interface
  bool wants_hash_ = false;
  bool wants_time_ = false;
};

/// Sends frames, in the order of their submission. A task completes when the interface has taken
/// its frame off the queue; not_connected says that the interface is gone, as of a receiver.
/// Submission returns invalid_value for no buffer and for a frame of less than 14 bytes or more
/// than EthPort::kMostFrame, not_supported for too many buffers and for memory that the processor
/// cannot reach.
class EthSendContext final : public progress::Context {
 public:
  explicit EthSendContext(std::string interface)
      : Context("eth sender"), interface_(std::move(interface)) {}
  ~EthSendContext() override { end(); }

  /// As EthReceiveContext::set_receiver().
  void set_sender(GpuEthSender* sender) noexcept { sender_ = sender; }
  /// Checksums that the context writes, of the IPv4 header and of UDP and TCP.
  void set_checksums(bool ip, bool transport) noexcept {
    writes_ip_checksum_ = ip;
    writes_transport_checksum_ = transport;
  }

 private:
  static constexpr std::size_t kAtOnce = 64;

  Step on_start() override;
  Step on_stop() noexcept override;
  core::Status on_submit(progress::Task& task) noexcept override;
  void on_flush() noexcept override;
  bool on_poll(std::size_t most) override;
  core::Duration arm() override;

  void write(const EthSendTask& task, const EthPort::Room& room) const noexcept;

  std::string interface_;
  std::shared_ptr<EthPort> port_;  ///< since the start
  std::uint32_t queue_ = 0;
  GpuEthSender* sender_ = nullptr;
  core::TimePoint next_look_{};
  EthSendTask* next_ = nullptr;         ///< the first task whose frame is not in the queue
  std::vector<EthSendTask*> in_queue_;  ///< by the number of the frame
  bool writes_ip_checksum_ = false;
  bool writes_transport_checksum_ = false;
};

}  // namespace offload::doca
