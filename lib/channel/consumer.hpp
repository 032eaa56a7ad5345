#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "channel/producer.hpp"
#include "channel/server_end.hpp"
#include "progress/context.hpp"

namespace offload::channel {

class Consumer;

/// A receive, posted for the next response. When it is done it holds that response, and the slot
/// that it came in, until it is submitted (posted) again.
class PostRecvTask : public progress::Task {
 public:
  using ContextType = Consumer;

  /// What it answers; null if that was given up when the producer stopped.
  [[nodiscard]] SendTask* request() const noexcept { return request_; }
  /// Anything but ok: no payload.
  [[nodiscard]] kernels::Status response_status() const noexcept { return response_status_; }
  [[nodiscard]] std::span<std::byte> payload() const noexcept { return payload_; }

 private:
  friend Consumer;
  SendTask* request_ = nullptr;
  std::span<std::byte> payload_;
  std::uint64_t sequence_ = 0;
  kernels::Status response_status_ = kernels::Status::ok;
  bool holds_slot_ = false;
};

/// Receives responses, in the order of their requests. Tasks are posted again in the order in which
/// they came, else invalid_value; flush() then ends the SendTasks of the slots that got free. More
/// posted than there are slots is `full`. Nothing allocates after construction.
///
/// Its engine is the producer's. Stop it before the producer.
class Consumer final : public progress::Context {
 public:
  Consumer(const ServerEnd& server_end, Producer& producer);
  ~Consumer() override { end(); }

  /// Requests without a response yet.
  [[nodiscard]] std::uint64_t awaited() const noexcept {
    return cursors_->posted - cursors_->received;
  }

  /// Readable, edge-triggered, when a response came while its engine slept.
  [[nodiscard]] int wake_fd() const noexcept { return waiter_.fd(); }

  void set_peer(Peer peer) noexcept;
  [[nodiscard]] Peer peer() const noexcept { return peer_; }

  [[nodiscard]] progress::Expecting expecting() const override;
  core::Duration arm() override;
  void disarm() override;

 private:
  core::Status on_submit(progress::Task& task) noexcept override;
  void on_flush() noexcept override;
  bool on_poll(std::size_t most) override;
  bool take_response(PostRecvTask& task) noexcept;

  kernels::ChannelView channel_;
  Cursors* cursors_;
  Producer* producer_;
  Waiter waiter_;
  Peer peer_ = Peer::absent;
  bool armed_ = false;
  std::unique_ptr<std::byte[]> packed_;  ///< payloads out of packets, by slot
};

}  // namespace offload::channel
