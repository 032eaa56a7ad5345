#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <functional>
#include <string_view>

#include "progress/engine.hpp"
#include "rdma/verbs/device_context.hpp"

namespace offload::rdma {

/// Something about a device, a port or a queue that no completion tells.
struct AsyncEvent {
  enum class About : std::uint8_t { device, port, queue_pair, completion_queue, shared_receives };

  ibv_event_type type = IBV_EVENT_DEVICE_FATAL;
  About about = About::device;
  std::uint8_t port = 0;     ///< of a port's event
  const void* of = nullptr;  ///< the ibv_qp, ibv_cq or ibv_srq of a queue's event

  /// "port active", "CQ error", ...
  [[nodiscard]] std::string_view name() const noexcept { return ibv_event_type_str(type); }
};

/// Delivers the asynchronous events of a device on the engine's thread, each acknowledged once the
/// callback has returned, which must not throw. A queue that an event is about cannot be ended from
/// inside: it would wait for the acknowledgement.
///
/// Device and engine outlive it. One of these a device.
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
