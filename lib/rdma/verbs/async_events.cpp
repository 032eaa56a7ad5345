#include "rdma/verbs/async_events.hpp"

#include <fcntl.h>

#include <utility>

#include "rdma/verbs/error.hpp"

namespace offload::rdma {
namespace {

using About = AsyncEvent::About;

AsyncEvent translate(const ibv_async_event& event) noexcept {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR: return {event.event_type, About::completion_queue, 0, event.element.cq};
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return {event.event_type, About::queue_pair, 0, event.element.qp};
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: return {event.event_type, About::srq, 0, event.element.srq};
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      return {event.event_type, About::port, static_cast<std::uint8_t>(event.element.port_num),
              nullptr};
    default: return {event.event_type, About::device, 0, nullptr};
  }
}

}  // namespace

AsyncEvents::AsyncEvents(const DeviceContext& device, progress::Engine& engine, Callback callback)
    : device_(device.get()), engine_(&engine), callback_(std::move(callback)) {
  const int flags = core::check_errno(::fcntl(device_->async_fd, F_GETFL), "fcntl");
  core::check_errno(::fcntl(device_->async_fd, F_SETFL, flags | O_NONBLOCK), "fcntl");
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
  callback_(translate(event));
  ibv_ack_async_event(&event);
}

}  // namespace offload::rdma
