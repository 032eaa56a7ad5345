#pragma once

#include <infiniband/verbs.h>

#include <functional>
#include <utility>

#include "rdma/verbs/device_context.hpp"

namespace offload::rdma {

/// The asynchronous events of a device. Each is acknowledged after the callback, which must not
/// throw and must not end the queue that the event is about: ending a queue waits for the
/// acknowledgement of its events (ibv_get_async_event(3)).
///
/// The device outlives it. At most one for each device. One thread.
class AsyncEvents {
 public:
  using Callback = std::function<void(const ibv_async_event&)>;

  /// Throws Error.
  AsyncEvents(const DeviceContext& device, Callback callback)
      : device_(device.get()), callback_(std::move(callback)) {
    set_nonblocking(device_->async_fd);
  }

  /// Readable when deliver() has something to do.
  [[nodiscard]] int fd() const noexcept { return device_->async_fd; }
  /// Delivers the events that have arrived, if there are any.
  void deliver() {
    ibv_async_event event{};
    while (ibv_get_async_event(device_, &event) == 0) {
      callback_(event);
      ibv_ack_async_event(&event);
    }
  }

 private:
  ibv_context* device_;
  Callback callback_;
};

}  // namespace offload::rdma
