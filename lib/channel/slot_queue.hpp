#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "channel/doorbell.hpp"
#include "core/clock.hpp"
#include "core/status.hpp"
#include "kernels/channel_layout.hpp"
#include "progress/engine.hpp"

namespace offload::channel {

/// The requester's end of a channel's memory, which outlives the requester's use of it.
struct ChannelEndpoint {
  std::uint32_t index;
  kernels::ChannelView view;
  Ringer ringer;            ///< wakes the worker
  Waiter waiter;            ///< for its responses
  std::uint64_t first = 0;  ///< the sequence of the first slot to be sent
};

/// The content of a slot: a message, or a batch of them in the format of kernels/slot_batch.hpp.
struct Content {
  std::span<const std::byte> bytes;
  std::uint32_t count = 0;  ///< messages of a batch; 0: a single message
};

/// The response to a content. `bytes` that fit in packets are a copy; longer ones are in the slot,
/// where the worker can still change them.
struct ContentResponse {
  std::uint64_t sequence;
  kernels::ResponseStatus status;  ///< not ok: no bytes
  std::span<std::byte> bytes;
  std::uint32_t count;  ///< as Content's
};

/// The slots of a channel on the requester's side, written and answered in order. A slot is in use
/// from post() until its response is released and flushed.
///
/// One thread, that of its engine. Nothing allocates after construction.
class SlotQueue final : progress::Pollable, progress::EventHandler {
 public:
  /// Calls `handler`.on_content(const ContentResponse&) with each response, from turns of the
  /// engine. The handler may post, release and close. It outlives the queue.
  template <class Handler>
  SlotQueue(const ChannelEndpoint& endpoint, Handler& handler)
      : SlotQueue(endpoint, &deliver<Handler>, &handler) {}
  SlotQueue& operator=(SlotQueue&&) = delete;
  ~SlotQueue();

  /// Opens the queue, once. Throws Error.
  void open(progress::Engine& engine);
  /// Closes it: no more contents are posted and no responses taken.
  void close() noexcept;
  /// Returns its engine while it is open, else null.
  [[nodiscard]] progress::Engine* engine() const noexcept { return engine_; }

  /// Copies `content`, of at most max_content() bytes, or max_length() for a single message, into
  /// the next slot, unless it is a long one that is already there; the worker may see it
  /// immediately. Precondition: open, !full().
  void post(Content content) noexcept;
  /// Frees the slots of the responses before sequence `end`, from the next flush on.
  void release_until(std::uint64_t end) noexcept { released_ = end; }
  /// Copies the bytes of a batch for the handler; the worker cannot change the copy, which is valid
  /// until the response is released.
  [[nodiscard]] std::span<std::byte> copy(std::span<const std::byte> batch) noexcept;
  /// Frees released slots, and wakes the worker for posted ones.
  void flush() noexcept;

  /// Moves to another memory of the same shape, with another worker: reposts the contents without a
  /// response there, in order, unless `keep(sequence)` returns false. All responses must have been
  /// released and flushed. Throws Error: invalid_value, bad_state, or an error of watching the
  /// doorbell; then nothing has changed.
  using Keep = std::function<bool(std::uint64_t sequence)>;
  void move_to(const ChannelEndpoint& endpoint, Wakeup wakeup, const Keep& keep);

  /// Sets the wakeup; with `none`, responses of the former worker are ignored.
  void set_wakeup(Wakeup wakeup) noexcept { wakeup_ = wakeup; }
  [[nodiscard]] Wakeup wakeup() const noexcept { return wakeup_; }

  [[nodiscard]] const kernels::ChannelView& view() const noexcept { return view_; }
  [[nodiscard]] std::uint32_t depth() const noexcept { return view_.layout.depth; }
  [[nodiscard]] std::uint32_t max_length() const noexcept { return view_.layout.max_length; }
  [[nodiscard]] std::uint32_t max_response() const noexcept { return view_.layout.max_response; }
  /// Returns the number of slots that can be posted.
  [[nodiscard]] std::uint64_t room() const noexcept { return depth() - (posted_ - freed_); }
  [[nodiscard]] bool full() const noexcept { return room() == 0; }
  /// Return the sequences before which slots were posted, and their responses taken.
  [[nodiscard]] std::uint64_t posted() const noexcept { return posted_; }
  [[nodiscard]] std::uint64_t received() const noexcept { return received_; }
  /// Returns the number of slots without a response.
  [[nodiscard]] std::uint64_t awaited() const noexcept { return posted_ - received_; }

  // Called by an engine; public for tests.
  [[nodiscard]] progress::Expecting expecting() const override;
  core::Duration arm() override;
  void disarm() override {
    if (std::exchange(armed_, false)) waiter_.disarm();
  }

 private:
  using Receiver = void (*)(void* handler, const ContentResponse& response);
  template <class Handler>
  static void deliver(void* handler, const ContentResponse& response) {
    static_cast<Handler*>(handler)->on_content(response);
  }

  SlotQueue(const ChannelEndpoint& endpoint, Receiver receiver, void* handler);

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
