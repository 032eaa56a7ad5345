#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "channel/batch_buffer.hpp"
#include "channel/slot_queue.hpp"
#include "core/clock.hpp"
#include "core/status.hpp"
#include "progress/engine.hpp"

namespace offload::channel {

/// A request on its way to the worker. It is in flight until its response has been received.
class RequestTask {
 public:
  void* user_data = nullptr;
  /// For the caller, who may set them after post(): when the message reached it, and the
  /// microseconds that the message waited until it was posted. They hold until its response is
  /// released.
  core::TimePoint arrived{};
  std::uint32_t waited_us = 0;

  /// Returns the time of its posting that was passed to post().
  [[nodiscard]] core::RunTime posted_at() const noexcept { return posted_at_; }
  /// Returns the bytes of the message.
  [[nodiscard]] std::uint32_t length() const noexcept { return length_; }

 private:
  friend class Requester;
  std::uint32_t length_ = 0;
  core::RunTime posted_at_;
};

/// A receive, posted for the next response. When completed, it holds that response until
/// Requester::release() posts it again. For a handler that takes runs it may hold several.
class PostRecvTask {
 public:
  /// Returns the user_data of the request.
  void* user_data = nullptr;

  /// Returns the number of responses: consecutive ones, for requests with the same user_data.
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  /// Returns the sequence, from 0, of the answered message of the requester; the last of several.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
  /// Returns the status; there is a payload only if it is ok.
  [[nodiscard]] kernels::ResponseStatus response_status() const noexcept { return status_; }
  /// Returns the payload of a single response.
  [[nodiscard]] std::span<std::byte> payload() const noexcept { return payload_; }
  /// Returns the whole checked frame for a client (protocol/frame.hpp) if the response came in a
  /// batch, else an empty span. The frames of a batch are contiguous; for several responses it
  /// returns all of them.
  [[nodiscard]] std::span<std::byte> frame() const noexcept {
    if (!framed_) return {};
    return {payload_.data() - kernels::kFrameHeader, payload_.size() + kernels::kFrameHeader};
  }

 private:
  friend class Requester;
  std::uint64_t sequence_ = 0;
  std::span<std::byte> payload_;
  std::uint32_t count_ = 1;
  kernels::ResponseStatus status_ = kernels::ResponseStatus::ok;
  std::uint64_t slots_end_ = 0;  ///< after its slot, if it is the last in it; else before
  bool framed_ = false;
};

/// A handler of responses that accepts those of one batch and one user_data together, if all are
/// valid. It returns the longest valid response to a request of `length`.
template <class Handler>
concept TakesRuns = requires(Handler& handler, std::uint32_t length) {
  { handler.longest_response(length) } -> std::same_as<std::uint32_t>;
};

/// Sends requests over a channel and receives their responses, in order. Short requests that are
/// posted before a flush share slots. If all slots are in use, or the maximum number of requests is
/// in flight, the channel is full, which is back-pressure and not an error.
///
/// Each worker has a separate channel memory; when another worker replaces one, move_to() moves the
/// requests. A former worker can still write only to memory that is no longer read.
///
///     post(payload, pointer)   ...   flush()                     hands them to the worker
///     on_response(task), task.user_data == pointer               from turns of the engine
///     release(task)            ...   flush()                     frees the slots
///
/// One thread, that of its engine. Nothing allocates after construction.
class Requester {
 public:
  /// Calls `handler`.on_response(PostRecvTask&) with each response, or run of them (TakesRuns),
  /// from turns of the engine. The handler may post and release. It outlives the requester.
  template <class Handler>
  Requester(const ChannelEndpoint& endpoint, Handler& handler)
      : Requester(endpoint, {&handler, &deliver<Handler>, limit_of<Handler>()}) {}
  Requester& operator=(Requester&&) = delete;

  /// Opens the requester, once; close() or the destructor closes it. Throws Error.
  void open(progress::Engine& engine) { slots_.open(engine); }
  void close() noexcept {
    slots_.close();
    batch_.clear();
  }

  /// Copies `message`, of at most max_length() bytes; the worker has it after the next flush() at
  /// the latest. Returns `again` if the channel is full, `invalid_value` if it is too long,
  /// `bad_state` if not open. `now`: for RequestTask::posted_at(), if that is used.
  [[nodiscard]] core::Status post(std::span<const std::byte> message, void* user_data,
                                  core::RunTime now = {}) noexcept {
    const std::size_t length = message.size();
    const bool joins = !batch_.empty() && length <= BatchBuffer::kLongest &&
                       batch_.fits(static_cast<std::uint32_t>(length), batch_limit_) &&
                       posted_ - released_ != capacity_ && length <= max_length();
    if (!joins) return post_first(message, user_data, now);
    note(length, user_data, now);
    batch_.add(message);
    return {};
  }
  /// Posts the receive again, and those of all responses before it. Returns bad_state if posted.
  [[nodiscard]] core::Status release(const PostRecvTask& task) noexcept {
    if (task.sequence_ < released_) return core::ErrorCode::bad_state;
    released_ = task.sequence_ + 1;
    slots_.release_until(task.slots_end_);
    return {};
  }
  /// Hands posted messages to the worker, which it wakes, and frees released slots.
  void flush() noexcept;

  /// Calls `visit`(RequestTask&) for each request without a response, oldest first. A request whose
  /// user_data is set to null is given up: its response still arrives, with null.
  template <class Visit>
  void for_each_pending(Visit visit) {
    for (std::uint64_t i = received_; i != posted_; ++i) visit(send(i));
  }

  /// Calls `visit`(const PostRecvTask&) for each response that is not released, oldest first.
  template <class Visit>
  void for_each_unreleased(Visit visit) const {
    for (std::uint64_t i = released_; i != received_;) {
      const PostRecvTask& task = receives_[(i - first_receive_) & (capacity_ - 1)];
      i += task.count();
      visit(task);
    }
  }

  /// Returns a request whose response is not released yet.
  [[nodiscard]] const RequestTask& request(std::uint64_t sequence) const noexcept {
    return sends_[sequence & (capacity_ - 1)];
  }
  /// Returns the request that was posted last. Precondition: there is one.
  [[nodiscard]] RequestTask& newest() noexcept { return send(posted_ - 1); }

  /// Moves to another memory of the same shape, with another worker: reposts the requests without a
  /// response there, in order; of those that were given up, only those that share a slot with
  /// others. All responses must have been released and flushed. Throws Error: invalid_value,
  /// bad_state, or an error of watching the doorbell; then nothing has changed.
  void move_to(const ChannelEndpoint& endpoint, Wakeup wakeup);

  /// Returns the oldest request without a response. Precondition: there is one.
  [[nodiscard]] const RequestTask& oldest() const noexcept {
    return sends_[received_ & (capacity_ - 1)];
  }

  /// Sets the wakeup; with `none`, responses of the former worker are ignored.
  void set_wakeup(Wakeup wakeup) noexcept { slots_.set_wakeup(wakeup); }
  [[nodiscard]] Wakeup wakeup() const noexcept { return slots_.wakeup(); }

  /// Return the maximum number of messages in flight, and of bytes of a message.
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint32_t max_length() const noexcept { return slots_.max_length(); }
  /// Returns the longest response allowed to a request shorter than it.
  [[nodiscard]] std::uint32_t max_response() const noexcept { return slots_.max_response(); }
  /// Returns whether no message of any length can be posted.
  [[nodiscard]] bool full() const noexcept {
    return posted_ - released_ == capacity_ || (batch_.empty() && slots_.full());
  }
  /// Returns the number of requests posted, without those that move_to() did not repost.
  [[nodiscard]] std::uint64_t posted() const noexcept { return posted_; }
  /// Returns the number of requests without a response.
  [[nodiscard]] std::uint64_t awaited() const noexcept { return posted_ - received_; }
  /// Returns the slots, for a proxy of the worker on the same engine.
  [[nodiscard]] SlotQueue& slots() noexcept { return slots_; }
  [[nodiscard]] const SlotQueue& slots() const noexcept { return slots_; }

  /// Called by the slots with a response.
  void on_content(const ContentResponse& response);

 private:
  /// The maximum number of requests in flight for each slot of the channel: half of a full batch,
  /// so that later requests wait only for requests that a fast worker has in flight.
  static constexpr std::uint32_t kMessagesPerSlot = 32;
  /// With fewer messages than this in flight at a polling GPU, each has a separate slot, and with
  /// fewer than that, messages that share one are in packets: as many of 64 bytes as fit in one
  /// slot for each warp of a channel.
  static constexpr std::uint64_t kMostAlone = 4;
  static constexpr std::uint64_t kMostInPackets = 128;

  struct Receiver {
    void* handler;
    void (*deliver)(void* handler, PostRecvTask& task);
    /// Null: each response is delivered separately.
    std::uint32_t (*longest_response)(void* handler, std::uint32_t length);
  };
  template <class Handler>
  static void deliver(void* handler, PostRecvTask& task) {
    static_cast<Handler*>(handler)->on_response(task);
  }
  template <class Handler>
  static constexpr auto limit_of() {
    using Limit = decltype(Receiver::longest_response);
    if constexpr (TakesRuns<Handler>) {
      return Limit{[](void* handler, std::uint32_t length) {
        return static_cast<Handler*>(handler)->longest_response(length);
      }};
    } else {
      return Limit{nullptr};
    }
  }

  Requester(const ChannelEndpoint& endpoint, const Receiver& receiver);

  [[nodiscard]] RequestTask& send(std::uint64_t i) noexcept { return sends_[i & (capacity_ - 1)]; }
  [[nodiscard]] std::uint32_t& messages_of(std::uint64_t sequence) noexcept {
    return messages_of_[slots_.view().layout.slot_index(sequence)];
  }
  /// Returns the maximum of bytes of messages for the batch that begins now; 0: no second message
  /// joins. A GPU of this machine answers many slots at a time, with many warps, and those in
  /// packets without a fence. So while it has few messages and there are slots, it gets small
  /// batches; a busier one gets plain ones, which need less time for each message
  /// (docs/internals/performance.md).
  [[nodiscard]] std::uint32_t limit_of_batch() const noexcept {
    if (slots_.wakeup() != Wakeup::polling || awaited() >= kMostInPackets ||
        slots_.room() <= slots_.depth() / 2) {
      return kernels::kMaxBatchContent;
    }
    return awaited() < kMostAlone ? 0 : kernels::kMaxPacketPayload;
  }
  core::Status post_first(std::span<const std::byte> message, void* user_data,
                          core::RunTime now) noexcept;
  void note(std::size_t length, void* user_data, core::RunTime now) noexcept {
    RequestTask& task = send(posted_++);
    task.user_data = user_data;
    task.posted_at_ = now;
    task.length_ = static_cast<std::uint32_t>(length);
  }
  void post_batch() noexcept;
  void post_content(Content content) noexcept;
  /// Returns the maximum number of bytes of a response to a request of `length`.
  [[nodiscard]] std::uint32_t longest_response(std::uint32_t length) noexcept {
    if (length != last_length_) {
      last_length_ = length;
      longest_response_ = receiver_.longest_response == nullptr
                              ? max_length()
                              : receiver_.longest_response(receiver_.handler, length);
    }
    return longest_response_;
  }
  struct Run {
    std::uint32_t count;
    std::size_t bytes;
  };
  [[nodiscard]] Run find_run(std::span<const std::byte> frames, std::uint32_t most) noexcept;
  void complete(std::uint32_t count, std::span<std::byte> payload, kernels::ResponseStatus status,
                bool framed, std::uint64_t slots_end);
  [[nodiscard]] bool is_wanted(std::uint64_t first, std::uint32_t count) noexcept;

  SlotQueue slots_;
  Receiver receiver_;
  std::uint32_t capacity_;  ///< a power of two
  BatchBuffer batch_;
  std::uint32_t batch_limit_ = 0;  ///< of the gathered messages
  // Messages: posted >= received >= released.
  std::uint64_t posted_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t released_ = 0;
  // A cache of the last result, because most requests have the same length.
  std::uint32_t last_length_ = ~0U;  ///< longer than any
  std::uint32_t longest_response_ = 0;
  std::unique_ptr<RequestTask[]> sends_;  ///< by message
  /// By message, restarted by each flush that finds all released, so that tasks received and
  /// released in the same turn stay in the cache.
  std::unique_ptr<PostRecvTask[]> receives_;
  std::uint64_t first_receive_ = 0;               ///< the message of the first one
  std::unique_ptr<std::uint32_t[]> messages_of_;  ///< by slot
  std::unique_ptr<std::uint32_t[]> moving_;       ///< the same during move_to(), from the oldest on
};

}  // namespace offload::channel
