#include "rdma/verbs/async_events.hpp"

#include <utility>

#include "rdma/verbs/error.hpp"

namespace offload::rdma {
AsyncEvents::AsyncEvents(const DeviceContext& device, progress::Engine& engine, Callback callback)
    : device_(device.get()), engine_(&engine), callback_(std::move(callback)) {
  set_nonblocking(device_->async_fd);
  engine_->watch(device_->async_fd, EPOLLIN, *this);
}

AsyncEvents::~AsyncEvents() {
  engine_->unwatch(device_->async_fd, *this);
}

void AsyncEvents::on_events(std::uint32_t) {
  // One event a call: the descriptor stays readable while there are more, and the callback may end
  // this object.
  ibv_async_event event{};
  if (ibv_get_async_event(device_, &event) != 0) return;
  callback_(event);
  ibv_ack_async_event(&event);
}

}  // namespace offload::rdma
