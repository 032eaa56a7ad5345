#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "channel/doorbell.hpp"
#include "core/clock.hpp"
#include "core/status.hpp"
#include "kernels/channel_layout.hpp"
#include "progress/context.hpp"
#include "progress/engine.hpp"
#include "progress/task_pool.hpp"

namespace offload::channel {

class Requester;

/// A request on its way to the worker. It is in flight until its response has been received.
class SendTask final : public progress::Task {
 public:
  using ContextType = Requester;

  /// When it was posted, as post() was told.
  [[nodiscard]] core::TimePoint posted_at() const noexcept { return posted_at_; }
  /// How many workers were lost with it: move_to() has posted it again so often.
  [[nodiscard]] std::uint32_t moves() const noexcept { return moves_; }

 private:
  friend Requester;
  core::TimePoint posted_at_;
  std::uint32_t length_ = 0;
  std::uint32_t moves_ = 0;
};

/// A receive, posted for the next response. Completed, it holds that response and the slot that it
/// came in, until Requester::release() posts it again. Its user_data is that of the request.
class PostRecvTask final : public progress::Task {
 public:
  using ContextType = Requester;

  /// Which message of the channel was answered, and how many bytes it has.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
  [[nodiscard]] std::uint32_t request_length() const noexcept { return request_length_; }
  /// Anything but ok: no payload.
  [[nodiscard]] kernels::Status response_status() const noexcept { return response_status_; }
  [[nodiscard]] std::span<std::byte> payload() const noexcept { return payload_; }

 private:
  friend Requester;
  std::uint64_t sequence_ = 0;
  std::uint32_t request_length_ = 0;
  std::span<std::byte> payload_;
  kernels::Status response_status_ = kernels::Status::ok;
  bool holds_slot_ = false;
};

/// The requester's end of a channel's memory, which outlives the requester's use of it.
struct Endpoint {
  std::uint32_t index;
  kernels::ChannelView view;
  Ringer ringer;            ///< wakes the worker
  Waiter waiter;            ///< for its responses
  std::uint64_t first = 0;  ///< the sequence of the first message to be sent
};

/// Sends requests over a channel and receives their responses, in order. It owns a SendTask and a
/// PostRecvTask for each slot; where all slots are taken the channel is full, which is
/// back-pressure and no error. A slot is taken from post() until its response is released and that
/// is flushed.
///
/// Each worker has a channel memory of its own; where another takes the place of one, move_to()
/// carries the requests over. What a former worker still writes is in memory that nobody reads.
///
///     post(payload, pointer)   ...   flush()                     wakes the worker if it sleeps
///     on_response(task), task.user_data == pointer               from turns of the engine
///     release(task)            ...   flush()                     frees the slots
///
/// A progress::Context, of its engine's thread. Nothing allocates after construction.
class Requester final : public progress::Context, progress::EventHandler {
 public:
  /// `handler`.on_response(PostRecvTask&) is called with each response, from turns of the engine.
  /// It may post and release. It outlives the requester.
  template <class Handler>
  Requester(const Endpoint& endpoint, Handler& handler)
      : Requester(endpoint, ReceivePool::Receiver{&deliver<Handler>, &handler}) {}
  ~Requester() override;

  /// Connects to `engine`, starts, and posts all receives. Once; stop(), or the end of the object,
  /// ends it. Throws Error.
  void open(progress::Engine& engine);

  /// Copies `message`, of at most max_length() bytes, into the next slot, unless it is a long one
  /// that lies there already. `again`: the channel is full. `invalid_value`: it is too long. `now`:
  /// for SendTask::posted_at(), where somebody asks for it.
  [[nodiscard]] core::Status post(std::span<const std::byte> message, void* user_data,
                                  core::TimePoint now = {}) noexcept;
  /// Posts the receive again, which frees its slot. In the order of the responses, else
  /// invalid_value.
  [[nodiscard]] core::Status release(PostRecvTask& task) noexcept { return submit_unflushed(task); }

  /// Calls `visit`(SendTask&) for each request without a response, oldest first. One whose
  /// user_data is set to null is given up: its response still comes, with null.
  template <class Visit>
  void for_each_pending(Visit visit) {
    for (std::uint64_t i = received_; i != posted_; ++i)
      visit(*pending_[view_.layout.slot_index(i)]);
  }

  /// Goes on over another memory of the same shape, with another worker: posts the requests without
  /// a response there again, in their order, except those that were given up. All responses were
  /// released and flushed. Throws Error: invalid_value, bad_state, or that the doorbell cannot be
  /// watched; then nothing has changed.
  void move_to(const Endpoint& endpoint, Wakeup wakeup);

  /// The oldest request without a response; there is one.
  [[nodiscard]] const SendTask& oldest() const noexcept {
    return *pending_[view_.layout.slot_index(received_)];
  }

  /// With `none` no response is taken any more, whatever the former worker writes.
  void set_wakeup(Wakeup wakeup) noexcept { wakeup_ = wakeup; }
  [[nodiscard]] Wakeup wakeup() const noexcept { return wakeup_; }

  /// Messages that fit into the channel, and bytes of a message.
  [[nodiscard]] std::uint32_t capacity() const noexcept { return view_.layout.depth; }
  [[nodiscard]] std::uint32_t max_length() const noexcept { return view_.layout.max_length; }
  [[nodiscard]] bool full() const noexcept { return posted_ - freed_ == capacity(); }
  /// Requests without a response yet.
  [[nodiscard]] std::uint64_t awaited() const noexcept { return posted_ - received_; }

  // For a proxy of the worker, on the same engine.

  [[nodiscard]] const kernels::ChannelView& view() const noexcept { return view_; }
  /// Up to here messages were posted, and their responses received: sequences.
  [[nodiscard]] std::uint64_t posted() const noexcept { return posted_; }
  [[nodiscard]] std::uint64_t received() const noexcept { return received_; }

  [[nodiscard]] progress::Expecting expecting() const override;
  core::Duration arm() override;
  void disarm() override;

 private:
  using ReceivePool = progress::TaskPool<PostRecvTask>;
  /// A receive that ends without a response is nobody's.
  template <class Handler>
  static void deliver(progress::Task& task, void* handler) {
    if (!task.status().ok()) return;
    static_cast<Handler*>(handler)->on_response(static_cast<PostRecvTask&>(task));
  }

  Requester(const Endpoint& endpoint, ReceivePool::Receiver on_response);

  core::Status on_submit(progress::Task& task) noexcept override;
  void on_flush() noexcept override;
  bool on_poll(std::size_t most) override;
  void on_events(std::uint32_t) override { waiter_.drain(); }

  void repost(const kernels::ChannelView& from, std::uint64_t sequence, SendTask& task) noexcept;
  bool take_response(PostRecvTask& task) noexcept;

  kernels::ChannelView view_;
  Ringer ringer_;
  Waiter waiter_;
  Wakeup wakeup_ = Wakeup::none;
  bool armed_ = false;
  // Sequences: posted >= received >= released >= freed.
  std::uint64_t posted_;
  std::uint64_t received_;
  std::uint64_t released_;
  std::uint64_t freed_;      ///< released_ as of the last flush
  std::uint64_t announced_;  ///< posted_ as of the last ring
  progress::TaskPool<SendTask> sends_;
  ReceivePool receives_;
  std::vector<SendTask*> pending_;         ///< by slot
  std::vector<SendTask*> moving_;          ///< in move_to()
  std::unique_ptr<std::byte[]> payloads_;  ///< out of packets, by slot
};

}  // namespace offload::channel
