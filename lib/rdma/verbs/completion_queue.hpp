#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/status.hpp"
#include "rdma/verbs/device_context.hpp"

namespace offload::rdma {

/// An event of a completion channel: of which queue, and what that was made with.
struct CompletionEvent {
  ibv_cq* queue = nullptr;  ///< CompletionQueue::get()
  void* context = nullptr;  ///< CompletionQueue::context()
};

/// A completion channel (ibv_comp_channel): a file descriptor that becomes readable when an armed
/// completion queue gets a completion. Move-only; the device outlives it, and it outlives the
/// completion queues made with it.
class CompletionChannel {
 public:
  /// Throws Error.
  explicit CompletionChannel(const DeviceContext& device);

  [[nodiscard]] ibv_comp_channel* get() const noexcept { return native_.get(); }
  /// Readable while an event is pending; non-blocking.
  [[nodiscard]] int fd() const noexcept { return native_->fd; }
  /// Takes and acknowledges the oldest pending event, which names one of the queues of a channel;
  /// nothing if there is none.
  std::optional<CompletionEvent> take_event() noexcept;
  /// Takes and acknowledges all pending events (ibv_get_cq_event(3)). Returns their number.
  std::size_t take_events() noexcept;

 private:
  Handle<ibv_comp_channel, ibv_destroy_comp_channel> native_;
};

/// A completion queue (ibv_cq). Move-only; device and channel outlive it, and it outlives the queue
/// pairs that use it. One thread polls and arms.
///
/// To sleep: arm(), poll until it is empty, wait for the channel. The first completion after arm()
/// makes one event (ibv_req_notify_cq(3)).
class CompletionQueue {
 public:
  /// For at least `depth` completions. An overflow is fatal to the queue and its queue pairs
  /// (ibv_poll_cq(3)). `cq_context`: the caller's, for CompletionEvent. Throws Error.
  CompletionQueue(const DeviceContext& device, std::uint32_t depth,
                  const CompletionChannel* channel = nullptr, int comp_vector = 0,
                  void* cq_context = nullptr);

  [[nodiscard]] ibv_cq* get() const noexcept { return native_.get(); }
  [[nodiscard]] std::uint32_t depth() const noexcept {
    return static_cast<std::uint32_t>(native_->cqe);
  }

  /// Returns the context that it was made with, as in the CompletionEvents of its channel.
  [[nodiscard]] void* context() const noexcept { return native_->cq_context; }

  /// Takes completions into the front of `into` and returns that part. It is also empty after a
  /// device failure, which sets failed().
  std::span<ibv_wc> poll(std::span<ibv_wc> into) noexcept {
    const int count = ibv_poll_cq(get(), static_cast<int>(into.size()), into.data());
    failed_ = failed_ || count < 0;
    return into.first(count < 0 ? 0 : static_cast<std::size_t>(count));
  }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

  /// Requests one event on the channel for the next completion, or the next solicited one.
  core::Status arm(bool solicited_only = false) noexcept;
  /// At most one event for `count` completions or `period` microseconds, whichever comes first
  /// (ibv_modify_cq(3)). Throws Error: not_supported where the device has no moderation.
  void moderate(std::uint16_t count, std::uint16_t period);

 private:
  Handle<ibv_cq, ibv_destroy_cq> native_;
  bool failed_ = false;
};

}  // namespace offload::rdma
