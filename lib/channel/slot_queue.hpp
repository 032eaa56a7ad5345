#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "channel/doorbell.hpp"
#include "core/clock.hpp"
#include "core/status.hpp"
#include "kernels/channel_layout.hpp"
#include "progress/engine.hpp"

namespace offload::channel {

/// The requester's end of a channel's memory, which outlives the requester's use of it.
struct Endpoint {
  std::uint32_t index;
  kernels::ChannelView view;
  Ringer ringer;            ///< wakes the worker
  Waiter waiter;            ///< for its responses
  std::uint64_t first = 0;  ///< the sequence of the first slot to be sent
};

/// What a slot carries: a message, or a batch of them as it lies in the slot
/// (kernels/slot_batch.hpp).
struct Content {
  std::span<const std::byte> bytes;
  std::uint32_t count = 0;  ///< messages of a batch; 0: it is one message
};

/// What a slot brought back. `bytes` that fit in packets are a copy, longer ones lie in the slot,
/// where the worker can still change them.
struct ContentResponse {
  std::uint64_t sequence;
  kernels::Status status;  ///< not ok: no bytes
  std::span<std::byte> bytes;
  std::uint32_t count;  ///< as Content's
};

/// The slots of a channel as its requester uses them: written in order, answered in order. A slot
/// is taken from post() until its response is released and that is flushed.
///
/// On its engine, and one thread, the engine's. Nothing allocates after construction.
class SlotQueue final : progress::Pollable, progress::EventHandler {
 public:
  /// `handler`.on_content(const ContentResponse&) is called with each response, from turns of the
  /// engine. It may post, release and close. It outlives the queue.
  template <class Handler>
  SlotQueue(const Endpoint& endpoint, Handler& handler)
      : SlotQueue(endpoint, &deliver<Handler>, &handler) {}
  SlotQueue(const SlotQueue&) = delete;
  SlotQueue& operator=(const SlotQueue&) = delete;
  ~SlotQueue();

  /// Begins, once. Throws Error.
  void open(progress::Engine& engine);
  /// Ends it: no more is posted and no response is taken.
  void close() noexcept;
  /// Its engine, while it is open; else null.
  [[nodiscard]] progress::Engine* engine() const noexcept { return engine_; }

  /// Copies `content`, of at most max_content() bytes, or max_length() if it is one message, into
  /// the next slot, unless it is a long one that lies there already; the worker may see it at once.
  /// Precondition: open, !full().
  void post(Content content) noexcept;
  /// The slots of the responses before that of `end` are free from the next flush on. Their
  /// sequences.
  void release_until(std::uint64_t end) noexcept { released_ = end; }
  /// For the handler, of a batch: a copy of the response's bytes that lasts until it is released,
  /// and that the worker cannot change.
  [[nodiscard]] std::span<std::byte> copy(std::span<const std::byte> batch) noexcept;
  /// Frees what was released, and wakes the worker for what was posted.
  void flush() noexcept;

  /// Goes on over another memory of the same shape, with another worker: posts the contents without
  /// a response there again, in their order, unless `keep(sequence)` says no. All responses were
  /// released and flushed. Throws Error: invalid_value, bad_state, or that the doorbell cannot be
  /// watched; then nothing has changed.
  using Keep = std::function<bool(std::uint64_t sequence)>;
  void move_to(const Endpoint& endpoint, Wakeup wakeup, const Keep& keep);

  /// With `none` no response is taken any more, whatever the former worker writes.
  void set_wakeup(Wakeup wakeup) noexcept { wakeup_ = wakeup; }
  [[nodiscard]] Wakeup wakeup() const noexcept { return wakeup_; }

  [[nodiscard]] const kernels::ChannelView& view() const noexcept { return view_; }
  [[nodiscard]] std::uint32_t depth() const noexcept { return view_.layout.depth; }
  [[nodiscard]] std::uint32_t max_length() const noexcept { return view_.layout.max_length; }
  [[nodiscard]] std::uint32_t max_response() const noexcept { return view_.layout.max_response; }
  /// Slots that can be posted.
  [[nodiscard]] std::uint64_t room() const noexcept { return depth() - (posted_ - freed_); }
  [[nodiscard]] bool full() const noexcept { return room() == 0; }
  /// Up to here slots were posted, and their responses taken: sequences.
  [[nodiscard]] std::uint64_t posted() const noexcept { return posted_; }
  [[nodiscard]] std::uint64_t received() const noexcept { return received_; }
  /// Slots without a response yet.
  [[nodiscard]] std::uint64_t awaited() const noexcept { return posted_ - received_; }

  // As an engine calls them; for tests too.
  [[nodiscard]] progress::Expecting expecting() const override;
  core::Duration arm() override;
  void disarm() override;

 private:
  using Receiver = void (*)(void* handler, const ContentResponse& response);
  template <class Handler>
  static void deliver(void* handler, const ContentResponse& response) {
    static_cast<Handler*>(handler)->on_content(response);
  }

  SlotQueue(const Endpoint& endpoint, Receiver receiver, void* handler);

  bool poll() override;
  void on_events(std::uint32_t) override { waiter_.drain(); }

  void write(const kernels::Slot& slot, std::uint32_t flag, Content content) noexcept;
  void repost(const kernels::ChannelView& from, std::uint64_t sequence) noexcept;
  bool take(ContentResponse& response) noexcept;
  [[nodiscard]] std::byte* next_copy() noexcept;

  kernels::ChannelView view_;
  Ringer ringer_;
  Waiter waiter_;
  Receiver receiver_;
  void* handler_;
  progress::Engine* engine_ = nullptr;
  Wakeup wakeup_ = Wakeup::none;
  bool armed_ = false;
  // Sequences: posted >= received >= released >= freed.
  std::uint64_t posted_;
  std::uint64_t received_;
  std::uint64_t released_;
  std::uint64_t freed_;      ///< released_ as of the last flush
  std::uint64_t announced_;  ///< posted_ as of the last ring
  // Copies of contents that are not released, a ring of bytes.
  std::unique_ptr<std::byte[]> copies_;
  std::size_t copies_end_ = 0;
};

}  // namespace offload::channel
