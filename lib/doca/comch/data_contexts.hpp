#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "doca/comch/connection.hpp"
#include "progress/context.hpp"
#include "progress/task.hpp"
#include "tasks/memory/buffer.hpp"

namespace offload::doca {

class ConsumerContext;
class GpuReceiver;
class GpuSender;
class ProducerContext;

/// The most immediate bytes of a message: those of DOCA's hardware.
inline constexpr std::uint32_t kMostImmediate = 32;
/// The most bytes of a message without them.
inline constexpr std::uint64_t kMostMessageData = std::uint64_t{1} << 30;
/// The most buffers of a list that is sent.
inline constexpr std::uint32_t kMostSentBuffers = 32;

/// A posted buffer: the next message is written behind its data. No buffer: for immediates.
class PostedReceive final : public progress::Task {
 public:
  using ContextType = ConsumerContext;

  memory::BufferRef buffer;
  std::array<std::byte, kMostImmediate> immediate{};
  std::uint32_t immediate_length = 0;
  std::uint32_t producer = 0;

  void let_go() noexcept { buffer.reset(); }
};

/// The data of a buffer or of a list of them, and immediate bytes, for a consumer of the peer.
class DataTask final : public progress::Task {
 public:
  using ContextType = ProducerContext;

  memory::BufferRef buffer;
  std::span<const std::byte> immediate;
  std::uint32_t consumer = 0;

  void let_go() noexcept { buffer.reset(); }

 private:
  friend ProducerContext;
  std::shared_ptr<RemoteConsumer> receiver_;  ///< while the system does not have all bytes
  std::atomic<RemoteConsumer::Progress> progress_{};
};

/// Counts a user of a connection's owner for as long as it lives.
class ConnectionUse {
 public:
  explicit ConnectionUse(std::shared_ptr<ComchConnection> connection);
  ConnectionUse& operator=(ConnectionUse&&) = delete;
  ~ConnectionUse();
  [[nodiscard]] ComchConnection* operator->() const noexcept { return connection_.get(); }

 private:
  std::shared_ptr<ComchConnection> connection_;
};

/// Receives messages into posted buffers, in the order of posting. It is starting until the peer
/// knows it. Thread rules: as Context; its connection may be of another thread.
class ConsumerContext final : public progress::Context, progress::EventHandler {
 public:
  using LostCallback = void (*)(void* user_data);

  /// `lost`: called in a turn when the peer is gone while no buffer is posted.
  ConsumerContext(std::shared_ptr<ComchConnection> connection, LostCallback lost, void* user_data)
      : Context("comch consumer", Turns::always),
        connection_(std::move(connection)),
        lost_(lost),
        user_data_(user_data) {}
  ~ConsumerContext() override { end(); }

  /// Sets the data path of a kernel, instead of tasks; null: tasks. It is idle, and `receiver`
  /// outlives its stop.
  void set_receiver(GpuReceiver* receiver) noexcept { receiver_ = receiver; }
  /// The number by which producers of the peer name it; 0 before the start.
  [[nodiscard]] std::uint32_t id() const noexcept { return own_ ? own_->id : 0; }

 private:
  void on_events(std::uint32_t) override {}  // it is polled in each turn
  Step on_start() override;
  Step on_stop() noexcept override;
  core::Status on_submit(progress::Task& task) noexcept override;
  void on_flush() noexcept override;
  bool on_poll(std::size_t most) override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;
  }
  core::Duration arm() override;

  bool poll_start();
  bool receive_one();
  bool begin_message();
  void lose(const std::string& why) noexcept;

  ConnectionUse connection_;
  LostCallback lost_;
  void* user_data_;
  GpuReceiver* receiver_ = nullptr;
  std::shared_ptr<OwnConsumer> own_;
  std::unique_ptr<Link> link_;  ///< null while the receiver has it
  FrameHead head_;              ///< of the message that is arriving
  std::size_t missing_ = 0;     ///< bytes of it, without immediate ones
  bool is_in_message_ = false;  ///< head and immediate bytes have arrived
  bool has_head_ = false;
  bool is_watched_ = false;
};

/// Sends messages to consumers of the peer. A task completes when the system has all of its bytes.
/// Thread rules: as ConsumerContext.
class ProducerContext final : public progress::Context {
 public:
  using LostCallback = ConsumerContext::LostCallback;

  /// `lost`: called in a turn when the data path of a kernel has failed.
  ProducerContext(std::shared_ptr<ComchConnection> connection, LostCallback lost, void* user_data)
      : Context("comch producer", Turns::always),
        connection_(std::move(connection)),
        id_(connection_->next_producer()),
        lost_(lost),
        user_data_(user_data) {}
  ~ProducerContext() override { end(); }

  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  /// As ConsumerContext::set_receiver().
  void set_sender(GpuSender* sender) noexcept { sender_ = sender; }

 private:
  Step on_start() override;
  Step on_stop() noexcept override;
  void on_abandon() noexcept override;
  core::Status on_submit(progress::Task& task) noexcept override;
  bool on_poll(std::size_t most) override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return in_flight() != 0 ? progress::Expecting::from_device : progress::Expecting::nothing;
  }
  core::Duration arm() override;
  RemoteConsumer* find_receiver(std::uint32_t id);
  bool complete_sent(std::size_t most);
  /// Returns whether a message has begun that has not ended.
  bool is_sending() noexcept;

  ConnectionUse connection_;
  std::uint32_t id_;
  LostCallback lost_;
  void* user_data_;
  GpuSender* sender_ = nullptr;
  std::shared_ptr<RemoteConsumer> receiver_;  ///< the one that was found last
  std::uint32_t receiver_id_ = 0;
  core::TimePoint end_of_halt_{};  ///< of a stop if no more bytes are sent until then
  core::TimePoint end_of_stop_{};
};

}  // namespace offload::doca
