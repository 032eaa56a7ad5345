#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <functional>
#include <string_view>

#include "progress/engine.hpp"
#include "rdma/verbs/device_context.hpp"

namespace offload::rdma {

/// An asynchronous event of a device (ibv_async_event, ibv_get_async_event(3)).
struct AsyncEvent {
  enum class About : std::uint8_t { device, port, queue_pair, completion_queue, srq };

  ibv_event_type type = IBV_EVENT_DEVICE_FATAL;
  About about = About::device;
  std::uint8_t port = 0;     ///< of a port event
  const void* of = nullptr;  ///< the ibv_qp, ibv_cq or ibv_srq of a queue event

  /// "port active", "CQ error", ...
  [[nodiscard]] std::string_view name() const noexcept { return ibv_event_type_str(type); }
};

/// Delivers the asynchronous events of a device on the engine's thread. Each is acknowledged after
/// the callback, which must not throw and must not end the queue that the event is about: ending a
/// queue waits for the acknowledgement of its events (ibv_get_async_event(3)).
///
/// Device and engine outlive it. At most one for each device.
class AsyncEvents final : progress::EventHandler {
 public:
  using Callback = std::function<void(const AsyncEvent&)>;

  /// Throws Error.
  AsyncEvents(const DeviceContext& device, progress::Engine& engine, Callback callback);
  AsyncEvents(const AsyncEvents&) = delete;
  AsyncEvents& operator=(const AsyncEvents&) = delete;
  ~AsyncEvents();

 private:
  void on_events(std::uint32_t epoll_events) override;

  ibv_context* device_;
  progress::Engine* engine_;
  Callback callback_;
};

}  // namespace offload::rdma
