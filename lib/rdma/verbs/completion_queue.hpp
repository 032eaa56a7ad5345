#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.hpp"
#include "rdma/verbs/device_context.hpp"
#include "rdma/verbs/handle.hpp"

namespace offload::rdma {

/// Tells through a file descriptor that completions have come. Move-only; the device outlives it,
/// and it outlives the completion queues made with it.
class CompletionChannel {
 public:
  /// Throws Error.
  explicit CompletionChannel(const DeviceContext& device);

  [[nodiscard]] ibv_comp_channel* get() const noexcept { return native_.get(); }
  /// Readable while an event waits. It does not block.
  [[nodiscard]] int fd() const noexcept { return native_->fd; }
  /// Takes the events that wait, and acknowledges them. Returns how many there were.
  std::size_t take_events() noexcept;

 private:
  Handle<ibv_comp_channel, ibv_destroy_comp_channel> native_;
};

/// Where finished work is told. Move-only; device and channel outlive it, and it outlives the queue
/// pairs that use it. One thread polls and arms.
///
/// To sleep: arm(), poll until there is nothing, wait for the channel. What comes after the arming
/// makes one event.
class CompletionQueue {
 public:
  /// Room for `depth` completions or more; a queue that overflows is lost, and its queue pairs with
  /// it. Throws Error.
  CompletionQueue(const DeviceContext& device, std::uint32_t depth,
                  const CompletionChannel* channel = nullptr, int vector = 0);

  [[nodiscard]] ibv_cq* get() const noexcept { return native_.get(); }
  [[nodiscard]] std::uint32_t depth() const noexcept {
    return static_cast<std::uint32_t>(native_->cqe);
  }

  /// Takes completions into the front of `into`; what is returned is that part. Empty also where
  /// the device fails, which failed() tells then.
  std::span<ibv_wc> poll(std::span<ibv_wc> into) noexcept;
  [[nodiscard]] bool failed() const noexcept { return failed_; }

  /// Asks for one event on the channel with the next completion, or the next that the sender marked
  /// as solicited.
  core::Status arm(bool solicited_only = false) noexcept;

  /// At most one event for `count` completions or `period` microseconds, whichever comes first.
  /// Throws Error: not_supported where the device has no moderation.
  void moderate(std::uint16_t count, std::uint16_t period);

 private:
  Handle<ibv_cq, ibv_destroy_cq> native_;
  bool failed_ = false;
};

}  // namespace offload::rdma
