#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "progress/engine.hpp"
#include "rdma/verbs/device_context.hpp"

namespace offload::rdma {

/// Delivers the asynchronous events of a device on the engine's thread.
/// Each is acknowledged after the callback, which must not throw and must not end the queue that
/// the event is about: ending a queue waits for the acknowledgement of its events
/// (ibv_get_async_event(3)).
///
/// Device and engine outlive it. At most one for each device.
class AsyncEvents final : progress::EventHandler {
 public:
  using Callback = std::function<void(const ibv_async_event&)>;

  /// Throws Error.
  AsyncEvents(const DeviceContext& device, progress::Engine& engine, Callback callback)
      : device_(device.get()), engine_(&engine), callback_(std::move(callback)) {
    set_nonblocking(device_->async_fd);
    engine_->watch(device_->async_fd, EPOLLIN, *this);
  }
  AsyncEvents(const AsyncEvents&) = delete;
  AsyncEvents& operator=(const AsyncEvents&) = delete;
  ~AsyncEvents() { engine_->unwatch(device_->async_fd, *this); }

 private:
  void on_events(std::uint32_t) override {
    // One event a call: the descriptor stays readable while there are more, and the callback may
    // end this object.
    ibv_async_event event{};
    if (ibv_get_async_event(device_, &event) != 0) return;
    callback_(event);
    ibv_ack_async_event(&event);
  }

  ibv_context* device_;
  progress::Engine* engine_;
  Callback callback_;
};

}  // namespace offload::rdma
