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
class SendTask {
 public:
  void* user_data = nullptr;

  /// When it was posted, as post() was told.
  [[nodiscard]] core::RunTime posted_at() const noexcept { return posted_at_; }

 private:
  friend class Requester;
  core::RunTime posted_at_;
  std::uint32_t length_ = 0;
};

/// A receive, posted for the next response. Completed, it holds that response, until
/// Requester::release() posts it again. For a handler that takes runs it may stand for several.
class PostRecvTask {
 public:
  /// That of the request.
  void* user_data = nullptr;

  /// How many responses it holds: consecutive ones, for requests of one user_data.
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  /// Which message of the requester was answered, counted from 0; of several, the last.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
  /// Anything but ok: no payload.
  [[nodiscard]] kernels::Status response_status() const noexcept { return status_; }
  /// Of one response.
  [[nodiscard]] std::span<std::byte> payload() const noexcept { return payload_; }
  /// The whole frame for a client (protocol/frame.hpp), checked, if the response came in a batch:
  /// those of one batch lie back to back, and of several responses it is all of them. Else empty.
  [[nodiscard]] std::span<std::byte> frame() const noexcept {
    if (!framed_) return {};
    return {payload_.data() - kernels::kFrameHeader, payload_.size() + kernels::kFrameHeader};
  }

 private:
  friend class Requester;
  std::uint64_t sequence_ = 0;
  std::span<std::byte> payload_;
  std::uint32_t count_ = 1;
  kernels::Status status_ = kernels::Status::ok;
  std::uint64_t slots_end_ = 0;  ///< behind its slot, if it is the last in it; else before
  bool framed_ = false;
};

/// A handler of responses that takes those of one batch and one user_data together, if all are
/// good. It says how long the response to a request of `length` may be; a longer one is bad.
template <class Handler>
concept TakesRuns = requires(Handler& handler, std::uint32_t length) {
  { handler.longest_response(length) } -> std::same_as<std::uint32_t>;
};

/// Sends requests over a channel and receives their responses, in order. Requests that are posted
/// before a flush share slots where they are short. Where all slots are taken, or as many requests
/// are in flight as may be, the channel is full, which is back-pressure and no error.
///
/// Each worker has a channel memory of its own; where another takes the place of one, move_to()
/// carries the requests over. What a former worker still writes is in memory that nobody reads.
///
///     post(payload, pointer)   ...   flush()                     hands them to the worker
///     on_response(task), task.user_data == pointer               from turns of the engine
///     release(task)            ...   flush()                     frees the slots
///
/// On its engine, and one thread, the engine's. Nothing allocates after construction.
class Requester {
 public:
  /// `handler`.on_response(PostRecvTask&) is called with each response, or run of them (TakesRuns),
  /// from turns of the engine. It may post and release. It outlives the requester.
  template <class Handler>
  Requester(const Endpoint& endpoint, Handler& handler)
      : Requester(endpoint, {&handler, &deliver<Handler>, limit_of<Handler>()}) {}
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  /// Begins, once; close(), or the end of the object, ends it. Throws Error.
  void open(progress::Engine& engine) { slots_.open(engine); }
  void close() noexcept {
    slots_.close();
    batch_.clear();
  }

  /// Takes a copy of `message`, of at most max_length() bytes; the worker has it after the next
  /// flush() at the latest. `again`: the channel is full. `invalid_value`: it is too long.
  /// `bad_state`: not open. `now`: for SendTask::posted_at(), where somebody asks for it.
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
  /// Posts the receive again, and those of all responses before it. bad_state: it is posted.
  [[nodiscard]] core::Status release(const PostRecvTask& task) noexcept {
    if (task.sequence_ < released_) return core::ErrorCode::bad_state;
    released_ = task.sequence_ + 1;
    slots_.release_until(task.slots_end_);
    return {};
  }
  /// Hands on what was posted, waking the worker for it, and frees what was released.
  void flush() noexcept;

  /// Calls `visit`(SendTask&) for each request without a response, oldest first. One whose
  /// user_data is set to null is given up: its response still comes, with null.
  template <class Visit>
  void for_each_pending(Visit visit) {
    for (std::uint64_t i = received_; i != posted_; ++i) visit(send(i));
  }

  /// When a request whose response is not released yet was posted, as post() was told.
  [[nodiscard]] core::RunTime posted_at(std::uint64_t sequence) noexcept {
    return send(sequence).posted_at();
  }

  /// Goes on over another memory of the same shape, with another worker: posts the requests without
  /// a response there again, in their order; of those that were given up, only what shares a slot
  /// with others. All responses were released and flushed. Throws Error: invalid_value, bad_state,
  /// or that the doorbell cannot be watched; then nothing has changed.
  void move_to(const Endpoint& endpoint, Wakeup wakeup);

  /// The oldest request without a response; there is one.
  [[nodiscard]] const SendTask& oldest() const noexcept {
    return sends_[received_ & (capacity_ - 1)];
  }

  /// With `none` no response is taken any more, whatever the former worker writes.
  void set_wakeup(Wakeup wakeup) noexcept { slots_.set_wakeup(wakeup); }
  [[nodiscard]] Wakeup wakeup() const noexcept { return slots_.wakeup(); }

  /// Messages that may be in flight, and bytes of a message.
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint32_t max_length() const noexcept { return slots_.max_length(); }
  /// Of a response to a request that is shorter.
  [[nodiscard]] std::uint32_t max_response() const noexcept { return slots_.max_response(); }
  /// Whether no message is taken, of whatever length.
  [[nodiscard]] bool full() const noexcept {
    return posted_ - released_ == capacity_ || (batch_.empty() && slots_.full());
  }
  /// Requests that were posted, without those that move_to() left behind.
  [[nodiscard]] std::uint64_t posted() const noexcept { return posted_; }
  /// Requests without a response yet.
  [[nodiscard]] std::uint64_t awaited() const noexcept { return posted_ - received_; }
  /// The slots below, for a proxy of the worker on the same engine.
  [[nodiscard]] SlotQueue& slots() noexcept { return slots_; }
  [[nodiscard]] const SlotQueue& slots() const noexcept { return slots_; }

  /// For the slots: a response.
  void on_content(const ContentResponse& response);

 private:
  /// Requests in flight a slot of the channel, at most: half of what batches could hold, so that
  /// requests that come later do not wait for more than a fast worker has under way.
  static constexpr std::uint32_t kMessagesPerSlot = 32;
  /// Messages under way at a polling GPU below which one has a slot to itself, and below which
  /// those that share one are in packets: of 64 bytes, as many as a slot for each warp of a channel
  /// holds.
  static constexpr std::uint64_t kMostAlone = 4;
  static constexpr std::uint64_t kMostInPackets = 128;

  struct Receiver {
    void* handler;
    void (*deliver)(void* handler, PostRecvTask& task);
    /// Null: each response is delivered by itself.
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

  Requester(const Endpoint& endpoint, const Receiver& receiver);

  [[nodiscard]] SendTask& send(std::uint64_t i) noexcept { return sends_[i & (capacity_ - 1)]; }
  [[nodiscard]] std::uint32_t& messages_of(std::uint64_t sequence) noexcept {
    return messages_of_[slots_.view().layout.slot_index(sequence)];
  }
  /// How many bytes of messages the batch that begins now may have; 0: no second one joins. A GPU
  /// of this machine answers many slots at once, by many warps, and those in packets without a
  /// fence. So while it has few messages and there are slots, it gets small batches; a busier one
  /// gets plain ones, which cost it and its server less a message (docs/internals/performance.md).
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
    SendTask& task = send(posted_++);
    task.user_data = user_data;
    task.posted_at_ = now;
    task.length_ = static_cast<std::uint32_t>(length);
  }
  void post_batch() noexcept;
  void post_content(Content content) noexcept;
  /// Bytes that the response to a request of `length` may have.
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
  void complete(std::uint32_t count, std::span<std::byte> payload, kernels::Status status,
                bool framed, std::uint64_t slots_end);
  [[nodiscard]] bool is_wanted(std::uint64_t first, std::uint32_t count) noexcept;

  SlotQueue slots_;
  Receiver receiver_;
  std::uint32_t capacity_;  ///< a power of two
  BatchBuffer batch_;
  std::uint32_t batch_limit_ = 0;  ///< of what is gathered
  // Messages: posted >= received >= released.
  std::uint64_t posted_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t released_ = 0;
  // The last that was asked for, as most requests have one length.
  std::uint32_t last_length_ = ~0U;  ///< longer than any
  std::uint32_t longest_response_ = 0;
  std::unique_ptr<SendTask[]> sends_;  ///< by message
  /// By message, from where the last flush that found all released began anew: so what is received
  /// and released in a turn stays in the cache.
  std::unique_ptr<PostRecvTask[]> receives_;
  std::uint64_t first_receive_ = 0;               ///< the message that has the first of them
  std::unique_ptr<std::uint32_t[]> messages_of_;  ///< by slot
  std::unique_ptr<std::uint32_t[]> moving_;       ///< the same in move_to(), from the oldest on
};

}  // namespace offload::channel
